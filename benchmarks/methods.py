"""Every method on the embedded tasks and on real data, in three tables by what may be known of groups.

- nothing: groups are only reported (``evaluation.use_groups=test``); worst class and average select epochs and settings;
- validation: validation groups are known (``val``); methods that train with groups estimate those of training rows;
- training: training groups are known too (``train``).

Every method has the same search budget, which is raced: TRIALS settings, its defaults and random draws from its search ranges, are
trained for a third of the epochs; the best draw and the defaults are trained whole, and the better one on validation is taken. Test
rates are computed at the end only. On real data the defaults are those of the preset of such data, where some options of some
methods are ``auto``; on the embedded tasks, whose presets were tuned before for some methods, they are those of the method's class.
A method that never trains with groups is the same run under "nothing" and "validation": only the choice on validation differs.

Finished runs are loaded from --out, and results are written after every set, so an interrupted benchmark goes on. --rows keeps so
many training rows of each real set; of its validation and test at most 20,000 rows are used. Writes results/methods.json,
methods.md and methods-overview.md; with --epochs, to try the script, into --out.
Run: python benchmarks/methods.py [--data FOLDER] [--out runs] [--sets colored_digits "adult, sex"] [--methods xrm afr]
"""

import argparse
import json
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import real
import torch
from measure import RESULTS, write
from scipy.stats import rankdata
from scipy.stats import t as student
from tune_presets import draw_settings
from workers import in_workers

from umix import METHODS, RunPaths, RunRecord, RunSpec, execute
from umix.bench.search.search_space import search_space
from umix.bench.spec.task_reference import reference_to
from umix.core.statistics import Spread
from umix.core.streams import stream
from umix.data.task import Task
from umix.errors import UserError

EMBEDDED = ("colored_digits", "four_moons")
REAL = (
    "birds, features",
    "adult, sex",
    "compas, sex",
    "mnist, color",
    "credit, sex",
    "bank, age",
    "census, sex",
    "tweets, dialect",
)
TRIALS = 4
LARGEST = 20_000  # validation and test examples: of census there are 40,000 and 100,000
SHORT = 3  # a first look trains for this part of the epochs
LOST = 0.03  # a default that ends further below ERM must be explained
ALLOWED = {"nothing": "test", "validation": "val", "training": "train"}
TITLES = {
    "nothing": "Nothing is known of groups",
    "validation": "Validation groups are known",
    "training": "Training groups are known",
}
#: A likely reason why the default of a method ends below ERM's worst group; the page says it beside the numbers.
WHY = {
    "afr": "its ERM sees 80 % of the training rows and is trained to the end, while ERM selects its epoch",
    "balanced_softmax": "it balances classes, and the worst group is in the larger class",
    "bam": "where labels are noisy, what the net alone gets wrong is noise as well as minorities",
    "best": "where no groups choose, what wins on classes and certain examples need not win on groups",
    "cb_last_layer": "its last layer learns from half of validation alone, which is few rows in a small set",
    "chi2_doro": "the largest losses of every batch are dropped as outliers, and here they are the small group",
    "cnc": "where labels are noisy, features are drawn towards wrong labels; a linear head has no features to change",
    "crt": "the new layer is fitted to rows that the net has learned by heart, and no epoch of the features is selected",
    "crt by group": "the new layer is fitted to rows that the net has learned by heart, and no epoch of the features is selected",
    "cvar_doro": "the largest losses of every batch are dropped as outliers, and here they are the small group",
    "cvar_dro": "where labels are noisy, the largest losses are noise",
    "chi2_dro": "where labels are noisy, the largest losses are noise",
    "dfr": "its last layer learns from half of validation alone, which is few rows in a small set",
    "dpe": "its prototypes learn from half of validation alone, which is few rows in a small set",
    "eiil": "where labels are noisy, or a linear head fits everything, what ERM gets wrong is no group",
    "evals": "where labels are noisy, the rows of highest loss teach the opposite, and without groups the inferred cells reward it",
    "focal": "confident examples count less, which helps no group in particular",
    "george": "the clusters of the features are not the groups",
    "jtt": "where labels are noisy, the examples that ERM gets wrong are noise as well as minorities",
    "lc": "where labels are noisy, what the biased net gets wrong is no group",
    "lff": "where the biased net is right on all examples that follow the bias, the other net learns its reverse",
    "lisa_umix": "where labels are noisy, ERM's uncertainty is noise, and its weights outweigh the selected pairs",
    "ldam": "it balances classes, and the worst group is in the larger class",
    "logit_adjustment": "it balances classes, and the worst group is in the larger class",
    "mixup": "mixing smooths the border between classes, which costs small groups near it",
    "resample by class": "it balances classes, and the worst group is in the larger class",
    "reweight by class": "it balances classes, and the worst group is in the larger class",
    "self": "its last layer learns from half of validation alone, which is few rows in a small set",
    "spare": "the clusters of what an early net says are not the groups",
    "subg": "all groups give as many rows as the smallest has, which is few in a small set",
    "suby": "it balances classes, and the worst group is in the larger class; a small class leaves few rows",
    "ula": "a net that fits all examples after one epoch is no shortcut, and what it knows is taken away",
    "umix": "where labels are noisy, ERM's uncertainty is noise, and without groups validation cannot see it",
    "xrm": "where labels are noisy, what the twins get wrong is no group",
}
#: Methods that train with groups of all rows, or with estimates where these settings are given.
FROM_FEW = {name: {f"{name}.groups_from": "few"} for name in ("group_dro", "group_mixup", "reweight", "resample")}
BY_GROUP = {name: {f"{name}.by": "group"} for name in ("reweight", "resample", "crt")}
BY_CLASS: dict[str, dict[str, str]] = {
    **{name: {f"{name}.by": "class"} for name in ("reweight", "resample")},
    "crt": {},  # which is by class
}


