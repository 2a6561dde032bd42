"""``umix table``, called as people call it."""

import csv
import io
import json
from pathlib import Path

import pytest

from umix.bench.runs.record import RunRecord
from umix.cli import main


def save(folder: Path, seed: int, hits: list[int], method: str, task: str = "toy") -> None:
    counts = {"hits": [hits], "sizes": [40, 40], "class_hits": [[sum(hits)]], "class_sizes": [80]}
    RunRecord(
        task=task,
        method=method,
        seed=seed,
        settings={},
        plan={"task": {"name": task}, "method": {"name": method}, "net": {"name": "mlp"}},
        key=f"{task}-{method}-{seed}",
        fingerprint="f",
        groups=["a", "b [i]"],
        classes=["only"],
        input_shape=[2],
        train_sizes=[90, 10],
        split_counts={"val": counts, "test": counts},
        stages={},
        warnings=[],
        versions={},
    ).save(folder / f"{task}-{method}-{seed}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for seed, (erm, umix) in enumerate([(20, 32), (24, 32), (22, 30)]):
        save(tmp_path / "runs", seed, [36, erm], "erm", "waterbirds")
        save(tmp_path / "runs", seed, [34, umix], "umix", "waterbirds")
    (tmp_path / "runs" / "stages" / "trajectory-0").mkdir(parents=True)
    return tmp_path / "runs"


def output(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_the_terminal_shows_rates_and_differences(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split() for line in output(capsys, "table", folder, "--groups").splitlines()]
    assert ["waterbirds:", "test", "rates,", "selected", "by", "worst"] in lines
    assert any(line[:2] == ["umix", "3"] and "±" in line for line in lines)
    assert ["waterbirds:", "differences", "to", "erm"] in lines
    assert any(line[:3] == ["b", "[i]", "40"] for line in lines)


def test_the_format_follows_the_files_suffix(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for suffix, expected in (
        (".md", "| umix |"),
        (".tex", r"\bottomrule"),
        (".csv", "worst_mean"),
        (".json", '"rows"'),
    ):
        assert output(capsys, "table", folder, "-o", tmp_path / f"t{suffix}") == ""
        assert expected in (tmp_path / f"t{suffix}").read_text()
    assert output(capsys, "table", folder, "-o", tmp_path / "t.txt") == ""
    assert "differences to erm" in (tmp_path / "t.txt").read_text()
    assert output(capsys, "table", folder, "-o", tmp_path / "t.xyz", "-f", "csv") == ""
    assert (tmp_path / "t.xyz").read_text() == (tmp_path / "t.csv").read_text()


def test_json_on_standard_output_is_nothing_but_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(output(capsys, "table", folder, "--format", "json", "--published"))["rows"]
    assert [row["method"] for row in rows] == ["erm", "umix"]
    assert rows[0]["worst_mean"] == 0.55
    assert rows[1]["published_worst_mean"] == 0.9
    assert rows[1]["worst_gain_p_flip"] == 0.25


def test_two_rules_make_the_papers_second_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "table", folder, "--select", "worst,average", "-f", "markdown", "--published")
    assert "| worst: average | worst: worst group | worst: paper's average |" in text
    assert "| 93.6 | 88.9 |" in text
    rows = list(csv.DictReader(io.StringIO(output(capsys, "table", folder, "--select", "worst,average", "-f", "csv"))))
    assert [row["select"] for row in rows] == ["worst", "worst", "average", "average"]
    assert output(capsys, "table", folder, "--select", "worst,average", "-f", "latex").count(r"\toprule") == 1


def test_broken_records_are_named_and_the_others_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken").mkdir()
    (folder / "broken" / "record.json").write_text("{")
    assert main(["table", str(folder), "-f", "csv"]) == 0
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 3
    assert "skipped:" in captured.err
    assert "broken/record.json" in captured.err.replace("\n", "")


def test_all_rules_are_compared_with_the_oracle_which_is_marked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = output(capsys, "table", folder, "--select", "all")
    for expected in ("worst_class", "last", "oracle_test", "test (no rule)", "regret"):
        assert expected in out
    rows = json.loads(output(capsys, "table", folder, "--select", "all", "-f", "json"))
    assert {row["rule"]: row["legitimate"] for row in rows}["oracle_test"] is False
    assert all(row["regret"]["mean"] == 0 for row in rows)
    assert {row["rule"] for row in rows} == {"worst", "balanced", "average", "worst_class", "last", "oracle_test"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["table", "nowhere"], "There is no folder nowhere."),
        (["table", "empty"], "There is no finished run in empty"),
        (["table", "runs", "--baseline", "erms"], "did you mean 'erm'?"),
        (["table", "runs", "--select", "wurst"], "did you mean 'worst'?"),
        (["table", "runs", "--select", "worst,"], "Unknown selection rule ''"),
        (["table", "runs", "--select", "oracle_test"], "looks at the test split"),
        (["table", "runs", "--select", "cvar"], "must have a score in some run"),
        (["table", "runs", "--format", "xml"], "xml"),
        (["table", "runs", "-o", "a.xyz"], "--output must end in .md, .tex, .csv, .json or .txt, got 'a.xyz'"),
        (["table", "runs", "-o", "empty"], "--output must be a file, got the folder 'empty'."),
        (["table", "runs", "-o", "empty", "-f", "csv"], "Cannot write empty: it is a folder; name a file."),
        (["table", "runs/waterbirds-erm-0"], "is a single run"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input_is_one_sentence_and_exit_code_two(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(folder.parent)
    Path("empty").mkdir()
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out
    assert sorted(path.name for path in Path().iterdir()) == ["empty", "runs"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["-f", "csv", "--groups"],
            "--groups must be shown without the format csv",
        ),
        (["--target", "0.7", "--select", "all"], "--target must be shown without --select all"),
        (["--target", "70"], "--target must be a rate in (0, 1], got 70; 0.7 is 70 %"),
        (["--metric", "accuracy", "--target", "70"], "--target must be a rate in (0, 1], got 70; 0.7 is 70 %"),
        (["--metric", "cost"], "as in cost:FN=5,FP=1"),
        (["--select", "all", "-f", "csv"], "--select all must be shown without the format csv"),
    ],
)
def test_flags_without_effect_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    save(tmp_path, 0, [30, 20], "erm")
    assert main(["table", str(tmp_path), *words]) == 2
    assert message in capsys.readouterr().err


def test_the_decision_is_chosen_when_reading_and_published_numbers_are_by_argmax(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    fast = [f"--set={setting}" for setting in ("epochs=2", "hidden=[4]", "sizes=[10,60,10,60]", "eval_size=40")]
    shown = output(capsys, "run", "four_moons", "erm", *fast, "--quiet", "--out", runs)
    assert "threshold 0." in shown

    def methods(*flags: str) -> list[str]:
        return [row["method"] for row in json.loads(output(capsys, "table", runs, "-f", "json", *flags))["rows"]]

    assert methods() == ["erm", "erm + threshold"]
    assert methods("--threshold", "off") == ["erm"]
    assert methods("--published") == ["erm"]
    assert "erm + threshold: selection rules" in output(capsys, "table", runs, "--select", "all")
    assert "erm + threshold" not in output(capsys, "table", runs, "--select", "all", "--threshold", "off")
    assert main(["table", str(runs), "--published", "--threshold", "tuned"]) == 2
    told = capsys.readouterr().err
    assert "--published must be shown without --threshold tuned" in told
    page = tmp_path / "page.html"
    output(capsys, "report", runs, "--output", page, "--threshold", "off")
    assert "erm + threshold" not in page.read_text(encoding="utf-8")
    argmax = output(
        capsys, "run", "four_moons", "erm", *fast, "--quiet", "--threshold", "off", "--out", tmp_path / "other"
    )
    assert "threshold 0." not in argmax


def test_a_table_never_takes_the_place_of_a_record(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = next(folder.glob("*/record.json"))
    before = record.read_bytes()
    assert main(["table", str(folder), "-o", str(record)]) == 2
    assert "--output must be no file of a run" in capsys.readouterr().err
    assert record.read_bytes() == before


def test_a_target_is_said_by_run_table_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, page = tmp_path / "runs", tmp_path / "page.html"
    fast = [f"--set={setting}" for setting in ("epochs=2", "hidden=[4]", "sizes=[10,60,10,60]", "eval_size=40")]
    shown = output(capsys, "run", "four_moons", "erm", *fast, "--quiet", "--out", runs, "--target", "0.999")
    assert "Target 99.9 % in every group: missed in " in shown
    said = json.loads(output(capsys, "run", "four_moons", "erm", *fast, "--out", runs, "--target", "0.01", "--json"))
    assert said["target"] == {"target": 0.01, "met": True, "missed": {}}
    assert "four_moons: target 99.9 % in every group" in output(capsys, "table", runs, "--target", "0.999")
    rows = json.loads(output(capsys, "table", runs, "--metric", "macro_f1", "-f", "json"))["rows"]
    assert {row["group"] for row in rows} >= {"all"}
    assert "macro_f1 of the groups" in output(capsys, "table", runs, "--metric", "macro_f1", "--groups")
    output(capsys, "report", runs, "--output", page, "--target", "0.999")
    html = page.read_text(encoding="utf-8")
    assert "Target 99.9 % in every group: missed in " in html
    assert "calibration error, before" in html
