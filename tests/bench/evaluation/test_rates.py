"""Rates on new data equal those by hand, and the worst group is found by the rule of a run's summary."""

import polars
import pytest

from umix import RunResult, evaluate, group_counts
from umix.core.statistics import wilson


def test_rates_are_those_of_the_predictions_by_hand(result: RunResult, new: polars.DataFrame) -> None:
    found = evaluate(result, new)
    right = result.predict(new)["label"] == new["y"]
    assert found.average == right.mean()
    for (label, place, sex), part in new.with_columns(right=right).group_by("y", "place", "sex"):
        rate = found.rates[f"{label}, {place}, {sex}"]
        assert (rate.hits, rate.size) == (part["right"].sum(), len(part))
        assert (rate.low, rate.high) == (wilson(rate.hits, rate.size).low, wilson(rate.hits, rate.size).high)
        assert rate.share == len(part) / len(new)
    for (label, sex), part in new.with_columns(right=right).group_by("y", "sex"):
        assert found.rates[f"{label}, {sex} (sex)"].rate == part["right"].mean()


def test_the_worst_group_is_that_of_group_counts(result: RunResult, new: polars.DataFrame) -> None:
    found = evaluate(result, new)
    counts = group_counts(result.predict(new)["label"], new["y"], new.select("place", "sex"))
    assert (found.worst, found.worst_group) == (counts.worst, counts.worst_group)


def test_rates_on_test_and_training_shares_are_the_runs(result: RunResult, new: polars.DataFrame) -> None:
    record, summary = result.record, result.summary()
    found = evaluate(result, new).rates
    assert {name: one.test_rate for name, one in found.items()} == {
        name: summary.unit_rates[name].rate for name in found
    }
    shares = {name: size / record.n_train for name, size in zip(record.groups, record.train_sizes, strict=True)}
    assert {name: found[name].train_share for name in record.groups} == shares
    n_yes = sum(size for parts, size in zip(record.group_parts, record.train_sizes, strict=True) if parts[0] == "yes")
    assert found["class yes"].train_share == n_yes / record.n_train


def test_without_one_group_column_the_others_are_shown_and_said(result: RunResult, new: polars.DataFrame) -> None:
    found, whole = evaluate(result, new.drop("place")), evaluate(result, new)
    assert found.notes == [
        "Rates by place cannot be shown: the data have no such column, or it is blank; rates are by sex."
    ]
    margins = {name: one for name, one in whole.rates.items() if name.endswith("(sex)")}
    assert {name: one for name, one in found.rates.items() if not name.startswith("class")} == margins


def test_without_group_columns_classes_are_shown_and_said(result: RunResult, new: polars.DataFrame) -> None:
    blank = new.drop("place").with_columns(sex=polars.lit(None, dtype=polars.String))
    found = evaluate(result, blank)
    assert "Rates by place, sex cannot be shown" in found.notes[0]
    assert list(found.rates) == ["class no", "class yes"]
    assert found.worst_group is None


def test_groups_that_training_did_not_have_are_shown_without_a_rate_on_test(
    result: RunResult, new: polars.DataFrame
) -> None:
    found = evaluate(result, new.with_columns(place=polars.lit("air")))
    rate = found.rates["no, air, Male"]
    assert (rate.test_rate, rate.train_share, rate.below_test) == (None, None, False)
    assert any(note.startswith("Groups that training did not have: no, air, Female; ") for note in found.notes)


@pytest.mark.parametrize("dropped", [[], ["place"]], ids=["all columns", "one of two"])
def test_groups_that_the_new_data_lack_are_said_and_count_as_moved(
    result: RunResult, new: polars.DataFrame, dropped: list[str]
) -> None:
    found = evaluate(result, new.filter(polars.col("sex") == "Male").drop(dropped))
    gone = (
        "y=no, Female; y=yes, Female."
        if dropped
        else "y=no, land, Female; y=no, water, Female; y=yes, land, Female and 1 more."
    )
    assert f"Groups that the new data do not have: {gone}" in found.notes
    (groups,) = (one for one in found.drift if one.kind == "groups")
    assert groups.moved > 0.4
    assert groups.where.startswith("y=")  # called as in the table of rates


def test_a_blank_has_no_group_but_counts_in_the_average(result: RunResult, new: polars.DataFrame) -> None:
    first = polars.int_range(len(new), eager=True) < 100
    found = evaluate(result, new.with_columns(sex=new["sex"].set(first, None)))
    assert found.average == evaluate(result, new).average
    assert sum(found.rates[name].size for name in result.record.groups) == len(new) - 100


def test_group_values_are_named_as_in_training_whatever_their_type(tmp_path, new: polars.DataFrame, rows) -> None:
    from umix import task_from_table, train

    ward = [f"{k % 2 + 1}" for k in range(900)]
    frame = rows(900).with_columns(ward=polars.Series([*ward[:-1], "A"]))  # texts, because of one value
    run = train(task_from_table(frame, label="y", groups="ward", drop=["key"]), "erm", epochs=2)
    found = evaluate(run, new.with_columns(ward=polars.Series([k % 2 + 1 for k in range(len(new))])))
    assert found.rates["no, 2"].test_rate is not None
    assert not any("training did not have" in note for note in found.notes)


def test_clearly_worse_means_that_intervals_do_not_overlap(result: RunResult, new: polars.DataFrame) -> None:
    turned = new.with_columns(
        y=polars.when(polars.col("y") == "yes").then(polars.lit("no")).otherwise(polars.lit("yes"))
    )
    assert all(one.below_test for one in evaluate(result, turned).rates.values())
    assert not any(one.below_test for one in evaluate(result, None).rates.values())


def test_the_runs_rule_on_small_groups_holds(result: RunResult, new: polars.DataFrame) -> None:
    few = new.filter((polars.col("place") == "land") | (polars.int_range(polars.len()) < 40))
    found = evaluate(result, few)
    small = [name for name in result.record.groups if found.rates[name].size < result.record.min_group]
    assert small
    assert found.worst == pytest.approx(
        group_counts(result.predict(few)["label"], few["y"], few.select("place", "sex")).worst
    )
