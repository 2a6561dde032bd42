"""Camelyon17: hospitals are the groups, and validation and test are hospitals that training never saw."""

import json

import pytest
import torch

from umix.bench.runs.execute import execute
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.presets import presets_of
from umix.bench.spec.run_spec import RunSpec
from umix.cli import main
from umix.data.benchmarks.camelyon17 import HOSPITALS
from umix.data.registry import load_task
from umix.errors import UserError


def test_splits_are_told_by_hospital_and_the_sample_of_training_hospitals_is_left_out(camelyon17):
    task = load_task("camelyon17", camelyon17(), allow_subset=True)
    assert task.groups == HOSPITALS
    assert {name: split.groups.sizes.tolist() for name, split in task.splits.items()} == {
        "train": [4, 0, 0, 4, 4],
        "val": [0, 8, 0, 0, 0],
        "test": [0, 0, 8, 0, 0],
    }


def test_the_domains_of_training_are_the_three_training_hospitals(camelyon17):
    task = load_task("camelyon17", camelyon17(), allow_subset=True)
    train = task.splits["train"]
    assert task.training_groups == ("hospital 0", "hospital 3", "hospital 4")
    assert train.training_groups.sizes.tolist() == [4, 4, 4]
    assert torch.equal(torch.tensor([0, 3, 4])[train.group], train.groups.ids)


def test_patients_are_texts_and_name_their_patches(camelyon17):
    train = load_task("camelyon17", camelyon17(), allow_subset=True).splits["train"]
    assert train.x.files[0] == "patches/patient_004_node_0/patch_patient_004_node_0_x_3328_y_21792.png"
    assert train.x[0].shape == (3, 96, 96)
    assert train.augment is None


def test_a_patient_that_lost_its_zeros_is_found(camelyon17):
    root = camelyon17()
    path = root / "camelyon17_v1.0" / "metadata.csv"
    path.write_text(path.read_text(encoding="utf-8").replace(",004,", ",4,"), encoding="utf-8")
    assert load_task("camelyon17", root, allow_subset=True).splits["train"].x[0].shape == (3, 96, 96)


def test_split_sizes_are_compared_with_the_published_ones(camelyon17):
    with pytest.raises(UserError, match=r"train split .* must hold 302,436 images .* got 12 \(3 counts differ\)"):
        load_task("camelyon17", camelyon17())


def test_bad_codes_and_duplicates_are_found(camelyon17, capsys):
    root = camelyon17()
    path = root / "camelyon17_v1.0" / "metadata.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[1] = lines[1][:-3] + "5,2"
    lines.append(lines[-1])
    path.write_text("\n".join(lines), encoding="utf-8")
    assert main(["doctor", "camelyon17", "--root", str(root), "--json"]) == 2
    rules = [problem["rule"] for problem in json.loads(capsys.readouterr().out)["problems"]]
    assert [rule.split(" must")[0] for rule in rules] == [
        "metadata.csv: patches",
        "metadata.csv: center",
        "metadata.csv: split",
    ]


def test_the_worst_group_is_the_average_and_nothing_is_adjusted(camelyon17, tmp_path):
    settings = {"evaluation.min_group": 1, "task.allow_subset": True, "size": 16, "epochs": 1, "channels": [2]}
    record = execute(
        RunSpec(task="camelyon17", method="erm", settings=settings),
        paths=RunPaths(tmp_path / "runs", root=camelyon17()),
    )
    summary = record.summary("worst")
    assert summary.worst == summary.average == summary.groups["hospital 2"].rate
    assert summary.adjusted is None


@pytest.mark.parametrize("preset", presets_of("camelyon17"))
def test_every_preset_trains(camelyon17, train_presets, preset):
    train_presets("camelyon17", camelyon17(), preset)
