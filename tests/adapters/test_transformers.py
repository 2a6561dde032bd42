"""Both stages in a Trainer of transformers: the numbers of ``umix run``, features mixed, checkpoints, precisions and refusals.

All in one file, because the Trainer takes seconds to import.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from accelerate.state import AcceleratorState
from torch import Tensor, distributed, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, IterableDataset, Sampler
from transformers import Trainer, TrainingArguments

from umix import Groups, IndexedDataset, UserError, WeightedMixup
from umix.adapters.transformers import GroupMetrics, RecordingTrainer, UMIXTrainer
from umix.adapters.transformers.trainers import classification_head

pytestmark = pytest.mark.system

N = 40


def silence() -> None:
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()


@pytest.fixture(autouse=True)
def quiet() -> None:
    silence()


def texts(n: int = N) -> list[dict[str, Any]]:
    """Token ids whose first word is the class, in most of them."""
    ids = torch.randint(4, 12, (n, 6), generator=torch.Generator().manual_seed(0))
    labels = torch.arange(n) % 2
    ids[:, 0], ids[:, 1] = 2, torch.where(torch.arange(n) % 5 == 0, 5 - labels, 4 + labels)
    return [
        {"input_ids": row, "labels": int(y), "note": "not for the model"} for row, y in zip(ids, labels, strict=True)
    ]


def bert(**changes: Any) -> nn.Module:
    torch.manual_seed(0)
    sizes = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16, "vocab_size": 12, "max_position_embeddings": 16}
    config = transformers.DistilBertConfig(**sizes, pad_token_id=0, **changes)
    return transformers.DistilBertForSequenceClassification(config)


def arguments(folder: Path, **changes: Any) -> TrainingArguments:
    usual = {"per_device_train_batch_size": 8, "num_train_epochs": 2, "learning_rate": 1e-2, "seed": 0}
    silent = {
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "use_cpu": True,
        "logging_strategy": "no",
    }
    return TrainingArguments(output_dir=str(folder), **{**usual, **silent, **changes})  # type: ignore[arg-type]


def recording(folder: Path, **changes: Any) -> RecordingTrainer:
    return RecordingTrainer(model=bert(), args=arguments(folder, **changes), train_dataset=texts())


def mixing(folder: Path, *, model: nn.Module | None = None, **changes: Any) -> UMIXTrainer:
    own = ("weights", "sigma", "alpha", "per_example", "mixing", "head", "loss", "train_dataset", "compute_loss_func")
    given = {name: changes.pop(name) for name in own if name in changes}
    usual = {"weights": torch.linspace(0.5, 1.5, N), "train_dataset": texts()}
    return UMIXTrainer(model=model or bert(), args=arguments(folder, **changes), **{**usual, **given})


def assert_same_parameters(first: nn.Module, second: nn.Module, *, exactly: bool = True) -> None:
    for mine, other in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(mine, other, **({"rtol": 0, "atol": 0} if exactly else {"rtol": 1e-5, "atol": 1e-6}))


class Logits(nn.Module):
    """A net as the Trainer wants it: inputs by name, the loss and the logits out."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        logits = self.net(x)
        return {"logits": logits} if labels is None else {"loss": cross_entropy(logits, labels), "logits": logits}


class InOrder(Sampler[int]):
    """The orders of the epochs of a run, one after the other."""

    def __init__(self, run: Any, stage: str) -> None:
        self.orders = iter([run.order(stage, epoch) for epoch in range(run.epochs)])
        self.n = len(run.train)

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[int]:
        return iter(next(self.orders))


def test_the_trainers_give_the_weights_and_the_net_of_a_run(same_run: Callable[..., Any], tmp_path: Path) -> None:
    run = same_run("features")
    dataset = [{"x": x, "labels": int(y)} for x, y in zip(run.train.x, run.train.y, strict=True)]
    args = arguments(
        tmp_path, num_train_epochs=run.epochs, per_device_train_batch_size=run.batch_size, max_grad_norm=0.0
    )

    def given(stage: str) -> dict[str, Any]:
        model = Logits(run.first_net(stage))
        optimizer = run.optimizer(model)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
        return {"model": model, "args": args, "train_dataset": dataset, "optimizers": (optimizer, schedule)}

    class OwnOrder(Trainer):
        stage = "trajectory"

        def get_train_dataloader(self) -> DataLoader[Any]:
            order = InOrder(run, self.stage)
            return DataLoader(
                self.train_dataset, batch_size=run.batch_size, sampler=order, collate_fn=self.data_collator
            )

    class First(RecordingTrainer, OwnOrder):
        pass

    class Second(UMIXTrainer, OwnOrder):
        stage = "fit"

    first = First(**given("trajectory"))
    first.train()
    weights = first.trajectory.weights(eta=run.eta)
    assert torch.equal(weights, run.weights)
    assert len(weights.unique()) > 1

    second = Second(**given("fit"), weights=weights, sigma=run.sigma, alpha=run.alpha, head="net.head")
    second.train()
    assert_same_parameters(second.model.net, run.net, exactly=False)


