"""Contract tests for methods. Every method of umix passes them, and methods of other packages should too.

    from umix.testing import check_method
    check_method(MyMethod())

Each check trains for a few epochs on a small four_moons; together they take a few seconds.
"""

import pickle
import re
import shutil
import tempfile
from collections.abc import Callable
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
from umix.nets.mlp import MLP
from umix.nets.net import Net
from umix.training.fit_settings import FitSettings
from umix.training.progress import Progress, Silent
from umix.training.race import RACE
from umix.training.stage import FINAL
from umix.training.stage_key import StageInputs, erm_fit
from umix.training.trainer import Trainer

_TASK = FourMoons(sizes=(120, 12, 12, 120), eval_size=40)
_FIT = FitSettings(epochs=4, lr=0.05, batch_size=32)
_NET = MLP(hidden=(16,))


class ContractError(AssertionError):
    """A method violates the contract; the message says which rule."""


def check_method(method: Method) -> None:
    """Raise ContractError if ``method`` violates the contract of methods."""
    for check in CHECKS:
        check(method)


def check_same_seed_same_net(method: Method) -> None:
    """Two runs with the same seed give equal parameters, bit by bit; another seed gives other parameters."""
    first, second, other = (_train(method, _trainer(seed=seed)) for seed in (0, 0, 1))
    _require(_equal(first, second), method, "must give the same net for the same seed")
    _require(not _equal(first, other), method, "must give another net for another seed")


def check_data_not_changed(method: Method) -> None:
    """The task is the same after training as before."""
    task = _task()
    before = task.fingerprint
    trainer = _trainer(task=task)
    _train(method, trainer)
    after = Task(task.name, {name: replace(split) for name, split in task.splits.items()}, task.classes).fingerprint
    _require(before == after, method, "must not change the data it trains on")


def check_global_random_state_untouched(method: Method) -> None:
    """Training does not change the state of torch's and NumPy's global generators."""
    torch_before, numpy_before = torch.get_rng_state(), str(np.random.get_state())
    _train(method, _trainer())
    same = torch.equal(torch_before, torch.get_rng_state()) and numpy_before == str(np.random.get_state())
    _require(same, method, "must draw from the stream it is given, never from the global generators")


def check_groups_untouched_unless_declared(method: Method) -> None:
    """A method that declares neither ``needs_groups`` nor ``needs_some_groups`` gives the same net for any training groups."""
    if method.needs_groups or method.needs_some_groups:
        return
    task = _task()
    train = task.splits["train"]
    one_group = Groups.from_ids(torch.zeros(len(train), dtype=torch.int64), task.groups)
    blind = Task(task.name, {**task.splits, "train": replace(train, groups=one_group)}, task.classes)
    same = _equal(_train(method, _trainer(task=task)), _train(method, _trainer(task=blind)))
    _require(same, method, "must not use training groups without declaring needs_groups")


def check_resume(method: Method) -> None:
    """A run that is killed in any epoch of any stage and resumed gives the same parameters and counts, bit by bit."""
    with tempfile.TemporaryDirectory() as folder:
        copier = _Copier(Path(folder) / "whole")
        whole = _trainer(directory=copier.directory, progress=copier)
        expected = _train(method, whole)
        for done, left in enumerate(copier.copies, start=1):
            resumed = _trainer(directory=left)
            net = _train(method, resumed)
            _require(_equal(expected, net), method, f"must end with the same net when resumed after {done} epochs")
            same = all(_equal_counts(whole.history.counts(s), resumed.history.counts(s)) for s in ("val", "test"))
            _require(same, method, f"must end with the same counts when resumed after {done} epochs")


def check_stages_are_described(method: Method) -> None:
    """The stages before the final fit are those that ``erm_stages`` describes, and ``stages`` lists their settings.

    A stage that depends on the data, such as the reference of a refitted head in a contest, may come after them if it is listed.
    Several of the same kind have a number behind the listed name: ``twins``, ``twins-1``.
    """
    trainer = _trainer()
    _train(method, trainer)
    described = method.erm_stages(trainer.settings.epochs)
    inputs = StageInputs.of(trainer.task, trainer.net)
    keys = [erm_fit(stage, inputs, trainer.settings, trainer.stages, seed=trainer.seed).key for stage in described]
    names = [name for name in trainer.reports if name not in (FINAL, RACE)]
    trained, later = [trainer.reports[name].key for name in names[: len(keys)]], names[len(keys) :]
    _require(trained == keys, method, f"must train the stages that erm_stages describes ({keys}), got {trained}")
    kinds = {re.sub(r"-\d+$", "", name) for name in later}
    _require(kinds <= set(method.stages), method, f"must name {later} in its class variable stages")
    unlisted = {stage.settings_name for stage in described} - set(method.stages)
    _require(not unlisted, method, f"must name {unlisted} in its class variable stages")


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
    constant = _task(lambda split: replace(split, x=torch.ones_like(_tensor(split))))
    cases = {
        "batches of one example": _trainer(settings=FitSettings(epochs=2, lr=0.01, batch_size=1), task=_task(_few))
    }
    cases |= {"batches that miss groups": _trainer(settings=FitSettings(epochs=2, lr=0.01, batch_size=3))}
    cases |= {"constant inputs": _trainer(task=constant)}
    for name, trainer in cases.items():
        net = _train(method, trainer)
        finite = all(torch.isfinite(parameter).all() for parameter in net.parameters())
        _require(finite, method, f"must keep the parameters finite on {name}")


def check_beats_chance(method: Method) -> None:
    """The method reaches an accuracy above chance on four_moons."""
    trainer = _trainer(settings=FitSettings(epochs=15, lr=0.1, batch_size=32))
    _train(method, trainer)
    counts = trainer.history.counts("test")
    best = float(counts.all_hits.max()) / counts.n
    _require(best > 0.6, method, f"must beat chance on four_moons, got an accuracy of {best:.2f} of two classes")


CHECKS: tuple[Callable[[Method], None], ...] = (
    check_same_seed_same_net,
    check_data_not_changed,
    check_global_random_state_untouched,
    check_groups_untouched_unless_declared,
    check_resume,
    check_stages_are_described,
    check_picklable,
    check_finite_on_hostile_batches,
    check_beats_chance,
)


class _Copier:
    """A progress that copies the folder of a run in the middle of every epoch: what a process that is killed there leaves.

    A short epoch reports its progress once, before anything is saved. ``copies`` are the folders, the first of which has one
    finished epoch.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.copies: list[Path] = []
        self._begun = False

    def start(self, stage: str, *, total: int, done: int) -> None: ...

    def advance(self, steps: int) -> None:
        if self._begun:
            copy = self.directory.with_name(f"killed-{len(self.copies) + 1}")
            self.copies.append(shutil.copytree(self.directory, copy))
        self._begun = True

    def finish(self) -> None: ...

    def note(self, message: str) -> None: ...


def _trainer(
    *,
    task: Task | None = None,
    settings: FitSettings = _FIT,
    seed: int = 0,
    directory: Path | None = None,
    progress: Progress | None = None,
) -> Trainer:
    cache = None if directory is None else directory / "stages"
    return Trainer(
        task or _task(),
        _NET,
        settings,
        seed=seed,
        directory=directory,
        cache=cache,
        progress=progress or Silent(),
        pace=EVERY_EPOCH,
    )


def _train(method: Method, trainer: Trainer) -> Net:
    trainer.groups = method.needs_groups
    return method.train(trainer)


def _task(change: Callable[[Split], Split] = lambda split: split) -> Task:
    task = _TASK.load()
    return Task(task.name, {**task.splits, "train": change(task.splits["train"])}, task.classes)


def _few(split: Split) -> Split:
    return split.rows(torch.arange(0, len(split), 8))


def _tensor(split: Split) -> Tensor:
    if not isinstance(split.x, Tensor):
        raise TypeError("four_moons is held in memory")
    return split.x


def _equal(first: Net, second: Net) -> bool:
    return all(
        torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    )


def _equal_counts(first: Counts, second: Counts) -> bool:
    names = ("hits", "class_hits", "quintile_rates", "tail_losses")
    return all(np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True) for name in names)


def _require(holds: bool, method: Method, rule: str) -> None:
    if not holds:
        raise ContractError(f"{type(method).__name__} {rule}.")
