"""The state of the fork server that all workers are forked from."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.system


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are not forked")
def test_a_process_that_is_ready_has_one_thread_and_has_imported_what_training_needs() -> None:
    program = (
        "import os, sys, umix.bench.executors.worker_preload; "
        "print(len(os.listdir('/proc/self/task')), 'umix.training.trainer' in sys.modules)"
    )
    environment = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    told = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["1", "True"]
