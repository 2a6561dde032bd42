"""Races: candidates are trained side by side and judged on validation, and the worse half drops out again and again.

Nets that can be stacked run as one fleet, others one after another. A race trains no net for anybody to use: whoever wins is
trained again as an ordinary final fit, which is bit for bit what a run with the winner's settings is. Every round is a fit with a
checkpoint of its own, so a killed race goes on where it was. What was counted stays, so runs with the same candidates share it.
"""

import abc
import hashlib
import json
import math
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast, final

import numpy as np
import torch
from torch import Tensor

from umix.core.counts import class_composition
from umix.core.decisions import candidate_biases, decision_hits
from umix.core.epoch_counts import Counts
from umix.core.judging import Judging
from umix.data.samplers import Sampler, Shuffled
from umix.data.task import Split
from umix.nets.estimators.estimator import Fitted
from umix.nets.fleet import clip_each, fleet_of
from umix.nets.net import Net
from umix.run_folder import CHECKPOINT, RACE_COUNTS
from umix.store import locked, read_tensors, remove, unless_damaged, write_tensors
from umix.training.checkpoint import thin_checkpoint
from umix.training.evaluate import fleet_logits
from umix.training.fit import fit
from umix.training.history import keeps_decisions
from umix.training.loop import descend
from umix.training.objective import Objective, check_given
from umix.training.progress import EpochLog
from umix.training.stage import Stage, StageReport

if TYPE_CHECKING:
    from umix.training.trainer import Trainer

RACE = "race"
#: After which shares of the epochs candidates are judged. Half of them go on each time.
ROUNDS = (0.1, 0.25, 0.5, 0.75)
_FINALISTS = 2


class FleetObjective(Objective, abc.ABC):
    """What a fleet minimises: the sum of its members' risks."""

    @abc.abstractmethod
    def members(self, index: Sequence[int]) -> "FleetObjective":
        """The objective of a fleet with the members ``index`` only."""


@final
@dataclass(frozen=True, eq=False)
class Lane:
    """Candidates that are trained together: a fleet where ``objective`` is one for fleets, otherwise a single net."""

    names: tuple[str, ...]
    objective: Objective
    sampler: Sampler = field(default_factory=Shuffled)

    @property
    def is_fleet(self) -> bool:
        return isinstance(self.objective, FleetObjective)

    def without(self, dropped: set[str]) -> "Lane":
        """This lane with those candidates only that have not been ``dropped``."""
        index = [place for place, name in enumerate(self.names) if name not in dropped]
        names = tuple(self.names[place] for place in index)
        objective = self.objective
        if isinstance(objective, FleetObjective) and index:
            objective = objective.members(index)
        return replace(self, names=names, objective=objective)


@final
@dataclass(frozen=True)
class Round:
    """Candidates are judged after ``until`` epochs, and the best ``keep`` of them go on."""

    until: int
    keep: int


def rounds_of(epochs: int, candidates: int) -> tuple[Round, ...]:
    """The rounds of a race of so many ``candidates``, whose final fit has ``epochs``.

    >>> rounds_of(epochs=20, candidates=16)
    (Round(until=2, keep=8), Round(until=5, keep=4), Round(until=10, keep=2), Round(until=15, keep=2))
    """
    found: list[Round] = []
    keep = candidates
    for share in ROUNDS:
        until = min(epochs, max(1, math.ceil(share * epochs)))
        keep = max(min(_FINALISTS, candidates), math.ceil(keep / 2))
        if found and found[-1].until == until:
            found.pop()
        found.append(Round(until, keep))
    return tuple(found)


@final
@dataclass(frozen=True, eq=False)
class RaceResult:
    """The validation counts of one candidate, and of the examples of which an earlier stage was uncertain.

    ``uncertain_hits`` is [epochs, decisions].
    """

    counts: Counts
    uncertain_hits: np.ndarray
    n_uncertain: int