#: Methods that may choose something on validation while they train, by its groups where these are known.
CHOOSING = ("best", "umix", "jtt", "cvar_dro", "chi2_dro", "evals")


class Entry(NamedTuple):
    """A row of a table: a method under one use of groups, with the settings that belong to this use."""

    use: str
    method: str
    settings: tuple[tuple[str, Any], ...] = ()


def entries(methods: Iterable[str]) -> list[Entry]:
    """The rows of the three tables: every method where it can be used, and in each table ERM and UMIX to compare with."""
    found: list[Entry] = []
    for name in methods:
        kind = METHODS[name]
        groups = kind.needs_groups is not False
        few = kind.needs_some_groups is True
        if kind.uses_known_groups:
            found += [Entry(use, name) for use in ALLOWED]
        elif name in BY_CLASS:
            found += [Entry(use, name, tuple(BY_CLASS[name].items())) for use in ("nothing", "validation")]
            if name in FROM_FEW:
                found.append(Entry("validation", name, tuple((BY_GROUP[name] | FROM_FEW[name]).items())))
            found += [Entry("training", name, tuple(BY_GROUP[name].items()))]
        elif kind.needs_val_groups or few:
            found.append(Entry("validation", name))
        elif groups:
            found += [Entry("validation", name, tuple(FROM_FEW[name].items()))] if name in FROM_FEW else []
            found.append(Entry("training", name))
        else:
            found += [Entry("nothing", name), Entry("validation", name)]
    return found


class Job(NamedTuple):
    """One run: an entry on a set with drawn settings and a seed; ``part`` of its epochs are trained."""

    name: str
    entry: Entry
    drawn: str  # settings as JSON, so that jobs can be compared
    seed: int
    part: int
    data: Path | None
    out: Path
    rows: int
    epochs: int | None


def allowed(entry: Entry) -> str:
    """How far groups may be used in the run: those of methods that never look at them are shared by both uses."""
    kind = METHODS[entry.method]
    looks = kind.needs_val_groups or kind.needs_groups is not False or kind.needs_some_groups is not False
    shared = not looks or (entry.method in BY_CLASS and BY_CLASS[entry.method].items() <= dict(entry.settings).items())
    if entry.use == "validation" and shared and entry.method not in CHOOSING:
        return "test"
    return ALLOWED[entry.use]


@lru_cache(maxsize=1)
def task_of(name: str, data: Path, out: Path, rows: int) -> tuple[Task, real.Data]:
    """The task of a real set, read once by each worker, with ``rows`` of its training rows and at most LARGEST of other splits."""
    task, made = real.whole_task(name, data, out, rows)
    splits = dict(task.splits)
    for split in ("val", "test"):
        kept = np.sort(stream(0, "methods", split).permutation(len(splits[split]))[:LARGEST])
        splits[split] = splits[split].rows(torch.from_numpy(kept))
    return replace(task, splits=splits, source=None), made


