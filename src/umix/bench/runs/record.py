"""What a finished run leaves behind: counts of every epoch, from which every number of a table is computed."""

import glob
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast, final, get_args

import numpy as np
from pydantic import Field, PrivateAttr

from umix.bench.runs.split_counts import SplitCounts, known, with_thresholds, write_thresholds
from umix.bench.runs.summary import GroupRate, Summary, named_rates
from umix.bench.spec.evaluation_settings import UseGroups
from umix.core import rates
from umix.core.calibration import Calibration
from umix.core.epoch_counts import Counts
from umix.core.evaluation import EVERY_GROUP, Evaluation, worst_unit
from umix.core.selection import (
    ORACLE,
    RULES,
    THRESHOLD_RULES,
    Choice,
    Threshold,
    best_choice,
    choice_score,
    default_rule,
    oracle_choice,
)
from umix.core.words import Margin, margins_of, quoted, run_words
from umix.errors import Setting, UserError, unknown
from umix.run_folder import RECORD
from umix.store import Stored, read_json, write_json

_LISTED = 4  # most folders that an error names


@final
class StageRecord(Stored):
    """One fit of the run."""

    key: str
    epochs: int
    seconds: float
    reused: bool


@final
class RunRecord(Stored):
    """A finished run; ``directory`` is where it was loaded from."""

    kind: Literal["umix run record"] = "umix run record"
    task: str
    method: str
    seed: int
    settings: dict[str, Any]  # as given
    preset: str = "default"
    plan: dict[str, Any]  # as executed, defaults spelled out
    asked: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="parts of the plan that the learner, or the choice of one, made other than asked",
    )
    key: str
    fingerprint: str
    rows: str = ""  # the same for every form of the inputs
    groups: list[str]
    group_columns: list[str] = Field(default_factory=list, description="the label and the group columns")
    group_parts: list[list[str]] = Field(default_factory=list, description="their values for every group")
    group_values: list[list[str]] = Field(default_factory=list, description="all values of each of these columns")
    group_use: str = ""  # none, validation or training: what the method trains with
    use_groups: UseGroups = "train"  # how far groups may be used: test, val or train
    min_group: int = EVERY_GROUP.min_group
    prior: float = EVERY_GROUP.prior
    floor: float | None = None  # the lowest average on validation that a choice may have
    class_floor: float | None = None  # the lowest mean of the class rates there, where no groups choose
    classes: list[str]
    input_shape: list[int]
    input_dtype: str = "float32"
    input_categories: list[int] = Field(default_factory=list)
    column_types: dict[str, int] = Field(
        default_factory=dict,
        description="how many columns of a table were read as numbers, categories, dates and texts",
    )
    body: str = ""  # hash of a frozen body's weights where its name and files do not decide them
    net: str = ""  # as it was named: where its files lay, which is not part of what decides the numbers
    train_sizes: list[int]  # of the groups: they may overlap or leave rows out
    train_margin_sizes: list[int] = Field(default_factory=list)
    n_train: int = 0  # training examples in all
    train_class_sizes: list[int] = Field(default_factory=list)
    split_counts: dict[str, SplitCounts]
    calibrations: dict[int, list[float]] = Field(
        default_factory=dict,
        description="by epoch whose weights are kept: the scale of the logits, and what is then added to that of each class",
    )
    stages: dict[str, StageRecord]
    warnings: list[str]
    choices: dict[str, Any] = Field(
        default_factory=dict, description="what was left open (auto), and how it was decided"
    )
    versions: dict[str, str]
    _directory: Path | None = PrivateAttr(None)
    _threshold: Threshold | None = PrivateAttr(None)  # how to decide, where it is not as the run says
    _decided: dict[str, Counts] | None = PrivateAttr(None)  # counts with thresholds that were not read from a file

    @property
    def directory(self) -> Path:
        if self._directory is None:
            raise ValueError("This record was not loaded from or saved to a folder.")
        return self._directory

    @property
    def has_directory(self) -> bool:
        """Whether this record was loaded from or saved to a folder."""
        return self._directory is not None

    @property
    def title(self) -> str:
        """What people call the task: its name, or the name of its file."""
        task = self.plan.get("task", {})
        return str(task["label"]) if task.get("name") == "memory" else Path(self.task).name

    @property
    def fold(self) -> int | None:
        """Which fold of the rows was test, counted from 1; None where rows were not divided into folds."""
        fold: int | None = self.plan.get("task", {}).get("fold")
        return fold

    @property
    def folds(self) -> int | None:
        """How many folds there are."""
        folds: int | None = self.plan.get("task", {}).get("folds")
        return folds

    @property
    def words(self) -> str:
        """Which of the runs of its method on its task this is."""
        return run_words(self.seed, self.fold)

    @property
    def asked_plan(self) -> dict[str, Any]:
        """The plan as somebody asked for it: runs that differ only in what their learners made of it are of one kind."""
        return {**self.plan, **self.asked}

    @cached_property
    def counts(self) -> dict[str, Counts]:
        """For ``val`` and ``test``: hits [epochs, groups], sizes [groups], and the same by margin and by class."""
        evaluation = Evaluation(
            min_group=self.min_group,
            prior=self.prior,
            choose=self.use_groups != "test",
            floor=self.floor,
            class_floor=self.class_floor,
        )
        return {name: replace(counts.arrays, evaluation=evaluation) for name, counts in self.split_counts.items()}

    @cached_property
    def threshold_counts(self) -> dict[str, Counts]:
        """``counts`` with the hits of every threshold, where the run keeps them."""
        if self._decided is None:
            return with_thresholds(self.counts, self._directory)
        parts = ("biases", "threshold_hits", "threshold_quintiles")
        return {
            name: replace(counts, **{part: getattr(self._decided[name], part) for part in parts})
            for name, counts in self.counts.items()
        }

    @property
    def threshold(self) -> Threshold:
        """How classes are predicted: as ``deciding`` says, else as the run was told, else as is usual for its preset."""
        return self._threshold or self.own_threshold

    @property
    def own_threshold(self) -> Threshold:
        """How the run was told to decide."""
        told: Threshold = self.plan.get("evaluation", {}).get("threshold", "tuned")
        return told

    def with_threshold(self, threshold: Threshold | None) -> "RunRecord":
        """This run, read with another threshold: every number of it is then that of the choice under ``threshold``."""
        if threshold is None or threshold == self.threshold:
            return self
        other = self.model_copy()
        other._threshold = known_threshold(threshold)
        return other

    def by_raw_rates(self) -> "RunRecord":
        """This run, judged as papers do: every group by its own rate, however small, and classes by argmax."""
        other = self.with_evaluation(min_group=EVERY_GROUP.min_group, prior=EVERY_GROUP.prior)
        other._threshold = "off"
        return other

    def with_evaluation(self, **changed: Any) -> "RunRecord":
        """This run, judged by other rules: fields of the record such as ``use_groups`` and ``min_group``."""
        other = self.model_copy(update=changed)
        for name in ("counts", "threshold_counts"):  # cached for the rules of this record
            other.__dict__.pop(name, None)
        return other

    def keep_thresholds(self, counts: dict[str, Counts]) -> None:
        """Take the thresholds of ``counts``, of a run that was trained in this process."""
        self._decided = counts

    @cached_property
    def margins(self) -> tuple[Margin, ...]:
        """Every label with every value of one group column, where there are several columns."""
        return margins_of(self.group_columns, self.group_values) if self.group_values else ()

    def rule(self, select: str | None = None) -> str:
        """The selection rule ``select``; by default ``default_rule``: the worst group, or the classes where no groups choose."""
        if select is None:
            return default_rule(self.counts["val"])
        if select in ("worst", "worst_recall") and self.use_groups == "test":
            raise UserError(
                Setting("select", select),
                " must see validation groups, but ",
                Setting("use_groups", "test"),
                " forbids it.",
            )
        if not self.has(known_rule(select)):
            raise UserError(Setting("select", select), f" must {_NEEDS[select]}; select balanced or average.")
        return select

    def has(self, rule: str) -> bool:
        """Whether some epoch has a score under ``rule``."""
        return not np.isnan(RULES[rule](self.counts["val"])).all()

    def choice(self, select: str | None = None, threshold: Threshold | None = None) -> Choice:
        """The epoch and the threshold that the rule ``select`` chooses on the validation split.

        ``threshold`` is ``tuned`` or ``off``; by default as the run was told. Where the run has counted no thresholds, or the rule
        cannot compare them, it is argmax.
        """
        rule, how = self.rule(select), known_threshold(threshold or self.threshold)
        if how == "off" or rule not in THRESHOLD_RULES:
            return best_choice(self.counts["val"], rule, "off")
        return best_choice(self.threshold_counts["val"], rule, how)

    def best_epoch(self, select: str | None = None, threshold: Threshold | None = None) -> int:
        """The epoch of ``choice``."""
        return self.choice(select, threshold).epoch

    def biases(self, choice: Choice) -> np.ndarray:
        """What is added to the logit of every class, [classes]; zeros for argmax."""
        return (
            self.threshold_counts["val"].biases[choice.threshold] if choice.threshold else np.zeros(len(self.classes))
        )

    def calibration(self, choice: Choice) -> Calibration:
        """What makes probabilities of the logits at the epoch of ``choice``; it changes none where the run has not calibrated."""
        if choice.epoch not in self.calibrations:
            return Calibration.none(len(self.classes))
        scale, *biases = self.calibrations[choice.epoch]
        return Calibration(scale, tuple(biases))

    def tunes_threshold(self, select: str | None = None) -> bool:
        """Whether the rule ``select`` can choose among thresholds here: they were counted, and it has a score for them."""
        rule, val = self.rule(select), self.threshold_counts["val"]
        return rule in THRESHOLD_RULES and val.has_thresholds and not np.isnan(RULES[rule](val.at_threshold(1))).all()

    def validation_score(self, select: str | None = None) -> float:
        """The score of ``choice`` on the validation split."""
        rule, choice = self.rule(select), self.choice(select)
        return choice_score(self.threshold_counts["val"] if choice.threshold else self.counts["val"], rule, choice)

    def summary(self, select: str | None = None, threshold: Threshold | None = None) -> Summary:
        """Test rates at the epoch and with the threshold that the rule ``select`` chooses on the validation split."""
        compared = (threshold or self.threshold) == "tuned" and self.tunes_threshold(select)
        return self._summary(self.rule(select), self.choice(select, threshold), compared=compared)

    def oracle(self) -> Summary:
        """Test rates of the choice that the test split itself would make: for the regret of a rule, never a result."""
        test = (self.counts if self.threshold == "off" else self.threshold_counts)["test"]
        return self._summary(ORACLE, self.oracle_choice(), compared=test.has_thresholds)

    def oracle_choice(self) -> Choice:
        """The choice of ``oracle``."""
        return oracle_choice(
            (self.counts if self.threshold == "off" else self.threshold_counts)["test"], self.threshold
        )

    def counts_at(self, choice: Choice) -> dict[str, Counts]:
        """The counts of one epoch under one threshold."""
        counted = self.threshold_counts if choice.threshold else self.counts
        return {name: split.at_threshold(choice.threshold).only([choice.epoch]) for name, split in counted.items()}

    def _summary(self, rule: str, choice: Choice, *, compared: bool) -> Summary:
        biases = self.biases(choice)
        update = {
            "epoch": choice.epoch,
            "threshold_mode": "tuned" if compared else "off",
            "biases": dict(zip(self.classes, biases.tolist(), strict=True)) if compared else None,
            "threshold": self.calibration(choice).threshold(biases) if len(biases) == 2 else None,
            "calibrated": choice.epoch in self.calibrations,
        }
        return self.summary_of(self.counts_at(choice), rule).model_copy(update=update)

    def summary_of(self, counts: Mapping[str, Counts], rule: str) -> Summary:
        """The test rates of ``counts``, which have one epoch and the groups of this run; how it was decided is not said."""
        val, test = counts["val"], counts["test"]
        hits, units = test.hits[0], test.units(0)
        worst, collapsed = worst_unit(units), int(val.collapsed[0])
        n_groups, n_margins = units.n_groups, units.n_margins
        judged = worst.judged if self.groups else units.sizes >= max(1, self.min_group)  # without groups, classes are
        named = named_rates(self.unit_names, units.hits, units.sizes, judged)
        in_order = list(named.values())
        return Summary(
            select=rule,
            epoch=None,
            average=known(rates.average(test.class_hits[0], test.class_sizes)),
            adjusted=known(rates.adjusted(hits, test.sizes, self.train_sizes)),
            group_mean=known(rates.group_mean(hits, test.sizes)),
            worst=known(worst.rate),
            worst_group=None if worst.index is None else self.unit_names[worst.index],
            level=worst.level,
            n_judged=int(worst.judged.sum()),
            judged=[name for name, rate in named.items() if rate.judged] if self.groups else [],
            n_too_small=sum(rate.size > 0 and not rate.judged for rate in in_order[:n_groups]),
            collapsed=None if collapsed < 0 else self.classes[collapsed],
            margins=self._by_column(in_order[n_groups : n_groups + n_margins]),
            groups=dict(zip(self.groups, in_order[:n_groups], strict=True)),
            classes=dict(zip(self.classes, in_order[n_groups + n_margins :], strict=True)),
            quintiles=test.quintile_rates[0].tolist() if len(test.quintile_rates) else None,
        )

    @cached_property
    def unit_names(self) -> list[str]:
        """The names of everything that can be judged: groups, then margins, then classes."""
        margins = [f"{margin.name} ({margin.column})" for margin in self.margins]
        return [*self.groups, *margins, *(f"class {quoted(name)}" for name in self.classes)]

    def _by_column(self, rates: list[GroupRate]) -> dict[str, dict[str, GroupRate]]:
        """The rates of all margins, by the group column that makes them."""
        by_column: dict[str, dict[str, GroupRate]] = {}
        for margin, rate in zip(self.margins, rates, strict=True):
            by_column.setdefault(margin.column, {})[margin.name] = rate
        return by_column

    def save(self, directory: Path) -> None:
        """Write this record into ``directory``, its thresholds first; the record's presence says that the run is finished."""
        if self._decided is not None:
            write_thresholds(directory, self._decided)
        write_json(directory / RECORD, self)
        self._directory = directory


