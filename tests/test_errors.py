"""The messages for unknown names."""

import pickle

import pytest

from umix.errors import Setting, UserError, unknown


def test_a_user_error_is_a_value_error():
    with pytest.raises(ValueError, match="wrong"):
        raise UserError("wrong")


def test_a_near_name_is_proposed():
    assert str(unknown("net", "cmn", ["mlp", "cnn"])) == "Unknown net 'cmn'; did you mean 'cnn'? Known: cnn, mlp."


def test_a_far_name_gets_no_proposal():
    assert str(unknown("net", "zzzzzz", ["mlp", "cnn"])) == "Unknown net 'zzzzzz'. Known: cnn, mlp."


def test_only_the_nearest_of_several_near_names_is_proposed():
    assert "did you mean 'group_dro'?" in str(unknown("method", "group_drq", ["group_dro", "group_erm"]))


def test_known_names_may_come_from_any_iterable_and_are_sorted():
    assert str(unknown("task", "q", (name for name in ("b", "c", "a")))).endswith("Known: a, b, c.")


def test_the_name_may_be_something_else_than_a_text():
    assert str(unknown("rule", 3, ["last"])) == "Unknown rule '3'. Known: last."


def test_a_long_list_is_left_out_beside_a_good_guess_and_given_without_one():
    names = [f"setting_{number:02}" for number in range(13)]
    assert str(unknown("setting", "seting_09", names)) == "Unknown setting 'seting_09'; did you mean 'setting_09'?"
    assert str(unknown("setting", "q", names)).endswith(f". Known: {', '.join(names)}.")


def shout(setting):
    return f"--{setting.name.upper()}"


def test_settings_are_spelled_as_in_python_unless_asked_otherwise():
    error = UserError("Name columns with ", Setting("groups", "a,b"), ".")
    assert str(error) == "Name columns with groups=a,b."
    assert error.message(shout) == "Name columns with --GROUPS."


def test_an_error_inside_another_keeps_its_settings():
    error = UserError("study.toml: ", UserError(Setting("trials"), " must be at least 1."))
    assert str(error) == "study.toml: trials= must be at least 1."
    assert error.message(shout) == "study.toml: --TRIALS must be at least 1."


def test_a_pickled_error_keeps_its_settings():
    error = pickle.loads(pickle.dumps(UserError("Leave ", Setting("weight"), " out.")))
    assert error.message(shout) == "Leave --WEIGHT out."


def test_the_kind_of_an_unknown_name_may_hold_a_setting():
    error = unknown(("setting ", Setting("drop"), " of images"), "drop", ["size"])
    assert error.message(shout) == "Unknown setting --DROP of images 'drop'. Known: size."


def test_a_message_is_one_line_that_a_terminal_can_show():
    error = UserError("The column 'a\nb\x1b[2J\udc80' must\n differ.")
    assert str(error) == r"The column 'a b\x1b[2J\udc80' must differ."


def test_a_long_message_keeps_its_beginning_and_its_fix():
    error = UserError(f"There is no file {'x/' * 2000}y.csv; name the file with ", Setting("path"), ".")
    assert len(str(error)) <= 290
    assert str(error).startswith("There is no file x/x/")
    assert "name the file with path=." in str(error)


def test_a_long_message_without_long_words_loses_its_middle():
    error = UserError("Unknown name; " + "known is this one, " * 100 + "choose one of them.")
    assert len(str(error)) == 290
    assert str(error).endswith("choose one of them.")
