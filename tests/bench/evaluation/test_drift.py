"""What has moved since training: compared with counts by hand, and silent where nothing has."""

import numpy as np
import polars
import pytest
from scipy.stats import chi2_contingency

from umix import EvaluationResult, RunResult, evaluate
from umix.bench.evaluation.evaluated import ColumnDrift


def column(found: EvaluationResult, name: str) -> ColumnDrift:
    return next(one for one in found.drift if one.column == name)


def test_a_category_is_compared_by_its_shares(result: RunResult, rows, new: polars.DataFrame) -> None:
    redder = polars.concat([new, new.filter(polars.col("colour") == "red")])
    found = column(evaluate(result, redder), "colour")
    before = dict(rows(900)[_train_rows(result)]["colour"].value_counts().rows())
    after = dict(redder["colour"].value_counts().rows())
    counts = np.array([[before[name], after[name]] for name in ("blue", "green", "red")], dtype=float).T
    shares = counts / counts.sum(axis=1, keepdims=True)
    assert found.moved == pytest.approx(np.abs(shares[1] - shares[0]).sum() / 2)
    assert found.p_value == pytest.approx(chi2_contingency(counts, correction=False).pvalue)
    assert (found.where, found.large) == ("red", True)
    assert (found.before, found.after) == pytest.approx((shares[0, 2], shares[1, 2]))


def _train_rows(result: RunResult) -> np.ndarray:
    assert result.directory is not None
    return polars.read_parquet(result.directory / "training.parquet")["row"].to_numpy()


def test_a_number_is_compared_by_tenths_of_training(result: RunResult, rows, new: polars.DataFrame) -> None:
    found = column(evaluate(result, new.with_columns(polars.col("noise") + 1)), "noise")
    train = rows(900)[_train_rows(result)]["noise"].to_numpy()
    edges = np.quantile(train, np.arange(1, 10) / 10, method="lower")
    before, after = (np.bincount(np.searchsorted(edges, v), minlength=10) for v in (train, new["noise"].to_numpy() + 1))
    assert found.moved == pytest.approx(np.abs(before / before.sum() - after / after.sum()).sum() / 2, abs=1e-6)
    assert found.large
    assert found.where.startswith("above ")


def test_new_rows_of_the_same_kind_have_not_moved(result: RunResult, new: polars.DataFrame) -> None:
    assert not any(one.large for one in evaluate(result, new).drift)


def test_missing_values_and_new_categories_are_a_bin(result: RunResult, new: polars.DataFrame) -> None:
    half = polars.int_range(polars.len()) < 300
    changed = new.with_columns(
        x=polars.when(half).then(None).otherwise("x"),
        colour=polars.when(half).then(polars.lit("pink")).otherwise("colour"),
    )
    found = evaluate(result, changed)
    assert [column(found, name).where for name in ("x", "colour")] == ["missing", "missing or new"]
    assert column(found, "x").after == 0.5


def test_shares_of_label_and_groups_and_predictions_are_compared(result: RunResult, new: polars.DataFrame) -> None:
    found = evaluate(result, new.filter(polars.col("x") > 0, polars.col("sex") == "Male"))
    by_kind = {one.kind: one for one in found.drift}
    assert {name for name, row in by_kind.items() if row.large and name != "input"} >= {
        "label",
        "groups",
        "prediction",
    }
    assert by_kind["prediction"].after > 0.9
    groups = result.record.groups
    train = dict(zip(groups, np.array(result.record.train_sizes) / sum(result.record.train_sizes), strict=True))
    shares = {name: found.rates[name].share if name in found.rates else 0.0 for name in groups}
    assert by_kind["groups"].moved == pytest.approx(sum(abs(shares[n] - train[n]) for n in groups) / 2)


def test_predictions_of_another_rule_are_not_compared_with_those_of_the_run(
    result: RunResult, new: polars.DataFrame
) -> None:
    kinds = {one.kind for one in evaluate(result, new, select="last", threshold="off").drift}
    assert kinds == {"label", "groups", "input"}
