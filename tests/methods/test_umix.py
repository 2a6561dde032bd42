"""UMIX's recipe and its settings."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from umix import RunSpec, execute
from umix.data.benchmarks.four_moons import FourMoons
from umix.errors import UserError
from umix.methods.umix import UMIX
from umix.store import read_tensors
from umix.training.context import Context

Make = Callable[..., Context]


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        ({"sigma": 50}, r"umix\.sigma must be a number in \[0, 1\], got 50"),
        ({"eta": -1}, r"umix\.eta must be a number in \[0, inf\) or auto, got -1"),
        ({"alpha": 0}, r"umix\.alpha must be a number in \(0, inf\), got 0"),
        ({"length": 0}, r"umix\.length must be a whole number in \[1, inf\) or auto, got 0"),
        ({"record": "later"}, r"umix\.record must be one of online, epoch_end, got 'later'"),
        ({"etta": 1}, r"did you mean 'eta'"),
        ({"eta": float("nan")}, r"umix\.eta must be"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_illegal_settings_are_refused_in_one_sentence(bad: dict[str, object], rule: str) -> None:
    with pytest.raises(UserError, match=rule) as caught:
        UMIX(**bad)
    assert "\n" not in str(caught.value)


def test_weights_are_eta_u_plus_c_as_in_the_paper(context: Make) -> None:
    found = UMIX(eta=7.0, c=0.5, length=3, normalize=False).train(context()).per_example
    assert torch.equal(found["weight"], 7.0 * found["uncertainty"] + 0.5)


def test_normalized_weights_have_mean_one_and_the_same_proportions(context: Make) -> None:
    plain, scaled = (
        UMIX(eta=7.0, length=3, normalize=normalize).train(context()).per_example["weight"]
        for normalize in (False, True)
    )
    assert scaled.mean().item() == pytest.approx(1, abs=1e-6)
    ratio = scaled / plain
    assert torch.allclose(ratio, ratio[:1].expand_as(ratio))


def test_minority_examples_are_more_uncertain_on_four_moons(context: Make) -> None:
    run = context(stages={"trajectory": {"lr": 0.1}})
    u, group = UMIX(length=10).train(run).per_example["uncertainty"], run.task.splits["train"].group
    assert u[group == 1].mean() > 2 * u[group == 0].mean()
    assert u[group == 2].mean() > 2 * u[group == 3].mean()


def test_what_it_knows_of_each_example_is_saved_with_the_run(tmp_path: Path) -> None:
    settings = {"sizes": [40, 8, 8, 40], "eval_size": 10, "epochs": 2, "hidden": [8], "length": 2}
    record = execute(RunSpec(task="four_moons", method="umix", settings=settings), out=tmp_path)
    saved, _ = read_tensors(record.directory / "examples.safetensors", kind="examples")
    assert set(saved) == {"uncertainty", "weight", "label"}
    assert torch.equal(saved["label"], FourMoons(sizes=(40, 8, 8, 40), eval_size=10).load().splits["train"].y)
    assert (record.directory / "trajectory.safetensors").exists()


def test_cutmix_without_images_is_refused_before_training(context: Make, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"mixing=cutmix must be given images"):
        UMIX(mixing="cutmix").train(context(directory=tmp_path / "run"))
    assert not (tmp_path / "run").exists()
