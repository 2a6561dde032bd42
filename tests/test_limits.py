"""What is refused before anything is allocated or started."""

import re
from pathlib import Path

import pytest

from umix import limits
from umix.cli import main
from umix.errors import Setting, UserError


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["run", "four_moons", "erm", "--set", "net.hidden=[1000000, 1000000]"],
            "Training the net mlp .* GB of memory",
        ),
        (["run", "four_moons", "best", "--trials", "0"], "--trials must be at least 1"),
        (["run", "four_moons", "erm", "--devices", "0"], "--devices must be at least 1"),
        (["bench", "four_moons", "--methods", "erm", "--workers", "0"], "--workers must be at least 1"),
        (["bench", "four_moons", "--methods", "erm", "--workers", "1", "--threads", "0"], "--threads must be at least"),
        (["demo", "--seeds", "0"], "--seeds must be at least 1"),
    ],
)
def test_commands_refuse_what_does_not_fit_into_memory_and_none_of_what_they_need(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert re.match(f"umix: {sentence}", " ".join(capsys.readouterr().err.split()))


def test_memory_is_that_of_the_machine_or_less(monkeypatch: pytest.MonkeyPatch) -> None:
    available = limits.memory()
    assert available is None or available > 2**28
    monkeypatch.setattr(limits, "memory", lambda: 10**9)
    limits.require_memory(10**9, "It takes", "make it smaller")
    with pytest.raises(UserError, match=r"It takes 2\.0 GB of memory, but there are 1\.0 GB; give less with eta=\."):
        limits.require_memory(2 * 10**9, "It takes", "give less with ", Setting("eta"))
