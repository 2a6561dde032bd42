"""Groups and classes with too few rows are counted and the smallest is named; others are not mentioned."""

import polars

from umix.data.checks.group_findings import absent_classes, group_columns, rare_classes, small_groups, too_small


def counts(train: dict[str, int], val: dict[str, int], test: dict[str, int]) -> dict[str, dict[str, int]]:
    return {"train": train, "val": val, "test": test}


def test_thirty_rows_in_val_and_test_are_enough_and_training_rows_do_not_matter() -> None:
    sizes = counts({"a": 1, "b": 900}, {"a": 30, "b": 30}, {"a": 30, "b": 30})
    assert too_small(sizes) == {}
    assert small_groups(sizes, {}) == []


def test_small_groups_are_counted_and_the_smallest_is_named() -> None:
    sizes = counts({"a": 99, "b": 99, "c": 99}, {"a": 29, "b": 99, "c": 99}, {"a": 40, "b": 99, "c": 4})
    assert too_small(sizes) == {"a": ["val"], "c": ["test"]}
    (found,) = small_groups(sizes, {})
    assert str(found.sentence).startswith(
        "2 of 3 groups have fewer than 30 rows in val or test, the smallest 'c' with 4 in test"
    )
    assert "groups=" in found.message()


def test_a_single_small_group_is_named_with_its_rows() -> None:
    (found,) = small_groups(counts({"a": 99, "b": 99}, {"a": 99, "b": 99}, {"a": 15, "b": 99}), {"a": "sex=a"})
    assert (
        str(found.sentence)
        == "'sex=a' has only 15 rows in test: its rate is shown, but decides only if clearly the worst."
    )


def test_data_without_groups_have_no_small_groups() -> None:
    assert small_groups(counts({}, {}, {}), {}) == []


def test_a_class_without_rows_in_val_or_test_is_absent_and_not_also_rare() -> None:
    sizes = counts({"a": 900, "b": 90}, {"a": 300, "b": 0}, {"a": 300, "b": 30})
    (found,) = absent_classes(sizes)
    assert found.sentence == "val has no row of 'b': no rate is known for it."
    assert rare_classes(sizes) == []


def test_a_class_is_rare_with_few_rows_in_val_or_test() -> None:
    (found,) = rare_classes(counts({"a": 900, "b": 90}, {"a": 300, "b": 29}, {"a": 300, "b": 31}))
    assert found.sentence == "1 of 2 classes is rare: 'b' with 29 in val; rates of rare classes say little."


def test_a_class_is_rare_with_less_than_one_percent_of_the_training_rows() -> None:
    enough = {"a": 5000, "b": 40}
    (found,) = rare_classes(counts({"a": 99_100, "b": 900}, enough, enough))
    assert found.sentence == (
        "1 of 2 classes is rare: 'b' with 900 of 100,000 (0.90%) in train; rates of rare classes say little."
    )
    assert rare_classes(counts({"a": 99_000, "b": 1000}, enough, enough)) == []


def test_of_many_even_classes_none_is_rare() -> None:
    even = {str(label): 40 for label in range(200)}
    assert rare_classes(counts(even, even, even)) == []


def test_blanks_and_many_values_of_group_columns_are_found() -> None:
    frame = polars.DataFrame(
        {"sex": ["f", "m", " ", "?"] * 25, "age": [20 + i % 40 for i in range(100)], "race": ["a", "b"] * 50}
    )
    assert [str(finding.sentence) for finding in group_columns(frame, ["sex", "age", "race"])] == [
        "The group column 'sex' is blank in 50 of 100 rows (50.0%), whose group is unknown.",
        "The group column 'age' has 40 values, which make more groups than anybody can read.",
    ]
    assert group_columns(frame, ["race"]) == []
