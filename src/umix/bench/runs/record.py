"""What a finished run leaves behind: counts of every epoch, from which every number of a table is computed."""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from pydantic import Field, PrivateAttr
from pydantic_core import from_json

from umix.bench.runs.split_counts import SplitCounts, check_fit, known
from umix.bench.runs.summary import GroupRate, Summary, named_rates
from umix.bench.spec.judge_settings import UseGroups
from umix.core import rates
from umix.core.judging import Judging, worst_unit
from umix.core.margins import Margin, margin_matrix, margins_of
from umix.core.selection import ORACLE, RULES, Counts, best_epoch, oracle_epoch
from umix.errors import Setting, UserError, unknown
from umix.files import write_whole
from umix.run_folder import RECORD
from umix.settings import Settings


@final
class StageRecord(Settings):
    """One fit of the run."""

    key: str
    epochs: int
    seconds: float
    reused: bool


@final
class RunRecord(Settings):
    """A finished run; ``directory`` is where it was loaded from."""

    kind: Literal["umix run record"] = "umix run record"
    task: str
    method: str
    seed: int = Field(ge=0)
    settings: dict[str, Any]  # as given
    preset: str = "default"
    plan: dict[str, Any]  # as executed, defaults spelled out
    key: str
    fingerprint: str
    groups: list[str]
    group_columns: list[str] = Field(default_factory=list, description="the label and the group columns")
    group_parts: list[list[str]] = Field(default_factory=list, description="their values for every group")
    group_use: str = ""  # none, validation or training: what the method trains with; empty in runs of earlier versions
    use_groups: UseGroups = "train"  # how far groups may be used: test, val or train
    min_group: int = 1  # runs of earlier versions judge every group by its own rate
    prior: float = 0.0
    classes: list[str]
    input_shape: list[int]
    input_dtype: str = "float32"
    body: str = ""  # hash of a frozen body's weights where its name and files do not decide them
    net: str = ""  # as it was named: where its files lay, which is not part of what decides the numbers
    train_sizes: list[int]
    split_counts: dict[str, SplitCounts]
    stages: dict[str, StageRecord]
    warnings: list[str]
    decisions: dict[str, Any] = Field(
        default_factory=dict, description="what was left open (auto), and how it was decided"
    )
    versions: dict[str, str]
    _directory: Path | None = PrivateAttr(None)

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

    @cached_property
    def counts(self) -> dict[str, Counts]:
        """For ``val`` and ``test``: hits [epochs, groups], sizes [groups], and the same by class."""
        margins = margin_matrix(self.margins, len(self.groups))
        judging = Judging(
            min_group=self.min_group,
            prior=self.prior,
            choose=self.use_groups != "test",
            break_ties=bool(self.group_use),  # empty in runs of earlier versions
        )
        return {
            name: replace(counts.arrays(), judging=judging, margins=margins)
            for name, counts in self.split_counts.items()
        }

    @cached_property
    def margins(self) -> tuple[Margin, ...]:
        """The groups united by one group column alone, where there are several columns."""
        return margins_of(self.group_columns, self.group_parts)

    def rule(self, select: str | None = None) -> str:
        """The selection rule ``select``; by default the worst group, or the worst class where there are no groups."""
        if select is None:
            return "worst" if self.groups and self.use_groups != "test" else "worst_class"
        if select in ("worst", "worst_recall") and self.use_groups == "test":
            raise UserError(
                Setting("select", select),
                " must see validation groups, but ",
                Setting("use_groups", "test"),
                " forbids it.",
            )
        if not self.has(known_rule(select)):
            raise UserError(Setting("select", select), f" must {_NEEDS[select]}; select worst_class or average.")
        return select

    def has(self, rule: str) -> bool:
        """Whether some epoch has a score under ``rule``."""
        return not np.isnan(RULES[rule](self.counts["val"])).all()

    def best_epoch(self, select: str | None = None) -> int:
        """The epoch that the rule ``select`` chooses on the validation split."""
        return best_epoch(self.counts["val"], self.rule(select))

    def summary(self, select: str | None = None) -> Summary:
        """Test rates at the epoch that the rule ``select`` chooses on the validation split."""
        rule = self.rule(select)
        return self._summary(rule, best_epoch(self.counts["val"], rule))

    def oracle(self) -> Summary:
        """Test rates at the epoch that the test split itself would choose: for the regret of a rule, never a result."""
        return self._summary(ORACLE, oracle_epoch(self.counts["test"]))

    def _summary(self, rule: str, epoch: int) -> Summary:
        test, least = self.counts["test"], self.min_group
        hits, units = test.hits[epoch], test.units(epoch)
        worst, collapsed = worst_unit(units), int(self.counts["val"].collapsed[epoch])
        return Summary(
            select=rule,
            epoch=epoch,
            average=known(rates.average(test.class_hits[epoch], test.class_sizes)),
            adjusted=known(rates.adjusted(hits, test.sizes, self.train_sizes)),
            group_mean=known(rates.group_mean(units.hits[units.judged], units.sizes[units.judged])),
            worst=known(worst.rate),
            worst_group=None if worst.index is None else self.unit_names[worst.index],
            level=units.level,
            n_judged=worst.n_judged,
            judged=[name for name, judged in zip(self.unit_names, units.judged, strict=True) if judged],
            n_too_small=worst.n_too_small,
            collapsed=None if collapsed < 0 else self.classes[collapsed],
            margins=self._margin_rates(hits, test.sizes),
            groups=named_rates(self.groups, hits, test.sizes, least),
            classes=named_rates(self.classes, test.class_hits[epoch], test.class_sizes, least),
            quintiles=test.quintile_rates[epoch].tolist() if len(test.quintile_rates) else None,
        )

    @cached_property
    def unit_names(self) -> list[str]:
        """The names of everything that can be judged: groups, then margins, then classes."""
        margins = [f"{margin.name} ({margin.column})" for margin in self.margins]
        return [*self.groups, *margins, *(f"class {name}" for name in self.classes)]

    def _margin_rates(self, hits: np.ndarray, sizes: np.ndarray) -> dict[str, dict[str, GroupRate]]:
        found: dict[str, dict[str, GroupRate]] = {}
        for margin in self.margins:
            hit, size = int(hits[list(margin.groups)].sum()), int(sizes[list(margin.groups)].sum())
            rate = named_rates([margin.name], np.array([hit]), np.array([size]), self.min_group)
            found.setdefault(margin.column, {}).update(rate)
        return found

    def save(self, directory: Path) -> None:
        """Write this record into ``directory``; the file's presence says that the run is finished."""
        write_whole(directory / RECORD, (self.model_dump_json(indent=1) + "\n").encode())
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
        raise UserError(f"{ORACLE} must not select a model: it looks at the test split; umix select shows its regret.")
    if select not in RULES:
        raise unknown("selection rule", select, RULES)
    return select


def load_run(directory: str | Path) -> RunRecord:
    """The record of the finished run in ``directory``."""
    path = Path(directory) / RECORD
    try:
        content = from_json(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"There is no finished run in {directory}: {RECORD} is missing.") from None
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} must be a whole run record, but it cannot be read ({error}); delete it and run again."
        ) from None
    if not isinstance(content, dict) or content.get("kind") != "umix run record":
        raise UserError(f"{path} must be a run record written by umix; delete or move it.")
    try:
        record = RunRecord(**content)
        check_fit(record.split_counts, groups=record.groups, classes=record.classes, train_sizes=record.train_sizes)
    except UserError as error:
        raise UserError(
            f"{path} must be a run record of this version of umix (", error, "); delete it and run again."
        ) from None
    record._directory = path.parent
    return record
