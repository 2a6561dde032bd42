"""Inputs that are read when they are needed: some of them, and several one after the other."""

import numpy as np
import torch

from umix.data.inputs import Concat, Mapped
from umix.data.texts.tokenizer import TokenIds


def mapped(*values: int) -> Mapped:
    return Mapped(torch.tensor(values), fingerprint=str(values))


def test_some_rows_of_several_inputs_follow_each_other_and_empty_ones_are_skipped() -> None:
    parts = Concat([mapped(), mapped(1, 2), mapped(), mapped(3, 4, 5).rows(torch.tensor([2, 0]))])
    assert [int(parts[i]) for i in range(len(parts))] == [1, 2, 5, 3]
    assert parts.rows(torch.tensor([3, 1])).take(torch.tensor([1, 0, 1])).tolist() == [2, 3, 2]


def test_texts_of_several_inputs_are_padded_together() -> None:
    first, second = (TokenIds.of([np.array(ids, dtype=np.int32)], pad=9) for ids in ([1, 2, 3], [4]))
    assert Concat([first, second]).take(torch.tensor([1, 0])).tolist() == [[4, 9, 9], [1, 2, 3]]


def test_the_fingerprint_depends_on_the_parts_and_their_order() -> None:
    first, second = mapped(1), mapped(2)
    assert Concat([first, second]).fingerprint == Concat([mapped(1), mapped(2)]).fingerprint
    assert Concat([first, second]).fingerprint != Concat([second, first]).fingerprint
