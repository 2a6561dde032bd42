"""Errors whose cause lies with the machine become one sentence; all others stay what they are."""

import errno
import os

import numpy as np
import pytest
import torch

from umix.errors import MachineError, UserError
from umix.machine_faults import machine_error


def of_torch() -> Exception:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**50)
    return caught.value


def of_numpy() -> Exception:
    with pytest.raises(MemoryError) as caught:
        np.empty(2**50)
    return caught.value


FAULTS = {
    "torch": (of_torch, "There is not enough memory; take a smaller fit.batch_size"),
    "numpy": (of_numpy, "There is not enough memory"),
    "device": (lambda: torch.OutOfMemoryError("CUDA out of memory. Tried 2 GiB\nmore"), "There is not enough memory"),
    "full": (lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/x/y"), "No space left on device (/x/y); free some"),
    "broken": (lambda: OSError(errno.EIO, os.strerror(errno.EIO)), "Input/output error; check the disk"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_machine_is_one_sentence_that_says_what_to_do(name: str) -> None:
    make, words = FAULTS[name]
    sentence = str(machine_error(make()))
    assert words in sentence
    assert sentence.endswith("and run it again: what is finished is kept.")
    assert len(sentence) <= 300
    assert "\n" not in sentence


def test_a_fault_is_seen_behind_the_errors_that_it_caused() -> None:
    error = RuntimeError("the database does not answer")
    error.__cause__ = MachineError("No.")
    assert machine_error(error) is error.__cause__


@pytest.mark.parametrize(
    "error",
    [
        UserError("There is no file out of memory.csv."),
        FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)),
        PermissionError(errno.EACCES, os.strerror(errno.EACCES)),
        RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
    ],
    ids=repr,
)
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    assert machine_error(error) is None
