"""Errors whose cause lies with the machine become one sentence; all others stay what they are."""

import errno
import os
import sqlite3

import numpy as np
import pytest
import torch

from umix.errors import MachineError, UserError
from umix.machine_faults import machine_error, machine_faults, shown


def of_torch() -> Exception:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**50)
    return caught.value


def of_numpy() -> Exception:
    with pytest.raises(MemoryError) as caught:
        np.empty(2**50)
    return caught.value


class LightGBMError(Exception):
    """As in LightGBM, which need not be installed."""


FAULTS = {
    "torch": (of_torch, "There is not enough memory (can't allocate memory: you tried to allocate 45"),
    "numpy": (of_numpy, "There is not enough memory (Unable to allocate 8.00 PiB for an array"),
    "device": (lambda: torch.OutOfMemoryError("CUDA out of memory. Tried 2 GiB\nmore"), "(CUDA out of memory. Tried 2 GiB)"),
    "python": (MemoryError, "There is not enough memory; take a smaller fit.batch_size"),
    "library": (lambda: LightGBMError("std::bad_alloc"), "There is not enough memory (std::bad_alloc)"),
    "fork": (lambda: OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), "(Errno 12] Cannot allocate memory)"),
    "thread": (lambda: RuntimeError("can't start new thread"), "(can't start new thread)"),
    "full": (lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/x/y"), "No space left on device (/x/y); free some"),
    "quota": (lambda: OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), "Disk quota exceeded; free some space"),
    "broken": (lambda: OSError(errno.EIO, os.strerror(errno.EIO)), "Input/output error; check the disk"),
    "sqlite": (lambda: sqlite3.OperationalError("database or disk is full"), "database or disk is full; free some space"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_machine_is_one_sentence_that_says_what_to_do(name: str) -> None:
    make, words = FAULTS[name]
    with pytest.raises(MachineError) as caught, machine_faults():
        raise make()
    sentence = str(caught.value)
    assert words.replace("(Errno 12]", "([Errno 12]") in sentence
    assert sentence.endswith("and run it again: what is finished is kept.")
    assert len(sentence) <= 300
    assert "\n" not in sentence


def test_a_fault_is_seen_behind_the_errors_that_it_caused() -> None:
    def raise_behind() -> None:
        try:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise UserError("The net must take these inputs.") from error

    with pytest.raises(MachineError, match="No space left on device"), machine_faults():
        raise_behind()


@pytest.mark.parametrize(
    "error",
    [
        UserError("There is no file out of memory.csv."),
        KeyError("out of memory"),
        ValueError("No space left on device"),
        FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)),
        PermissionError(errno.EACCES, os.strerror(errno.EACCES)),
        RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
    ],
    ids=repr,
)
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    assert machine_error(error) is None
    with pytest.raises(type(error)) as caught, machine_faults():
        raise error
    assert caught.value is error


def test_a_fault_is_said_once() -> None:
    fault = MachineError("No.")
    with pytest.raises(MachineError) as caught, machine_faults():
        raise fault
    assert caught.value is fault


def test_a_long_path_is_shown_by_its_end() -> None:
    from pathlib import Path

    assert shown(Path("/" + "a" * 300 + "/record.json")).endswith("a/record.json")
    assert len(shown(Path("/" + "a" * 300))) < 120
