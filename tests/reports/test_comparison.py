"""Comparisons of records, against numbers computed by hand."""

import math
from collections.abc import Callable

import pytest

from umix.bench.runs.record import RunRecord
from umix.errors import UserError
from umix.reports.comparison import compare

Make = Callable[..., RunRecord]
Runs = dict[str, dict[str, list[RunRecord]]]


def test_cells_hold_means_deviations_and_paired_differences(runs: Runs) -> None:
    comparison = compare(runs)
    erm, umix = comparison.cells["toy"]["erm"], comparison.cells["toy"]["umix"]
    assert comparison.baseline == "erm"
    assert erm.rates["worst"].mean == pytest.approx(0.6)
    assert erm.rates["worst"].std == pytest.approx(math.sqrt(0.02))
    assert erm.rates["adjusted"].mean == pytest.approx(0.9 * 0.9 + 0.1 * 0.6)
    assert erm.rates["average"].mean == pytest.approx(0.75)
    assert erm.rates["group_mean"].mean == pytest.approx(0.75)
    assert not erm.gains
    gain = umix.gains["worst"]
    assert (gain.seeds, gain.spread.mean, gain.p_flip) == (2, pytest.approx(0.2), 0.5)
    assert umix.gains["average"].spread.mean == pytest.approx(0.825 - 0.75)
    assert umix.groups["b"].mean == pytest.approx(0.85)
    assert erm.interval.low < 0.6 < erm.interval.high


def test_differences_are_paired_over_common_seeds_only(record: Make) -> None:
    runs = {"toy": {"erm": [record(0, [9, 5])], "new": [record(0, [8, 6]), record(1, [8, 1])]}}
    gain = compare(runs).cells["toy"]["new"].gains["worst"]
    assert (gain.seeds, gain.spread.mean) == (1, pytest.approx(0.1))


def test_seeds_that_are_identical_fits_count_as_one(record: Make) -> None:
    erm = [record(seed, [9, 5], losses=[0.5]) for seed in range(5)]
    trees = [record(seed, [8, 7], "best", losses=[0.4]) for seed in range(5)]
    cells = compare({"toy": {"erm": erm, "best": trees}}).cells["toy"]
    gain = cells["best"].gains["worst"]
    assert (gain.seeds, gain.spread.mean) == (1, pytest.approx(0.2))
    assert all(map(math.isnan, (cells["erm"].rates["worst"].std, gain.spread.std, gain.interval.low, gain.p_flip)))
    assert (len(cells["best"].seeds), cells["best"].fits) == (5, 1)
    assert cells["best"].doubts[0] == "all 5 seeds are the same fit, which counts once"
    assert math.isnan(cells["erm"].groups["b"].std)


def test_a_baseline_without_chance_is_compared_with_every_different_fit(record: Make) -> None:
    erm = [record(seed, [9, 5], losses=[0.5]) for seed in range(4)]
    umix = [record(seed, [8, 6 + seed], "umix", losses=[0.1 * seed]) for seed in (0, 1, 2)]
    copy = record(3, [8, 8], "umix", losses=[0.2])  # of seed 2
    cell = compare({"toy": {"erm": erm, "umix": [*umix, copy]}}).cells["toy"]["umix"]
    assert (cell.gains["worst"].seeds, cell.gains["worst"].p_flip) == (3, 0.25)
    assert cell.doubts[0] == "4 seeds are 3 different fits; copies count once"
    assert cell.rates["worst"].std > 0


def test_runs_with_equal_hits_and_other_losses_are_different_fits(record: Make) -> None:
    runs = [record(seed, [9, 5], losses=[0.5 + seed]) for seed in range(3)]
    cell = compare({"toy": {"erm": runs}}).cells["toy"]["erm"]
    assert (cell.fits, cell.rates["worst"].std) == (3, 0.0)


def test_without_common_seeds_there_is_no_difference(record: Make) -> None:
    runs = {"toy": {"erm": [record(0, [9, 5])], "new": [record(1, [8, 1])]}}
    assert not compare(runs).cells["toy"]["new"].gains


def test_few_seeds_and_few_examples_are_doubted(runs: Runs) -> None:
    assert compare(runs).cells["toy"]["erm"].doubts == (
        "fewer than 3 seeds",
        "the worst group has 10 test examples, fewer than 30",
    )


def test_another_baseline_turns_the_difference(runs: Runs) -> None:
    comparison = compare(runs, baseline="umix")
    assert comparison.methods == ["umix", "erm"]
    assert comparison.cells["toy"]["erm"].gains["worst"].spread.mean == pytest.approx(-0.2)


def test_without_erm_there_are_no_differences_and_a_note_says_so(runs: Runs) -> None:
    comparison = compare({"toy": {"umix": runs["toy"]["umix"]}})
    assert comparison.baseline is None
    assert "erm was not run" in comparison.notes[0]


