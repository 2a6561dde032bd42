"""Planned batches are the same whichever thread makes them, and no thread outlives them."""

import threading
import time
from functools import partial

import numpy as np
import pytest
import torch

from umix.data.batch_threads import planned_batches
from umix.data.images.transforms import CenterSquare, RandomBox
from umix.data.lazy import Mapped
from umix.errors import UserError

N = 23


def stored(side):
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (N, 3, side, side), dtype=np.uint8))


class Read:
    """Images that are read one by one; ``broken`` rows cannot be, and all threads that read are remembered."""

    fingerprint = "read"

    def __init__(self, x, broken=()):
        self.x, self.broken, self.read, self.threads = x, broken, [], set()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        self.read.append(index)
        self.threads.add(
            torch.get_num_threads() if threading.current_thread() is not threading.main_thread() else "main"
        )
        time.sleep(0.001 * (index % 3))  # later examples are ready before earlier ones
        if index in self.broken:
            raise UserError(f"row {index} cannot be read.")
        return self.x[index]


def order(batch_size=5):
    return torch.from_numpy(np.random.default_rng(1).permutation(N)).split(batch_size)


def plan(side, random=True):
    return (
        partial(RandomBox(side - 4).plan, rng=np.random.default_rng(3))
        if random
        else CenterSquare(side - 6, side - 4).plan
    )


SIDES = [20, 140]  # one is resized in pieces, the other image by image


@pytest.mark.parametrize("random", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("workers", [0, 1, 2, 7, None])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("form", [Read, partial(Mapped, fingerprint="mapped")], ids=["read", "mapped"])
def test_batches_do_not_depend_on_the_number_of_threads(form, side, workers, random):
    x, transform = stored(side), RandomBox(side - 4) if random else CenterSquare(side - 6, side - 4)
    rng = [np.random.default_rng(3)] if random else []
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        expected = [transform(x[rows], *rng) for rows in order()]
    finally:
        torch.set_num_threads(before)
    got = list(planned_batches(form(x), order(), plan(side, random), workers))
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))


def test_each_thread_computes_alone_and_the_caller_keeps_its_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        x = Read(stored(20))
        assert len(list(planned_batches(x, order(), plan(20), 2))) == 5
        assert x.threads == {1}
        assert torch.get_num_threads() == 3
        seen = []
        thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert seen == [3]
    finally:
        torch.set_num_threads(before)


def test_no_workers_start_no_thread():
    x = Read(stored(20))
    assert len(list(planned_batches(x, order(), plan(20), 0))) == 5
    assert x.threads == {"main"}


def test_one_batch_is_read_ahead_and_no_more():
    x = Read(stored(20))
    got = planned_batches(x, order(), plan(20), 2)
    next(got)
    while len(x.read) < 1 + 2 * 5:  # the first example is read for its shape
        time.sleep(0.001)
    got.close()
    assert sorted(x.read[1:]) == sorted(torch.cat(order()[:2]).tolist())


def test_mapped_images_are_not_changed_ahead(monkeypatch):
    taken, take = [], Mapped.take
    monkeypatch.setattr(Mapped, "take", lambda self, rows: (taken.extend(rows.tolist()), take(self, rows))[1])
    got = planned_batches(Mapped(stored(20), "mapped"), order(), plan(20), 2)
    next(got)
    got.close()
    assert sorted(taken) == sorted(order()[0].tolist())


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_of_several_broken_images_the_first_of_the_order_is_named(workers):
    parts, before = order(), set(threading.enumerate())
    first, second = (int(parts[2][place]) for place in (1, 4))
    got = planned_batches(Read(stored(20), {first, second}), parts, plan(20), workers)
    assert [len(next(got)) for _ in range(2)] == [5, 5]
    with pytest.raises(UserError, match=rf"^row {first} cannot be read\.$"):
        next(got)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("ends", ["exhausted", "closed", "forgotten", "interrupted"])
def test_no_thread_is_left_however_reading_ends(ends):
    before = set(threading.enumerate())
    got = planned_batches(Read(stored(20)), order(), plan(20), 3)
    next(got)
    assert not set(threading.enumerate()) <= before
    if ends == "exhausted":
        assert len(list(got)) == 4
    elif ends == "closed":
        got.close()
    elif ends == "forgotten":
        del got
    else:
        with pytest.raises(KeyboardInterrupt):
            got.throw(KeyboardInterrupt())
    assert set(threading.enumerate()) <= before


def test_a_batch_is_not_written_again_while_it_is_held():
    side = 300  # large enough for memory that is used again
    x, parts = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (12, 3, side, side), dtype=np.uint8)), None
    parts = torch.arange(12).split(4)
    held = list(planned_batches(Mapped(x, "mapped"), parts, CenterSquare(side, side).plan, 2))
    again = [CenterSquare(side, side)(x[rows]) for rows in parts]
    assert all(torch.equal(a, b) for a, b in zip(held, again, strict=True))


def test_batches_of_an_evaluation_and_of_training_are_the_same():
    parts, x = order(), Read(stored(20))
    expected = list(planned_batches(x, parts, plan(20), 2))
    with torch.inference_mode():
        got = list(planned_batches(x, parts, plan(20), 2))
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))


def test_no_examples_make_no_batches():
    assert list(planned_batches(Read(stored(20)), (), plan(20), 2)) == []
