"""UMIX in Lightning: the numbers of ``umix run``, resuming from Lightning's checkpoints, two devices, and what is refused."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Sampler, TensorDataset

from umix import IndexedDataset, UserError

pytestmark = [
    pytest.mark.system,
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # of Lightning's own code
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists"),
]
pl = pytest.importorskip("lightning.pytorch")
from umix.adapters.lightning import TrainsByUMIX, TrajectoryCallback  # noqa: E402

SCRIPT = Path(__file__).parent / "lightning_two_devices.py"


class Classifier(pl.LightningModule):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        return cross_entropy(self(batch[0]), batch[1])

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        assert self(batch[0]).shape == (2, 2)  # is not recorded

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


class SecondStage(TrainsByUMIX, Classifier):
    pass


class OrderOf(Sampler[int]):
    """The order of a stage of a run, epoch by epoch."""

    def __init__(self, run: Any, stage: str) -> None:
        self.run, self.stage, self.epoch = run, stage, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.run.train)

    def __iter__(self) -> Iterator[int]:
        return iter(self.run.order(self.stage, self.epoch))


def loader_of(run: Any, stage: str) -> DataLoader[Any]:
    dataset = IndexedDataset(TensorDataset(run.train.x, run.train.y))
    return DataLoader(dataset, batch_size=run.batch_size, sampler=OrderOf(run, stage))


def fitted(
    model: Any, loader: DataLoader[Any], *callbacks: Any, epochs: int = 3, steps: int = -1, resume: Path | None = None
) -> Any:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    saves = any(isinstance(callback, pl.callbacks.ModelCheckpoint) for callback in callbacks)
    trainer = pl.Trainer(
        max_epochs=epochs, max_steps=steps, callbacks=list(callbacks), enable_checkpointing=saves, **quiet
    )
    held_out = DataLoader(TensorDataset(torch.zeros(2, 2), torch.zeros(2, dtype=torch.int64)), batch_size=2)
    trainer.fit(model, loader, held_out, ckpt_path=resume, weights_only=True if resume else None)
    return model


def close(mine: nn.Module, theirs: nn.Module) -> None:
    for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mixing", ["input", "features"])
def test_both_stages_give_the_weights_and_the_net_of_a_run(mixing: str, same_run: Callable[..., Any]) -> None:
    run, recorder = same_run(mixing), TrajectoryCallback()
    fitted(Classifier(run.first_net("trajectory")), loader_of(run, "trajectory"), recorder)
    weights = recorder.trajectory.weights(eta=run.eta)
    assert torch.equal(weights, run.weights)
    before = "net.head" if mixing == "features" else None
    second = SecondStage(run.first_net("fit")).with_weights(weights, sigma=run.sigma, alpha=run.alpha, before=before)
    close(fitted(second, loader_of(run, "fit")).net, run.net)


@pytest.mark.parametrize(
    "at_end", [True, False], ids=["saved after an epoch", "saved after validation, before it ends"]
)
def test_a_fit_resumed_from_a_checkpoint_of_lightning_ends_as_an_unbroken_one(
    at_end: bool, same_run: Callable[..., Any], tmp_path: Path
) -> None:
    run = same_run()

    def keeper(name: str) -> Any:
        options = {"filename": name, "save_top_k": -1, "save_on_train_epoch_end": at_end}
        return pl.callbacks.ModelCheckpoint(tmp_path, **options)

    def first(epochs: int, resume: Path | None = None) -> TrajectoryCallback:
        recorder = TrajectoryCallback()
        model = Classifier(run.first_net("trajectory"))
        fitted(model, loader_of(run, "trajectory"), recorder, keeper("a{epoch}"), epochs=epochs, resume=resume)
        return recorder

    first(2)
    recorder = first(3, resume=tmp_path / "aepoch=1.ckpt")
    assert recorder.trajectory.epochs == 3
    assert torch.equal(recorder.trajectory.weights(eta=run.eta), run.weights)

    def second(epochs: int, resume: Path | None = None) -> nn.Module:
        model = SecondStage(run.first_net("fit")).with_weights(run.weights, sigma=run.sigma)
        return fitted(model, loader_of(run, "fit"), keeper("b{epoch}"), epochs=epochs, resume=resume).net

    second(1)
    close(second(3, resume=tmp_path / "bepoch=0.ckpt"), run.net)


def test_two_devices_record_all_examples_and_train_the_second_stage(
    tmp_path: Path, run_in_two: Callable[..., str]
) -> None:
    assert not run_in_two(SCRIPT, tmp_path)
    first, other = (load_file(tmp_path / f"{rank}.safetensors") for rank in range(2))
    assert torch.equal(first["weights"], other["weights"])
    assert len(first["weights"].unique()) > 1
    assert torch.equal(first["parameters"], other["parameters"])
    assert first["parameters"].isfinite().all()


def test_a_step_without_logits_and_a_batch_without_an_index_are_refused(same_run: Callable[..., Any]) -> None:
    run = same_run()

    class Silent(Classifier):
        def training_step(self, batch: Any, batch_idx: int) -> Tensor:
            return self.net.body(batch[0]).sum()

    with pytest.raises(UserError, match=r"TrajectoryCallback\(module"):
        fitted(Silent(run.first_net("fit")), loader_of(run, "fit"), TrajectoryCallback())
    with pytest.raises(UserError, match="IndexedDataset"):
        fitted(
            Classifier(run.first_net("fit")), DataLoader(TensorDataset(run.train.x, run.train.y)), TrajectoryCallback()
        )


def test_a_second_stage_without_weights_and_a_recorder_without_a_fit_are_refused(same_run: Callable[..., Any]) -> None:
    run = same_run()
    with pytest.raises(UserError, match="with_weights"):
        fitted(SecondStage(run.first_net("fit")), loader_of(run, "fit"))
    with pytest.raises(UserError, match="call fit first"):
        TrajectoryCallback().trajectory  # noqa: B018


def test_a_part_that_a_module_does_not_have_is_refused_with_the_nearest_name(same_run: Callable[..., Any]) -> None:
    run = same_run()
    with pytest.raises(UserError, match=r"^Unknown part of Classifier 'met'; did you mean 'net'\?"):
        fitted(Classifier(run.first_net("fit")), loader_of(run, "fit"), TrajectoryCallback(module="met"))
    with pytest.raises(UserError, match=r"^Unknown part of SecondStage 'net\.hed'; did you mean 'net\.head'\?"):
        fitted(SecondStage(run.first_net("fit")).with_weights(run.weights, before="net.hed"), loader_of(run, "fit"))


def test_logits_that_a_training_step_adjusts_in_place_are_recorded_as_the_module_gave_them(
    same_run: Callable[..., Any],
) -> None:
    class Adjusts(Classifier):
        def training_step(self, batch: Any, batch_idx: int) -> Tensor:
            logits = self(batch[0])
            loss = cross_entropy(logits, batch[1])
            with torch.no_grad():
                logits.mul_(-1)
            return loss

    run, recorded = same_run("input"), []
    for kind in (Classifier, Adjusts):
        recorder = TrajectoryCallback()
        fitted(kind(run.first_net("trajectory")), loader_of(run, "trajectory"), recorder)
        recorded.append(recorder.trajectory.rates())
    assert recorded[0] == recorded[1]


def test_a_part_of_a_module_may_make_the_logits(same_run: Callable[..., Any]) -> None:
    run, recorder = same_run(), TrajectoryCallback(module="net", n=len(same_run().train))
    fitted(Classifier(run.first_net("trajectory")), loader_of(run, "trajectory"), recorder)
    assert torch.equal(recorder.trajectory.weights(eta=run.eta), run.weights)


def test_a_second_fit_begins_a_new_trajectory_and_one_that_goes_on_does_not(same_run: Callable[..., Any]) -> None:
    run, recorder = same_run(), TrajectoryCallback()
    fitted(Classifier(run.first_net("fit")), loader_of(run, "fit"), recorder, epochs=2)
    model = Classifier(run.first_net("trajectory"))
    fitted(model, loader_of(run, "trajectory"), recorder, epochs=3)
    assert torch.equal(recorder.trajectory.weights(eta=run.eta), run.weights)
    model.trainer.fit_loop.max_epochs = 4
    model.trainer.fit(model, loader_of(run, "trajectory"), model.trainer.val_dataloaders)
    assert recorder.trajectory.epochs == 4
    assert len(recorder.trajectory.weights(eta=run.eta)) == len(run.train)


def test_an_epoch_that_is_cut_off_by_max_steps_does_not_count(same_run: Callable[..., Any]) -> None:
    run, recorder = same_run(), TrajectoryCallback()
    steps = len(loader_of(run, "trajectory"))
    fitted(Classifier(run.first_net("trajectory")), loader_of(run, "trajectory"), recorder, steps=2 * steps + 1)
    assert recorder.trajectory.epochs == 2
    assert len(recorder.trajectory.weights(eta=run.eta)) == len(run.train)
    fitted(Classifier(run.first_net("trajectory")), loader_of(run, "trajectory"), recorder, steps=1)
    assert recorder.trajectory.epochs == 0


def test_a_module_that_steps_its_optimisers_itself_is_recorded_but_not_trained_by_the_mixin(
    same_run: Callable[..., Any],
) -> None:
    run, recorder = same_run(), TrajectoryCallback()

    class ByHand(Classifier):
        automatic_optimization = False

        def training_step(self, batch: Any, batch_idx: int) -> None:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(cross_entropy(self(batch[0]), batch[1]))
            optimizer.step()

    fitted(ByHand(run.first_net("trajectory")), loader_of(run, "trajectory"), recorder)
    assert torch.equal(recorder.trajectory.weights(eta=run.eta), run.weights)

    class SecondByHand(TrainsByUMIX, ByHand):
        pass

    with pytest.raises(UserError, match="automatic_optimization is False"):
        fitted(SecondByHand(run.first_net("fit")).with_weights(run.weights), loader_of(run, "fit"))


def test_inputs_that_are_dicts_can_be_mixed_before_a_layer_only(same_run: Callable[..., Any]) -> None:
    run = same_run()
    rows = [{"a": run.train.x[i], "label": run.train.y[i]} for i in range(8)]

    class OfDicts(SecondStage):
        def forward(self, x: Any) -> Tensor:
            return self.net(x["a"] if isinstance(x, dict) else x)

    def second(**options: Any) -> Any:
        model = OfDicts(run.first_net("fit")).with_weights(torch.ones(8), sigma=1.0, **options)
        return fitted(model, DataLoader(IndexedDataset(rows), batch_size=4), epochs=1)

    second(before="net.head")
    with pytest.raises(UserError, match="got a dict; mix the features instead: pass before="):
        second()


def test_a_mixin_whose_training_step_would_not_be_used_is_refused() -> None:
    with pytest.raises(UserError, match=r"class Late\(TrainsByUMIX, Classifier\)"):
        type("Late", (Classifier, TrainsByUMIX), {})


def test_a_second_stage_without_weights_can_be_saved(same_run: Callable[..., Any]) -> None:
    checkpoint: dict[str, Any] = {}
    SecondStage(same_run().first_net("fit")).on_save_checkpoint(checkpoint)
    assert checkpoint == {}
