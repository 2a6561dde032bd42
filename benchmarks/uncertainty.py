"""How well two kinds of uncertainty detect minority groups: the trajectory of one ERM fit, and an ensemble of ERM fits.

The appendix of the UMIX paper says that the trajectory characterises the shift better. Measured are the AUROC of the uncertainty
for the training examples of groups smaller than average, with 5 seeds, and the cost in whole ERM fits. Fully trained models may
have memorised the training examples, so ensembles of models that are stopped early are measured too.
Run: python benchmarks/uncertainty.py
"""

import argparse

import numpy as np
from measure import write

from umix.bench.spec.run_spec import RunSpec
from umix.core.statistics import Spread, paired
from umix.methods.parts.uncertainty_weights import ensemble_members, ensemble_uncertainty
from umix.reports.metrics import auroc
from umix.reports.training_examples import minority_groups
from umix.training.context import Context
from umix.training.stage import ErmStage

TASKS = ("four_moons", "colored_digits")
SEEDS = range(5)
SIZES = (5, 10)  # of ensembles


def measured(task_name: str, seed: int) -> dict[str, tuple[float, float]]:
    """For every kind of uncertainty its AUROC and its cost in fits."""
    plan = RunSpec(task=task_name, method="umix", seed=seed).plan
    task = plan.source.load(None)
    train = task.splits["train"]
    rare = train.member[:, minority_groups(train.groups.sizes.numpy())].any(dim=1).numpy()
    epochs = plan.fit.epochs
    context = Context(task, plan.net, plan.fit, plan.stages, seed=seed)
    trajectory = context.trajectory(ErmStage("trajectory", epochs, record="online"))
    preset = plan.method.length
    windows = {f"trajectory, first {length} epochs": length for length in sorted({preset, 10, epochs})}
    found = {
        name: (auroc(rare, trajectory.uncertainty(start=0, length=length).numpy()), length / epochs)
        for name, length in windows.items()
    }
    for size in SIZES:
        for length in (epochs, preset):  # trained to the end, or stopped at the end of the trajectory's window
            stages = {**plan.stages, "ensemble": {"epochs": length}}
            own = Context(task, plan.net, plan.fit, stages, seed=seed)  # every stage once per context
            name = f"ensemble of {size}" + ("" if length == epochs else f", stopped after {length} epochs")
            found[name] = (
                auroc(rare, ensemble_uncertainty(own, ensemble_members(size, epochs)).train.numpy()),
                size * length / epochs,
            )
    return found


def compared(task: str) -> dict[str, object]:
    """Mean and deviation of every kind, its cost, and the paired difference of the preset's window to the largest ensembles."""
    runs = [measured(task, seed) for seed in SEEDS]
    areas = {name: [run[name][0] for run in runs] for name in runs[0]}
    table = {}
    for name, values in areas.items():
        spread = Spread.of(values)
        table[name] = {
            "auroc": {"mean": round(spread.mean, 4), "std": round(spread.std, 4)},
            "fits": round(runs[0][name][1], 3),
        }
    short, gains = next(iter(areas)), {}
    for ensemble in [name for name in areas if name.startswith(f"ensemble of {SIZES[-1]}")]:
        gain = paired(areas[short], areas[ensemble], rng=np.random.default_rng(0))
        gains[f"{short} minus {ensemble}"] = {
            "mean": round(gain.spread.mean, 4),
            "interval": [round(gain.interval.low, 4), round(gain.interval.high, 4)],
            "p": round(gain.p_flip, 4),
        }
    return {"uncertainty": table, "differences": gains}


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    write("uncertainty", {"seeds": len(SEEDS), **{task: compared(task) for task in TASKS}})


if __name__ == "__main__":
    main()
