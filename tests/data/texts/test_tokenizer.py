"""Token ids are cut out of one piece of memory and padded to the longest text of a batch, no further."""

import numpy as np
import pytest
import torch

from umix.data.groups import Groups
from umix.data.loader import batches
from umix.data.task import Split
from umix.data.texts.tokenizer import TokenIds

TEXTS = [[5, 6, 7], [8], [9, 10], [11, 12, 13, 14], [15]]


@pytest.fixture
def ids():
    return TokenIds.of([np.array(text, dtype=np.int32) for text in TEXTS], pad=0)


def padded(rows, pad=0):
    longest = max(len(TEXTS[row]) for row in rows)
    return [TEXTS[row] + [pad] * (longest - len(TEXTS[row])) for row in rows]


@pytest.mark.parametrize("rows", [[0], [1, 4], [4, 3, 0, 0], [2, 1, 3]])
def test_a_batch_is_as_long_as_its_longest_text(ids, rows):
    got = ids.take(torch.tensor(rows))
    assert (got.dtype, got.tolist()) == (torch.int64, padded(rows))
    assert [ids[row].tolist() for row in rows] == [TEXTS[row] for row in rows]


def test_rows_of_rows_are_those_texts(ids):
    some = ids.rows(torch.tensor([3, 1, 0])).rows(torch.tensor([2, 1]))
    assert (len(some), some[0].tolist()) == (2, TEXTS[0])
    assert some.take(torch.tensor([1, 0])).tolist() == padded([1, 0])
    assert some.fingerprint not in (ids.fingerprint, ids.rows(torch.tensor([0, 1])).fingerprint)


def test_the_fingerprint_tells_texts_apart_by_where_they_end(ids):
    other = TokenIds.of([np.array(text, dtype=np.int32) for text in [[5, 6], [7, 8], *TEXTS[2:]]], pad=0)
    again = TokenIds.of([np.array(text, dtype=np.int32) for text in TEXTS], pad=0)
    assert ids.fingerprint == again.fingerprint != other.fingerprint


def test_batches_and_splits_treat_ids_like_other_inputs(ids):
    split = Split(ids, torch.arange(5) % 2, Groups.from_ids(torch.arange(5) % 2, ["a", "b"]))
    assert split.example.tolist() == TEXTS[0]
    got = list(batches(split.rows(torch.tensor([4, 3, 2])), torch.tensor([2, 0, 1]), batch_size=2))
    assert [batch.x.tolist() for batch in got] == [padded([2, 4]), padded([3])]


def test_whoever_changes_a_batch_changes_nothing_else(ids):
    ids.take(torch.tensor([0, 3])).fill_(99)
    ids[0].fill_(99)
    assert ids[0].tolist() == TEXTS[0]
