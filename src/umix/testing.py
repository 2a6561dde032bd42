"""Contract tests for methods. Every method of umix passes them, and methods of other packages should too.

    from umix.testing import check_method
    check_method(MyMethod())

Each check trains for a few epochs on a small four_moons; together they take a few seconds.
"""

import contextlib
import pickle
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from umix.checkpoint_pace import EVERY_EPOCH
from umix.core.epoch_counts import Counts
from umix.data.benchmarks.four_moons import FourMoons
from umix.data.groups import Groups
from umix.data.task import Split, Task
from umix.methods.method import Method
from umix.models.mlp import MLP
from umix.models.model import Model
from umix.run_folder import CHECKPOINT
from umix.selection.halving import SELECTION
from umix.store import read_tensors
from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.loop import TICK
from umix.training.progress import MEASURES, Progress, Silent
from umix.training.stage import FINAL, StageInputs, erm_fit
from umix.training.train_result import TrainResult

_TASK = FourMoons(sizes=(120, 12, 12, 120), eval_size=40)
_FIT = FitSettings(epochs=3, lr=0.05, batch_size=88)
_SHORT_FIT = FitSettings(epochs=2, lr=0.05, batch_size=88)
_NET = MLP(hidden=(16,))
_KILLS = 3  # most times that a run is killed


class ContractError(AssertionError):
    """A method violates the contract; the message says which rule."""


def check_method(method: Method) -> None:
    """Raise ContractError if ``method`` violates the contract of methods.

    Args:
        method: the method with its hyperparameters.

    """
    for check in CHECKS:
        check(method)


def check_training(method: Method) -> None:
    """Training depends on the data, the settings and the seed alone, and changes nothing but the net.

    The same seed gives equal parameters, bit by bit, and another seed others. The task and the states of torch's and NumPy's global
    generators stay as they were. Training groups matter only to methods that declare ``needs_groups`` or ``needs_some_groups``. The
    stages before the final fit are those that the method describes.
    """
    task, generators = _task(), _global_generators()
    before = task.fingerprint
    net = _train(method, context := _context(task=task, settings=_SHORT_FIT)).net
    untouched = generators == _global_generators()
    _require(untouched, method, "must draw from the stream it is given, never from the global generators")
    after = Task(task.name, {name: replace(split) for name, split in task.splits.items()}, task.classes).fingerprint
    _require(before == after, method, "must not change the data it trains on")
    without_groups = not method.needs_groups and not method.needs_some_groups

    def repeated(task: Task | None = None, seed: int = 0) -> bool:
        return _equal(net, _train(method, _context(task=task, settings=_SHORT_FIT, seed=seed)).net)

    if not (without_groups and repeated(_task(_in_one_group))):
        _require(repeated(), method, "must give the same net for the same seed")
        _require(not without_groups, method, "must not use training groups without declaring needs_groups")
    _require(not repeated(seed=1), method, "must give another net for another seed")
    _require_described_stages(method, context)


def check_weights(method: Method) -> None:
    """A method that declares ``takes_weights`` trains another net where the training examples have weights."""
    if not method.takes_weights:
        return
    plain = _train(method, _context(settings=_SHORT_FIT)).net
    weighted = _train(method, _context(task=_task(_weighted), settings=_SHORT_FIT)).net
    _require(not _equal(plain, weighted), method, "must use the weights of examples, because it declares takes_weights")


