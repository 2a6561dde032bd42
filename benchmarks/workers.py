"""Executes jobs in worker processes of one torch thread each."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import torch

from umix import RunPaths, RunRecord, RunSpec, execute

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")


def _one_thread() -> None:
    torch.set_num_threads(1)


def in_workers(function: Callable[[Job], Outcome], jobs: Iterable[Job]) -> Iterator[Outcome]:
    """``function(job)`` of every job, in their order; ``function`` must be at the top of a module."""
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"), initializer=_one_thread) as pool:
        yield from pool.map(function, list(jobs))


def _run(spec: RunSpec, *, out: Path, root: Path | None) -> RunRecord:
    return execute(spec, paths=RunPaths(out, root=root))


def execute_all(specs: Iterable[RunSpec], out: Path, *, root: Path | None = None) -> Iterator[RunRecord]:
    """Records of ``specs``, in their order; ``root`` is the folder of a benchmark's archive."""
    yield from in_workers(partial(_run, out=out, root=root), specs)
