"""A frozen net: features are computed once, every later run trains its head on them, and predictions are those of the whole net."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from umix.bench.runs.execute import execute
from umix.bench.runs.load_net import load_net
from umix.bench.runs.paths import RunPaths
from umix.bench.runs.record import load_run
from umix.bench.spec.run_spec import RunSpec
from umix.data.benchmarks.colored_digits import ColoredDigits
from umix.errors import UserError
from umix.models.registry import net_settings
from umix.training import features
from umix.training.engine import Engine
from umix.training.features import featured

FORWARDS = []  # one entry per forward pass of a body, with the size of its batch

SOURCE = """
import torch
from torch import nn
from tests_frozen_counter import FORWARDS

class Body(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(2, width, 3, stride=2)
        self.norm = nn.BatchNorm2d(width)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        FORWARDS.append(len(x))
        return self.drop(self.norm(self.conv(x)).relu()).mean(dim=(2, 3))

def make(example, n_classes):
    body = Body(6)
    for i, parameter in enumerate(body.parameters()):
        nn.init.constant_(parameter, 0.1)
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(i))
    return body, nn.Linear(6, n_classes)

def random(example, n_classes):
    return Body(6), nn.Linear(6, n_classes)

def biasless(example, n_classes):
    return Body(6), nn.Linear(6, n_classes, bias=False)

def deep(example, n_classes):
    return Body(6), nn.Sequential(nn.Linear(6, 4), nn.Linear(4, n_classes))
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The net's module lies in the current folder; its forward passes are counted."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    counter = type(sys)("tests_frozen_counter")
    counter.FORWARDS = FORWARDS
    monkeypatch.setitem(sys.modules, "tests_frozen_counter", counter)
    (tmp_path / "frozen_net.py").write_text(SOURCE)
    sys.modules.pop("frozen_net", None)
    FORWARDS.clear()
    yield tmp_path
    sys.modules.pop("frozen_net", None)


def spec(method="erm", net="frozen_net:make", seed=0, freeze=True, **settings):
    given = {"net": net, "fit.epochs": 2, **({"net.freeze": True} if freeze else {}), **settings}
    return RunSpec(task="colored_digits", method=method, seed=seed, settings=given)


UMIX = {"start": 0, "length": 1}


def test_the_second_run_never_runs_the_body(own):
    execute(spec(), out="runs")
    task = ColoredDigits().load(None)
    assert sum(FORWARDS) >= sum(len(split) for split in task.splits.values())
    FORWARDS.clear()
    execute(spec(lr=0.5), out="runs")
    execute(spec("group_dro", seed=1), out="runs")
    assert FORWARDS == []


def test_trajectories_are_shared_by_runs_on_the_same_features(own):
    first = execute(spec("umix", **UMIX, eta=1.0), out="runs")
    second = execute(spec("umix", **UMIX, eta=2.0), out="runs")
    assert second.stages["trajectory"].reused
    assert first.stages["trajectory"].key == second.stages["trajectory"].key


def test_the_head_on_features_predicts_as_the_whole_net_does_on_inputs(own):
    record = execute(spec("umix", **UMIX), out="runs")
    net, task = load_net(load_run(record.directory), trust_code=True), ColoredDigits().load(None)
    for name in ("val", "test"):
        split = task.splits[name]
        with torch.no_grad():
            hit = net(split.x).argmax(dim=1) == split.y
        counts = record.counts[name]
        expected = counts.class_hits[record.best_epoch()]
        assert torch.bincount(split.y[hit], minlength=2).tolist() == expected.tolist()


def test_features_are_those_of_the_body_in_evaluation_mode_in_the_order_of_the_split(own, tmp_path):
    task, net = ColoredDigits().load(None), net_settings("frozen_net:make", freeze=True)
    found = featured(task, net, tmp_path / "cache", seed=0, engine=Engine("cpu"))
    body = net.parts(task.splits["train"].example, 2)[0].eval()
    for name, split in task.splits.items():
        with torch.no_grad():
            torch.testing.assert_close(found.task.splits[name].x, body(split.x))
        assert torch.equal(found.task.splits[name].y, split.y)
    assert found.task.groups == task.groups