def test_recording_changes_nothing_in_training(tmp_path: Path) -> None:
    plain = Trainer(model=bert(), args=arguments(tmp_path), train_dataset=texts())
    plain.train()
    trainer = recording(tmp_path)
    trainer.train()
    assert_same_parameters(trainer.model, plain.model)
    assert trainer.trajectory.epochs == 2
    assert 0 < trainer.trajectory.rates()[1] <= 1
    trainer.train()  # a training anew has a trajectory of its own
    assert trainer.trajectory.epochs == 2
    assert isinstance(trainer.train_dataset, list)


def test_logits_that_a_loss_adjusts_in_place_are_recorded_as_the_model_gave_them(tmp_path: Path) -> None:
    def plain(outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        return cross_entropy(outputs.logits, labels)

    def adjusting(outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        loss = cross_entropy(outputs.logits, labels)
        outputs.logits.data.mul_(-1)
        return loss

    rates = []
    for loss in (plain, adjusting):
        trainer = RecordingTrainer(
            model=bert(), args=arguments(tmp_path), train_dataset=texts(), compute_loss_func=loss
        )
        trainer.train()
        rates.append(trainer.trajectory.rates())
    assert rates[0] == rates[1]


def test_the_data_collator_is_called_with_the_examples_as_they_are(tmp_path: Path) -> None:
    seen: list[set[str]] = []

    def collate(examples: list[dict[str, Any]]) -> dict[str, Tensor]:
        seen.extend(set(example) for example in examples)
        ids = torch.stack([example["input_ids"] for example in examples])
        return {"input_ids": ids, "labels": torch.tensor([example["labels"] for example in examples])}

    for removed, names in ((True, {"input_ids", "labels"}), (False, {"input_ids", "labels", "note"})):
        args = arguments(tmp_path, num_train_epochs=1, remove_unused_columns=removed)
        given = {"model": bert(), "args": args, "data_collator": collate}
        RecordingTrainer(**given, train_dataset=texts()).train()
        assert seen == [names] * N
        seen.clear()
    pairs = [(example["input_ids"], example["labels"]) for example in texts()]
    given["data_collator"] = lambda rows: {
        "input_ids": torch.stack([x for x, _ in rows]),
        "labels": torch.tensor([y for _, y in rows]),
    }
    trainer = RecordingTrainer(**given, train_dataset=IndexedDataset(pairs))
    trainer.train()
    assert trainer.trajectory.weights(eta=1).shape == (N,)


def batch(rows: slice) -> dict[str, Any]:
    ids = torch.stack([example["input_ids"] for example in texts()[rows]])
    return {"input_ids": ids, "labels": torch.tensor([example["labels"] for example in texts()[rows]])}


@pytest.mark.parametrize("per_example", [False, True])
def test_features_are_mixed_as_before_the_head_in_a_loop_of_ones_own(tmp_path: Path, per_example: bool) -> None:
    model = bert(dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0).train()
    trainer = mixing(tmp_path, model=model, sigma=1.0, per_example=per_example)
    given, index = batch(slice(3, 11)), torch.arange(3, 11)
    mixup = WeightedMixup(torch.linspace(0.5, 1.5, N), sigma=1.0, per_example=per_example)
    expected = mixup(
        lambda ids: model(input_ids=ids).logits, given["input_ids"], given["labels"], index, before=model.classifier
    )
    torch.testing.assert_close(trainer.compute_loss(model, {**given, "index": index}), expected)
    own = cross_entropy(model(input_ids=given["input_ids"]).logits, given["labels"])
    assert abs(expected - own) > 1e-4
    assert not model.classifier._forward_pre_hooks


def test_the_texts_of_a_decoder_are_mixed_at_their_own_last_tokens(tmp_path: Path) -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.LlamaConfig(
        **sizes, vocab_size=12, pad_token_id=0, bos_token_id=2, eos_token_id=3, num_labels=2
    )
    model = transformers.LlamaForSequenceClassification(config).train()
    given = batch(slice(0, 8))
    for i, length in enumerate((6, 3, 5, 2, 6, 4, 1, 3)):
        given["input_ids"][i, length:] = 0
    last = (given["input_ids"] != 0).sum(dim=1) - 1
    mixup = WeightedMixup(torch.linspace(0.5, 1.5, N), sigma=1.0)
    pairs = mixup.pairs(given["labels"], torch.arange(8))
    features = model.model(input_ids=given["input_ids"]).last_hidden_state[torch.arange(8), last]
    expected = pairs.loss(model.score(pairs.inputs(features)))
    trainer = mixing(tmp_path, model=model, sigma=1.0)
    torch.testing.assert_close(trainer.compute_loss(model, {**given, "index": torch.arange(8)}), expected)


def test_images_are_mixed_as_inputs_where_asked(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(48, 2))
    x, y, index = torch.randn(6, 3, 4, 4), torch.tensor([0, 1] * 3), torch.arange(6)
    for how in ("input", "cutmix"):
        trainer = mixing(tmp_path, model=Logits(net), mixing=how, sigma=1.0)
        expected = WeightedMixup(torch.linspace(0.5, 1.5, N), sigma=1.0, mixing=how)(net, x, y, index)  # type: ignore[arg-type]
        assert torch.equal(trainer.compute_loss(trainer.model, {"x": x, "labels": y, "index": index}), expected)


@pytest.mark.parametrize("takes_count", [False, True])
def test_a_step_of_accumulated_batches_is_the_mean_over_all_its_examples(tmp_path: Path, takes_count: bool) -> None:
    """28 examples: a step of 8 + 8, and a last one of 8 + 4, against steps of 16 and 12."""
    trained = []
    for size, steps in ((8, 2), (16, 1)):
        model = bert(dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0)
        model.accepts_loss_kwargs = takes_count  # type: ignore[assignment]
        trainer = mixing(
            tmp_path,
            model=model,
            train_dataset=texts(28),
            weights=torch.linspace(0.5, 1.5, 28),
            sigma=0.0,
            per_device_train_batch_size=size,
            gradient_accumulation_steps=steps,
            optim="sgd",
        )
        assert trainer.train().global_step == 4
        trained.append(trainer.model)
    assert_same_parameters(*trained, exactly=False)


@pytest.mark.parametrize("step", [5, 7])  # the last of the first epoch, and in the middle of the second
@pytest.mark.parametrize("make", [recording, mixing])
def test_a_resumed_training_ends_as_an_unbroken_one(make: Any, step: int, tmp_path: Path) -> None:
    options = {"num_train_epochs": 3, "save_strategy": "steps", "save_steps": step}
    unbroken = make(tmp_path / "a", **options)
    unbroken.train()
    resumed = make(tmp_path / "b", **options)
    resumed.train(resume_from_checkpoint=str(tmp_path / "a" / f"checkpoint-{step}"))
    assert_same_parameters(resumed.model, unbroken.model)
    kept, expected = (getattr(each, "mixup", None) or each.trajectory for each in (resumed, unbroken))
    kept, expected = kept.state_dict(), expected.state_dict()
    assert kept.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(kept[name], value) if isinstance(value, Tensor) else kept[name] == value
    if make is recording:
        assert len(resumed.trajectory.weights(eta=3).unique()) > 1
    else:
        assert (resumed.mixup.epoch, unbroken.mixup.epoch) == (3, 3)


def one_of_two(rank: int, folder: Path) -> None:
    """Both stages in one of two processes, each also resumed from a checkpoint; what came out is written to ``folder``."""
    places = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": 2,
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": 0,
        "OMP_NUM_THREADS": 1,
    }
    os.environ.update({name: str(value) for name, value in places.items()})
    AcceleratorState._reset_state(reset_partial_state=True)  # the parent's, which is alone
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    options = {"save_strategy": "steps", "save_steps": 4, "ddp_find_unused_parameters": False}  # 3 steps are an epoch
    first, again = (recording(folder / name, **options) for name in ("first", "again"))
    first.train()
    again.train(resume_from_checkpoint=str(folder / "first" / "checkpoint-4"))
    weights = first.trajectory.weights(eta=3)
    assert torch.equal(again.trajectory.weights(eta=3), weights)

    second, again = (mixing(folder / name, weights=weights, **options) for name in ("second", "again"))
    second.train()
    again.train(resume_from_checkpoint=str(folder / "second" / "checkpoint-4"))
    assert_same_parameters(again.model, second.model)

    made = {name: part.detach() for name, part in second.model.named_parameters()}
    drawn = second.mixup.pairs(torch.zeros(8), torch.arange(8)).rng.random()
    torch.save({"weights": weights, "drawn": drawn, **made}, folder / f"{rank}.pt")
    distributed.destroy_process_group()


def test_two_processes_record_all_examples_and_resume_from_their_checkpoints(tmp_path: Path) -> None:
    """Of 40 examples each process sees 20; in stage 2 both have the same model, with random numbers of their own."""
    fork = multiprocessing.get_context("fork")  # transformers takes seconds to import
    both = [fork.Process(target=one_of_two, args=(rank, tmp_path)) for rank in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert len(first["weights"].unique()) > 1
    assert first.pop("drawn") != second.pop("drawn")
    assert all(torch.equal(part, second[name]) for name, part in first.items())


def test_an_epoch_in_which_training_stops_is_not_in_the_window(tmp_path: Path) -> None:
    trainer = recording(tmp_path, max_steps=7)
    trainer.train()
    assert trainer.trajectory.epochs == 1
    assert trainer.trajectory.weights(eta=3).shape == (N,)


@pytest.mark.parametrize("make", [recording, mixing])
def test_bfloat16_trains_to_finite_parameters(make: Any, tmp_path: Path) -> None:
    trainer = make(tmp_path, bf16=True, num_train_epochs=1)
    assert trainer.train().training_loss == pytest.approx(0.7, abs=0.5)
    assert all(bool(part.isfinite().all()) for part in trainer.model.parameters())


def test_smoothed_labels_and_a_loss_of_ones_own_are_weighted_and_mixed(tmp_path: Path) -> None:
    model = bert(dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0).train()
    given, index = batch(slice(0, 8)), torch.arange(8)

    def smoothed(logits: Tensor, y: Tensor) -> Tensor:
        log_p = logits.log_softmax(dim=1)
        return -0.8 * log_p.gather(1, y[:, None])[:, 0] - 0.2 * log_p.mean(dim=1)

    by_args = mixing(tmp_path, model=model, sigma=1.0, label_smoothing_factor=0.2)
    by_loss = mixing(tmp_path, model=model, sigma=1.0, loss=smoothed)
    inputs = {**given, "index": index}
    torch.testing.assert_close(by_args.compute_loss(model, dict(inputs)), by_loss.compute_loss(model, dict(inputs)))
    by_loss.eval_dataset = texts(10)
    with torch.no_grad():
        expected = smoothed(model.eval()(batch(slice(0, 10))["input_ids"]).logits, batch(slice(0, 10))["labels"]).mean()
    rows = [{name: value for name, value in example.items() if name != "note"} for example in texts()[:10]]
    assert by_loss.evaluate(rows)["eval_loss"] == pytest.approx(expected.item(), rel=1e-4)


def test_group_metrics_are_rates_of_groups_in_the_evaluation(tmp_path: Path) -> None:
    groups = ["a", "b", "b", "a"]
    trainer = Trainer(
        model=bert(), args=arguments(tmp_path), eval_dataset=texts(4), compute_metrics=GroupMetrics(groups, min_group=1)
    )
    metrics = trainer.evaluate()
    found = trainer.predict(texts(4)).predictions.argmax(axis=1) == [0, 1, 0, 1]
    assert metrics["eval_average"] == found.mean()
    assert [metrics[f"eval_group/{name}"] for name in ("0, a", "1, b", "0, b", "1, a")] == found.tolist()
    assert metrics["eval_worst"] == found.min()

    given = SimpleNamespace(predictions=(torch.eye(2).numpy(), "states"), label_ids=torch.tensor([0, 0]).numpy())
    known = Groups.from_ids(torch.tensor([0, 1]), ["left", "right"])
    assert GroupMetrics(known, min_group=1)(given) == {
        "average": 0.5,
        "worst": 0.0,
        "group/left": 1.0,
        "group/right": 0.0,
    }
    with pytest.raises(UserError, match="each of the 2 examples"):
        GroupMetrics(Groups.from_ids(torch.tensor([0]), ["left"]))(given)


def class_weights(outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
    return cross_entropy(outputs.logits, labels)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"weights": torch.ones(3)}, "each of the 40 training examples, got 3"),
        ({"mixing": "tokens"}, "'features', 'input' or 'cutmix'"),
        ({"sigma": 2.0}, "sigma"),
        ({"compute_loss_func": class_weights}, "pass loss="),
        ({"loss": lambda logits, y: logits[:, 0], "label_smoothing_factor": 0.1}, "label_smoothing_factor must be 0"),
        ({"torch_compile": True}, "torch_compile must be False"),
        ({"head": "nowhere"}, r"^Unknown part of \w+ 'nowhere'\. Known: "),
        ({"model": Logits(nn.Linear(2, 2))}, "Logits has the modules net; pass head="),
    ],
    ids=["weights", "mixing", "sigma", "compute_loss_func", "smoothing", "compile", "head", "no head"],
)
def test_what_umix_cannot_be_trained_with_is_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        mixing(tmp_path, **changes)