def run(job: Job) -> RunRecord | str:
    """The record of ``job``, or why there is none: one failed run must not end the benchmark."""
    try:
        settings: dict[str, Any] = {"evaluation.use_groups": allowed(job.entry), **dict(job.entry.settings)}
        if job.entry.method == "best" and job.name not in EMBEDDED:
            settings["net"] = "mlp"  # as all others: which learner is better is another question (tables.py)
        settings |= json.loads(job.drawn)
        if job.name in EMBEDDED:
            spec = RunSpec(task=job.name, method=job.entry.method, settings=settings, seed=job.seed)
            return execute(_shortened(spec, job), out=job.out)
        if job.data is None:
            raise UserError("Real data need --data.")
        task, made = task_of(job.name, job.data, job.out, job.rows)
        reference = reference_to(task)
        settings = {key: value for key, value in made.settings.items() if not key.startswith("task.")} | settings
        spec = RunSpec(
            task=reference.name, method=job.entry.method, settings=reference.settings | settings, seed=job.seed
        )
        return execute(_shortened(spec, job), paths=RunPaths(job.out, root=made.root, tasks=reference.tasks))
    except UserError as error:
        return str(error)
    except Exception:
        return traceback.format_exc()


def _shortened(spec: RunSpec, job: Job) -> RunSpec:
    epochs = spec.plan.fit.epochs if job.epochs is None else job.epochs
    epochs = max(1, -(-epochs // job.part))
    return spec if epochs == spec.plan.fit.epochs else replace_settings(spec, {"fit.epochs": epochs})


def replace_settings(spec: RunSpec, more: Mapping[str, Any]) -> RunSpec:
    return RunSpec(task=spec.task, method=spec.method, settings={**spec.settings, **more}, seed=spec.seed)


def seen(record: RunRecord, use: str) -> RunRecord:
    """``record`` read with what ``use`` allows: runs that no group has touched may be chosen by validation groups afterwards."""
    if use != "validation" or record.use_groups != "test":
        return record
    return record.with_evaluation(use_groups="val")


def trials_of(method: str, name: str, n: int) -> list[dict[str, Any]]:
    """The settings to try: the defaults first."""
    space = search_space(method)
    rng = stream(0, "methods", method)
    fields = METHODS[method].model_fields
    first = {f"{method}.{key}": fields[key].default for key in space} if name in EMBEDDED else {}
    drawn = [{f"{method}.{key}": value for key, value in draw_settings(space, rng).items()} for _ in range(n - 1)]
    return [first, *(drawn if space else [])]


@dataclass
class Race:
    """The search of one set: jobs are executed together, so that two workers are busy."""

    name: str
    arguments: argparse.Namespace
    failed: dict[str, str]
    rows: int = 0  # training rows
    smallest: int = 0  # test examples of the smallest group that is the worst one in some run

    def records(self, wanted: Sequence[tuple[Entry, str, int, int]]) -> dict[tuple[Entry, str, int, int], RunRecord]:
        """The records of these (entry, settings, seed, part), by what was asked for; failures are kept with their reason."""
        paths = (self.arguments.data, self.arguments.out, self.arguments.rows, self.arguments.epochs)
        jobs: dict[tuple[Any, ...], Job] = {}
        for entry, drawn, seed, part in wanted:
            kept = {key: value for key, value in json.loads(drawn).items() if key not in dict(entry.settings)}
            job = Job(self.name, entry, json.dumps(kept), seed, part, *paths)
            jobs.setdefault(self._same(job), job)
        found = dict(zip(jobs, in_workers(run, jobs.values()), strict=True))
        result = {}
        for entry, drawn, seed, part in wanted:
            kept = {key: value for key, value in json.loads(drawn).items() if key not in dict(entry.settings)}
            record = found[self._same(Job(self.name, entry, json.dumps(kept), seed, part, *paths))]
            if isinstance(record, RunRecord):
                result[entry, drawn, seed, part] = seen(record, entry.use)
            elif title(entry) not in self.failed or len(record) > len(self.failed[title(entry)]):
                self.failed[title(entry)] = record
        return result

    @staticmethod
    def _same(job: Job) -> tuple[Any, ...]:
        """What decides a run: two uses of groups that make no difference to it share it."""
        return job.entry.method, job.entry.settings, allowed(job.entry), job.drawn, job.seed, job.part

    def searched(self, rows: Sequence[Entry]) -> dict[Entry, str]:
        """The settings of every entry that are best on validation, by a first look and a comparison with the defaults."""
        trials = {entry: [json.dumps(one) for one in trials_of(entry.method, self.name, TRIALS)] for entry in rows}
        looks = self.records([(e, drawn, 0, SHORT) for e in rows for drawn in trials[e][1:]])
        best = {e: _best([(drawn, looks.get((e, drawn, 0, SHORT))) for drawn in trials[e][1:]]) for e in rows}
        pairs = {e: [trials[e][0], *([] if best[e] is None else [best[e]])] for e in rows}
        whole = self.records([(e, drawn, 0, 1) for e in rows for drawn in pairs[e]])
        chosen = {e: _best([(drawn, whole.get((e, drawn, 0, 1))) for drawn in pairs[e]]) for e in rows}
        return {e: drawn for e, drawn in chosen.items() if drawn is not None}

    def measured(self, rows: Sequence[Entry], seeds: int) -> dict[str, dict[str, dict[str, Any]]]:
        """By use and name: test rates of the searched settings and of the defaults, over ``seeds``."""
        chosen = self.searched(rows)
        default = {e: json.dumps(trials_of(e.method, self.name, 1)[0]) for e in chosen}
        wanted = [
            (e, drawn, s, 1) for e in chosen for drawn in dict.fromkeys((chosen[e], default[e])) for s in range(seeds)
        ]
        records = self.records(wanted)
        self.rows = max((sum(record.train_sizes) for record in records.values()), default=0)
        self.smallest = real.smallest_worst(list(records.values()))
        tables: dict[str, dict[str, dict[str, Any]]] = {use: {} for use in ALLOWED}
        for entry, drawn in chosen.items():
            runs = [records.get((entry, drawn, seed, 1)) for seed in range(seeds)]
            plain = [records.get((entry, default[entry], seed, 1)) for seed in range(seeds)]
            if any(record is None for record in [*runs, *plain]):
                continue
            tables[entry.use][title(entry)] = {
                **rates(runs),
                "default": rates(plain),
                "settings": {**dict(entry.settings), **json.loads(drawn)},
                "seconds": round(float(np.mean([sum(s.seconds for s in r.stages.values()) for r in runs])), 2),
                "warnings": sorted({warning for record in [*runs, *plain] for warning in record.warnings}),
            }
            if entry.method == "erm":
                tables[entry.use]["erm, argmax"] = {**rates(runs, "off"), "default": rates(plain, "off")}
        for row in ("erm", "erm, argmax", "umix"):  # to compare with: they are the same runs
            if row in tables["validation"]:
                tables["training"][row] = tables["validation"][row]
        return tables


def _best(found: Sequence[tuple[str, RunRecord | None]]) -> str | None:
    """The settings with the highest validation score; of equal ones the first."""
    scored = [(drawn, record.validation_score()) for drawn, record in found if record is not None]
    return max(scored, key=lambda one: one[1])[0] if scored else None


def title(entry: Entry) -> str:
    """What a row is called: the method, and how it has groups where it could have them otherwise."""
    given = dict(entry.settings)
    if f"{entry.method}.groups_from" in given:
        return f"{entry.method}, estimated groups"
    by = given.get(f"{entry.method}.by")
    return entry.method if by is None else f"{entry.method} by {by}"


def rates(records: Sequence[RunRecord], threshold: str | None = None) -> dict[str, float]:
    """Test rates at the epoch and with the decision that validation chooses: means over seeds, and the deviation of the worst."""
    found = [record.summary(threshold=threshold) for record in records]
    worst = Spread.of([summary.worst for summary in found])
    average = Spread.of([summary.average for summary in found])
    return {"worst": round(worst.mean, 4), "worst ±": round(worst.std, 4), "average": round(average.mean, 4)}


Results = Mapping[str, Mapping[str, Any]]  # by set


def table(results: Results, use: str) -> list[str]:
    """Worst group (average) of every method on every set; the highest worst group of a set is bold."""
    rows = list(dict.fromkeys(name for result in results.values() for name in result["tables"][use]))
    lines = [
        f"| method | {' | '.join(results)} | mean worst | mean rank | against UMIX, 95 % interval |",
        "|---|" + "--:|" * (len(results) + 3),
    ]
    rank = ranks(results, use)
    best = {
        name: max((one["worst"] for one in result["tables"][use].values()), default=None)
        for name, result in results.items()
    }
    ordered = sorted(rows, key=lambda row: -np.nan_to_num(_mean_worst(results, use, row)))
    for row in ordered:
        cells = []
        for name, result in results.items():
            one = result["tables"][use].get(row)
            shown = "–" if one is None else f"{100 * one['worst']:.1f} ({100 * one['average']:.1f})"
            cells.append(f"**{shown}**" if one is not None and one["worst"] == best[name] else shown)
        mean = _mean_worst(results, use, row)
        last = f"{100 * mean:.1f} | {rank[row]:.1f} | {against_umix(results, use, row)}" if row in rank else "– | – | –"
        lines.append(f"| {row} | {' | '.join(cells)} | {last} |")
    return lines


def overview(results: Results) -> str:
    """One short table for each use of groups: means over all sets, ranks, and differences to UMIX."""
    counts = " or ".join(str(count) for count in sorted({result["seeds"] for result in results.values()}))
    lines = [f"Over {len(results)} sets ({'; '.join(results)}), means over {counts} seeds.", ""]
    for use, heading in TITLES.items():
        rank = ranks(results, use)
        lines += [
            f"### {heading}",
            "",
            "| method | worst group | average | mean rank | highest on | against UMIX, 95 % interval |",
            "|---|--:|--:|--:|--:|--:|",
        ]
        tables = [result["tables"][use] for result in results.values()]
        for row in sorted(rank, key=lambda row: -_mean_worst(results, use, row)):
            worst = 100 * _mean_worst(results, use, row)
            average = 100 * float(np.mean([table[row]["average"] for table in tables]))
            highest = sum(table[row]["worst"] == max(one["worst"] for one in table.values()) for table in tables)
            cells = (
                f"{worst:.1f}",
                f"{average:.1f}",
                f"{rank[row]:.1f}",
                highest or "–",
                against_umix(results, use, row),
            )
            lines.append(f"| {row} | {' | '.join(map(str, cells))} |")
        lines.append("")
    return "\n".join(lines)


def ranks(results: Results, use: str) -> dict[str, float]:
    """The mean over sets of each method's rank by its worst group, 1 the highest, ties shared; only methods that all sets have."""
    rows = [row for row in next(iter(results.values()))["tables"][use] if not np.isnan(_mean_worst(results, use, row))]
    worst = np.array([[result["tables"][use][row]["worst"] for row in rows] for result in results.values()])
    return dict(zip(rows, rankdata(-worst, axis=1).mean(axis=0).tolist(), strict=True)) if rows else {}


def against_umix(results: Results, use: str, row: str) -> str:
    """The mean over sets of the difference of worst groups to UMIX's, in points, with the 95 % interval of paired differences."""
    tables = [result["tables"][use] for result in results.values()]
    gains = 100 * np.array([table[row]["worst"] - table["umix"]["worst"] for table in tables])
    if row == "umix" or len(gains) < 2:
        return "–"
    half = student.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains))
    return f"{gains.mean():+.1f} [{gains.mean() - half:+.1f}, {gains.mean() + half:+.1f}]"


