"""The ordinary model that a run is compared with: ERM on the same data, with the learner that the run ended with."""

from umix.bench.runs.learners import learner_specs
from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec
from umix.methods.erm import ERM
from umix.run_folder import ORDINARY
from umix.store import atomic_write

_KEPT = ("task", "net", "fit", "evaluation")  # parts of a run that ERM has too


def ordinary_spec(spec: RunSpec, record: RunRecord) -> RunSpec:
    """ERM with the data, seed, evaluation, fit settings and learner of ``record``, which is the run ``spec``.

    Settings of the method and of its other stages are dropped.
    """
    learned = next((one for one in learner_specs(spec) if one.plan.net.title == record.net), spec)
    settings = {}
    for key, value in learned.settings.items():
        name = "net.name" if key in ("net", "net.name") else learned.plan.setting(key)[0]
        if name.split(".")[0] in _KEPT:
            settings[name] = value
    return RunSpec(
        task=spec.task,
        method=ERM.name,
        settings=settings,
        seed=spec.seed,
        preset=spec.preset,
        trust_code=spec.trust_code,
    )


def remember(ordinary: RunRecord, record: RunRecord) -> None:
    """Write into the folder of ``record`` which run it was compared with, so that it is found again without planning."""
    atomic_write(record.directory / ORDINARY, ordinary.directory.name.encode())
