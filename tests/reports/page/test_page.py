"""The page holds what the records say, escaped, in one file that asks for nothing."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars
import pytest

from umix import report
from umix.bench.runs.record import RunRecord, load_run
from umix.bench.runs.split_counts import SplitCounts
from umix.cli import main

SCRIPT = "<script>alert(1)</script>"
Study = Callable[..., list[RunRecord]]


class Elements(HTMLParser):
    """Elements with their attributes, and all text outside of scripts and styles."""

    def __init__(self, html: str) -> None:
        HTMLParser.__init__(self)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._raw = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._raw = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._raw = False

    def handle_data(self, data: str) -> None:
        if not self._raw:
            self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory, study: Study) -> str:
    folder = tmp_path_factory.mktemp("study")
    study(folder)
    report(folder, folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


def test_hostile_names_stay_text(html: str) -> None:
    page = Elements(html)
    assert len(page.named("script")) == 3  # the library, the charts' data, the page's own
    assert SCRIPT in page.text
    assert "rare & <b>" in page.text
    assert not page.named("b") or all(not attributes for attributes in page.named("b"))
    charts = re.search(r'id="charts">(.*?)</script>', html, re.DOTALL)
    assert charts is not None
    assert "<" not in charts[1]
    assert SCRIPT in json.dumps(json.loads(charts[1]))


def test_the_page_asks_for_nothing(html: str) -> None:
    page = Elements(html)
    addresses = [value for _, attributes in page.found for name, value in attributes.items() if name in ("src", "href")]
    assert addresses
    assert all((address or "").startswith(("#", "data:")) for address in addresses)
    policy = next(meta for meta in page.named("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in (policy["content"] or "")


def test_every_chart_has_words_and_numbers(html: str) -> None:
    page = Elements(html)
    charts = [attributes for attributes in page.named("div") if attributes.get("class") == "chart"]
    assert len(charts) == 8  # groups, trade-off, ROC, calibration, two of validation, train, uncertainty
    assert all(len(chart["aria-label"] or "") > 40 and chart["role"] == "img" for chart in charts)
    assert page.text.count("The numbers") == len(charts)
    assert "What was tried" not in html  # no run selected among candidates


def test_headline_warnings_and_commands_are_told(html: str) -> None:
    text = Elements(html).text
    assert "The evidence is weak: fewer than 3 seeds" in text
    assert f"Something about {SCRIPT}." in text
    assert "umix run toy umix --seed 1 --set eta=5.0" in text


def test_a_page_of_a_hundred_thousand_examples_stays_small(tmp_path: Path, study: Study) -> None:
    study(tmp_path, n=100_000, seeds=1)
    report(tmp_path, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 3e6
    assert "200 of 100,000 are shown" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_one_run_is_a_report_too_and_says_what_it_did_not_keep(tmp_path: Path, study: Study) -> None:
    run = study(tmp_path)[0].directory
    (run / "predictions.parquet").unlink()
    report(run, tmp_path / "one.html")
    text = Elements((tmp_path / "one.html").read_text(encoding="utf-8")).text
    assert "There is nothing to compare with: no other method was run." in text
    assert "No run of this task measured it" in text
    assert "has kept no predictions for held-out examples" in text
    assert "Errors by group" not in text
    assert "What changed against" not in text


def test_failed_and_broken_runs_are_warnings(tmp_path: Path, study: Study) -> None:
    study(tmp_path)
    run = {"task": "toy", "method": "umix", "seed": 0, "key": "0", "trace": "", "when": "2026-01-01T00:00:00+00:00"}
    failed = {**run, "error": "ValueError", "message": f"no {SCRIPT}"}
    for name, content in (("failed.json", failed), ("record.json", {})):
        (tmp_path / f"bad-{name}").mkdir()
        (tmp_path / f"bad-{name}" / name).write_text(json.dumps(content), encoding="utf-8")
    with pytest.warns(UserWarning, match=r"left out: .*record\.json is damaged"):
        report(tmp_path, tmp_path / "report.html")
    text = Elements((tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert f"bad-failed.json: ValueError: no {SCRIPT}" in text
    assert "record.json is damaged" in text


def test_figures_are_files_of_the_format_asked_for(
    tmp_path: Path, study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    study(tmp_path, seeds=1)
    assert main(["report", str(tmp_path), "--figures", "svg", "-o", str(tmp_path / "page.html")]) == 0
    captured = capsys.readouterr()
    assert captured.out.replace("\n", "") == f"Report: {tmp_path / 'page.html'}"
    files = sorted(path.name for path in (tmp_path / "page-figures").iterdir())
    assert "uncertainty.svg" in files
    assert "group-rates.svg" in files
    drawn = (tmp_path / "page-figures" / "group-rates.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    assert "currentColor" not in drawn
    assert "<script" not in drawn


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "There is no folder nowhere."),
        (["."], "There is no finished run in .; make some with umix run --out .."),
        ([".", "-o", "page.pdf"], "--output must end in .html, got 'page.pdf'."),
        ([".", "--select", "worse"], "worse"),
    ],
)
def test_wrong_input_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_baseline_is_refused(tmp_path: Path, study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    study(tmp_path, seeds=1)
    assert main(["report", str(tmp_path), "--baseline", "ern"]) == 2
    assert "erm" in capsys.readouterr().err


def test_without_groups_it_is_about_classes_and_what_has_no_score_under_the_rule_is_left_out_and_named(
    tmp_path: Path, study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    study(tmp_path, seeds=1, groups=False)
    assert main(["report", str(tmp_path), "--select", "worst"]) == 2
    assert "--select worst must have a score in some run" in capsys.readouterr().err
    record = load_run(tmp_path / "toy-umix-seed0")
    val = record.split_counts["val"]
    fifths = SplitCounts(**{**val.model_dump(), "quintile_rates": [[0.5] * 5] * len(val.hits)})
    changed = {**record.model_dump(), "split_counts": {**record.split_counts, "val": fifths}}
    RunRecord(**changed).save(record.directory)
    assert main(["report", str(tmp_path), "--select", "uncertainty_quintile"]) == 0
    text = Elements((tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert "erm: Left out: no score under the rule uncertainty_quintile." in text
    assert "This task has no groups, so the least accurate class is shown." in text
    assert "Does uncertainty find the minority?" not in text


def test_held_out_failures_and_flips_are_told(html: str) -> None:
    text = " ".join(Elements(html).text.split())
    assert "Of umix, seed 0, with the epoch and threshold that the rule worst chooses." in text
    assert "What changed against erm" in text
    assert "Wrong test examples with the highest loss: 20 of " in text
    assert re.search(r"Fixed test examples: 20 of \d+", text)


def test_the_price_is_told_only_where_an_ordinary_run_is_beside_the_chosen_one(
    tmp_path: Path, study: Study, predicted: Callable[..., None]
) -> None:
    records = study(tmp_path, seeds=1)
    label, group = np.arange(360) % 2, np.tile(np.repeat([0, 1, 2], [100, 40, 40]), 2)
    split = np.repeat(["val", "test"], 180)
    for record in records:
        wrong = (group == 2) & (np.arange(360) % 4 < 3) if record.method == "umix" else group == 1
        prediction = np.where(wrong, 1 - label, label)
        predicted(record.directory, label=label, prediction=prediction, split=split, classes=2, group=group)
    report(tmp_path, tmp_path / "report.html")
    text = " ".join(Elements((tmp_path / "report.html").read_text(encoding="utf-8")).text.split())
    assert "The price: 75 % error instead of 0 % with erm for rare & <b> (40 test examples)." in text
    report(records[1].directory, tmp_path / "one.html")
    assert "The price:" not in Elements((tmp_path / "one.html").read_text(encoding="utf-8")).text


def test_the_page_says_what_groups_were_used_for_and_what_is_predicted_for_whom(html: str) -> None:
    text = " ".join(Elements(html).text.split())
    assert "groups used for" in text
    assert "What is predicted for whom (confusion matrix of every group)" in text
    assert "ROC curve of every group" in text
    words = re.findall(r"[a-z]+", text.lower())
    assert not {"judged", "decided", "contest", "race", "standing"} & set(words)


def test_the_window_of_the_method_is_underlined_in_histories(tmp_path: Path, study: Study) -> None:
    record = study(tmp_path, seeds=1)[1]
    plan = {**record.plan, "method": {"name": "umix", "start": 1, "length": "auto", "eta": "auto"}}
    choices = {"start": 1, "length": 3, "eta": 3.0, "pool": "example", "reason": f"because {SCRIPT}"}
    RunRecord(**{**record.model_dump(), "plan": plan, "choices": choices}).save(record.directory)
    report(tmp_path, tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert html.count('<path class="window" d="M8 14h24v2h-24z"/>') == 200
    text = " ".join(Elements(html).text.split())
    assert "The method used epochs 2 to 4 of 6 recorded epochs of the first stage." in text
    assert f"Set by auto: length = 3, eta = 3. Why: because {SCRIPT}." in text


def test_rows_of_a_table_that_changed_are_not_shown(tmp_path: Path) -> None:
    from umix.bench.runs.execute import execute
    from umix.bench.spec.run_spec import RunSpec

    rng, n = np.random.default_rng(0), 400
    kind = rng.choice(["<i>left</i>", "right"], n)
    noise = rng.random(n) < 0.5
    y = np.where((kind == "right") & noise, 1, 0)
    polars.DataFrame({"kind": kind, "size": rng.normal(size=n), "y": y}).write_csv(tmp_path / "t.csv")
    settings = {"task.label": "y", "epochs": 3, "length": 3, "eta": 1.0, "pool": "example"}
    execute(RunSpec(task=str(tmp_path / "t.csv"), method="umix", settings=settings), out=tmp_path / "runs")
    page = tmp_path / "report.html"
    report(tmp_path / "runs", page)
    text = " ".join(Elements(page.read_text(encoding="utf-8")).text.split())
    assert "kind <i>left</i>" in text or "kind right" in text
    with open(tmp_path / "t.csv", "a", encoding="utf-8") as file:
        file.write("right,0.0,1\n")
    report(tmp_path / "runs", page)
    assert "has changed since the run" in page.read_text(encoding="utf-8")


def test_the_page_says_which_inputs_matter_where_it_was_asked(tmp_path: Path) -> None:
    from umix import evaluate, load_task, train

    x = np.random.default_rng(0).normal(size=300)
    polars.DataFrame({"<i>x": x, "y": np.where(x > 0, "yes", "no")}).write_csv(tmp_path / "t.csv")
    run = train(load_task(str(tmp_path / "t.csv"), label="y"), "erm", epochs=2, out=tmp_path / "runs")
    page = tmp_path / "report.html"
    report(run, page)
    assert "Which inputs matter" not in page.read_text(encoding="utf-8")
    evaluate(run, importance=True)
    report(run, page)
    text = " ".join(Elements(page.read_text(encoding="utf-8")).text.split())
    assert (
        "Which inputs matter on test rows of t Of erm + threshold. Percentage points of accuracy that are lost" in text
    )
    assert "<i>x" in text
    report(run, page, threshold="off", select="last")  # another epoch than the one that was asked about
    shown = "Which inputs matter" in page.read_text(encoding="utf-8")
    assert shown == (run.record.choice("last", "off") == run.record.choice())
