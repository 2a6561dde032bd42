"""Runs specs in processes of one torch thread each."""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

from umix import RunRecord, RunSpec, execute


def _one_thread() -> None:
    torch.set_num_threads(1)


def _run(job: tuple[RunSpec, Path]) -> RunRecord:
    spec, out = job
    return execute(spec, out=out)


def execute_all(specs: Iterable[RunSpec], out: Path) -> Iterator[RunRecord]:
    """Records of ``specs``, in their order."""
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"), initializer=_one_thread) as pool:
        yield from pool.map(_run, [(spec, out) for spec in specs])
