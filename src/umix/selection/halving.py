"""Successive halving: candidates are trained side by side and scored on validation, and the worse half drops out each round.

Nets that can be stacked are trained as one, others one after another. The nets are not kept: the winner is trained again as an
ordinary final fit, which is bit for bit what a run with its settings is. Every round is a fit with a checkpoint of its own, so a
killed selection resumes. The counts are kept, so runs with the same candidates share them.
"""

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
from typing import cast, final

import numpy as np
import torch
from torch import Tensor

from umix.core.counts import class_composition
from umix.core.epoch_counts import Counts
from umix.core.evaluation import Evaluation
from umix.core.thresholds import candidate_biases, hits_by_threshold
from umix.data.batch import Batch
from umix.data.samplers import Sampler, Shuffled
from umix.data.task import Split
from umix.models.model import Model
from umix.models.stacked import clip_each, stack_of
from umix.run_folder import CHECKPOINT, SELECTION_COUNTS
from umix.store import load_or_none, locked, read_tensors, remove, write_tensors
from umix.training.checkpoint import thin_checkpoint
from umix.training.context import Context
from umix.training.evaluate import stacked_logits
from umix.training.fit import fit
from umix.training.fit_job import FitJob
from umix.training.history import keeps_thresholds
from umix.training.loop import descend
from umix.training.mixup_risk import MixupRisk
from umix.training.objective import Objective, State, check_given
from umix.training.progress import EpochLog, PartOfStage
from umix.training.stage import Stage, StageReport

SELECTION = "race"  # the name of this stage, which is also that of its random stream
#: After which shares of the epochs candidates are judged. Half of them go on each time.
ROUNDS = (0.1, 0.25, 0.5, 0.75)
_FINALISTS = 2
#: What the nets of a selection that cannot be stacked may cost together, in final fits: with the first and the final fit four.
MOST_FITS = 2


@final
@dataclass(frozen=True, eq=False)
class StackedMixup(Objective):
    """The sum of the risks of stacked nets, which share batches, pairs and λ and differ in the weights of examples."""

    takes_weights = True

    mixup: MixupRisk
    weights: Tensor  # [n, nets]

    def only(self, index: Sequence[int]) -> "StackedMixup":
        """The objective of the nets ``index`` alone."""
        return replace(self, weights=self.weights[:, list(index)].contiguous())

    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        return replace(self.mixup, weights=self.weights).risk(net, batch, state, rng)


@final
@dataclass(frozen=True, eq=False)
class CandidateBatch:
    """Candidates that are trained together: stacked where ``objective`` is that of a stack, otherwise a single net."""

    names: tuple[str, ...]
    objective: Objective
    sampler: Sampler = field(default_factory=Shuffled)

    @property
    def is_stacked(self) -> bool:
        return isinstance(self.objective, StackedMixup)

    def without(self, dropped: set[str]) -> "CandidateBatch":
        """This batch with those candidates only that have not been ``dropped``."""
        index = [place for place, name in enumerate(self.names) if name not in dropped]
        names = tuple(self.names[place] for place in index)
        objective = self.objective
        if isinstance(objective, StackedMixup) and index:
            objective = objective.only(index)
        return replace(self, names=names, objective=objective)


@final
@dataclass(frozen=True)
class Round:
    """Candidates are judged after ``until`` epochs, and the best ``keep`` of them go on."""

    until: int
    keep: int