def test_trainers_data_and_batches_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    class Own(Trainer):
        def compute_loss(self, *args: Any, **options: Any) -> Any:
            return None

    class Combined(UMIXTrainer, Own):
        pass

    with pytest.raises(UserError, match="Combined does; pass loss="):
        Combined(model=bert(), args=arguments(tmp_path), train_dataset=texts(), weights=torch.ones(N))

    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            return iter(texts())

    with pytest.raises(UserError, match="Stream; read a stream into a list"):
        RecordingTrainer(model=bert(), args=arguments(tmp_path, max_steps=3), train_dataset=Stream())
    with pytest.raises(UserError, match="dataloader_drop_last must be False"):
        recording(tmp_path, dataloader_drop_last=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingArguments, "n_gpu", 2)
        with pytest.raises(UserError, match="2 GPUs would share it"):
            mixing(tmp_path)
    args = arguments(tmp_path, train_sampling_strategy="group_by_length")
    with pytest.raises(UserError, match="evaluates by length"):
        RecordingTrainer(model=bert(), args=args, train_dataset=texts(), compute_metrics=GroupMetrics())
    model = bert().train()
    for inputs, said in (
        (batch(slice(0, 4)), 'the entry "index"'),
        ({**batch(slice(0, 4)), "labels": torch.rand(4), "index": torch.arange(4)}, "torch.float32"),
        ({"input_ids": batch(slice(0, 4))["input_ids"], "index": torch.arange(4)}, "got none"),
    ):
        with pytest.raises(UserError, match=said):
            recording(tmp_path).compute_loss(model, inputs)
    trainer = mixing(tmp_path, mixing="input", sigma=1.0)
    with pytest.raises(UserError, match="choose mixing='features'"):
        trainer.compute_loss(model, {**batch(slice(0, 4)), "index": torch.arange(4)})


def test_a_checkpoint_of_another_trainer_or_training_set_is_refused(tmp_path: Path) -> None:
    options = {"save_strategy": "steps", "save_steps": 5, "num_train_epochs": 1}
    mixing(tmp_path, **options).train()
    checkpoint = str(tmp_path / "checkpoint-5")
    with pytest.raises(UserError, match=r"must hold umix_trajectory\.safetensors"):
        recording(tmp_path / "other").train(resume_from_checkpoint=checkpoint)
    with pytest.raises(UserError, match="20 examples"):
        mixing(tmp_path, train_dataset=texts(20), weights=torch.ones(20)).train(resume_from_checkpoint=checkpoint)


def test_the_heads_of_models_are_found_but_not_one_of_two() -> None:
    for name in ("classifier", "score", "classification_head", "logits_proj", "fc"):
        model = nn.ModuleDict({"body": nn.Identity(), name: nn.Linear(2, 2)})
        assert classification_head(model, None) is model[name]
        assert classification_head(model, name) is classification_head(model, model[name])
    with pytest.raises(UserError, match="one head"):
        classification_head(nn.ModuleDict({"classifier": nn.Linear(2, 2), "classifier_distill": nn.Linear(2, 2)}), None)
