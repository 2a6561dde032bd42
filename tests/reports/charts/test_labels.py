"""Long names are cut in the middle and still differ."""

from umix.reports.charts.labels import cut, cut_apart


def test_a_long_name_keeps_its_beginning_and_its_end() -> None:
    assert cut("no, Amer-Indian-Eskimo", 15) == "no, Ame…-Eskimo"
    assert cut("short", 15) == "short"
    assert len(cut("x" * 60, 20)) == 20


def test_names_that_differ_still_differ_when_cut() -> None:
    names = [f"a very long beginning {middle} and a very long end" for middle in ("one", "two", "three")]
    short = cut_apart([*names, "other"], 12)
    assert len(set(short.values())) == 4
    assert short["other"] == "other"
    assert cut_apart([], 12) == {}


def test_names_that_differ_near_their_beginning_need_no_more_letters() -> None:
    names = [f"income above, {sex}, a very long name of a group" for sex in ("Female", "Male")]
    assert max(map(len, cut_apart(names, 20).values())) == 20
