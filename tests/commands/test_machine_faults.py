"""Full disks, used-up memory and removed folders: one sentence, exit code 1, and the same command goes on afterwards."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from umix.bench.runs.execute import execute
from umix.bench.runs.record import load_run
from umix.bench.spec.run_spec import RunSpec
from umix.cli import main
from umix.training import fit

FAST = {"epochs": 3, "length": 2, "sizes": [20, 4, 4, 20], "eval_size": 5, "hidden": [8]}
RUN = ["run", "four_moons", "umix", "--quiet", *(f"--set={key}={value}" for key, value in FAST.items())]
Resize = Callable[[int], Path]


def spec(**settings: object) -> RunSpec:
    return RunSpec(task="four_moons", method="umix", settings={**FAST, **settings})


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Resize]:
    """Makes the disk below ``tmp_path / "disk"`` so many kilobytes large."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(folder)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a disk can only be mounted on Linux and by root")

    def resize(kilobytes: int) -> Path:
        subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", str(folder)], check=True)  # noqa: S607
        return folder

    yield resize
    subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S607 — a file that is closed later does not matter


def one_sentence(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert len(said) <= 300 + len("umix: \n")
    return said


def test_a_disk_that_is_full_at_some_write_stops_a_run_which_goes_on_when_it_is_larger(
    disk: Resize, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped_at, out = set(), disk(4) / "runs"
    for kilobytes in range(4, 600, 12):
        disk(kilobytes)
        code = main([*RUN, "--out", str(out)])
        if code == 0:
            break
        said = one_sentence(capsys)
        assert code == 1
        assert said.startswith("umix: The machine cannot go on: No space left on device")
        assert "; free some space and run it again: what is finished is kept." in said
        assert not list(out.rglob("*.aside"))
        stopped_at.add(said.partition("(")[2].partition(")")[0].rpartition("/")[2])
    assert len(stopped_at) > 2, stopped_at
    (found,) = out.glob("four_moons-umix-*")
    assert load_run(found).split_counts == execute(spec(), out=tmp_path / "whole").split_counts


def test_predictions_that_do_not_fit_leave_the_old_ones(
    disk: Resize, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "\n".join(f"{k % 7},{k % 5},{'ab'[k % 2]}" for k in range(9000))
    (tmp_path / "new.csv").write_text(f"u,v,y\n{rows}\n")
    fast = ["--net", "mlp", "--set=hidden=[8]", "--set=epochs=1", "--quiet"]
    assert main(["run", str(tmp_path / "new.csv"), "erm", "--label", "y", *fast, "--out", str(tmp_path / "runs")]) == 0
    (run,) = tmp_path.glob("runs/new-*")
    output = disk(8) / "predictions.csv"
    output.write_text("old")
    capsys.readouterr()
    assert main(["predict", str(run), str(tmp_path / "new.csv"), "-o", str(output), "--quiet"]) == 1
    assert "No space left on device (" in one_sentence(capsys)
    assert [path.name for path in output.parent.iterdir()] == ["predictions.csv"]
    assert output.read_text() == "old"


def test_a_fit_without_memory_stops_the_run_which_goes_on_after_its_last_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    epochs, run_epoch = [], fit.run_epoch

    def greedy(*parts: Any, **options: Any) -> Any:
        epochs.append(1)
        return torch.empty(2**50) if len(epochs) == 7 else run_epoch(*parts, **options)  # the second of the final fit

    monkeypatch.setattr(fit, "run_epoch", greedy)
    command = [*RUN, "--set=trajectory.epochs=5", "--out", str(tmp_path / "runs")]
    assert main(command) == 1
    assert "There is not enough memory; take a smaller" in one_sentence(capsys)
    assert main(command) == 0
    assert len(epochs) == 7 + 3 + 3  # the final fit was too short for a checkpoint; the last three are those of ERM
    (found,) = tmp_path.glob("runs/four_moons-umix-*")
    whole = execute(spec(**{"trajectory.epochs": 5}), out=tmp_path / "whole")
    assert load_run(found).split_counts == whole.split_counts


def test_a_place_that_the_user_chose_wrongly_is_the_users_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "runs", Path("/proc/runs")):
        assert main([*RUN, "--out", str(out)]) == 2
        assert re.search("choose another|name another", one_sentence(capsys))
