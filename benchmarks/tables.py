"""Trees and nets on real tables: average and worst group of every learner under ERM, weights and ``best``.

Every table is measured with its default preset, without tuning. Validation groups select the epoch or stage and the threshold
(``evaluation.use_groups=val``); "group weights" also trains with groups (``reweight by=group``, ``evaluation.use_groups=train``),
and so does "best with groups". Beside them stand the libraries alone: HistGradientBoosting and LightGBM with 100 trees, as they are
and with inverse group frequency weights, predicting by argmax after the last tree. "equal" counts the test rows on
which umix's ERM after the last epoch and the library alone predict differently; it must be 0.

Census has 200,000 training rows: 40,000 random ones are used (--rows 0: all). Finished runs are loaded from --out.

Writes results/tables.json and results/tables.md. With --speed it measures what umix adds to a plain fit, results/tables_speed.json.
Run: python benchmarks/tables.py --data FOLDER [--out runs] [--seeds 3] [--sets adult bank] [--speed]
"""

import argparse
import json
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars
from measure import RESULTS, interleaved, ratio, write
from workers import in_workers

from umix import RunRecord, RunSpec, execute
from umix.core.statistics import Spread
from umix.core.streams import stream
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.reweight import balancing_weights
from umix.models.estimators.boosted import LightGBM, Trees
from umix.models.estimators.estimator import EstimatorSettings
from umix.training.batch_risk import BatchRisk
from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.objective import MeanRisk
from umix.training.stage import ErmStage

#: By name: the file and the settings of its columns.
SETS: dict[str, tuple[str, dict[str, Any]]] = {
    "adult": ("adult.csv", {"label": "income", "groups": ["sex"], "split": "split"}),
    "bank": ("bank.csv", {"label": "y", "groups": ["age_group"], "drop": ["duration"]}),
    "credit": ("credit.csv", {"label": "default", "groups": ["SEX"]}),
    "compas": ("compas.csv", {"label": "two_year_recid", "groups": ["sex"], "drop": ["id"]}),
    "census": (
        "census_income.parquet",
        {"label": "income", "groups": ["sex"], "split": "split", "drop": ["instance_weight"]},
    ),
}
LARGE = "census"
TREES = 100


class Row(NamedTuple):
    """What is shown: a method with settings, which groups it may use, and how it decides (None: with a threshold)."""

    method: str
    settings: dict[str, Any]
    use: str = "val"
    threshold: str | None = None


ROWS = {
    "erm": Row("erm", {}, threshold="off"),
    "erm + threshold": Row("erm", {}),
    "class reweighting": Row("reweight", {}),
    "umix": Row("umix", {}),
    "best": Row("best", {}),
    "group weights": Row("reweight", {"by": "group"}, use="train"),
    "best with groups": Row("best", {}, use="train"),
}
NETS = ("mlp", "trees", "lightgbm", "auto")
SHOWN = {
    "mlp": tuple(ROWS),
    "trees": tuple(ROWS),
    "lightgbm": ("erm", "erm + threshold", "umix", "group weights"),
    "auto": ("best", "best with groups"),
}


class Job(NamedTuple):
    """One run, or with ``net`` "plain" the libraries alone."""

    name: str
    data: Path
    out: Path
    net: str
    row: str
    seed: int
    rows: int
    epochs: int


def file_of(job: Job) -> Path:
    """The file of the table; of the large one a file with some of its training rows."""
    path = job.data / SETS[job.name][0]
    if job.name != LARGE or not job.rows:
        return path
    some = job.out / f"{job.name}-{job.rows}.parquet"
    if not some.exists():
        frame = polars.read_parquet(path)
        training = np.flatnonzero((frame["split"] == "train").to_numpy())
        kept = stream(0, "tables", "rows").permutation(training)[: job.rows]
        others = np.setdiff1d(np.arange(len(frame)), training)
        job.out.mkdir(parents=True, exist_ok=True)
        frame[np.sort(np.concatenate([kept, others]))].write_parquet(some)
    return some


def spec_of(job: Job) -> RunSpec:
    """The run of ``job``."""
    row, roles = ROWS[job.row], {f"task.{key}": value for key, value in SETS[job.name][1].items()}
    settings = {**roles, "net": job.net, "evaluation.use_groups": row.use, **row.settings}
    settings |= {} if job.epochs == 0 else {"fit.epochs": job.epochs}
    return RunSpec(task=str(file_of(job)), method=row.method, seed=job.seed, settings=settings)


