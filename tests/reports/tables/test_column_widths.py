"""Tables in narrow terminals."""

import io

import pytest
from rich.console import Console

from umix.reports.tables.column_widths import Columns
from umix.reports.tables.text_table import Entry, TextTable


def drawn(table: TextTable, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(Columns(table))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def table(header: list[str], *rows: list[str]) -> TextTable:
    return TextTable("t", header, [[Entry(text) for text in row] for row in rows])


RULES = table(
    ["rule", "seeds", "worst group", "average", "regret", "knows"],
    ["uncertainty_quintile", "3", "60.0 ± 17.4", "81.0 ± 4.1", "10.2 ± 17.6", "first stage"],
    ["oracle_test", "3", "70.2 ± 6.9", "83.2 ± 1.1", "0.0 ± 0.0", "test (no rule)"],
)
GAINS = table(
    ["method", "average", "95 % CI", "p", "worst group", "95 % CI", "p"],
    ["umix sigma=0.5", "+33.5 ± 12.1", "[+33.5, +37.0]", "0.250", "-30.5 ± 17.9", "[+25.0, +39.5]", "<0.001"],
    ["uncertainty_weights", "+3.5", "[+33.5, +37.0]", "0.250", "–", "–", "–"],
)


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("shown", [RULES, GAINS], ids=["rules", "differences"])
def test_numbers_stay_whole_at_eighty_columns(shown: TextTable, width: int) -> None:
    lines = drawn(shown, width)
    assert max(map(len, lines)) <= width
    for row in shown.rows:
        for entry in row[1:5]:
            assert any(entry.text in line for line in lines)


def test_names_and_words_give_way_before_numbers_and_rules() -> None:
    rules = "\n".join(drawn(RULES, 80))
    assert "uncertainty_quintile" in rules
    assert "test (no rule)" not in rules
    names = [line.split()[0] for line in drawn(GAINS, 80)[3:]]
    assert names == ["umix", "sigma=0.5", "uncertainty", "_weights"]


@pytest.mark.parametrize("width", [20, 30, 60])
def test_nothing_is_cut_off_however_narrow_it_is(width: int) -> None:
    letters = "".join("".join(entry.text for entry in row) for row in RULES.rows)
    text = "".join(drawn(RULES, width))
    assert all(text.count(letter) >= letters.count(letter) for letter in set(letters) - {" "})


def test_where_there_is_room_nothing_is_broken_and_the_table_is_no_wider_than_its_content() -> None:
    small = table(["a long name", "b"], ["x y", "1.0 ± 2.0"])
    assert drawn(small, 200)[1:] == ["a long name          b", "──────────────────────", "x y          1.0 ± 2.0"]
