"""Arrays are compared with what their file must hold."""

import numpy as np
import pytest
import torch

from umix.array_layout import Array, misfit

LAYOUT = {
    "label": Array("whole", ("n",), low=0, high=1),
    "rate": Array("real", ("epochs", "n"), low=0.0, high=1.0),
    "seen": Array("bool", (), optional=True),
    "bits": Array("bytes", (2,), optional=True),
}
GOOD = {"label": np.zeros(3, int), "rate": np.zeros((2, 3), np.float32), "other": np.zeros(0)}


def test_arrays_and_tensors_that_fit_have_no_misfit():
    assert misfit(GOOD, LAYOUT) == ""
    tensors = {name: torch.from_numpy(array) for name, array in GOOD.items()}
    more = {"seen": torch.tensor(True), "bits": torch.zeros(2, dtype=torch.uint8)}
    assert misfit({**tensors, **more}, LAYOUT, {"n": 3}) == ""


@pytest.mark.parametrize(
    "of", [np.asarray, lambda values: torch.from_numpy(np.asarray(values))], ids=["numpy", "torch"]
)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label": None}, "'label' is missing"),
        ({"label": np.zeros(3)}, "'label' must be whole numbers [3], got float64 [3]"),
        ({"label": np.zeros((3, 1), int)}, "'label' must be whole numbers [n], got int64 [3, 1]"),
        ({"label": np.array([0, 1, 2])}, "'label' must be at most 1 everywhere"),
        ({"label": np.array([0, 1, -1])}, "'label' must be at least 0 everywhere"),
        ({"rate": np.full((2, 3), np.nan)}, "'rate' must be at least 0 everywhere"),
        ({"rate": np.zeros((2, 4))}, "'rate' must be real numbers [2, 3], got float64 [2, 4]"),
        ({"rate": np.zeros(())}, "'rate' must be real numbers [epochs, 3], got float64 []"),
        ({"seen": np.zeros(())}, "'seen' must be true or false [], got float64 []"),
        ({"bits": np.zeros(2, np.int64)}, "'bits' must be bytes [2], got int64 [2]"),
    ],
)
def test_what_does_not_fit_is_said(of, change, said):
    arrays = {name: of(array) for name, array in {**GOOD, **change}.items() if array is not None}
    assert misfit(arrays, LAYOUT) == said


def test_a_length_that_is_known_is_that_of_every_array():
    assert misfit(GOOD, LAYOUT, {"n": 4}) == "'label' must be whole numbers [4], got int64 [3]"