def run(job: Job) -> Any:
    """The record of ``job`` or the rates of the libraries alone; a text if it failed."""
    try:
        return plain(job) if job.net == "plain" else execute(spec_of(job), out=job.out)
    except UserError as error:
        return str(error)
    except Exception:
        return traceback.format_exc()


def group_rates(correct: np.ndarray, task: Task) -> dict[str, float]:
    """The average and the worst group of test rows that are ``correct`` or not, [n]."""
    member = task.splits["test"].member.numpy()
    rates = (correct.astype(np.float64) @ member) / member.sum(axis=0)
    return {"worst": float(rates.min()), "average": float(correct.mean())}


def library_models(seed: int, categories: Sequence[int]) -> dict[str, Any]:
    """The estimators of the libraries as a user would make them."""
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier

    codes = [count > 0 for count in categories]
    return {
        "HistGradientBoosting": HistGradientBoostingClassifier(
            max_iter=TREES, early_stopping=False, random_state=seed, categorical_features=codes if any(codes) else None
        ),
        "LightGBM": LGBMClassifier(n_estimators=TREES, random_state=seed, verbosity=-1),
    }


def plain(job: Job) -> dict[str, Any]:
    """Rates of the libraries alone on the same codes, and on how many test rows umix's ERM says something else."""
    task = spec_of(job._replace(net="trees", row="erm")).plan.source.load(None)
    train, test = task.splits["train"], task.splits["test"]
    x, y = train.x.numpy(), train.y.numpy()
    weights = balancing_weights(train, by="group", scheme="inverse", beta=0.0).double().numpy()
    found: dict[str, Any] = {}
    for name, net in (("HistGradientBoosting", Trees()), ("LightGBM", LightGBM())):
        context = Context(task, net.with_categories(task.categories), FitSettings(epochs=20), seed=job.seed)
        ours = context.logits(context.fit(MeanRisk()).net, "test").argmax(dim=1).numpy()
        for how, weight in (("", None), (", group weights", weights)):
            seed = int(stream(job.seed, "fit", "init").integers(2**31))
            model = library_models(seed, task.categories)[name]
            codes = [place for place, count in enumerate(task.categories) if count]
            more = {"categorical_feature": codes} if name == "LightGBM" and codes else {}
            model.fit(x, y, sample_weight=weight, **more)
            said = model.predict(test.x.numpy())
            found[f"{name}{how}"] = group_rates(said == test.y.numpy(), task)
            if weight is None:
                found[f"{name}{how}"]["different"] = int((said != ours).sum())
    return found


def spread(rates: Sequence[dict[str, float]]) -> dict[str, float]:
    """Means over seeds, and the deviation of the worst group."""
    worst, average = (Spread.of([one[key] for one in rates]) for key in ("worst", "average"))
    return {"worst": round(worst.mean, 4), "worst ±": round(worst.std, 4), "average": round(average.mean, 4)}


def shown(records: Sequence[RunRecord], row: Row) -> dict[str, float]:
    """The test rates of runs, decided as the row says."""
    summaries = [record.summary(threshold=row.threshold) for record in records]
    return spread([{"worst": one.worst, "average": one.average} for one in summaries])