@final
class RaceCounts:
    """Counts hits on the validation split by group and class, of one net or of each member of a fleet.

    ``uncertain`` is bool [n_val]: of which examples an earlier stage was uncertain. They are counted apart. Test examples are not
    used.
    """

    def __init__(
        self,
        val: Split,
        biases: Tensor,
        *,
        batch_size: int,
        judging: Judging,
        uncertain: Tensor | None = None,
    ) -> None:
        self._val = val
        self._biases = biases
        self._uncertain = torch.zeros_like(val.y, dtype=torch.bool) if uncertain is None else uncertain.to(val.y.device)
        rows, units = val.groups.unit_pairs
        self._n_units = len(val.groups.names) + len(val.groups.margins)
        apart = self._uncertain.nonzero(as_tuple=True)[0]  # one more unit, behind the groups and margins
        self._pairs = (torch.cat([rows, apart]), torch.cat([units, torch.full_like(apart, self._n_units)]))
        self._batch_size = batch_size
        self._judging = judging
        self._hits: list[Tensor] = []  # of every epoch: [members, decisions, groups + classes]

    def observe(self, net: Net, epoch: int) -> None:
        self.count(fleet_logits(net, self._val, batch_size=self._batch_size))

    def count(self, logits: Tensor) -> None:
        """Count the hits of another epoch, whose ``logits`` are [members, n_val, classes]."""
        hits = decision_hits(logits, self._val.y, self._pairs, self._biases, n_groups=self._n_units + 1)
        self._hits.append(hits.int().cpu())

    def result(self, member: int, *, epochs: int) -> RaceResult:
        """What was counted of one candidate in its first ``epochs``."""
        groups, n_classes = self._val.groups, self._biases.shape[1]
        n_groups, n_units = len(groups.names), self._n_units
        hits = torch.stack([hits[member] for hits in self._hits[:epochs]]).long().numpy()
        decided = np.delete(hits, n_units, axis=2)
        composition = class_composition(self._val.y, groups.unit_pairs, n_groups=n_units, n_classes=n_classes)
        of_units = composition.cpu().numpy()
        counts = Counts(
            hits=decided[:, 0, :n_groups],
            sizes=groups.sizes.cpu().numpy(),
            class_hits=decided[:, 0, n_units:],
            class_sizes=torch.bincount(self._val.y, minlength=n_classes).cpu().numpy(),
            composition=of_units[:n_groups],
            margin_hits=decided[:, 0, n_groups:n_units],
            margin_sizes=of_units[n_groups:].sum(axis=1),
            margin_composition=of_units[n_groups:],
            judging=self._judging,
            biases=self._biases.cpu().numpy(),
            decided_hits=decided,
        )
        return RaceResult(counts, hits[:, :, n_units], int(self._uncertain.sum()))

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None:
        self._hits = list(kept["race/hits"])

    def write(self) -> None: ...

    def tensors(self) -> dict[str, Tensor]:
        return {"race/hits": torch.stack(self._hits)}


def race(
    trainer: "Trainer",
    lanes: Sequence[Lane],
    score: Callable[[Mapping[str, RaceResult]], Mapping[str, float]],
    *,
    content: str,
    uncertain: Tensor | None = None,
    time_limit: float | None = None,
    stays: Collection[str] = (),
) -> dict[str, RaceResult]:
    """Train the candidates of all ``lanes`` in rounds, and return the validation counts of each, as far as it came.

    ``score`` judges the candidates that are left by their validation counts: higher is better, NaN is worst. ``content`` and
    the earlier stages identify the objectives. Validation examples that are ``uncertain`` are counted apart. After ``time_limit``
    seconds no further round begins. The candidates ``stays`` do not drop out.
    """
    began, results, reused = time.perf_counter(), dict[str, RaceResult](), True
    lanes = list(lanes)
    rounds = rounds_of(trainer.final_settings.epochs, sum(len(lane.names) for lane in lanes))
    with _folder(trainer) as folder:
        before: dict[int, tuple[Stage, Lane]] = {}
        for number, round_ in enumerate(rounds):
            for place, lane in enumerate(lanes):
                if not lane.names:
                    continue
                stage = _stage(trainer, lane, folder, content=content, number=number)
                observer = _observer(trainer, uncertain)
                known = _known(trainer, stage, observer, until=round_.until)
                if not known:
                    report = _run(trainer, stage, lane, observer, until=round_.until, after=before.get(place))
                    reused = reused and report.reused
                before[place] = (stage, lane)
                for member, name in enumerate(lane.names):
                    results[name] = observer.result(member, epochs=round_.until)
            running = [name for lane in lanes for name in lane.names]
            scores = score({name: results[name] for name in running})
            ranked = sorted(
                running, key=lambda name: -math.inf if math.isnan(scores[name]) else scores[name], reverse=True
            )
            dropped = set(ranked[round_.keep :]).difference(stays)
            lanes = [lane.without(dropped) for lane in lanes]
            _forget(
                trainer, [before[place][0] for place, lane in enumerate(lanes) if not lane.names and place in before]
            )
            late = time_limit is not None and time.perf_counter() - began > time_limit
            if trainer.engine.from_first(late):
                break
        _forget(trainer, [stage for stage, _ in before.values()])
    seconds = time.perf_counter() - began
    trainer.reports[RACE] = StageReport(stage.key, round_.until, seconds, reused=reused)
    return results


def counts_of(trainer: "Trainer", logits: Tensor) -> Counts:
    """What a race counts of a candidate with these validation ``logits`` [n_val, classes], as if it had trained for an epoch."""
    observer = _observer(trainer, None)
    observer.count(logits[None])
    return observer.result(0, epochs=1).counts


@contextmanager
def _folder(trainer: "Trainer") -> Iterator[Path]:
    """Where the rounds keep their checkpoints: the shared folder of stages, or one that lasts as long as the race."""
    if trainer.cache is not None:
        yield trainer.cache
        return
    with tempfile.TemporaryDirectory(prefix="umix-race-") as folder:
        yield Path(folder)


