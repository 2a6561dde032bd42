"""The net for tables: its encoder against NumPy, and codes through training, mixing, stacks and stored runs."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import polars
import pytest
import torch

import umix
from umix.bench.runs.load_net import load_net
from umix.core.mixing import mix
from umix.core.streams import torch_stream
from umix.data.task import Task
from umix.errors import UserError
from umix.models.mlp import MLP
from umix.models.net import Net
from umix.models.stacked import can_stack, stack_of
from umix.models.tabular import TableEncoder, Tabular, bin_edges
from umix.store import read_tensors, write_tensors
from umix.training.checkpoint import thin_checkpoint
from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.mixup_risk import MIXERS

NAN = float("nan")
CATEGORIES = (0, 3, 0)  # a number, a code of three values, a number


def _rows(n: int = 400) -> torch.Tensor:
    rng = np.random.default_rng(0)
    columns = [rng.normal(50, 10, n), rng.integers(0, 3, n), rng.exponential(size=n)]
    return torch.from_numpy(np.stack(columns, axis=1)).float()


def _encoder(x: torch.Tensor, categories: tuple[int, ...] = CATEGORIES, bins: int = 4) -> TableEncoder:
    encoder = TableEncoder(categories, bins)
    encoder.fit(x)
    return encoder


def _net(x: torch.Tensor, categories: tuple[int, ...] = CATEGORIES, **options: object) -> Net:
    with torch_stream(0, "fit", "init"):
        net = Tabular(**options).with_categories(categories).build(x[0], 2)
    assert net.encoder is not None
    net.encoder.fit(x)
    return net


def _reference(column: np.ndarray, bins: int) -> np.ndarray:
    """The standardised number and how much of each bin lies below it, in float64."""
    edges = bin_edges(torch.from_numpy(column), bins).numpy()
    parts = [np.clip((column - column.mean()) / column.std(), -10, 10)]
    parts += [np.clip((column - low) / (high - low), 0, 1) for low, high in pairwise(edges)]
    return np.stack(parts, axis=1)


def test_the_encoder_gives_standardised_numbers_their_bins_and_one_column_for_each_category():
    x = _rows()
    encoder, table = _encoder(x), x.double().numpy()
    first, second = _reference(table[:, 0], 4), _reference(table[:, 2], 4)
    expected = [first[:, :1], second[:, :1], first[:, 1:], second[:, 1:], table[:, 1:2] == np.arange(3)]
    assert encoder.width == 13
    np.testing.assert_allclose(encoder(x).numpy(), np.concatenate(expected, axis=1), atol=2e-6)


def test_bins_times_their_widths_add_up_to_the_number():
    x = _rows()[:, :1]
    edges = bin_edges(x[:, 0], 16)
    below = _encoder(x, (0,), 16)(x)[:, 1:].double()
    torch.testing.assert_close(below @ edges.diff(), x[:, 0].double() - edges[0], atol=1e-4, rtol=0)


def test_numbers_outside_of_training_lie_in_no_bin_beyond_its_end():
    encoder = _encoder(_rows()[:, :1], (0,), 4)
    lowest, highest = encoder(torch.tensor([[-1e9], [1e9]]))
    assert lowest.tolist() == [-10, 0, 0, 0, 0]
    assert highest.tolist() == [10, 1, 1, 1, 1]


def test_what_is_missing_or_was_never_seen_is_zero_in_all_its_columns():
    x = _rows()
    z = _encoder(x)(torch.tensor([[NAN, NAN, NAN], [50.0, 3.0, 1.0], [50.0, -1.0, 1.0]]))
    assert not z[0].any()
    assert not z[1:, -3:].any()
    assert z[1:, :-3].any(dim=1).all()


def test_no_number_that_is_there_looks_missing():
    x = torch.linspace(-1, 1, 21)[:, None]  # the mean is one of them
    assert _encoder(x, (0,), 2)(x).any(dim=1).all()
    assert _encoder(x, (0,), 1)(x).any(dim=1).all()


def test_missing_training_values_do_not_move_the_scales():
    x = _rows()
    gaps = torch.cat([x, torch.full((50, 3), NAN)])
    for a, b in zip(_encoder(x).buffers(), _encoder(gaps).buffers(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    "column", [[3.0, 3.0, 3.0], [NAN, NAN, NAN], [3.0, NAN, 3.0]], ids=["equal", "missing", "both"]
)
def test_a_column_without_differences_is_zero(column):
    x = torch.tensor(column)[:, None]
    assert not _encoder(x, (0,))(torch.tensor([[3.0], [7.0], [NAN]])).any()


def test_large_numbers_with_small_differences_keep_them():
    x = 1e9 + 64 * torch.arange(8.0)[:, None]  # neighbours in float32
    z = _encoder(x, (0,), 7)(x)[:, 1:]
    assert torch.equal(z, (torch.arange(8)[:, None] > torch.arange(7)).float())


@pytest.mark.parametrize("categories", [(0,), (4,), (2, 3), (0, 0)], ids=str)
def test_tables_of_one_column_or_one_kind_of_column(categories):
    x = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (20, len(categories)))).float()
    net = _net(x, categories)
    assert net(x).shape == (20, 2)
    assert net(x[:0]).shape == (0, 2)
    assert net(x).isfinite().all()


def test_without_categories_all_columns_are_numbers():
    assert torch.equal(_net(_rows(), ())(_rows()), _net(_rows(), (0, 0, 0))(_rows()))


def test_many_numbers_share_the_bins():
    widths = [Tabular().build(torch.zeros(n), 2).body[0].in_features for n in (1, 10, 32, 400)]
    assert widths == [17, 170, 32 * 7, 400 * 2]
    assert Tabular(bins=0).build(torch.zeros(10), 2).body[0].in_features == 10


def test_gradients_are_those_of_finite_differences():
    x = _rows(6)
    net = _net(x, hidden=(5,)).double()
    assert torch.autograd.gradcheck(lambda z: net(z, encoded=True), net.encode(x.double()).requires_grad_())
    with torch_stream(0, "fit", "direction"):
        step = [1e-6 * torch.randn_like(p) for p in net.parameters()]
    slopes = torch.autograd.grad(net(x.double()).square().sum(), list(net.parameters()))
    before = net(x.double()).square().sum()
    with torch.no_grad():
        for parameter, change in zip(net.parameters(), step, strict=True):
            parameter += change
    expected = sum((slope * change).sum() for slope, change in zip(slopes, step, strict=True))
    torch.testing.assert_close(net(x.double()).square().sum() - before, expected, rtol=1e-3, atol=1e-9)


def test_the_encoder_has_no_parameters_and_all_it_has_learned_is_stored():
    x = _rows()
    net = _net(x)
    assert not list(net.encoder.parameters())
    other = Tabular().with_categories(CATEGORIES).build(torch.zeros(3), 2)
    other.load_state_dict(net.state_dict())
    assert torch.equal(other(x), net(x))


def test_forward_is_the_head_of_features_and_of_encoded_inputs():
    x = _rows()
    net = _net(x)
    assert torch.equal(net(x), net.head(net.features(x)))
    assert torch.equal(net(x), net(net.encode(x), encoded=True))


def test_codes_are_mixed_after_they_are_encoded():
    x, pair, rng = _rows(4), torch.tensor([1, 0, 3, 2]), np.random.default_rng(0)
    x[:, 1] = torch.tensor([0.0, 2.0, 1.0, NAN])
    net = _net(x)
    logits, lam = MIXERS["input"](net, x, pair, 0.75, rng)
    expected = net.head(net.body(0.75 * net.encode(x) + 0.25 * net.encode(x)[pair]))
    torch.testing.assert_close(logits, expected)
    assert lam == 0.75
    assert mix(net.encode(x), pair, 0.75)[0, -3:].tolist() == [
        0.75,
        0,
        0.25,
    ]  # between the first and the last, not the middle
    assert logits.isfinite().all()


def test_a_linear_net_mixes_logits_which_is_mixing_encoded_inputs():
    x, pair = _rows(4), torch.tensor([1, 0, 3, 2])
    net = _net(x, hidden=())
    assert net.is_linear
    mixed, _ = MIXERS["input"](net, x, pair, 0.75, np.random.default_rng(0))
    torch.testing.assert_close(mixed, net(mix(net.encode(x), pair, 0.75), encoded=True))


def test_a_net_without_an_encoder_computes_what_it_did_before_bit_by_bit():
    x, pair = _rows(8), torch.arange(7, -1, -1)
    net = MLP(hidden=(5,)).build(x[0], 2)
    assert net.encode(x) is x
    assert list(net.state_dict()) == ["body.0.weight", "body.0.bias", "head.weight", "head.bias"]
    assert torch.equal(net(x), net.head(net.body(x)))
    logits, _ = MIXERS["input"](net, x, pair, 0.3, np.random.default_rng(0))
    assert torch.equal(logits, net.head(net.body(mix(x, pair, 0.3))))


def test_members_of_a_stack_share_the_encoder():
    x = _rows()
    net = _net(x)
    assert can_stack(net)
    stacked = stack_of(net, 3)
    assert torch.equal(stacked.encode(x), net.encode(x))
    for logits in stacked(x):
        torch.testing.assert_close(logits, net(x))
    assert all(parameter.shape[0] == 3 for parameter in stacked.parameters())


def test_members_that_drop_out_of_a_stack_take_no_part_of_the_encoder_with_them(tmp_path: Path):
    x = _rows()
    stacked = stack_of(_net(x, bins=0), 2)  # as many members as numbers
    tensors = {f"net/{name}": tensor for name, tensor in stacked.state_dict().items()}
    write_tensors(tmp_path / "both", tensors, {"kind": "checkpoint", "fit": "a"})
    thin_checkpoint(tmp_path / "both", tmp_path / "one", fit="b", members=[1], of=2)
    kept, _ = read_tensors(tmp_path / "one", kind="checkpoint")
    left = stack_of(_net(x, bins=0), 1)
    left.load_state_dict({name.removeprefix("net/"): tensor for name, tensor in kept.items()})
    torch.testing.assert_close(left(x)[0], stacked(x)[1])


def test_examples_that_are_not_rows_are_refused():
    with pytest.raises(
        UserError, match=r"^The net tabular must be given rows of a table, got examples of shape \[3, 8, 8\]"
    ):
        Tabular().build(torch.zeros(3, 8, 8), 2)


def _people(n: int = 240) -> polars.DataFrame:
    rng = np.random.default_rng(0)
    sex, rich = rng.choice(["f", "m"], n), rng.random(n) < 0.5
    city = np.where(rng.random(n) < 0.1, None, rng.choice(["a", "b", "c"], n).astype(object))
    age = np.where(rng.random(n) < 0.1, None, (40 + 20 * rich + 4 * rng.normal(size=n)).astype(object))
    columns = {"age": age.tolist(), "city": city.tolist(), "sex": sex, "income": np.where(rich, "high", "low")}
    return polars.DataFrame(columns)


def _task() -> Task:
    return umix.task_from_table(_people(), label="income", groups=["sex"])


def test_the_encoder_is_fitted_to_training_rows_once_for_all_nets_of_a_run():
    task = _task()
    context = Context(task, Tabular().with_categories(task.categories), FitSettings(epochs=1))
    nets = [context.fresh_net(), context.fresh_net("reference")]
    expected = _encoder(task.splits["train"].x, task.categories, 16).state_dict()
    for net in nets:
        assert net.encoder is not None
        assert all(torch.equal(tensor, expected[name]) for name, tensor in net.encoder.state_dict().items())
    assert not torch.equal(nets[0].head.weight, nets[1].head.weight)


@pytest.mark.parametrize("method", ["erm", "umix", "mixup", "group_dro", "dfr", "jtt", "lff", "best"])
def test_methods_train_it_on_a_table_with_gaps(method):
    result = umix.train(_task(), method, net="tabular", fit={"epochs": 4, "batch_size": 32, "lr": 0.01})
    assert result.summary().average > 0.8


def test_a_stored_run_predicts_as_the_run_did(tmp_path: Path):
    kept = umix.train(_task(), "erm", out=tmp_path, net="tabular", fit={"epochs": 2, "batch_size": 32})
    net, table = load_net(kept.record), _people()
    assert net.encoder is not None
    assert net.encoder.state_dict()["slope"].any()
    shown = umix.predict(kept.directory, table)
    x = _task().preprocessing.transform(table.drop("income"))
    expected = net(torch.from_numpy(x)).softmax(dim=1)[:, 0]
    np.testing.assert_allclose(shown["p_high"].to_numpy(), expected.detach().numpy(), atol=1e-6)


def test_a_value_that_training_did_not_have_is_predicted_like_a_missing_one():
    result = umix.train(_task(), "erm", net="tabular", fit={"epochs": 1})
    blank = result.predict(_people(30).with_columns(city=polars.lit(None, dtype=polars.String)))
    with pytest.warns(UserWarning, match="did not occur in training"):
        assert result.predict(_people(30).with_columns(city=polars.lit("d"))).equals(blank)