def measured(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The results of one table."""
    place = (name, arguments.data, arguments.out)
    wanted = [(net, row) for net in NETS for row in SHOWN[net] if row != "erm + threshold"]
    jobs = [
        Job(*place, net, row, seed, arguments.rows, arguments.epochs)
        for net, row in [("plain", ""), *wanted]
        for seed in range(arguments.seeds)
    ]
    found: dict[tuple[str, str], list[Any]] = {}
    failed = []
    for job, made in zip(jobs, in_workers(run, jobs), strict=True):
        if isinstance(made, str):
            failed.append(f"{job.net}, {job.row}, seed {job.seed}: {made.strip().splitlines()[-1]}")
            print(f"{name}: {failed[-1]}\n{made}", flush=True)
        else:
            found.setdefault((job.net, job.row), []).append(made)
            print(f"{name}: {job.net} {job.row} seed {job.seed}", flush=True)
    alone: dict[str, Any] = {}
    for kind in found["plain", ""][0]:
        runs = [one[kind] for one in found["plain", ""]]
        alone[kind] = spread(runs) | (
            {"different": sum(one["different"] for one in runs)} if "different" in runs[0] else {}
        )
    learners = {
        net: {
            row: shown(found[net, "erm" if row == "erm + threshold" else row], ROWS[row])
            for row in SHOWN[net]
            if (net, "erm" if row == "erm + threshold" else row) in found
        }
        for net in NETS
    }
    chosen = {
        row: [record.choices.get("learner", {}).get("name", "") for record in found.get(("auto", row), [])]
        for row in SHOWN["auto"]
    }
    return {
        "seeds": arguments.seeds,
        "libraries alone": alone,
        "learners": learners,
        "chosen": chosen,
        "failed": failed,
    }


def percent(rates: dict[str, float]) -> str:
    return f"{100 * rates['worst']:.1f} ± {100 * rates['worst ±']:.1f} / {100 * rates['average']:.1f}"


def markdown(results: dict[str, Any]) -> str:
    """The results as tables: worst group ± deviation over seeds / average, in percent."""
    names = list(results)
    lines = [
        "# Trees and nets on real tables",
        "",
        "Worst group ± deviation over seeds / average, percent of test rows.",
        "",
    ]
    lines += [f"| learner | method | {' | '.join(names)} |", f"|---|---|{'---|' * len(names)}"]
    for kind in results[names[0]]["libraries alone"]:
        cells = [percent(results[name]["libraries alone"][kind]) for name in names]
        lines.append(
            f"| {kind.partition(',')[0]} alone | {kind.partition(', ')[2] or 'as it is'} | {' | '.join(cells)} |"
        )
    for net in NETS:
        for row in SHOWN[net]:
            cells = [percent(rates) if (rates := results[name]["learners"][net].get(row)) else "–" for name in names]
            lines.append(f"| {net} | {row} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def speed(arguments: argparse.Namespace) -> dict[str, Any]:
    """What umix adds to a plain fit with the same weights, as ratios."""
    found: dict[str, Any] = {}
    for name in arguments.sets:
        job = Job(name, arguments.data, arguments.out, "trees", "erm", 0, arguments.rows, 0)
        task = spec_of(job).plan.source.load(None)
        for kind, net in (("HistGradientBoosting", Trees()), ("LightGBM", LightGBM())):
            seconds = interleaved(timed(task, kind, net), repeats=arguments.repeats)
            found[f"{name}, {kind}"] = {
                "umix / alone": ratio(seconds, "umix", "alone"),
                "umix / alone with predictions": ratio(seconds, "umix", "alone with predictions"),
                "trajectory / alone": ratio(seconds, "trajectory", "alone"),
                "seconds alone": round(min(seconds["alone"]), 2),
            }
            print(name, kind, found[f"{name}, {kind}"], flush=True)
    return found


def timed(task: Task, kind: str, net: EstimatorSettings) -> dict[str, Callable[[], object]]:
    """The library's own fit, without and with predictions for val and test; umix's with the same weights; the trajectory."""
    train, learner = task.splits["train"], net.with_categories(task.categories)
    x, y = train.x.numpy(), train.y.numpy()
    weights = balancing_weights(train, by="class", scheme="inverse", beta=0.0)
    codes = [place for place, count in enumerate(task.categories) if count]
    more = {"categorical_feature": codes} if kind == "LightGBM" and codes else {}

    def alone() -> None:
        library_models(0, task.categories)[kind].fit(x, y, sample_weight=weights.double().numpy(), **more)

    def predicting() -> None:
        model = library_models(0, task.categories)[kind].fit(x, y, sample_weight=weights.double().numpy(), **more)
        for name in ("val", "test"):
            model.predict_proba(task.splits[name].x.numpy())

    def ours() -> None:
        Context(task, learner, FitSettings(epochs=20)).fit(BatchRisk(weights=weights))

    def crossed() -> None:
        stage = ErmStage("trajectory", 20, record="online")
        Context(task, learner, FitSettings(epochs=20)).trajectory(stage)

    return {"alone": alone, "alone with predictions": predicting, "umix": ours, "trajectory": crossed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/tables"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--epochs", type=int, default=0, help="for trying the script; writes into --out")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.speed:
        write("tables_speed", {"folds": Trees().folds, "results": speed(arguments)})
        return
    folder = RESULTS if not arguments.epochs else arguments.out
    kept = folder / "tables.json"
    results: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))["results"] if kept.exists() else {}
    for name in arguments.sets:
        if not (arguments.data / SETS[name][0]).exists():
            print(f"{name} is skipped: there is no {SETS[name][0]} in {arguments.data}")
            continue
        results[name] = measured(name, arguments)
        ordered = {name: results[name] for name in SETS if name in results}
        write("tables", {"rows of census": arguments.rows, "results": ordered}, show=False, folder=folder)
        (folder / "tables.md").write_text(markdown(ordered), encoding="utf-8")
        print(markdown({name: results[name]}), flush=True)


if __name__ == "__main__":
    main()
