"""Runs on a Ray cluster of this machine, whose workers and nodes are killed."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Never

import pytest

from umix.bench.executors.executor import Event, Serial
from umix.bench.executors.ray import Ray
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.run_spec import RunSpec
from umix.checkpoint_pace import EVERY_EPOCH
from umix.errors import UserError

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.system,
    pytest.mark.enable_socket,  # Ray talks to itself by TCP
    pytest.mark.filterwarnings("ignore"),  # of Ray's own
]
FAST = {"epochs": 3, "hidden": [8], "sizes": [20, 4, 4, 20], "eval_size": 5}


def spec(seed: int = 0, **settings: object) -> RunSpec:
    return RunSpec(task="four_moons", method="erm", settings={**FAST, **settings}, seed=seed)


@pytest.fixture(scope="module")
def cluster() -> "Iterator[Cluster]":
    """A cluster of the tests' own node, which executes no run, and a node with two processors."""
    import pytest_socket
    import ray
    from ray.cluster_utils import Cluster

    pytest_socket.enable_socket()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    before = signal.getsignal(signal.SIGTERM)
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes.add_node(num_cpus=2)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="error")
    signal.signal(signal.SIGTERM, before)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def when_saved(run: RunSpec, out: Path, do: Callable[[], None]) -> None:
    """Wait for the checkpoint of ``run``, then ``do`` something."""
    while not (out / run.directory_name / "checkpoint.safetensors").exists():
        time.sleep(0.01)
    do()


@pytest.mark.usefixtures("cluster")
def test_a_killed_worker_is_replaced_and_its_run_goes_on_from_its_checkpoint(
    tmp_path: Path, gated: Callable[[Path], RunSpec]
) -> None:
    import ray

    gate = tmp_path / "opened"
    slow, quick, starts = gated(gate), spec(seed=1), []

    def on_event(event: Event) -> None:
        if event.key == slow.key and event.kind == "start":
            starts.append(event.done)
            if len(starts) == 1:
                worker = int(event.worker.rpartition(":")[2])
                when_saved(slow, tmp_path, lambda: os.kill(worker, signal.SIGKILL))
            else:
                gate.touch()

    while ray.cluster_resources()["CPU"] != 2:  # a node that another test has killed counts for a while
        time.sleep(0.01)
    executor = Ray()
    assert executor.workers == 2
    outcomes = {
        outcome.key: outcome for outcome in executor.run([slow, quick], RunPaths(tmp_path, pace=EVERY_EPOCH), on_event)
    }
    assert starts[0] == 0
    assert starts[-1] > 0
    (expected,) = Serial().run([slow], RunPaths(tmp_path / "serial"), lambda event: None)
    assert outcomes[slow.key].record.split_counts == expected.record.split_counts
    assert outcomes[quick.key].record is not None
    assert not list(tmp_path.glob(".ray-*"))


@pytest.mark.system
def test_a_run_whose_node_dies_goes_on_on_another_one_and_is_still_heard_of(
    cluster: "Cluster", tmp_path: Path, gated: Callable[[Path], RunSpec]
) -> None:
    gate = tmp_path / "opened"
    slow, starts = gated(gate), []

    def replace_node() -> None:
        (node,) = cluster.worker_nodes
        cluster.remove_node(node, allow_graceful=False)
        cluster.add_node(num_cpus=2)

    def on_event(event: Event) -> None:
        if event.kind == "start":
            starts.append(event.done)
            if len(starts) == 1:
                when_saved(slow, tmp_path, replace_node)
            else:
                gate.touch()

    (outcome,) = Ray().run([slow], RunPaths(tmp_path, pace=EVERY_EPOCH), on_event)
    assert outcome.record is not None
    assert starts[0] == 0
    assert starts[-1] > 0


def test_an_error_of_the_event_queue_is_not_an_error_of_the_study() -> None:
    from ray.exceptions import RayActorError

    from umix.bench.executors.ray import _pop_events

    class Dead:
        def qsize(self) -> Never:
            raise RayActorError

    assert _pop_events(Dead()) == []


@pytest.mark.usefixtures("cluster")
def test_a_run_that_raises_is_a_failure_and_too_large_a_share_is_refused(tmp_path: Path) -> None:
    wrong = RunSpec(task="four_moons", method="umix", settings={**FAST, "length": 2, "trajectory.epochs": 1})
    (outcome,) = Ray(cpus=0.5).run([wrong], RunPaths(tmp_path), lambda event: None)
    assert "The window must end within" in outcome.failure.sentence
    with pytest.raises(UserError, match=r"gpus= must fit on the cluster, which has 0, got 0\.25"):
        Ray(gpus=0.25)
    with pytest.raises(UserError, match="something to run on"):
        Ray(cpus=0)


def test_where_the_folder_is_not_shared_the_files_of_a_run_come_back(tmp_path: Path) -> None:
    from umix.bench.executors.ray import _run_on_node, _store_outcome, _write_token

    class NoEvents:
        actor = None

    here, there = RunPaths(tmp_path / "here"), RunPaths(tmp_path / "there")
    token, made = _write_token(here.out), spec()
    sent = _run_on_node(made, there, NoEvents(), token, 1, True, tmp_path)
    _store_outcome(sent, made, here)
    original, copy = there.out / made.directory_name, here.out / made.directory_name
    names = sorted(str(path.relative_to(original)) for path in original.rglob("*") if path.is_file())
    assert "record.json" in names
    for name in names:
        assert (copy / name).read_bytes() == (original / name).read_bytes()
    shutil.copy(here.out / token, there.out / token)
    assert _run_on_node(made, there, NoEvents(), token, 1, True, tmp_path).files == {}