_NO_EPOCH = "have an epoch with a score on validation, but this run has none"
_NEEDS = dict.fromkeys(RULES, _NO_EPOCH) | {
    "worst": "know the groups, but this task has none",
    "uncertainty_quintile": "have the uncertainty of validation examples from a first stage, but this run has none",
    "cvar": "have the losses of validation examples, but this record holds none that are finite",
}


def known_rule(select: str) -> str:
    """``select``, if it is a rule that may select a model."""
    if select == ORACLE:
        raise UserError(
            f"{ORACLE} must not select a model: it looks at the test split; umix table can show its regret."
        )
    if select not in RULES:
        raise unknown("selection rule", select, RULES)
    return select


def known_threshold(threshold: str) -> Threshold:
    """``threshold``, if there is such a way."""
    if threshold not in get_args(Threshold):
        raise unknown("threshold", threshold, get_args(Threshold))
    return cast(Threshold, threshold)


def load_run(directory: str | Path) -> RunRecord:
    """The record of the finished run in ``directory``, a folder or any beginning of its name that no other run has."""
    folder = find_run(directory)
    if folder is None:
        given = Path(directory)
        if runs := sorted(record.parent for record in given.glob(f"*/{RECORD}")):
            raise UserError(f"{directory} must be the folder of one run, but it holds runs: name one ({_names(runs)}).")
        why = f"{RECORD} is missing" if given.is_dir() else "no folder of a run is called so or begins so"
        raise UserError(
            f"There is no finished run in {directory}: {'it is a file and no folder' if given.is_file() else why}."
        )
    record = read_json(folder / RECORD, RunRecord, kind="run record")
    record._directory = folder
    return record