def check_resume(method: Method) -> None:
    """A run that is killed again and again goes on where it was each time, and leaves what a run leaves that is not killed.

    That is the same net, counts, choices, warnings and files, bit by bit. Short runs are killed in every epoch of every stage.
    """
    with tempfile.TemporaryDirectory() as folder:
        attempt = whole = _Attempt(method, Path(folder) / "run", most=1, dies=False)
        done, most = 1, max(1, -(-len(whole.epochs) // _KILLS))
        while done < len(whole.epochs):
            attempt = _Attempt(method, attempt.left, most=most)
            expected = whole.epochs[done : done + most]
            got = " ".join([", ".join(attempt.epochs) or "nothing", *attempt.notes]).rstrip(".")
            rule = f"must go on with {', '.join(expected)} when it was killed after {done} epochs, got {got}"
            _require(attempt.epochs == expected, method, rule)
            done += most
        for what in _differences(whole, attempt):
            _require(False, method, f"must end with the same {what} when it was killed and resumed")


def check_picklable(method: Method) -> None:
    """The method is unchanged after a round trip through pickle and through JSON."""
    try:
        copy = pickle.loads(pickle.dumps(method))  # noqa: S301 — our own bytes
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ContractError(
            f"{type(method).__name__} must be picklable, to run in another process ({error})."
        ) from error
    _require(copy == method, method, "must be equal after pickling")
    _require(
        type(method)(**method.model_dump(mode="json")) == method, method, "must be equal after a trip through JSON"
    )


def check_finite_on_hostile_batches(method: Method) -> None:
    """Parameters stay finite on batches of one example, on batches that miss groups, and on constant inputs."""
    few = _task(_few)
    constant = _task(lambda split: replace(_few(split), x=torch.ones_like(_tensor(_few(split)))))
    cases = {"batches of one example": (1, few), "batches that miss groups": (3, few), "constant inputs": (8, constant)}
    for name, (batch_size, task) in cases.items():
        settings = FitSettings(epochs=1, lr=0.01, batch_size=batch_size)
        net = _train(method, _context(settings=settings, task=task)).net
        finite = all(torch.isfinite(parameter).all() for parameter in net.parameters())
        _require(finite, method, f"must keep the parameters finite on {name}")


def check_beats_chance(method: Method) -> None:
    """The method reaches an accuracy above chance on four_moons."""
    result = _train(method, _context(settings=FitSettings(epochs=8, lr=0.3, batch_size=64)))
    counts = result.history.counts("test")
    best = float(counts.all_hits.max()) / counts.n
    _require(best > 0.6, method, f"must beat chance on four_moons, got an accuracy of {best:.2f} of two classes")


CHECKS: tuple[Callable[[Method], None], ...] = (
    check_training,
    check_weights,
    check_resume,
    check_picklable,
    check_finite_on_hostile_batches,
    check_beats_chance,
)


class _KilledError(BaseException):
    """Ends an attempt."""


class _Attempt:
    """A run in ``directory``; it ``dies`` in the epoch after ``most``.

    ``epochs`` are those that it trained, and ``notes`` what it said. ``left`` is a copy of the folder as it was in the middle of
    the epoch after ``most``: what a process leaves that is killed there.
    """

    def __init__(self, method: Method, directory: Path, *, most: int, dies: bool = True) -> None:
        self.directory = directory
        self.left = directory.with_name(f"{directory.name}+")
        self.epochs: list[str] = []
        self.notes: list[str] = []
        self.result: TrainResult | None = None
        self._most, self._dies = most, dies
        self._stage, self._step = "", 0
        self.began = time.perf_counter()
        with contextlib.suppress(_KilledError):
            self.result = _train(method, _context(directory=directory, progress=self))

    def start(self, stage: str, *, total: int, done: int) -> None:
        self._stage, self._step = stage, done

    def advance(self, steps: int) -> None:
        self._step += steps
        if steps == TICK:  # a long epoch, which reports more than once
            return
        if len(self.epochs) == self._most:
            shutil.copytree(self.directory, self.left)
            if self._dies:
                raise _KilledError
        self.epochs.append(f"the epoch of {self._stage} until step {self._step}")

    def finish(self) -> None: ...

    def note(self, message: str) -> None:
        self.notes.append(f"({message})")


def _differences(first: _Attempt, second: _Attempt) -> Iterator[str]:
    """What two attempts that were not killed do not have in common."""
    one, other = first.result, second.result
    if one is None or other is None:
        raise ContractError("A run that is not killed must end.")
    if not _equal(one.net, other.net):
        yield "net"
    if not all(_equal_counts(one.history.counts(name), other.history.counts(name)) for name in ("val", "test")):
        yield "counts"
    if str(one.choices) != str(other.choices):
        yield "choices"
    if one.warnings != other.warnings:
        yield "warnings"
    if not _equal_tensors(one.per_example, other.per_example):
        yield "values of each example"
    of_first, of_second = (_files(attempt.directory) for attempt in (first, second))
    for name in sorted({*of_first, *of_second}):
        if of_first.get(name) != of_second.get(name):
            yield f"file {name}"


def _files(directory: Path) -> dict[str, object]:
    """The content of every file in ``directory``; that of checkpoints without the seconds that epochs took."""
    return {
        str(path.relative_to(directory)): _checkpoint(path) if path.name == CHECKPOINT else path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def _checkpoint(path: Path) -> object:
    tensors, metadata = read_tensors(path, kind="checkpoint")
    tensors["history/epochs/measures"][:, MEASURES.index("seconds")] = 0
    return metadata, {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


def _require_described_stages(method: Method, context: Context) -> None:
    """The stages before the final fit were those that ``erm_stages`` describes, and ``stages`` lists their settings.

    A stage that depends on the data, such as the reference of a refitted head in a selection, may come after them if it is listed.
    Several of the same kind have a number behind the listed name: ``twins``, ``twins-1``.
    """
    described = method.erm_stages(context.settings.epochs)
    inputs = StageInputs.of(context.task, context.net)
    keys = [erm_fit(stage, inputs, context.settings, context.stages, seed=context.seed).key for stage in described]
    names = [name for name in context.journal.reports if name not in (FINAL, SELECTION)]
    trained, later = [context.journal.reports[name].key for name in names[: len(keys)]], names[len(keys) :]
    _require(trained == keys, method, f"must train the stages that erm_stages describes ({keys}), got {trained}")
    kinds = {re.sub(r"-\d+$", "", name) for name in later}
    _require(kinds <= set(method.stages), method, f"must name {later} in its class variable stages")
    unlisted = {stage.settings_name for stage in described} - set(method.stages)
    _require(not unlisted, method, f"must name {unlisted} in its class variable stages")


def _context(
    *,
    task: Task | None = None,
    settings: FitSettings = _FIT,
    seed: int = 0,
    directory: Path | None = None,
    progress: Progress | None = None,
) -> Context:
    cache = None if directory is None else directory / "stages"
    return Context(
        task or _task(),
        _NET,
        settings,
        seed=seed,
        directory=directory,
        cache=cache,
        progress=progress or Silent(),
        pace=EVERY_EPOCH,
    )


def _train(method: Method, context: Context) -> TrainResult:
    return method.train(replace(context, groups=method.needs_groups))


def _task(change: Callable[[Split], Split] = lambda split: split) -> Task:
    """The small four_moons after a ``change`` of its training split; points are images of 1 × 2, so that boxes can be mixed too."""
    task = _TASK.load()
    splits = {name: replace(split, x=_tensor(split)[:, None]) for name, split in task.splits.items()}
    return Task(task.name, {**splits, "train": change(splits["train"])}, task.classes)


def _in_one_group(split: Split) -> Split:
    return replace(split, groups=Groups.from_ids(torch.zeros(len(split), dtype=torch.int64), split.groups.names))


def _weighted(split: Split) -> Split:
    """Examples of weight 1, 2 and 3 in turn."""
    return replace(split, weight=1.0 + torch.arange(len(split)) % 3)


def _few(split: Split) -> Split:
    """Five examples of each common group and one of each rare group."""
    return split.rows(torch.tensor([*range(0, 120, 24), 120, 132, *range(144, 264, 24)]))


def _tensor(split: Split) -> Tensor:
    if not isinstance(split.x, Tensor):
        raise TypeError("four_moons is held in memory")
    return split.x


def _global_generators() -> tuple[bytes, str]:
    return torch.get_rng_state().numpy().tobytes(), str(np.random.get_state())


def _equal(first: Model, second: Model) -> bool:
    return _equal_tensors(first.state_dict(), second.state_dict())


def _equal_tensors(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(tensor, second[name]) for name, tensor in first.items())


def _equal_counts(first: Counts, second: Counts) -> bool:
    names = ("hits", "class_hits", "quintile_rates", "tail_losses")
    return all(np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True) for name in names)


def _require(holds: bool, method: Method, rule: str) -> None:
    if not holds:
        raise ContractError(f"{type(method).__name__} {rule}.")
