"""What a split and a task promise, and what their fingerprints notice."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from umix.data.groups import Groups
from umix.data.inputs import Inputs
from umix.data.registry import task_source
from umix.data.task import Split, Task, TaskSource
from umix.errors import UserError


class _Folder(Inputs):
    """Lazy inputs that count how often they are read."""

    def __init__(self, fingerprint, n=3):
        self.fingerprint = fingerprint
        self.n = n
        self.reads = 0

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        self.reads += 1
        return torch.full((2,), float(index))


@pytest.fixture
def groups():
    return Groups.from_ids(torch.tensor([0, 1, 1]), ["a", "b"])


@pytest.fixture
def split(groups):
    return Split(torch.arange(6.0).view(3, 2), torch.tensor([0, 1, 0]), groups)


@pytest.fixture
def overlapping():
    return Groups(torch.tensor([[True, True], [True, False], [False, True]]), ("a", "b"))


def _task(split, **changes):
    return Task("t", {"train": split, "val": split, "test": split, **changes}, ("no", "yes"))


def _changed(tensor, position):
    changed = tensor.clone()
    changed.view(-1)[position] += 1
    return changed


def test_the_fingerprint_of_equal_data_is_equal(split):
    copy = Split(split.x.clone(), split.y.clone(), split.groups)
    assert copy.fingerprint == split.fingerprint
    assert len(split.fingerprint) == 32


def test_any_other_input_or_label_makes_another_fingerprint(split):
    others = [replace(split, x=_changed(split.x, position)) for position in range(split.x.numel())]
    others += [replace(split, y=_changed(split.y, position)) for position in range(len(split))]
    prints = {split.fingerprint, *(other.fingerprint for other in others)}
    assert len(prints) == 1 + len(others)


def test_a_single_column_in_fortran_order_has_the_fingerprint_of_the_same_numbers(split):
    numbers = np.arange(len(split), dtype=np.float32)[:, None]
    one = torch.from_numpy(numbers)
    strided = one.as_strided((len(split), 1), (1, len(split)))  # as a table of codes stores it
    assert Split(strided, split.y, split.groups).fingerprint == Split(one, split.y, split.groups).fingerprint


def test_the_shape_and_type_of_the_inputs_are_in_the_fingerprint(split):
    flat = torch.zeros(3, 4)
    prints = {replace(split, x=x).fingerprint for x in (flat, flat.view(3, 2, 2), flat.int())}
    assert len(prints) == 3


def test_how_the_inputs_lie_in_memory_is_not_in_the_fingerprint(split):
    strided = torch.stack([split.x, -split.x], dim=2)[:, :, 0]
    assert not strided.is_contiguous()
    assert Split(strided, split.y, split.groups).fingerprint == split.fingerprint


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16], ids=str)
def test_inputs_of_every_type_have_a_fingerprint(split, dtype):
    first = replace(split, x=torch.zeros(3, 2).to(dtype))
    second = replace(split, x=torch.tensor([[0, 0], [0, 0], [0, 1]]).to(dtype))
    assert first.fingerprint != second.fingerprint


def test_the_last_example_of_a_large_split_is_in_the_fingerprint(groups):
    large = torch.zeros(3, 3 * 2**20)  # 12 MB each: hashed in more than one part
    y = torch.zeros(3, dtype=torch.int64)
    first = Split(large, y, groups).fingerprint
    large[-1, -1] = 1
    assert Split(large, y, groups).fingerprint != first


def test_an_empty_split_has_a_fingerprint():
    nobody = Groups.from_ids(torch.zeros(0, dtype=torch.int64), ["a"])
    prints = {Split(torch.zeros(0, width), torch.zeros(0).long(), nobody).fingerprint for width in (2, 3)}
    assert len(prints) == 2


def test_lazy_inputs_vouch_for_themselves_and_are_not_read(split):
    folder = _Folder("first")
    lazy = replace(split, x=folder)
    assert lazy.fingerprint == replace(split, x=_Folder("first")).fingerprint
    assert lazy.fingerprint != replace(split, x=_Folder("second")).fingerprint
    assert lazy.fingerprint != replace(lazy, y=_changed(split.y, 0)).fingerprint
    assert folder.reads == 0


def test_groups_are_not_in_the_fingerprint_of_a_split(split, overlapping):
    assert replace(split, groups=overlapping).fingerprint == split.fingerprint
    assert replace(split, training_groups=split.groups).fingerprint == split.fingerprint


@pytest.mark.parametrize("name", ["train", "val", "test"])
def test_any_other_split_makes_another_task_fingerprint(split, name):
    other = replace(split, x=_changed(split.x, 3))
    assert _task(split, **{name: other}).fingerprint != _task(split).fingerprint


def test_two_splits_cannot_trade_places_unnoticed(split):
    other = replace(split, y=_changed(split.y, 0))
    assert _task(split, val=other).fingerprint != _task(split, test=other).fingerprint


@pytest.mark.parametrize("name", ["train", "val", "test"])
def test_other_groups_make_another_task_fingerprint(split, overlapping, name):
    regrouped = replace(split, groups=overlapping)
    assert _task(split, **{name: regrouped}).fingerprint != _task(split).fingerprint


def test_names_and_training_groups_are_in_the_task_fingerprint(split):
    plain = _task(split)
    renamed = _task(replace(split, groups=Groups(split.member, ("a", "c"))))
    declared = _task(replace(split, training_groups=split.groups))
    relabelled = Task("t", plain.splits, ("no", "maybe"))
    assert len({task.fingerprint for task in (plain, renamed, declared, relabelled)}) == 4


@pytest.mark.parametrize("field", ["x", "y", "groups", "training_groups"])
def test_the_fields_of_a_split_must_be_about_the_same_examples(split, field):
    others = {"x": torch.zeros(2, 2), "y": torch.zeros(2), "groups": Groups(torch.ones(2, 1).bool(), ("a",))}
    others["training_groups"] = others["groups"]
    with pytest.raises(ValueError, match=rf"about the same examples, got lengths .*'{field}': 2"):
        replace(split, **{field: others[field]})


def test_a_split_is_as_long_as_its_labels_and_shows_its_groups(split):
    assert len(split) == 3
    assert torch.equal(split.member, split.groups.member)
    assert split.member_float.dtype == torch.float32
    assert torch.equal(split.member_float.bool(), split.member)


def test_examples_are_trained_in_their_evaluation_groups_unless_others_are_declared(split, overlapping):
    assert split.group.tolist() == [0, 1, 1]
    declared = Groups.from_ids(torch.tensor([2, 0, 1]), ["p", "q", "r"])
    assert replace(split, groups=overlapping, training_groups=declared).group.tolist() == [2, 0, 1]


def test_moving_a_split_moves_every_tensor_and_keeps_the_names(split):
    moved = replace(split, training_groups=split.groups).to(torch.device("meta"))
    tensors = [moved.x, moved.y, moved.member, moved.training_groups.member]
    assert [tensor.device.type for tensor in tensors] == ["meta"] * 4
    assert (moved.groups.names, moved.training_groups.names) == (("a", "b"), ("a", "b"))


def test_moving_a_lazy_split_leaves_its_inputs_where_they_are(split):
    folder = _Folder("here")
    moved = replace(split, x=folder).to(torch.device("meta"))
    assert moved.x is folder
    assert moved.training_groups is None
    assert folder.reads == 0


def test_rows_are_a_split_of_these_examples(split, overlapping):
    some = replace(split, groups=overlapping, training_groups=split.groups).rows(torch.tensor([2, 0, 0]))
    assert torch.equal(some.x, split.x[[2, 0, 0]])
    assert some.y.tolist() == [0, 0, 0]
    assert some.member.tolist() == overlapping.member[[2, 0, 0]].tolist()
    assert some.group.tolist() == [1, 0, 0]
    assert split.rows(torch.tensor([1])).training_groups is None


def test_the_attribute_is_that_of_the_groups_examples_are_trained_in(split):
    cells = Groups.from_ids(torch.tensor([0, 1, 1]), ["a", "b"], attribute=torch.tensor([1, 1, 0]))
    assert split.attribute is None
    assert replace(split, training_groups=cells).attribute.tolist() == [1, 1, 0]
    assert replace(split, groups=cells, training_groups=split.groups).attribute is None


def test_a_task_knows_its_classes_and_groups(split):
    task = _task(split)
    assert (task.n_classes, task.groups, task.training_groups) == (2, ("a", "b"), ("a", "b"))
    declared = _task(replace(split, training_groups=Groups.from_ids(torch.tensor([0, 0, 0]), ["all"])))
    assert (declared.groups, declared.training_groups) == (("a", "b"), ("all",))


@pytest.mark.parametrize("missing", ["train", "val", "test"])
def test_a_task_needs_three_splits(split, missing):
    splits = {name: split for name in ("train", "val", "test") if name != missing}
    with pytest.raises(ValueError, match=f"but {missing} is missing"):
        Task("t", splits, ("no", "yes"))


def test_groups_belong_to_the_task_not_to_a_split(split):
    with pytest.raises(ValueError, match="must share one set of group names"):
        _task(split, val=replace(split, groups=Groups(split.member, ("a", "c"))))


def test_a_source_is_frozen_options_and_how_to_load(split):
    class Whole(TaskSource):
        name = "whole"
        scale: float = 1.0

        def load(self, root: Path | None = None) -> Task:
            return _task(replace(split, x=self.scale * split.x))

    assert torch.equal(Whole(scale=2).load().splits["val"].x, 2 * split.x)
    with pytest.raises(UserError, match="did you mean 'scale'"):
        Whole(scal=2)


def test_rows_of_a_lazy_split_are_lazy_and_know_which_they_are(split):
    folder = _Folder("here")
    some = replace(split, x=folder).rows(torch.tensor([2, 0]))
    assert folder.reads == 0
    assert [float(some.x[row][0]) for row in range(len(some))] == [2.0, 0.0]
    others = [replace(split, x=_Folder("here")).rows(torch.tensor(rows)) for rows in ([2, 0], [0, 2], [2, 1])]
    assert [some.fingerprint == other.fingerprint for other in others] == [True, False, False]


@pytest.mark.parametrize("name", ["absent.csv", "absent.npz", "absent/"])
def test_constructing_a_source_reads_no_file_and_checking_its_files_does(tmp_path, name):
    options = {"label_from": "folder"} if name.endswith("/") else {"label": "y"}
    source = task_source(f"{tmp_path}/{name}", **options)
    for read in (source.check_files, source.as_json, source.load, lambda: source.content):
        with pytest.raises(UserError, match=r"^There is no (file|folder) "):
            read()
