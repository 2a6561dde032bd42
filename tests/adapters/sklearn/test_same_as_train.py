"""A fit gives the weights of ``umix.train`` on the same rows, division, order and seed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import pytest
import torch

import umix
from umix import Groups, Split, Task, UMIXClassifier

pytestmark = pytest.mark.filterwarnings("ignore:The selected model predicts", "ignore:The first model got")

FIXED: dict[str, Any] = {"eta": 3, "pool": "example", "length": 3}
FIT: dict[str, Any] = {"optimizer": "adamw", "lr": 0.05, "weight_decay": 0.01, "batch_size": 32, "epochs": 3}


def trained(task: Task, **seed: int) -> np.ndarray:
    """The uncertainty and weight of every training row, [rows, 2]."""
    result = umix.train(task, "umix", net={"name": "mlp", "hidden": [8]}, fit=FIT, **FIXED, **seed)
    found: np.ndarray = result.weights().select("uncertainty", "weight").to_numpy()
    return found


def of_train(model: UMIXClassifier) -> np.ndarray:
    return np.stack([model.uncertainty_, model.weights_], axis=1)[~np.isnan(model.weights_)]


def test_a_frame_weighs_as_the_same_table_does(
    small: Callable[..., UMIXClassifier], people: tuple[pandas.DataFrame, np.ndarray]
) -> None:
    """The table's split column says which rows the fit held out; its test rows, which the fit has not, are copies."""
    frame, y = people
    model = small(**FIXED, random_state=4).fit(frame, y)
    split = np.where(np.isnan(model.weights_), "val", "train")
    table = pandas.concat([frame.assign(y=y, split=split), frame.assign(y=y, split="test")])
    task = umix.task_from_table(table, label="y", split="split")
    np.testing.assert_array_equal(of_train(model), trained(task, seed=4))
    assert not np.array_equal(of_train(model), trained(task, seed=5))


def test_numbers_weigh_as_a_task_of_the_standardised_rows_does(
    small: Callable[..., UMIXClassifier], rows: tuple[np.ndarray, ...]
) -> None:
    x, y, _ = rows
    model = small(**FIXED, random_state=2).fit(x, y)
    held_out = np.isnan(model.weights_)
    inputs = torch.from_numpy(model.scaler_.transform(x).astype(np.float32))

    def part(which: np.ndarray) -> Split:
        return Split(
            inputs[which], torch.from_numpy(y[which]), Groups(torch.zeros(int(which.sum()), 0, dtype=torch.bool), ())
        )

    task = Task("rows", {"train": part(~held_out), "val": part(held_out), "test": part(held_out)}, classes=("0", "1"))
    np.testing.assert_array_equal(of_train(model), trained(task, seed=2))
