"""Names that are made of several values."""

from hypothesis import given
from hypothesis import strategies as st

from umix.core.words import group_name, quoted

VALUES = st.lists(st.text(st.sampled_from('ab, "\\\n'), min_size=1, max_size=6), min_size=1, max_size=3)


@given(VALUES, VALUES)
def test_different_values_make_different_names(one: list[str], other: list[str]) -> None:
    assert (group_name(one) == group_name(other)) == (one == other)


@given(st.text())
def test_every_name_can_be_shown_on_one_line(value: str) -> None:
    assert quoted(value).isprintable()
    assert quoted(value) == value or quoted(value).startswith('"')