def _mean_worst(results: Results, use: str, row: str) -> float:
    """The mean over all sets; NaN if one is missing."""
    found = [result["tables"][use].get(row) for result in results.values()]
    return float("nan") if any(one is None for one in found) else float(np.mean([one["worst"] for one in found]))


def beats_umix(results: Results, use: str) -> list[str]:
    """On which sets which methods have a higher worst group than UMIX, by more than one point and one standard error."""
    lines = []
    for name, result in results.items():
        rows, seeds = result["tables"][use], result["seeds"]
        if "umix" not in rows:
            continue
        ours = rows["umix"]
        ahead = {}
        for row, one in rows.items():
            error = np.hypot(one["worst ±"], ours["worst ±"]) / np.sqrt(seeds)
            if one["worst"] - ours["worst"] > max(0.01, error):
                ahead[row] = one["worst"] - ours["worst"]
        said = ", ".join(f"{row} +{100 * gain:.1f}" for row, gain in sorted(ahead.items(), key=lambda one: -one[1]))
        lines.append(f"- {name}: {said or 'none'}")
    return lines


def below_erm(results: Results) -> list[str]:
    """Which defaults end more than three points below ERM's worst group, and where; differences within chance are marked.

    Within chance is a difference of less than two standard errors of two rates of the smallest worst group.
    """
    lines = []
    for use in ALLOWED:
        lost: dict[str, list[str]] = {}
        for name, result in results.items():
            reference = result["tables"][use]["erm"]["default"]["worst"]
            chance = 2 * np.sqrt(2 * reference * (1 - reference) / max(1, result["smallest worst group"]))
            for row, one in result["tables"][use].items():
                gap = reference - one["default"]["worst"]
                if gap > LOST and row != "erm, argmax":
                    said = f"{name} {-100 * gap:+.1f}{' (within chance)' if gap < chance else ''}"
                    lost.setdefault(row, []).append(said)
        for row, where in lost.items():
            lines.append(f"- {TITLES[use].lower()}: {row}: {', '.join(where)}. Likely: {WHY.get(row, 'not known')}.")
    return lines


