"""Formats, compared as text."""

import csv
import io
import json
from collections.abc import Callable

from rich.console import Console

from umix.bench.runs.record import RunRecord
from umix.reports.comparison import compare
from umix.reports.tables.comparison_tables import paper_table, rules_tables
from umix.reports.tables.formats import as_csv, as_json, markdown, terminal
from umix.reports.tables.latex import latex
from umix.reports.tables.text_table import Entry, TextTable

Make = Callable[..., RunRecord]
Runs = dict[str, dict[str, list[RunRecord]]]

GRID = TextTable(
    "a|b: rates",
    ["method", "worst_group"],
    [
        [Entry("erm [x]"), Entry("60.0 ± 14.1")],
        [Entry("umix"), Entry("80.0 ± 0.0", best=True)],
        [Entry("c"), Entry("–")],
    ],
    ["In percent.", "Warning: few."],
)


def test_markdown_is_aligned_escaped_and_bold() -> None:
    assert markdown([GRID]) == (
        "**a\\|b: rates**\n"
        "\n"
        "| method | worst\\_group |\n"
        "| --- | ---: |\n"
        "| erm [x] | 60.0 ± 14.1 |\n"
        "| umix | **80.0 ± 0.0** |\n"
        "| c | – |\n"
        "\n"
        "In percent.\n"
        "Warning: few.\n"
    )


def test_the_terminal_shows_titles_rows_and_notes_as_they_are() -> None:
    console = Console(file=io.StringIO(), width=60)
    console.print(terminal(GRID))
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert [line for line in lines if line] == [
        "a|b: rates",
        "method   worst_group",
        "────────────────────",
        "erm [x]  60.0 ± 14.1",
        "umix      80.0 ± 0.0",
        "c                  –",
        "In percent.",
        "Warning: few.",
    ]


def test_latex_has_the_papers_layout_with_what_the_numbers_are_and_the_best_in_bold(runs: Runs, record: Make) -> None:
    comparison = compare({"toy_1": runs["toy"], "toy 2": {"umix": [record(0, [9, 9], "umix")]}})
    text = latex(paper_table(comparison))
    assert text[text.index("\\begin") :] == (
        "\\begin{tabular}{lcccc}\n"
        "\\toprule\n"
        " & \\multicolumn{2}{c}{toy\\_1} & \\multicolumn{2}{c}{toy 2} \\\\\n"
        "\\cmidrule(lr){2-3} \\cmidrule(lr){4-5}\n"
        "method & average & worst group & average & worst group \\\\\n"
        "\\midrule\n"
        "erm & $75.0 \\pm 7.1$ & $60.0 \\pm 14.1$ & -- & -- \\\\\n"
        "umix & $\\mathbf{82.5} \\pm 3.5$ & $\\mathbf{80.0} \\pm 0.0$ & $90.0$ & $90.0$ \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )
    comments = text[: text.index("\\begin")].splitlines()
    assert comments[0] == "% Test rates, selected by worst"
    assert comments[1].startswith("% Test accuracy in percent, mean ± standard deviation over seeds")
    few = "the worst group has 10 test examples, fewer than 30"
    assert comments[2:] == [
        "% Warning: toy_1: fewer than 3 seeds (erm, umix).",
        f"% Warning: toy_1: {few} (erm, umix).",
        "% Warning: toy 2: fewer than 3 seeds (umix).",
        f"% Warning: toy 2: {few} (umix).",
    ]


def test_latex_of_several_rules_has_a_group_of_columns_per_rule(runs: Runs) -> None:
    (table,) = rules_tables({rule: compare(runs, select=rule) for rule in ("worst", "average")})
    lines = latex(table).splitlines()
    top = lines.index("\\toprule")
    assert lines[top + 1 : top + 4] == [
        " & \\multicolumn{2}{c}{worst} & \\multicolumn{2}{c}{average} \\\\",
        "\\cmidrule(lr){2-3} \\cmidrule(lr){4-5}",
        "method & average & worst group & average & worst group \\\\",
    ]
    assert "% Warning: fewer than 3 seeds (erm, umix)." in lines[:top]


def test_latex_with_published_numbers_has_two_columns_more_per_task(runs: Runs) -> None:
    text = latex(paper_table(compare({"waterbirds": runs["toy"]}), with_published=True))
    assert "method & average & worst group & paper's average & paper's worst" in text
    assert "& $97.0 \\pm 0.2$ & $63.7 \\pm 1.9$" in text.replace("\\mathbf{97.0}", "97.0")
    assert "% Published: Han et al., NeurIPS 2022." in text


def test_any_grid_is_latex_with_its_notes_as_comments() -> None:
    assert latex(GRID) == (
        "% a|b: rates\n"
        "% In percent.\n"
        "% Warning: few.\n"
        "\\begin{tabular}{lc}\n"
        "\\toprule\n"
        "method & worst\\_group \\\\\n"
        "\\midrule\n"
        "erm [x] & $60.0 \\pm 14.1$ \\\\\n"
        "umix & $\\mathbf{80.0} \\pm 0.0$ \\\\\n"
        "c & -- \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )


def test_csv_holds_rates_between_zero_and_one_and_is_empty_where_there_is_no_number(runs: Runs) -> None:
    comparison = compare(runs)
    erm, umix = csv.DictReader(io.StringIO(as_csv([comparison])))
    assert (erm["task"], erm["method"], erm["select"], erm["seeds"], erm["n_seeds"]) == (
        "toy",
        "erm",
        "worst",
        "0 1",
        "2",
    )
    assert (erm["worst_mean"], erm["worst_std"], erm["worst_gain_mean"]) == ("0.6", "0.141421", "")
    assert (umix["worst_gain_mean"], umix["worst_gain_p_flip"], umix["worst_gain_p_sign"]) == ("0.2", "0.5", "0.5")
    assert "published_worst_mean" not in erm


def test_json_has_the_rows_of_all_rules_with_groups_and_published_numbers(runs: Runs) -> None:
    tasks = {"waterbirds": runs["toy"]}
    comparisons = [compare(tasks, select=rule) for rule in ("worst", "average")]
    found = json.loads(as_json(comparisons, with_published=True))
    assert found["baseline"] == "erm"
    assert [(row["select"], row["method"]) for row in found["rows"]] == [
        ("worst", "erm"),
        ("worst", "umix"),
        ("average", "erm"),
        ("average", "umix"),
    ]
    first = found["rows"][0]
    assert first["groups"]["b"] == {"mean": 0.6, "std": 0.141421}
    assert (first["seeds"], first["published_worst_mean"]) == ([0, 1], 0.637)
    assert first["doubts"][0] == "fewer than 3 seeds"