def find_run(directory: str | Path) -> Path | None:
    """The folder of the finished run that ``directory`` names, whole or by a beginning that no other run has; None if none does."""
    path = Path(directory)
    if (path / RECORD).exists():
        return path
    if path.is_dir():
        return None
    runs = sorted(record.parent for record in path.parent.glob(f"{glob.escape(path.name)}*/{RECORD}"))
    if len(runs) > 1:
        raise UserError(
            f"{directory} must be the beginning of one run's folder, but {len(runs)} begin so: {_names(runs)}; write more of the "
            "name."
        )
    return runs[0] if runs else None


def _names(folders: list[Path]) -> str:
    return ", ".join(folder.name for folder in folders[:_LISTED]) + (", …" if len(folders) > _LISTED else "")


@final
@dataclass(frozen=True, eq=False)
class Runs:
    """The records of a folder, in the order of their folders' names, and in words which folders were left out and why."""

    records: list[RunRecord]
    skipped: list[str]


def load_runs(directory: str | Path) -> Runs:
    """The finished runs in the folders of ``directory``; folders without a record (shared stages, unfinished runs) are passed over.

    A record that is damaged or was not written by umix is left out and named in ``skipped``.
    """
    folder = Path(directory)
    if find_run(folder) is not None:
        raise UserError(f"{directory} is a single run; name the folder that holds the runs, {folder.resolve().parent}.")
    if not folder.is_dir():
        raise UserError(f"There is no folder {directory}.")
    records, skipped = [], []
    for path in sorted(folder.glob(f"*/{RECORD}")):
        try:
            records.append(load_run(path.parent))
        except UserError as error:
            skipped.append(str(error))
    return Runs(records, skipped)