def rounds_of(epochs: int, candidates: int) -> tuple[Round, ...]:
    """The rounds for so many ``candidates``, whose final fit has ``epochs``.

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
class ValidationCounter:
    """Counts hits on the validation split by group and class, of one net or of each of a stack. Test examples are not used."""

    def __init__(self, val: Split, biases: Tensor, *, batch_size: int, evaluation: Evaluation) -> None:
        self._val = val
        self._biases = biases
        self._n_units = len(val.groups.names) + len(val.groups.margins)
        self._batch_size = batch_size
        self._evaluation = evaluation
        self._hits: list[Tensor] = []  # of every epoch: [nets, thresholds, groups + classes]

    def observe(self, net: Model, epoch: int) -> None:
        self.count(stacked_logits(net, self._val, batch_size=self._batch_size))

    def count(self, logits: Tensor) -> None:
        """Count the hits of another epoch, whose ``logits`` are [nets, n_val, classes]."""
        pairs = self._val.groups.unit_pairs
        hits = hits_by_threshold(logits, self._val.y, pairs, self._biases, n_groups=self._n_units)
        self._hits.append(hits.int().cpu())

    def result(self, net: int, *, epochs: int) -> Counts:
        """What was counted of one candidate in its first ``epochs``."""
        groups, n_classes = self._val.groups, self._biases.shape[1]
        n_groups, n_units = len(groups.names), self._n_units
        hits = torch.stack([hits[net] for hits in self._hits[:epochs]]).long().numpy()
        composition = class_composition(self._val.y, groups.unit_pairs, n_groups=n_units, n_classes=n_classes)
        of_units = composition.cpu().numpy()
        return Counts(
            hits=hits[:, 0, :n_groups],
            sizes=groups.sizes.cpu().numpy(),
            class_hits=hits[:, 0, n_units:],
            class_sizes=torch.bincount(self._val.y, minlength=n_classes).cpu().numpy(),
            composition=of_units[:n_groups],
            margin_hits=hits[:, 0, n_groups:n_units],
            margin_sizes=of_units[n_groups:].sum(axis=1),
            margin_composition=of_units[n_groups:],
            evaluation=self._evaluation,
            biases=self._biases.cpu().numpy(),
            threshold_hits=hits,
        )

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None:
        self._hits = list(kept["selection/hits"])

    def write(self) -> None: ...

    def tensors(self) -> dict[str, Tensor]:
        return {"selection/hits": torch.stack(self._hits)}


def successive_halving(
    context: Context,
    batches: Sequence[CandidateBatch],
    score: Callable[[Mapping[str, Counts]], Mapping[str, float]],
    *,
    content: str,
    stop: float | None = None,
    stays: Collection[str] = (),
    most_epochs: int | None = None,
) -> dict[str, Counts]:
    """Train the candidates of all ``batches`` in rounds, and return the validation counts of each, as far as it came.

    ``score`` judges the candidates that are left by their validation counts: higher is better, NaN is worst. ``content`` and
    the earlier stages identify the objectives. No round begins that would probably end after ``stop``, a time by
    ``time.perf_counter``, or would bring the epochs of all batches together above ``most_epochs``. The candidates ``stays`` do
    not drop out.
    """
    began, results, reused = time.perf_counter(), dict[str, Counts](), True
    batches = list(batches)
    rounds = rounds_of(context.final_settings.epochs, sum(len(batch.names) for batch in batches))
    first, done = 0, 0  # epochs of each candidate, and of all batches together
    with stages_folder(context) as folder:
        before: dict[int, tuple[Stage, CandidateBatch]] = {}
        for number, round_ in enumerate(rounds):
            round_began = time.perf_counter()
            fits = sum(bool(batch.names) for batch in batches)
            left = None if most_epochs is None else most_epochs - done
            epochs = done + epochs_of(rounds[number:], first, fits, stays=len(stays), most=left)
            if left is not None and number and fits * (round_.until - first) > left:
                break
            for place, batch in enumerate(batches):
                if not batch.names:
                    continue
                stage = _stage(context, batch, folder, content=content, number=number)
                observer = _observer(context)
                known = _known(context, stage, observer, until=round_.until)
                if not known:
                    progress = PartOfStage(context.progress, first, round_.until, done, epochs)
                    report = _run(context, stage, batch, observer, progress, after=before.get(place))
                    reused = reused and report.reused
                before[place] = (stage, batch)
                done += round_.until - first
                for member, name in enumerate(batch.names):
                    results[name] = observer.result(member, epochs=round_.until)
            running = [name for batch in batches for name in batch.names]
            scores = score({name: results[name] for name in running})
            ranked = sorted(
                running, key=lambda name: -math.inf if math.isnan(scores[name]) else scores[name], reverse=True
            )
            dropped = set(ranked[round_.keep :]).difference(stays)
            batches = [batch.without(dropped) for batch in batches]
            _forget(
                context,
                [before[place][0] for place, batch in enumerate(batches) if not batch.names and place in before],
            )
            first, now = round_.until, time.perf_counter()
            if context.engine.from_first(stop is not None and now + (now - round_began) > stop):
                break
        _forget(context, [stage for stage, _ in before.values()])
    context.progress.finish()
    seconds = time.perf_counter() - began
    context.journal.reports[SELECTION] = StageReport(stage.key, first, seconds, reused=reused)
    return results


def affordable(epochs: int, *, stays: int) -> int:
    """How many nets, of which ``stays`` never drop out, come to a quarter of the ``epochs`` for ``MOST_FITS`` final fits.

    >>> affordable(30, stays=0), affordable(30, stays=2), affordable(3, stays=2)
    (10, 8, 3)
    """

    def cost(nets: int) -> int:
        first, *later = rounds_of(epochs, nets)[:2]
        return nets * first.until + sum(min(nets, first.keep + stays) * (one.until - first.until) for one in later)

    return max(nets for nets in range(2, MOST_FITS * epochs + 3) if nets == 2 or cost(nets) <= MOST_FITS * epochs)


def epochs_of(rounds: Sequence[Round], first: int, batches: int, *, stays: int = 0, most: int | None = None) -> int:
    """The epochs of all batches in these ``rounds``, where each has trained ``first`` before and single nets drop out.

    ``stays`` of them never do. Only the first round may bring them above ``most``.

    >>> epochs_of((Round(until=2, keep=8), Round(until=5, keep=4)), 0, batches=16)
    56
    """
    epochs = 0
    for round_ in rounds:
        more = batches * (round_.until - first)
        if most is not None and epochs and epochs + more > most:
            break
        epochs += more
        first, batches = round_.until, min(batches, round_.keep + stays)
    return epochs


def counts_of(context: Context, logits: Tensor) -> Counts:
    """What is counted of a candidate with these validation ``logits`` [n_val, classes], as if it had trained for an epoch."""
    observer = _observer(context)
    observer.count(logits[None])
    return observer.result(0, epochs=1)


@contextmanager
def stages_folder(context: Context) -> Iterator[Path]:
    """Where a selection keeps its files: the folder of stages that runs share, or a temporary one."""
    if context.cache is not None:
        yield context.cache
        return
    with tempfile.TemporaryDirectory(prefix="umix-selection-") as folder:
        yield Path(folder)


def _known(context: Context, stage: Stage, observer: ValidationCounter, *, until: int) -> bool:
    """Whether ``stage`` has come as far as ``until`` before; then ``observer`` is told what was counted."""
    path = cast(Path, stage.directory) / SELECTION_COUNTS
    if context.engine.processes > 1:
        return False

    def read() -> int:
        tensors, metadata = read_tensors(path, kind="selection")
        epochs = int(metadata["epochs"])
        if epochs >= until:
            observer.restore(epochs, tensors)
        return epochs

    counted = load_or_none(path, read, again="its candidates are trained again", warn=context.progress.note)
    return counted is not None and counted >= until


def _forget(context: Context, stages: Sequence[Stage]) -> None:
    """Delete the checkpoints of ``stages``, whose candidates go no further: nets and optimisers may be large."""
    if context.engine.processes == 1:
        for stage in stages:
            remove(cast(Path, stage.directory) / CHECKPOINT)


def _stage(context: Context, batch: CandidateBatch, folder: Path, *, content: str, number: int) -> Stage:
    """A round of a stack is a stage of its own, because its nets change; a single net goes on in one stage."""
    names = {"candidates": list(batch.names), **({"round": number} if batch.is_stacked else {})}
    val = context.splits["val"]
    member = val.groups.member
    if val.groups.column_codes is not None:  # some examples are in a margin and in no group
        member = torch.cat([member, val.groups.in_margins], dim=1)
    judged = hashlib.sha256(member.cpu().numpy().tobytes()).hexdigest()  # decides what is counted
    identity = hashlib.sha256(
        json.dumps([content, _biases(context).tolist(), names, val.fingerprint, val.groups.names, judged]).encode()
    ).hexdigest()
    earlier = "".join(report.key for name, report in context.journal.reports.items() if name != SELECTION)
    settings = context.final_settings
    key = context.key(SELECTION, settings, objective=identity, after=earlier)
    return Stage(SELECTION, settings, context.seed, key, folder / key)


def _thin(context: Context, source: Stage, larger: CandidateBatch, batch: CandidateBatch, stage: Stage) -> None:
    """Let ``stage`` begin where the ``larger`` stack stopped, with the nets that are left.

    If another run has finished this selection and deleted that checkpoint, the nets train from the start.
    """
    path, target = (cast(Path, one.directory) / CHECKPOINT for one in (source, stage))
    members = [larger.names.index(name) for name in batch.names]
    thin = partial(thin_checkpoint, path, target, fit=stage.key, members=members, of=len(larger.names))
    load_or_none(path, thin, again="its candidates are trained again", warn=context.progress.note)


def _biases(context: Context) -> Tensor:
    """The biases under which candidates are counted, [thresholds, classes]; argmax alone if the final fit can choose no other."""
    sizes = torch.bincount(context.splits["train"].y, minlength=context.task.n_classes).cpu().numpy()
    biases = torch.from_numpy(candidate_biases(sizes)).float()
    groups = context.splits["val"].groups
    n_units = len(groups.names) + len(groups.margins) + context.task.n_classes
    all_of_them = context.threshold != "off" and keeps_thresholds(len(biases), n_units=n_units)
    return biases if all_of_them else biases[:1]


def _observer(context: Context) -> ValidationCounter:
    val, size, biases = context.splits["val"], context.settings.batch_size, _biases(context).to(context.device)
    return ValidationCounter(val, biases, batch_size=size, evaluation=context.evaluation)


def _run(
    context: Context,
    stage: Stage,
    batch: CandidateBatch,
    observer: ValidationCounter,
    progress: PartOfStage,
    *,
    after: tuple[Stage, CandidateBatch] | None,
) -> StageReport:
    """Train ``batch`` as long as ``progress`` says; a stack starts from the checkpoint of the round before, ``after``."""
    until = progress.until
    train, net = context.splits["train"], context.fresh_net().for_trial()
    if batch.is_stacked:
        net = stack_of(net.as_layers(context.net.title), len(batch.names))
    check_given(batch.objective, groups=context.groups, weights=train.weight is not None)
    directory = cast(Path, stage.directory)
    with locked(directory):
        if after is not None and batch.is_stacked:
            if not (directory / CHECKPOINT).exists():
                _thin(context, *after, batch, stage)
            _forget(context, [after[0]])
        job = FitJob(
            stage=stage,
            train=train,
            objective=batch.objective,
            n_groups=len(context.task.training_groups),
            sampler=batch.sampler,
            step=partial(descend, clip=clip_each) if batch.is_stacked else descend,
            observer=observer,
            log=EpochLog(),
            engine=context.engine,
            progress=progress,
            pace=context.pace,
            until=until,
        )
        report, _ = fit(net, job)
        write_tensors(
            directory / SELECTION_COUNTS, dict(observer.tensors()), {"kind": "selection", "epochs": str(until)}
        )
    return report