def test_large_features_are_sliced_from_the_file_with_the_same_result(own, monkeypatch):
    small = execute(spec(), out="small")
    monkeypatch.setattr(features, "_IN_MEMORY", 0)
    mapped = execute(spec(), paths=RunPaths(Path("mapped"), cache=Path("small/cache")))
    assert mapped.split_counts == small.split_counts


def test_a_random_body_is_another_for_each_seed_and_is_found_again_by_prediction(own):
    records = [execute(spec(net="frozen_net:random", seed=seed), out="runs") for seed in (0, 1)]
    assert records[0].body != records[1].body
    for record in records:
        net = load_net(record, trust_code=True)
        split = ColoredDigits().load(None).splits["test"]
        with torch.no_grad():
            hit = net(split.x).argmax(dim=1) == split.y
        assert int(hit.sum()) == record.counts["test"].class_hits[record.best_epoch()].sum()


def test_the_head_of_a_frozen_net_is_new_whatever_its_own_one_was_like(own):
    head = load_net(execute(spec(net="frozen_net:biasless"), out="runs"), trust_code=True).head
    assert head.bias is not None


def test_an_interrupted_computation_goes_on_at_the_split_where_it_was(own, tmp_path, monkeypatch):
    task, net, cache = ColoredDigits().load(None), net_settings("frozen_net:make", freeze=True), tmp_path / "cache"
    write = features._write

    def killed(file, split, *rest):
        if len(list(cache.glob("*.npy"))) == 2:
            file.write(b"half")
            raise KeyboardInterrupt
        write(file, split, *rest)

    monkeypatch.setattr(features, "_write", killed)
    with pytest.raises(KeyboardInterrupt):
        featured(task, net, cache, seed=0, engine=Engine("cpu"))
    assert len(list(cache.glob("*.npy"))) == 2
    monkeypatch.setattr(features, "_write", write)
    FORWARDS.clear()
    found = featured(task, net, cache, seed=0, engine=Engine("cpu"))
    last = list(task.splits)[-1]
    assert sum(FORWARDS) == len(task.splits[last]) + 2  # two more to see how wide they are
    assert len(found.task.splits[last].x) == len(task.splits[last])


def test_other_weights_and_other_inputs_have_other_features(own, tmp_path):
    def files():
        return {path.name for path in (tmp_path / "runs" / "cache").glob("features-*.npy")}

    execute(spec(), out="runs")
    first = files()
    execute(spec(**{"task.agreement": 0.9}), out="runs")
    other_data = files() - first
    assert len(first) == 3
    assert other_data
    (tmp_path / "frozen_net.py").write_text(SOURCE.replace("manual_seed(i)", "manual_seed(i + 1)"))
    sys.modules.pop("frozen_net")
    execute(spec(), out="runs")
    assert len(files() - first - other_data) == 3


class Notes:
    """Progress that keeps the notes, and how many forward passes there were before each."""

    def __init__(self):
        self.said = []

    def start(self, stage, *, total, done): ...
    def advance(self, steps): ...
    def finish(self): ...
    def note(self, message):
        self.said.append((message, len(FORWARDS)))


def test_the_size_is_said_before_anything_is_computed(own, tmp_path):
    task, net = ColoredDigits().load(None), net_settings("frozen_net:make", freeze=True)
    featured(task, net, tmp_path / "cache", seed=0, engine=Engine("cpu"), progress=(told := Notes()))
    n = sum(len(split) for split in task.splits.values())
    [(message, forwards)] = told.said
    assert message.startswith(f"Computing 6 features of {n:,} examples once with frozen_net:make into ")
    assert message.endswith(f"({24 * n / 1e6:,.1f} MB).")
    assert forwards == 1  # the one that tells the width


def test_damaged_features_are_computed_again(own, tmp_path):
    task, net, cache = ColoredDigits().load(None), net_settings("frozen_net:make", freeze=True), tmp_path / "cache"
    featured(task, net, cache, seed=0, engine=Engine("cpu"))
    path = next(cache.glob("features-*-val-*.npy"))
    whole = path.read_bytes()
    path.write_bytes(b"half")
    featured(task, net, cache, seed=0, engine=Engine("cpu"), progress=(told := Notes()))
    assert path.read_bytes() == whole
    message, _ = told.said[0]
    assert message.startswith("warning: ")
    assert path.name[-30:] in message
    assert message.endswith("; they are computed again.")