def page(results: Results) -> str:
    seeds = " or ".join(str(count) for count in sorted({result["seeds"] for result in results.values()}))
    text = [
        "# Every method, by what is known of groups\n",
        f"Worst-group test accuracy (average) in percent, means over {seeds} seeds. Every method has the same search budget of "
        f"{TRIALS} settings, compared on validation; epoch, settings and class biases (the threshold of two classes) are chosen by "
        "what may be known of groups. “erm, argmax” is ERM without the threshold. The highest worst group of a set is bold. The "
        "rank of a method on a set is that of its worst group, 1 the highest. Against UMIX: the mean over sets of the difference "
        "of worst groups, in points, with Student's interval of these paired differences.\n",
    ]
    for name, result in results.items():
        whole = "" if name in EMBEDDED else f"; validation and test are whole, up to {LARGEST:,} rows"
        small = f"a worst group has at least {result['smallest worst group']:,} test examples"
        text.append(f"- {name}: {result['rows']:,} training rows{whole}; {small}.")
    for use in ALLOWED:
        text += [
            f"\n## {TITLES[use]}\n",
            *table(results, use),
            "\nWho beats UMIX by more than a point and a standard error:\n",
        ]
        text += beats_umix(results, use)
    text += [
        "\n## Defaults that end more than three points below ERM's worst group\n",
        "ERM has its threshold here too. Within chance is less than two standard errors of two rates of that group.\n",
        *(below_erm(results) or ["None."]),
    ]
    failures = [
        f"- {name}: {row}: {why.strip().splitlines()[-1]}"
        for name, result in results.items()
        for row, why in result["failed"].items()
    ]
    text += ["\n## Runs that failed\n", *(failures or ["None."])]
    measured = {
        row.partition(",")[0].split()[0] for result in results.values() for t in result["tables"].values() for row in t
    }
    if missing := [name for name in METHODS if name not in measured]:
        text += ["\n## Not measured yet\n", f"{', '.join(missing)}."]
    return "\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--sets", nargs="*", choices=[*EMBEDDED, *REAL], metavar="SET")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), metavar="METHOD")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=10_000, help="training rows of every real set; 0: all")
    parser.add_argument("--epochs", type=int, help="of every fit, to try the script: results are written into --out")
    arguments = parser.parse_args()
    folder = RESULTS if arguments.epochs is None else arguments.out
    known = (
        json.loads((folder / "methods.json").read_text(encoding="utf-8")) if (folder / "methods.json").exists() else {}
    )
    results: dict[str, Any] = known.get("sets", {})
    for name in arguments.sets or [*EMBEDDED, *(REAL if arguments.data else ())]:
        began, failed = time.perf_counter(), {}
        race = Race(name, arguments, failed)
        found = race.measured(entries(arguments.methods), arguments.seeds)
        earlier = results.get(name, {"tables": {use: {} for use in ALLOWED}, "failed": {}})
        now = {title(entry) for entry in entries(arguments.methods)}
        results[name] = {
            "seeds": arguments.seeds,
            "rows": race.rows,
            "smallest worst group": race.smallest,
            "tables": {use: {**earlier["tables"][use], **found[use]} for use in ALLOWED},
            "failed": {key: why for key, why in earlier["failed"].items() if key not in now} | failed,
        }
        results = {one: results[one] for one in (*EMBEDDED, *REAL) if one in results}
        write("methods", {"trials": TRIALS, "sets": results}, show=False, folder=folder)
        (folder / "methods.md").write_text(page(results), encoding="utf-8")
        (folder / "methods-overview.md").write_text(overview(results), encoding="utf-8")
        print(f"{name}: {time.perf_counter() - began:.0f} s, {len(failed)} failed {failed}", flush=True)


if __name__ == "__main__":
    main()
