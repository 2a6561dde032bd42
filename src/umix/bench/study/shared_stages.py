"""Which stage a run will share with other runs, found without training anything."""

from dataclasses import dataclass
from pathlib import Path
from typing import final

from umix.bench.runs.training_inputs import for_net, stored_inputs
from umix.bench.spec.run_spec import RunSpec
from umix.data.task import Task
from umix.nets.backbone import Backbone
from umix.nets.net import NetSettings
from umix.training.stage import StageInputs, erm_fit


@final
@dataclass(frozen=True)
class SharedStage:
    """The first stage that a run shares with others; runs with the same ``key`` share it.

    ``has_inputs`` is False while the features that the stage trains on are not computed yet. The
    key is then made of the raw inputs and the frozen net. It still tells which runs share the
    stage, but no trained stage has it.
    """

    key: str
    has_inputs: bool = True


@final
class StagePlanner:
    """Finds the shared stages of a study's runs.

    ``cache`` is the folder of stored features, None if there is none.
    """

    def __init__(self, cache: Path | None) -> None:
        self._cache = cache
        self._ready: dict[tuple[str, bool], Task] = {}  # tables as the nets take them
        self._features: dict[tuple[str, NetSettings, int | None], StageInputs | None] = {}  # reading them is slow

    def first_stage(self, spec: RunSpec, task: Task) -> SharedStage | None:
        """The first stage that ``spec`` shares with other runs on ``task``.

        None if its method has no such stage.
        """
        plan = spec.plan
        stages = plan.method.erm_stages(plan.fit.epochs)
        if not stages:
            return None
        form = (task.fingerprint, plan.net.takes_codes)
        if form not in self._ready:
            self._ready[form] = for_net(task, plan.net)
        task = self._ready[form]
        inputs = self._inputs(spec, task)
        key_inputs = StageInputs.of(task, plan.net) if inputs is None else inputs
        fit = erm_fit(stages[0], key_inputs, plan.fit, plan.stages, seed=spec.seed)
        return SharedStage(fit.key, has_inputs=inputs is not None)

    def _inputs(self, spec: RunSpec, task: Task) -> StageInputs | None:
        """The inputs that the stage will be trained on; None if they are features that are not computed yet."""
        net = spec.plan.net
        if not (isinstance(net, Backbone) and net.freeze):
            return StageInputs.of(task, net.on_columns(task.categories))
        if self._cache is None:
            return None
        key = (task.fingerprint, net, None if net.names_its_weights else spec.seed)
        if key not in self._features:
            stored = stored_inputs(task, net, self._cache, seed=spec.seed)
            self._features[key] = None if stored is None else StageInputs.of(stored.task, stored.net)
        return self._features[key]
