"""The trajectory store against plain Python loops."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from umix.core.weights import uncertainty
from umix.errors import UserError
from umix.training import trajectory as module
from umix.training.trajectory import Trajectory


def logits_of(predicted: torch.Tensor, n_classes: int = 3) -> torch.Tensor:
    return torch.nn.functional.one_hot(predicted, n_classes).float()


def recorded(correct: np.ndarray, batch: int = 5, fingerprint: str = "") -> Trajectory:
    """A trajectory of the table ``correct`` [n, epochs]: 1 right, 0 wrong, NaN not visited."""
    n, epochs = correct.shape
    trajectory = Trajectory(n, fingerprint=fingerprint)
    rng = np.random.default_rng(0)
    for epoch in range(epochs):
        seen = rng.permutation(np.flatnonzero(~np.isnan(correct[:, epoch])))
        for begin in range(0, len(seen), batch):
            index = torch.from_numpy(seen[begin : begin + batch])
            y = index % 3
            hit = torch.from_numpy(correct[index.numpy(), epoch]).bool()
            trajectory.see(index, logits_of(torch.where(hit, y, (y + 1) % 3)), y)
        trajectory.end_epoch()
    return trajectory


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 40), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_uncertainty_equals_the_core_function_on_the_table(n: int, epochs: int, seed: int) -> None:
    correct = (np.random.default_rng(seed).random((n, epochs)) < 0.5).astype(float)
    u = recorded(correct).uncertainty(start=0, length=epochs)
    assert torch.equal(u, uncertainty(torch.from_numpy(correct), start=0, length=epochs))


def test_window_has_exactly_length_epochs_counted_from_zero() -> None:
    correct = np.array([[0.0, 1.0, 0.0, 1.0, 1.0]])
    assert recorded(correct).uncertainty(start=1, length=3).item() == pytest.approx(1 / 3)


def test_blocks_of_examples_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    correct = (np.random.default_rng(1).random((50, 4)) < 0.5).astype(float)
    whole = recorded(correct).uncertainty(start=0, length=4)
    monkeypatch.setattr(module, "_BLOCK", 16)
    monkeypatch.setattr(module, "_PENDING", 1)
    assert torch.equal(recorded(correct).uncertainty(start=0, length=4), whole)


def test_missing_predictions_are_an_error_that_names_epochs_and_examples() -> None:
    correct = np.ones((10, 3))
    correct[[2, 7], 1] = np.nan
    with pytest.raises(UserError, match=r"epoch 1: 2 of 10"):
        recorded(correct).uncertainty(start=0, length=3)
    assert recorded(correct).uncertainty(start=2, length=1).tolist() == [0.0] * 10


def test_window_beyond_the_recorded_epochs_is_an_error() -> None:
    with pytest.raises(UserError, match=r"epoch 3: 10 of 10"):
        recorded(np.ones((10, 3))).uncertainty(start=1, length=3)


@pytest.mark.parametrize("last", [True, False])
def test_of_several_visits_in_an_epoch_the_last_counts(last: bool) -> None:
    trajectory = Trajectory(9)
    y = torch.zeros(9, dtype=torch.int64)
    trajectory.see(torch.arange(9), logits_of(y), y)
    predicted = torch.tensor([0 if last else 1])
    trajectory.see(torch.tensor([4]), logits_of(predicted), y[:1])
    trajectory.see(torch.tensor([5, 5]), logits_of(torch.tensor([1, 0])), y[:2])
    trajectory.end_epoch()
    assert trajectory.uncertainty(start=0, length=1).tolist() == [0, 0, 0, 0, 0.0 if last else 1.0, 0, 0, 0, 0]


def test_what_happens_to_logits_labels_and_index_after_a_batch_changes_nothing() -> None:
    trajectory, rng = Trajectory(64), torch.Generator().manual_seed(0)
    logits, y, index = torch.empty(8, 3), torch.empty(8, dtype=torch.int64), torch.empty(8, dtype=torch.int64)
    hits = []
    for begin in range(0, 64, 8):  # buffers that are used again for every batch
        logits.normal_(generator=rng)
        y.random_(3, generator=rng)
        torch.arange(begin, begin + 8, out=index)
        hits.append(logits.argmax(dim=1) == y)
        trajectory.see(index, logits, y)
        logits.mul_(-1)
    trajectory.end_epoch()
    assert torch.equal(trajectory.uncertainty(start=0, length=1), 1 - torch.cat(hits).float())


def test_forgetting_counts_visits_wrong_after_right() -> None:
    correct = np.array([[1, 0, 1, 0], [0, 0, 1, 1], [1, np.nan, 0, 0], [1, 1, 1, 1]], dtype=float)
    assert recorded(correct).forgetting().tolist() == [2, 0, 1, 0]


def test_a_clean_pass_fills_the_epoch() -> None:
    trajectory = Trajectory(3)
    trajectory.see_all(torch.tensor([True, False, True]))
    trajectory.end_epoch()
    assert trajectory.uncertainty(start=0, length=1).tolist() == [0.0, 1.0, 0.0]


def test_index_outside_the_data_is_refused() -> None:
    trajectory = Trajectory(4)
    y = torch.zeros(1, dtype=torch.int64)
    trajectory.see(torch.tensor([4]), logits_of(y), y)
    with pytest.raises(UserError, match=r"indices in 0\.\.3, got 4\.\.4"):
        trajectory.end_epoch()


@pytest.mark.parametrize(
    ("logits", "y", "said"),
    [
        (torch.zeros(4), torch.zeros(4), r"got \[4\]"),
        (torch.zeros(4, 1), torch.zeros(4), r"got \[4, 1\].*one logit"),
        (torch.zeros(4, 3), torch.zeros(4, 1), r"labels \[4, 1\]"),
        (torch.zeros(4, 3), torch.zeros(3), r"labels \[3\]"),
        (torch.zeros(2, 3), torch.zeros(4), r"indices \[4\]"),
    ],
)
def test_a_batch_of_other_shapes_is_refused_at_once(logits: torch.Tensor, y: torch.Tensor, said: str) -> None:
    with pytest.raises(UserError, match=said):
        Trajectory(10).see(torch.arange(4), logits, y.long())


def test_weights_say_what_is_missing_an_ended_epoch_a_whole_loader_or_an_eta() -> None:
    with pytest.raises(UserError, match=r"end it by end_epoch\(\)"):
        Trajectory(3).weights(eta=1)
    with pytest.raises(UserError, match="drop_last"):
        recorded(np.array([[1.0], [np.nan]])).weights(eta=1)
    with pytest.raises(UserError, match=r"eta and c must be .* got eta=-1"):
        recorded(np.ones((2, 1))).weights(eta=-1)


@pytest.mark.parametrize("n", [-1, 2.5, [1, 2]])
def test_a_number_of_examples_that_is_none_is_refused(n: object) -> None:
    with pytest.raises(UserError, match=r"number of examples.*len\(dataset\)"):
        Trajectory(n)  # type: ignore[arg-type]


def test_saved_and_loaded_it_is_the_same(tmp_path: Path) -> None:
    correct = (np.random.default_rng(2).random((33, 5)) < 0.5).astype(float)
    correct[3, 4] = np.nan
    recorded(correct, fingerprint="abc").save(tmp_path / "t.safetensors")
    loaded = Trajectory.load(tmp_path / "t.safetensors", fingerprint="abc")
    table = torch.cat(list(loaded.window(start=0, length=5))).numpy()
    np.testing.assert_array_equal(table, correct)


def test_a_trajectory_of_other_data_is_refused(tmp_path: Path) -> None:
    recorded(np.ones((4, 1)), fingerprint="abc").save(tmp_path / "t.safetensors")
    with pytest.raises(UserError, match=r"must be a trajectory of the data xyz, got one of abc"):
        Trajectory.load(tmp_path / "t.safetensors", fingerprint="xyz")


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    recorded(np.ones((400, 3))).save(path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(UserError, match=r"is damaged"):
        Trajectory.load(path)


def test_stored_bytes_are_two_bits_per_example_and_epoch() -> None:
    trajectory = recorded(np.ones((800, 3)))
    stored = sum(row.nbytes for row in trajectory._correct + trajectory._visited)
    assert stored == 2 * 800 * 3 // 8


def test_truncated_epochs_are_forgotten() -> None:
    trajectory = recorded(np.ones((8, 3)))
    trajectory.truncate(2)
    assert trajectory.epochs == 2


def test_validation_examples_are_saved_with_it_and_truncated_with_it(tmp_path: Path) -> None:
    correct, of_val = (np.random.default_rng(k).random((n, 3)).round() for k, n in ((3, 20), (4, 9)))
    trajectory = recorded(correct, fingerprint="abc")
    trajectory.val = recorded(of_val, fingerprint="def")
    trajectory.save(tmp_path / "t.safetensors")
    loaded = Trajectory.load(tmp_path / "t.safetensors", fingerprint="abc")
    assert loaded.val.fingerprint == "def"
    expected = uncertainty(torch.from_numpy(of_val), start=1, length=2)
    assert torch.equal(loaded.val_uncertainty(start=1, length=2), expected)
    loaded.truncate(2)
    assert loaded.val.epochs == 2


def test_a_trajectory_without_validation_examples_has_no_uncertainty_of_them(tmp_path: Path) -> None:
    recorded(np.ones((8, 2))).save(tmp_path / "t.safetensors")
    with pytest.raises(UserError, match="must hold validation examples, but none were recorded"):
        Trajectory.load(tmp_path / "t.safetensors").val_uncertainty(start=0, length=1)


def test_rates_are_the_shares_of_correct_predictions_of_every_epoch():
    trajectory = Trajectory(3)
    for correct in ([True, False, True], [True, True, True]):
        trajectory.see_all(torch.tensor(correct))
        trajectory.end_epoch()
    assert trajectory.rates() == [2 / 3, 1.0]


def test_weights_are_the_importance_weights_of_the_recorded_epochs_with_mean_one() -> None:
    correct = np.random.default_rng(0).integers(0, 2, (20, 4)).astype(float)
    trajectory = recorded(correct)
    expected = 3 * (1 - correct[:, 1:].mean(axis=1)) + 0.5
    np.testing.assert_allclose(trajectory.weights(eta=3, c=0.5, start=1), expected / expected.mean(), rtol=1e-6)
    np.testing.assert_allclose(trajectory.weights(eta=3, c=0.5, start=1, normalize=False), expected, rtol=1e-6)
    assert torch.equal(trajectory.weights(eta=3, length=2), recorded(correct[:, :2]).weights(eta=3))


def test_a_trajectory_goes_on_from_its_state_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    correct = np.random.default_rng(1).integers(0, 2, (20, 2)).astype(float)
    whole, first = recorded(correct), recorded(correct[:, :1])
    first.val = recorded(correct[:5, :1])
    y = torch.arange(20) % 3
    hit = torch.from_numpy(correct[:, 1]).bool()
    logits = logits_of(torch.where(hit, y, (y + 1) % 3))
    first.see(torch.arange(12), logits[:12], y[:12])
    torch.save(first.state_dict(), tmp_path / "state.pt")
    second = Trajectory(20)
    second.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    second.see(torch.arange(12, 20), logits[12:], y[12:])
    second.end_epoch()
    assert second.val is not None
    assert second.val.epochs == 1
    assert torch.equal(second.uncertainty(start=0, length=2), whole.uncertainty(start=0, length=2))
    with pytest.raises(UserError, match="20 examples"):
        Trajectory(20).load_state_dict(Trajectory(19).state_dict())


def test_a_state_keeps_the_fingerprint_of_its_data_and_that_of_other_data_is_refused() -> None:
    state = Trajectory(3, fingerprint="abc").state_dict()
    assert Trajectory.from_state_dict(state).fingerprint == "abc"
    with pytest.raises(UserError, match="the data xyz, got one of abc"):
        Trajectory(3, fingerprint="xyz").load_state_dict(state)


def test_one_process_has_nothing_to_gather() -> None:
    trajectory = Trajectory(2)
    trajectory.see(torch.tensor([0]), logits_of(torch.tensor([0])), torch.tensor([0]))
    trajectory.gather()
    trajectory.end_epoch()
    assert trajectory.rates() == [0.5]