def _known(trainer: "Trainer", stage: Stage, observer: RaceCounts, *, until: int) -> bool:
    """Whether ``stage`` has come as far as ``until`` before; then ``observer`` is told what was counted."""
    path = cast(Path, stage.directory) / RACE_COUNTS
    if trainer.engine.processes > 1:
        return False

    def read() -> int:
        tensors, metadata = read_tensors(path, kind="race")
        epochs = int(metadata["epochs"])
        if epochs >= until:
            observer.restore(epochs, tensors)
        return epochs

    counted = unless_damaged(path, read, again="its candidates are trained again", warn=trainer.progress.note)
    return counted is not None and counted >= until


def _forget(trainer: "Trainer", stages: Sequence[Stage]) -> None:
    """Delete the checkpoints of ``stages``, whose candidates go no further: nets and optimisers may be large."""
    if trainer.engine.processes == 1:
        for stage in stages:
            remove(cast(Path, stage.directory) / CHECKPOINT)


def _stage(trainer: "Trainer", lane: Lane, folder: Path, *, content: str, number: int) -> Stage:
    """A round of a fleet is a stage of its own, because its members change; a single net goes on in one stage."""
    names = {"candidates": list(lane.names), **({"round": number} if lane.is_fleet else {})}
    val = trainer.splits["val"]
    member = val.groups.member
    if val.groups.column_codes is not None:  # some examples are in a margin and in no group
        member = torch.cat([member, val.groups.in_margins], dim=1)
    judged = hashlib.sha256(member.cpu().numpy().tobytes()).hexdigest()  # decides what is counted
    identity = hashlib.sha256(
        json.dumps([content, _biases(trainer).tolist(), names, val.fingerprint, val.groups.names, judged]).encode()
    ).hexdigest()
    earlier = "".join(report.key for name, report in trainer.reports.items() if name != RACE)
    settings = trainer.final_settings
    key = trainer.key(RACE, settings, objective=identity, after=earlier)
    return Stage(RACE, settings, trainer.seed, key, folder / key)


def _thin(trainer: "Trainer", source: Stage, larger: Lane, lane: Lane, stage: Stage) -> None:
    """Let ``stage`` begin where the ``larger`` fleet stopped, with the members that are left.

    If another run has finished this race and deleted that checkpoint, the members train from the start.
    """
    path, target = (cast(Path, one.directory) / CHECKPOINT for one in (source, stage))
    members = [larger.names.index(name) for name in lane.names]
    thin = partial(thin_checkpoint, path, target, fit=stage.key, members=members, of=len(larger.names))
    unless_damaged(path, thin, again="its candidates are trained again", warn=trainer.progress.note)


def _biases(trainer: "Trainer") -> Tensor:
    """The biases under which candidates are counted, [decisions, classes]; argmax alone if the final fit can choose no other."""
    sizes = torch.bincount(trainer.splits["train"].y, minlength=trainer.task.n_classes).cpu().numpy()
    biases = torch.from_numpy(candidate_biases(sizes)).float()
    groups = trainer.splits["val"].groups
    n_units = len(groups.names) + len(groups.margins) + trainer.task.n_classes
    all_of_them = trainer.decide != "argmax" and keeps_decisions(len(biases), n_units=n_units)
    return biases if all_of_them else biases[:1]


def _observer(trainer: "Trainer", uncertain: Tensor | None) -> RaceCounts:
    val, size, biases = trainer.splits["val"], trainer.settings.batch_size, _biases(trainer).to(trainer.device)
    return RaceCounts(val, biases, batch_size=size, judging=trainer.judging, uncertain=uncertain)


def _run(
    trainer: "Trainer",
    stage: Stage,
    lane: Lane,
    observer: RaceCounts,
    *,
    until: int,
    after: tuple[Stage, Lane] | None,
) -> StageReport:
    """Train ``lane`` until so many epochs; a fleet starts from the checkpoint of the round before, ``after``."""
    train, net = trainer.splits["train"], trainer.fresh_net()
    if isinstance(net.body, Fitted):
        net.body.in_race = True
    if lane.is_fleet:
        net = fleet_of(net, len(lane.names))
    check_given(lane.objective, groups=trainer.groups, weights=train.weight is not None)
    directory = cast(Path, stage.directory)
    with locked(directory):
        if after is not None and lane.is_fleet:
            if not (directory / CHECKPOINT).exists():
                _thin(trainer, *after, lane, stage)
            _forget(trainer, [after[0]])
        report, _ = fit(
            stage,
            net,
            train,
            lane.objective,
            n_groups=len(trainer.task.training_groups),
            sampler=lane.sampler,
            step=partial(descend, clip=clip_each) if lane.is_fleet else descend,
            observer=observer,
            log=EpochLog(),
            engine=trainer.engine,
            progress=trainer.progress,
            pace=trainer.pace,
            until=until,
        )
        write_tensors(directory / RACE_COUNTS, dict(observer.tensors()), {"kind": "race", "epochs": str(until)})
    return report
