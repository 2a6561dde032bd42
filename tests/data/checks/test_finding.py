"""Findings are values: they have a verdict, an order, and their settings are spelled by whoever shows them."""

from umix.commands.flags import as_flag
from umix.data.checks.finding import Finding, by_severity, verdict
from umix.errors import Setting, UserError

LOOK = Finding("look", "id", "'id' names the row.", ("Leave it out with ", Setting("drop", "id"), "."))
BROKEN = Finding("broken", "people", UserError("people needs ", Setting("label"), "."))


def test_one_broken_thing_makes_all_broken_and_nothing_found_is_fine() -> None:
    assert verdict([]) == "fine"
    assert verdict([LOOK]) == "look at this"
    assert verdict([LOOK, BROKEN]) == "broken"


def test_what_is_broken_comes_first_and_the_rest_keeps_its_order() -> None:
    other = Finding("look", "rows", "Rows are copied.")
    assert by_severity([LOOK, BROKEN, other]) == [BROKEN, LOOK, other]


def test_settings_are_flags_on_the_command_line_and_arguments_in_python() -> None:
    assert LOOK.message(as_flag) == "'id' names the row. Leave it out with --drop id."
    assert LOOK.message() == "'id' names the row. Leave it out with drop=id."
    assert BROKEN.message(as_flag) == "people needs --label."
    assert LOOK.as_json(as_flag) == {
        "severity": "look",
        "subject": "id",
        "sentence": "'id' names the row.",
        "fix": "Leave it out with --drop id.",
    }
