"""One run in several processes: the same numbers as in one, for every method.

The processes are real ones (``shared_fits.py``, ``umix run --devices 2``, torchrun), which talk over gloo.
"""

import json
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars
import pytest
import torch
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from umix.bench.runs.execute import execute
from umix.bench.runs.record import load_run
from umix.cli import main
from umix.errors import UserError
from umix.models.mlp import MLP
from umix.store import read_tensors
from umix.training.engine import Engine, engine_for
from umix.training.parallel import share
from umix.training.progress import MEASURES

pytestmark = pytest.mark.system

SCRIPT = Path(__file__).parent / "shared_fits.py"
FITS = runpy.run_path(str(SCRIPT))
RUN = FITS["RUN"]
ONE = Engine("cpu")
APART = ("erm-dropout", "erm-bf16")  # dropout has draws of its own in every process; half precision rounds other sums


def ran(*command: object) -> subprocess.CompletedProcess[str]:
    """The command in a fresh interpreter, with umix from where this test has it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = (sys.executable, *command)
    return subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, check=False)


Start = Callable[..., str]


def umix_run(out: Path) -> list[str]:
    settings = [word for key, value in RUN.settings.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    return ["umix", "run", RUN.task, RUN.method, *settings, "--out", str(out)]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, run_in_two: Start) -> Path:
    """What two processes have made of everything in ``shared_fits.py``."""
    shared = "PYTEST_XDIST_WORKER" in os.environ  # then all workers of the session need it, and one makes it
    base = tmp_path_factory.getbasetemp().parent if shared else tmp_path_factory.mktemp("base")
    folder = base / "pair"
    with FileLock(base / "pair.lock"):
        if not (folder / "refusal-erm-idle-0.txt").exists():  # what is written last
            assert not run_in_two(SCRIPT, folder, warn="error")
    return folder


@pytest.mark.parametrize("name", [name for name in FITS["NAMES"] if name not in APART])
def test_two_processes_with_half_the_batch_each_train_the_net_of_one(name: str, pair: Path) -> None:
    alone, together = FITS["trained"](name, ONE), load_file(pair / f"{name}-0.safetensors")
    assert alone.keys() == together.keys()
    for key, tensor in alone.items():
        if key.startswith("net/"):
            torch.testing.assert_close(together[key], tensor, atol=1e-5, rtol=0)
        elif tensor.is_floating_point():
            torch.testing.assert_close(together[key], tensor)
        else:
            assert torch.equal(together[key], tensor), key


@pytest.mark.parametrize("name", FITS["NAMES"])
def test_all_processes_end_with_the_same_bits(name: str, pair: Path) -> None:
    first, second = (load_file(pair / f"{name}-{rank}.safetensors") for rank in range(2))
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_half_precision_differs_by_its_rounding_only(pair: Path) -> None:
    alone, together = FITS["trained"]("erm-bf16", ONE), load_file(pair / "erm-bf16-0.safetensors")
    for key, tensor in alone.items():
        torch.testing.assert_close(together[key], tensor, atol=5e-3, rtol=0)


@pytest.mark.parametrize("record", ["online", "epoch_end"])
def test_the_trajectory_is_complete_and_that_of_one_process(record: str, pair: Path) -> None:
    alone = FITS["recorded"](record, ONE)
    for rank in range(2):
        together = load_file(pair / f"{record}-{rank}.safetensors")
        for split, bits in alone.items():
            assert not together[split].isnan().any()
            assert torch.equal(together[split], bits)


def test_processes_of_a_loop_of_ones_own_gather_what_each_has_seen_and_draw_apart(pair: Path) -> None:
    found = [load_file(pair / f"gathered-{rank}.safetensors") for rank in range(2)]
    for each in found:
        assert each["u"].tolist() == [1, 0, 0, 1, 0, 0, 1, 0, 0]
        assert each["rates"].tolist() == pytest.approx([4 / 6, 3 / 4])  # even places (the first twice), odd places
    assert found[0]["lam"] != found[1]["lam"]


def test_a_parameter_that_is_not_trained_is_named(pair: Path) -> None:
    said = (pair / "refusal-erm-idle-0.txt").read_text()
    assert said.startswith(
        "On several devices every trained parameter must take part in the prediction, but body.idle.weight"
    )


def test_batch_normalisation_is_refused_where_torch_cannot_share_it(pair: Path) -> None:
    said = (pair / "refusal-erm-normed-0.txt").read_text()
    assert said.startswith("A net with batch normalisation must be trained on one device where there are no GPUs")


def test_a_run_that_lost_a_process_goes_on_from_its_checkpoint_under_torchrun_or_on_one_device(
    tmp_path: Path, run_in_two: Start
) -> None:
    assert run_in_two(SCRIPT, tmp_path / "runs", "die")
    folder = tmp_path / "runs" / RUN.directory_name
    assert not (folder / "record.json").exists()
    shutil.copytree(tmp_path / "runs", tmp_path / "on one")
    left, facts = read_tensors(folder / "checkpoint.safetensors", kind="checkpoint")
    done = ran("-m", "torch.distributed.run", "--nproc-per-node", 2, "-m", *umix_run(tmp_path / "runs"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["directory"] == str(folder)
    record, alone = load_run(folder), execute(RUN, out=tmp_path / "alone", engine=ONE)
    assert record.stages["trajectory"].reused
    assert record.key == alone.key
    assert record.versions["devices"] == "2 × cpu"
    on_one = execute(RUN, out=tmp_path / "on one", engine=ONE)
    for split, counts in alone.counts.items():
        assert record.counts[split].hits.tolist() == on_one.counts[split].hits.tolist() == counts.hits.tolist()
    # Seconds are never the same twice: those of the epochs before the loss come from there.
    measured = polars.read_csv(folder / "epochs.csv").filter(stage="fit", measure="seconds")["value"].to_list()
    before = left["history/epochs/measures"][:, MEASURES.index("seconds")].tolist()
    assert 0 < int(facts["epochs"]) == len(before) < len(measured)
    assert measured[: len(before)] == before


def test_umix_run_on_two_devices_prints_one_table_and_writes_what_one_device_does(tmp_path: Path) -> None:
    done = ran("-m", *umix_run(tmp_path / "runs"), "--devices", 2, "--strategy", "ddp")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("worst group:") == 1
    folder, alone = tmp_path / "runs" / RUN.directory_name, execute(RUN, out=tmp_path / "alone", engine=ONE)
    assert {path.name for path in folder.iterdir()} == {path.name for path in alone.directory.iterdir()}
    name = "trajectory.safetensors"
    assert (folder / name).read_bytes() == (alone.directory / name).read_bytes()


@given(n=st.integers(0, 50), world=st.integers(1, 9))
def test_the_shares_of_a_batch_are_its_rows_in_order_and_differ_by_one_at_most(n: int, world: int) -> None:
    shares = [range(n)[share(n, rank, world)] for rank in range(world)]
    assert [row for rows in shares for row in rows] == list(range(n))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_one_device_evaluates_the_net_itself() -> None:
    net = MLP().build(torch.zeros(2), 2)
    assert ONE.shared(net) is net
    assert ONE.from_first(net) is net
    assert engine_for() == Engine()


def test_an_engine_that_was_not_launched_says_so() -> None:
    with pytest.raises(UserError, match="An engine of 4 devices must be launched before it trains"):
        _ = Engine("cpu", devices=2, nodes=2).first


def test_without_lightning_fabric_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)
    with pytest.raises(
        UserError, match=r"2 devices need Lightning Fabric; install it with: pip install 'umix\[fabric\]'"
    ):
        Engine("cpu", devices=2).launch()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--devices", "0"], "--devices must be at least 1, got 0."),
        (["--devices", "2", "--strategy", "dpp"], "Unknown strategy 'dpp'; did you mean 'ddp'? Known: ddp."),
        (["--precision", "bf17"], "fit.precision must be one of 32-true, bf16-mixed, got 'bf17'."),
        (["--nodes", "2"], "--nodes 2 must be started by torchrun on every machine"),
    ],
)
def test_wrong_devices_are_one_sentence(
    flags: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["run", "four_moons", "erm", "--out", str(tmp_path), *flags]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_more_gpus_than_there_are_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(UserError, match="devices= must be at most the 1 of kind cuda here, got 2"):
        engine_for(devices=2)


def test_torchrun_says_how_many_devices_there_are_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "6", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    engine = engine_for(devices=2)
    assert (engine.devices, engine.nodes) == (2, 3)
    with pytest.raises(UserError, match=r"must be what torchrun has started \(2 and 3\), got 4 and 3; leave them out"):
        engine_for(devices=4)