def test_of_several_kinds_of_erm_the_first_is_the_baseline(runs: Runs) -> None:
    erm, umix = runs["toy"]["erm"], runs["toy"]["umix"]
    comparison = compare({"toy": {"erm net=mlp": erm, "erm net=trees": umix, "umix": umix}})
    assert comparison.baseline == "erm net=mlp"
    assert comparison.cells["toy"]["umix"].gains["worst"].spread.mean == pytest.approx(0.2)


def test_unknown_baselines_and_rules_and_the_oracle_are_refused(runs: Runs) -> None:
    with pytest.raises(UserError, match="did you mean 'erm'"):
        compare(runs, baseline="erms")
    with pytest.raises(UserError, match="did you mean 'worst'"):
        compare(runs, select="wurst")
    with pytest.raises(UserError, match="looks at the test split"):
        compare(runs, select="oracle_test")


def test_methods_without_a_score_under_the_rule_are_left_out_and_named(runs: Runs) -> None:
    counts = runs["toy"]["umix"][0].split_counts
    knowing = {**counts, "val": counts["val"].model_copy(update={"quintile_rates": [[0.5] * 5]})}
    runs["toy"]["umix"] = [run.model_copy(update={"split_counts": knowing}) for run in runs["toy"]["umix"]]
    comparison = compare(runs, select="uncertainty_quintile")
    assert list(comparison.cells["toy"]) == ["umix"]
    assert comparison.notes == ("toy: erm left out: no score under the rule uncertainty_quintile.",)
    with pytest.raises(UserError, match="select=cvar must have a score in some run"):
        compare(runs, select="cvar")


def test_a_comparison_of_the_same_records_is_the_same(runs: Runs) -> None:
    assert compare(runs) == compare(runs)


def test_what_is_drawn_for_a_method_depends_on_its_own_records_and_the_baselines_only(record: Make) -> None:
    erm = [record(seed, [9, 3 + seed]) for seed in range(5)]
    umix = [record(seed, [8, [6, 5, 7, 4, 6][seed]], "umix") for seed in range(5)]
    alone = compare({"toy": {"umix": umix}}).cells["toy"]["umix"]
    beside = compare({"toy": {"erm": erm, "umix": umix}}).cells["toy"]["umix"]
    labels = {"erm lr=1": erm, "jtt": [record(0, [2, 2], "jtt")], "umix eta=1": umix[:1], "umix eta=5": umix}
    among = compare({"toy data=1": labels}, baseline="erm lr=1").cells["toy data=1"]["umix eta=5"]
    assert alone.interval == beside.interval == among.interval
    assert beside.gains == among.gains


def test_methods_are_ranked_by_worst_group_and_say_what_groups_were_used_for(record: Make) -> None:
    runs = {
        "erm": [record(seed, [9, 3], group_use="none") for seed in range(3)],
        "umix": [record(seed, [8, 6], "umix", group_use="none") for seed in range(3)],
        "group_dro": [record(seed, [8, 7], "group_dro", group_use="training") for seed in range(3)],
    }
    ranked = compare({"toy": runs}, baseline="erm").ranked("toy")
    assert [(label, cell.groups_used_for) for label, cell in ranked.items()] == [
        ("group_dro", "training"),
        ("umix", "choosing"),
        ("erm", "choosing"),
    ]
    assert ranked["umix"].worst_groups == ("b",)
    assert ranked["umix"].gains["worst"].spread.mean == pytest.approx(0.3)
    assert ranked["umix"].gains["worst"].p_flip == pytest.approx(0.25)
    assert not ranked["erm"].gains


def test_a_method_names_the_learners_that_its_seeds_trained(record: Make) -> None:
    runs = {
        "erm": [record(seed, [9, 3], net="mlp") for seed in range(2)],
        "best": [record(seed, [9, 3], "best", net=net) for seed, net in enumerate(("trees", "mlp"))],
    }
    cells = compare({"toy": runs}).cells["toy"]
    assert {label: cell.learner for label, cell in cells.items()} == {"erm": "mlp", "best": "trees, mlp"}


def test_by_the_average_rule_groups_are_used_for_nothing_unless_they_chose_a_candidate(record: Make) -> None:
    runs = {
        "erm": [record(0, [9, 3], group_use="none")],
        "best": [record(0, [9, 3], "best", group_use="none", choices={"method": "umix"})],
        "dfr": [record(0, [9, 3], "dfr", group_use="validation")],
    }
    cells = compare({"toy": runs}, select="average").cells["toy"]
    assert {label: cell.groups_used_for for label, cell in cells.items()} == {
        "erm": "nothing",
        "best": "choosing",
        "dfr": "training (validation)",
    }
