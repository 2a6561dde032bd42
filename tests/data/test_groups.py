"""Groups are a matrix: they may overlap, and a split may miss some."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from umix.data.groups import Groups
from umix.errors import UserError


@given(st.integers(1, 5), st.data())
@settings(deadline=None, max_examples=40)
def test_ids_come_back_from_groups_made_of_ids(n_groups, data):
    ids = torch.tensor(data.draw(st.lists(st.integers(0, n_groups - 1), max_size=8)), dtype=torch.int64)
    groups = Groups.from_ids(ids, [f"g{group}" for group in range(n_groups)])
    assert torch.equal(groups.ids, ids)
    assert groups.ids.dtype == torch.int64
    assert groups.disjoint
    assert groups.sizes.tolist() == [ids.tolist().count(group) for group in range(n_groups)]


def test_cells_are_ordered_by_label_then_attribute():
    y, a = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])
    groups = Groups.cells(y, a, labels=["no", "yes"], attributes=["red", "green"])
    assert groups.names == ("no, red", "no, green", "yes, red", "yes, green")
    assert groups.ids.tolist() == (2 * y + a).tolist()


@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 10**6))
@settings(deadline=None, max_examples=30)
def test_the_name_of_a_cell_is_that_of_its_label_and_attribute(n_labels, n_attributes, seed):
    rng = np.random.default_rng(seed)
    y, a = rng.integers(n_labels, size=6), rng.integers(n_attributes, size=6)
    labels, attributes = "abc"[:n_labels], "wxyz"[:n_attributes]
    groups = Groups.cells(torch.from_numpy(y), torch.from_numpy(a), labels=labels, attributes=attributes)
    names = [groups.names[group] for group in groups.ids]
    assert names == [f"{labels[label]}, {attributes[attribute]}" for label, attribute in zip(y, a, strict=True)]


def test_cells_remember_the_attribute_and_other_groups_have_none():
    a = torch.tensor([1, 0, 1])
    cells = Groups.cells(torch.tensor([0, 1, 1]), a, labels=["no", "yes"], attributes=["red", "green"])
    assert torch.equal(cells.attribute, a)
    assert Groups.from_ids(a, ["red", "green"]).attribute is None


@pytest.mark.parametrize("with_attribute", [True, False])
def test_rows_are_the_groups_of_these_examples(with_attribute):
    a = torch.tensor([1, 0, 1]) if with_attribute else None
    some = Groups.from_ids(torch.tensor([2, 0, 1]), ["a", "b", "c"], attribute=a).rows(torch.tensor([2, 2, 0]))
    assert some.ids.tolist() == [1, 1, 2]
    assert some.names == ("a", "b", "c")
    assert (some.attribute.tolist() == [1, 1, 1]) if with_attribute else (some.attribute is None)


@pytest.mark.parametrize("attributes", [[0, 2], [-2, 0]], ids=["above", "below"])
def test_an_attribute_without_a_name_is_an_error_not_another_label(attributes):
    y = torch.tensor([1, 0])  # with which the wrong attribute would name an existing cell
    with pytest.raises(ValueError, match=rf"Attributes must lie in 0\.\.1, got {attributes[0]}\.\.{attributes[1]}\."):
        Groups.cells(y, torch.tensor(attributes), labels=["n", "y"], attributes=["a", "b"])


@pytest.mark.parametrize("ids", [[0, 2], [-2, 0]], ids=["above", "below"])
def test_an_id_without_a_name_is_an_error(ids):
    with pytest.raises(ValueError, match=rf"Group ids must lie in 0\.\.1, got {ids[0]}\.\.{ids[1]}"):
        Groups.from_ids(torch.tensor(ids), ["a", "b"])


@pytest.mark.parametrize(
    "member",
    [[[True, True], [True, False]], [[False, False], [True, False]], [[True, True], [False, False]]],
    ids=["overlapping", "incomplete", "one each on average"],
)
def test_overlapping_or_incomplete_groups_have_no_ids(member):
    groups = Groups(torch.tensor(member), ("men", "smokers"))
    assert not groups.disjoint
    message = r"^Every example must be in exactly one of the groups men, smokers, but|must be known here, but it is not for 1 of 2"
    with pytest.raises(UserError, match=message):
        _ = groups.ids


def test_an_example_whose_group_is_not_known_is_in_none():
    groups = Groups.cells(
        torch.tensor([0, 1, 1]), torch.tensor([-1, 0, 1]), labels=["no", "yes"], attributes=["a", "b"]
    )
    assert groups.sizes.tolist() == [0, 0, 1, 1]
    assert groups.codes.tolist() == [-1, 2, 3]
    assert not groups.overlap
    assert not groups.disjoint


@pytest.fixture
def partly_blank() -> Groups:
    """Of the columns sex and race: no, f, a; yes, m and a blank; no, a blank and b; yes and two blanks."""
    return Groups.cells(
        torch.tensor([0, 1, 0, 1]),
        torch.tensor([0, -1, -1, -1]),
        labels=["no", "yes"],
        attributes=["f, a", "m, b"],
        columns=["y", "sex", "race"],
        values=[("f", "a"), ("m", "b")],
        by_column=[(torch.tensor([0, 1, -1, -1]), ["f", "m"]), (torch.tensor([0, -1, 1, -1]), ["a", "b"])],
    )


def test_an_example_without_a_group_is_in_the_margins_of_the_columns_where_it_has_a_value(partly_blank):
    def margins(groups):
        within = zip(groups.margins, groups.in_margins.T.tolist(), strict=True)
        return {margin.name: rows for margin, rows in within if any(rows)}

    assert partly_blank.codes.tolist() == [0, -1, -1, -1]
    assert margins(partly_blank) == {
        "no, f": [True, False, False, False],
        "yes, m": [False, True, False, False],
        "no, a": [True, False, False, False],
        "no, b": [False, False, True, False],
    }
    assert margins(partly_blank.rows(torch.tensor([3, 1]))) == {"yes, m": [False, True]}


def test_possible_groups_have_the_values_that_are_known(partly_blank):
    assert [row.nonzero()[:, 0].tolist() for row in partly_blank.possible] == [[0], [3], [1], [2, 3]]
    unnamed = Groups.from_ids(torch.tensor([0, -1]), ["a", "b"])
    assert unnamed.possible.all()


def test_groups_known_for_some_examples_say_nothing_of_the_others(partly_blank):
    some = partly_blank.known_for(torch.tensor([False, True, True, True]))
    assert some.sizes.tolist() == [0, 0, 0, 0]
    assert some.attribute.tolist() == [-1, -1, -1, -1]
    assert some.in_margins.equal(partly_blank.in_margins & torch.tensor([[False], [True], [True], [True]]))


def test_sizes_count_an_example_in_every_group_it_is_in():
    groups = Groups(torch.tensor([[True, True, False], [True, False, False]]), ("a", "b", "c"))
    assert groups.sizes.tolist() == [2, 1, 0]


def test_groups_of_no_examples_are_disjoint_and_have_no_ids_to_give():
    nobody = torch.zeros(0, dtype=torch.int64)
    for groups in (
        Groups.from_ids(nobody, ["a, x", "b, x"]),
        Groups.cells(nobody, nobody, labels=["a", "b"], attributes=["x"]),
    ):
        assert groups.disjoint
        assert groups.ids.shape == (0,)
        assert groups.sizes.tolist() == [0, 0]
        assert groups.names == ("a, x", "b, x")


@pytest.mark.parametrize(
    "member",
    [torch.ones(3, 2), torch.ones(3, 3).bool(), torch.ones(2).bool()],
    ids=["not bool", "another number of groups", "not a matrix"],
)
def test_membership_must_be_a_bool_matrix_with_a_column_per_name(member):
    with pytest.raises(ValueError, match=r"Groups\.member must be bool \[n, 2\] for 2 names"):
        Groups(member, ("a", "b"))


def test_two_groups_cannot_have_one_name():
    with pytest.raises(ValueError, match="must differ"):
        Groups(torch.ones(1, 2).bool(), ("a", "a"))
