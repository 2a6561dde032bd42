"""Settings are frozen, and wrong values raise UserError with one sentence."""

import pickle
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pytest
from pydantic import Field, ValidationError, model_validator

from umix.errors import Setting, UserError
from umix.settings import Settings, legal


class Mixing(Settings):
    sigma: float = Field(0.5, ge=0, le=1)
    alpha: float = Field(0.5, gt=0)
    share: float = Field(0.5, gt=0, lt=1)
    length: int = Field(5, ge=1)
    shift: int = Field(0, le=3)
    normalize: bool = True
    mixing: Literal["input", "cutmix"] = "input"
    title: str = "a"
    patience: int | None = Field(None, ge=1)
    widths: tuple[Annotated[int, Field(ge=1)], ...] = Field((4,), min_length=1)
    sizes: tuple[int, int] = (1, 1)


class Window(Settings):
    start: int
    length: int = 5

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.start + self.length > 10:
            raise ValueError(f"Window.length must end by epoch 10, got {self.start + self.length}.")
        return self


class Outer(Settings):
    mixing: Mixing = Mixing()


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("sigma", 50.0, "Mixing.sigma must be a number in [0, 1], got 50.0."),
        ("sigma", -0.1, "Mixing.sigma must be a number in [0, 1], got -0.1."),
        ("sigma", float("nan"), "Mixing.sigma must be a number in [0, 1], got nan."),
        ("sigma", "half", "Mixing.sigma must be a number in [0, 1], got 'half'."),
        ("alpha", 0.0, "Mixing.alpha must be a number in (0, inf), got 0.0."),
        ("alpha", float("inf"), "Mixing.alpha must be a number in (0, inf), got inf."),
        ("share", 1, "Mixing.share must be a number in (0, 1), got 1."),
        ("length", 0, "Mixing.length must be a whole number in [1, inf), got 0."),
        ("length", 1.5, "Mixing.length must be a whole number in [1, inf), got 1.5."),
        ("shift", 4, "Mixing.shift must be a whole number in (-inf, 3], got 4."),
        ("normalize", "perhaps", "Mixing.normalize must be true or false, got 'perhaps'."),
        ("mixing", "cutmx", "Mixing.mixing must be one of input, cutmix, got 'cutmx'."),
        ("title", 3, "Mixing.title must be a text, got 3."),
        ("patience", 0, "Mixing.patience must be a whole number or none in [1, inf), got 0."),
        ("widths", (4, 0), "Mixing.widths must be a list of whole numbers in [1, inf), at least 1 of them, got 0."),
        ("widths", (), "Mixing.widths must be a list of whole numbers in [1, inf), at least 1 of them, got ()."),
        ("sizes", (1,), "Mixing.sizes must be a list of 2 whole numbers, got (1,)."),
        ("sizes", (1, "a"), "Mixing.sizes must be a list of 2 whole numbers, got 'a'."),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_wrong_value_is_refused_with_field_rule_and_value(field, value, sentence):
    with pytest.raises(UserError) as caught:
        Mixing(**{field: value})
    assert str(caught.value) == sentence


def test_values_on_closed_bounds_are_accepted():
    assert (Mixing(sigma=0).sigma, Mixing(sigma=1).sigma, Mixing(length=1).length, Mixing(shift=3).shift) == (
        0,
        1,
        1,
        3,
    )


def test_legal_is_what_the_sentence_says():
    assert legal(Mixing.model_fields["share"]) == "a number in (0, 1)"
    assert legal(Mixing.model_fields["title"]) == "a text"


def test_an_unknown_field_gets_the_nearest_known_one():
    with pytest.raises(
        UserError, match=r"^Unknown setting of Mixing 'sigm'; did you mean 'sigma'\? Known: alpha, "
    ) as error:
        Mixing(sigm=0.5)
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


def test_a_missing_field_is_named():
    with pytest.raises(UserError, match=r"^Window\.start must be given\.$"):
        Window()


def test_a_rule_over_several_fields_speaks_for_itself():
    with pytest.raises(UserError, match=r"^Window\.length must end by epoch 10, got 12\.$"):
        Window(start=7)


def test_a_wrong_value_inside_another_settings_names_the_inner_field():
    with pytest.raises(UserError, match=r"^Mixing\.sigma must be a number in \[0, 1\], got 2\.$"):
        Outer(mixing={"sigma": 2})


def test_settings_are_frozen():
    settings = Mixing()
    with pytest.raises(ValidationError, match="frozen"):
        settings.sigma = 0.1
    assert settings.sigma == 0.5


@pytest.mark.parametrize(
    "value", ["caf\udce9", Path("caf\udce9.csv"), ["ok", "caf\udce9"]], ids=["text", "path", "list"]
)
def test_what_no_file_can_hold_is_refused(value):
    class Named(Settings):
        part = "task"
        of: Any

    with pytest.raises(UserError, match=r"^task\.of must be text in UTF-8, got 'caf\\udce9.*'; rename it\.$"):
        Named(of=value)
    assert Named(of="café\n").of == "café\n"


def test_equal_settings_are_one_key():
    assert {Mixing(sigma=0.25): "kept"}[Mixing(sigma=0.25)] == "kept"
    assert Mixing(sigma=0.25) != Mixing(sigma=0.5)


def test_settings_survive_a_pickle():
    settings = Mixing(sigma=0.25, widths=[8, 9])
    copy = pickle.loads(pickle.dumps(settings))
    assert copy == settings
    assert copy.widths == (8, 9)
    assert copy.model_fields_set == {"sigma", "widths"}


def test_settings_survive_json():
    settings = Mixing(sigma=0.1, patience=3)
    assert Mixing.model_validate_json(settings.model_dump_json()) == settings


def test_a_validator_may_name_settings_that_commands_spell_their_own_way():
    class Named(Settings):
        label: str

        @model_validator(mode="after")
        def _never(self) -> Self:
            raise UserError(Setting("label"), " must be another.")

    with pytest.raises(UserError, match=r"^label= must be another\.$") as caught:
        Named(label="y")
    assert caught.value.message(lambda setting: f"--{setting.name}") == "--label must be another."