def test_cutmix_is_refused_before_features_are_computed(own, tmp_path):
    with pytest.raises(UserError, match=r"^umix\.mixing must be input or features for a frozen net"):
        execute(spec("umix", **UMIX, mixing="cutmix"), out="runs")
    assert FORWARDS == []


def test_mixing_inputs_and_features_is_the_same_for_a_frozen_net(own):
    one, two = (execute(spec("umix", **UMIX, mixing=mixing), out="runs") for mixing in ("input", "features"))
    assert one.split_counts == two.split_counts
    assert one.key != two.key


def test_a_frozen_net_needs_a_linear_head(own):
    with pytest.raises(
        UserError, match=r"^freeze must be used with a linear head, but frozen_net:deep has a Sequential"
    ):
        execute(spec(net="frozen_net:deep"), out="runs")


def test_freezing_a_net_without_a_body_from_elsewhere_is_refused():
    with pytest.raises(UserError, match=r"^freeze=True must be used with a pretrained net .* got 'mlp'"):
        spec(net="mlp")


def test_dfr_refits_the_head_of_a_frozen_net(own):
    record = execute(spec("dfr"), out="runs")
    assert isinstance(load_net(record, trust_code=True).head, nn.Linear)


@pytest.fixture(scope="session")
def resnet(tmp_path_factory):
    """A tiny ResNet as transformers saves it."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    config = transformers.ResNetConfig(
        num_channels=2, embedding_size=4, hidden_sizes=[4, 8], depths=[1, 1], layer_type="basic"
    )
    folder = tmp_path_factory.mktemp("models") / "resnet"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.AutoModel.from_config(config).save_pretrained(folder)
    return folder


@pytest.mark.system
def test_a_pretrained_folder_is_frozen_moved_and_found_again(resnet, tmp_path, monkeypatch):
    folder = shutil.copytree(resnet, tmp_path / "here")
    record = execute(spec(net=f"hf:{folder}"), out=tmp_path / "runs")
    moved = shutil.move(folder, tmp_path / "there")
    again = spec(net=f"hf:{moved}")
    assert again.key == record.key
    monkeypatch.setattr(features, "frozen_parts", None)  # calling it would fail: features are reused by other runs
    execute(spec(net=f"hf:{moved}", lr=0.3), out=tmp_path / "runs")
    with pytest.raises(UserError, match="There is no folder"):
        load_net(record)
    net = load_net(record, net_name=f"hf:{moved}")
    split = ColoredDigits().load(None).splits["test"]
    with torch.no_grad():
        hit = net(split.x).argmax(dim=1) == split.y
    assert int(hit.sum()) == record.counts["test"].class_hits[record.best_epoch()].sum()
    (moved / "config.json").write_text(json.dumps({**json.loads((moved / "config.json").read_text()), "x": 1}))
    with pytest.raises(UserError, match="have changed since"):
        load_net(record, net_name=f"hf:{moved}")


@pytest.mark.system
def test_a_pretrained_net_is_trained_as_a_whole_unless_it_is_frozen(resnet, tmp_path):
    record = execute(spec(net=f"hf:{resnet}", freeze=False, epochs=1), out=tmp_path / "runs")
    net, start = load_net(record), net_settings(f"hf:{resnet}")
    before = start.parts(torch.zeros(2, 8, 8), 2)[0].state_dict()
    after = {name.removeprefix("body."): tensor for name, tensor in net.state_dict().items()}
    changed = [name for name in before if not torch.equal(before[name], after[name])]
    assert any("convolution" in name for name in changed)
    assert not list((tmp_path / "runs" / "cache").glob("features-*"))


def test_texts_are_computed_by_length_and_stored_in_the_order_of_the_split():
    x = torch.tensor([[4, 5, 6, 7], [4, 0, 0, 0], [4, 5, 0, 0]])
    assert features._order(x).tolist() == [1, 2, 0]
    assert features._order(torch.rand(3, 4)).tolist() == [0, 1, 2]


def test_a_plan_can_be_made_where_the_hub_cannot_be_reached():
    plan = RunSpec(task="waterbirds", method="erm", settings={"net": "hf:nobody/nothing", "net.freeze": True}).plan
    assert plan.net.freeze
