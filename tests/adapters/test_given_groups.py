"""Groups of one attribute or of several, in every form in which scikit-learn's users have them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import polars
import pytest

from umix import UserError
from umix.adapters.given_groups import cells

Y = np.array([0, 0, 1, 1])
TOWN, WARD = ["Bonn", "Ulm", "Bonn", "Ulm"], [1, 1, 2, 2]


def names(given: Any) -> list[str]:
    groups = cells(Y, ("no", "yes"), given)
    return [groups.names[code] if code >= 0 else "" for code in groups.codes.tolist()]


@pytest.mark.parametrize(
    "given",
    [
        {"town": TOWN, "ward": WARD},
        {"town": np.array(TOWN, dtype=object), "ward": np.array(WARD)},
        pandas.DataFrame({"town": pandas.Categorical(TOWN), "ward": WARD}),
        polars.DataFrame({"town": TOWN, "ward": WARD}),
    ],
    ids=["dict", "dict of arrays", "pandas", "polars"],
)
def test_several_attributes_make_groups_of_all_their_values(given: Any) -> None:
    assert names(given) == ["no, Bonn, ward=1", "no, Ulm, ward=1", "yes, Bonn, ward=2", "yes, Ulm, ward=2"]


def test_columns_of_an_array_are_attributes() -> None:
    assert names(np.array([TOWN, ["a", "b", "a", "b"]]).T) == [
        "no, Bonn, a",
        "no, Ulm, b",
        "yes, Bonn, a",
        "yes, Ulm, b",
    ]
    assert names(np.array([[0, 1]] * 4))[0] == "no, groups_0=0, groups_1=1"


@pytest.mark.parametrize("form", [list, np.array, pandas.Series, polars.Series, lambda values: np.array([values]).T])
def test_one_attribute_is_named_by_its_series_or_not_at_all(form: Callable[[list[Any]], Any]) -> None:
    assert names(form(TOWN)) == ["no, Bonn", "no, Ulm", "yes, Bonn", "yes, Ulm"]
    assert names(form(WARD)) == ["no, groups=1", "no, groups=1", "yes, groups=2", "yes, groups=2"]
    assert names(pandas.Series(WARD, name="ward"))[0] == "no, ward=1"


@pytest.mark.parametrize(
    "given",
    [
        ["Bonn", None, "Bonn", float("nan")],
        np.array(["Bonn", None, "Bonn", ""], dtype=object),
        pandas.Series(["Bonn", None, "Bonn", pandas.NA]),
        pandas.Categorical(["Bonn", None, "Bonn", None]),
        polars.Series(["Bonn", None, "Bonn", "?"]),
        pandas.DataFrame({"town": TOWN[:1] * 4, "ward": pandas.array([1, None, 1, None], dtype="Int64")}),
    ],
    ids=["list", "objects", "pandas", "categories", "polars", "one of two"],
)
def test_a_row_with_a_missing_value_has_no_group(given: Any) -> None:
    found = names(given)
    assert [found[1], found[3]] == ["", ""]
    assert found[0].startswith("no, Bonn")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([None] * 4, r"^groups= must be known in some row, but groups is blank in all; name other columns or none\.$"),
        ({}, r"^groups must have a column, got an empty dict; leave groups out\.$"),
        ({"town": ["a"]}, r"^The array 'town' must have a value for each of the 4 rows of the inputs, got 1\.$"),
        (pandas.DataFrame({"town": ["a"]}), r"with a value for each of the 4 rows of the inputs, got 1 × 1\.$"),
        (np.zeros((4, 2, 2)), r"must hold one value per row"),
    ],
)
def test_groups_that_do_not_fit_are_refused_in_a_sentence(given: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        names(given)


def test_a_quantity_is_no_group() -> None:
    y = np.tile([0, 1], 500)
    with pytest.raises(
        UserError, match=r"^groups= must make at most 1000 groups, got 2 classes × 1000 values of groups; "
    ):
        cells(y, ("no", "yes"), np.random.default_rng(0).normal(size=1000))
