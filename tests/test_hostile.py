"""A slice of the campaign of hostile input (``benchmarks/hostile.py``)."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
KINDS = sorted(path.stem for path in (FOLDER / "hostile_cases").glob("*.py") if "MAKERS" in path.read_text())
CASES = -(-150 // len(KINDS))  # of each kind


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("hostile")


@pytest.mark.system
@pytest.mark.parametrize("kind", KINDS)
def test_hostile_input_is_accepted_or_refused_in_one_sentence(hostile: ModuleType, kind: str, tmp_path: Path) -> None:
    for number in range(CASES):
        _, what, outcome = hostile.one_case(number, seed=0, kind=kind, scratch=tmp_path, limit=0)
        assert outcome.end != "failed", f"case {number}: {what}: {outcome.why}"


def test_a_campaign_finds_what_must_not_happen(
    hostile: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_case = importlib.import_module("hostile_cases.run_case")
    case = importlib.import_module("hostile_cases.case")

    def outcome(command: object, limit: float = 0, **options: object) -> object:
        monkeypatch.setattr(run_case, "main", command)
        return run_case.run_case(case.Case("made up", [], **options), tmp_path, limit=limit)

    def raises(argv: list[str]) -> int:
        raise KeyError("task")

    def hangs(argv: list[str]) -> int:
        while True:
            pass

    def says(code: int, text: str) -> object:
        def command(argv: list[str]) -> int:
            importlib.import_module("sys").stderr.write(text)
            return code

        return command

    def writes(argv: list[str]) -> int:
        (tmp_path / "out.csv").write_text("half")
        return says(2, "umix: no.\n")(argv)

    def runs_code(argv: list[str]) -> int:
        Path(importlib.import_module("os").environ[case.CANARY]).touch()
        return 0

    assert outcome(raises).why.startswith("traceback: KeyError: 'task'")
    assert outcome(hangs, limit=0.2).why == "hang: more than 0.2 s"
    assert outcome(says(1, "")).why.startswith("exit code 1")
    assert outcome(says(2, "no")).why.startswith("no sentence")
    assert outcome(says(2, "umix: " + "x" * 300)).why.startswith("too long")
    assert outcome(says(0, "library.py:3: UserWarning: odd")).why.startswith("raw warning")
    assert outcome(runs_code).why.startswith("canary")
    assert outcome(writes, outputs=(tmp_path / "out.csv",)).why.startswith("left behind")
    assert outcome(says(2, "umix: no.\n")).end == "refused"
    assert outcome(says(0, "warning: odd\n")).end == "accepted"
