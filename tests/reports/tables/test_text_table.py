"""A table in every format, compared as text."""

import io

from rich.console import Console

from umix.reports.tables.text_table import Entry, TextTable, latex, markdown, terminal

TABLE = TextTable(
    "a|b: rates",
    ["method", "worst_group"],
    [
        [Entry("erm [x]"), Entry("60.0 ± 14.1")],
        [Entry("umix"), Entry("80.0 ± 0.0", best=True)],
        [Entry("c"), Entry("–")],
    ],
    ["In percent.", "Warning: few."],
)


def shown(width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(terminal(TABLE))
    return [line.rstrip() for line in console.file.getvalue().splitlines() if line.strip()]


def test_markdown_is_aligned_escaped_and_bold() -> None:
    assert markdown([TABLE]) == (
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
    assert shown(60) == [
        "a|b: rates",
        "method   worst_group",
        "────────────────────",
        "erm [x]  60.0 ± 14.1",
        "umix      80.0 ± 0.0",
        "c                  –",
        "In percent.",
        "Warning: few.",
    ]


def test_nothing_is_cut_off_in_a_narrow_terminal() -> None:
    text = " ".join(shown(15))
    assert all(part in text for part in ("60.0", "14.1", "80.0", "umix"))
    assert "…" not in text


def test_latex_is_a_tabular_with_the_best_in_bold_and_notes_as_comments() -> None:
    assert latex(TABLE) == (
        "% a|b: rates\n"
        "% In percent.\n"
        "% Warning: few.\n"
        "\\begin{tabular}{lc}\n"
        "\\toprule\n"
        "method & worst\\_group \\\\\n"
        "\\midrule\n"
        "erm [x] & 60.0 $\\pm$ 14.1 \\\\\n"
        "umix & \\textbf{80.0 $\\pm$ 0.0} \\\\\n"
        "c & -- \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )
