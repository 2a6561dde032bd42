"""Which shared stage a run will ask for first, found out without training anything."""

from typing import Any, cast, final

from umix.bench.spec.run_spec import RunSpec
from umix.data.task import Task
from umix.training.engine import Engine
from umix.training.trainer import Trainer


class _Asked(Exception):  # noqa: N818 — an answer, not an error
    """The method has asked its trainer for something that takes training."""

    def __init__(self, stage: str | None) -> None:
        Exception.__init__(self)
        self.stage = stage


@final
class Scout:
    """Stands where a trainer does until the method asks for the first fit, and then says which stage that is."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trainer, name)

    def trajectory(self, **options: Any) -> None:
        Trainer.trajectory(cast(Trainer, self), **options)

    def reference(self, **options: Any) -> None:
        Trainer.reference(cast(Trainer, self), **options)

    def trial(self, *parts: Any, **options: Any) -> None:
        Trainer.trial(cast(Trainer, self), *parts, **options)

    def shared(self, *names: Any, **options: Any) -> None:
        """What all of these ask for before they train."""
        raise _Asked(self._trainer.shared(*names, **options).key)

    def fit(self, *arguments: object, **options: object) -> None:
        raise _Asked(None)

    def adopt(self, *arguments: object, **options: object) -> None:
        raise _Asked(None)


def shared_stage(spec: RunSpec, task: Task) -> str | None:
    """The key of the first stage that ``spec`` shares with other runs; None where it has none."""
    plan = spec.plan
    if not plan.method.stages:
        return None
    trainer = Trainer(
        task, plan.net, plan.fit, plan.stages, seed=spec.seed, groups=plan.method.needs_groups, engine=Engine("cpu")
    )
    try:
        plan.method.train(cast(Trainer, Scout(trainer)))
    except _Asked as asked:
        return asked.stage
    except Exception:
        return None  # what is wrong with the run is said when it is executed
    return None
