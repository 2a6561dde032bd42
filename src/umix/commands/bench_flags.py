"""The flags of ``umix bench`` that no other command has."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

Methods = Annotated[str | None, Parameter(help="Methods to compare, as erm,jtt,umix.")]
Seeds = Annotated[str | None, Parameter(help="Seeds, as 0:5 (without 5) or 0,1,2. Default: 0:5.")]
File = Annotated[
    Path | None, Parameter(help="A study in a TOML file instead of TASKS and --methods; see docs/how-to/studies.md.")
]
Settings = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        negative="",
        help="A setting as key=value; METHOD.key=value or TASK.key=value for those runs alone; repeat for more.",
    ),
]
Workers = Annotated[
    int | None, Parameter(help="Number of worker processes. Default: no workers, runs are executed in this process.")
]
Threads = Annotated[int | None, Parameter(help="Threads of each worker. Default: 1.")]
OnRay = Annotated[
    str | None, Parameter(name="--ray", help="Execute runs on a Ray cluster: auto, or the cluster's address.")
]
Cpus = Annotated[float | None, Parameter(help="Ray: processor cores per run. Default: 1.")]
Gpus = Annotated[float | None, Parameter(help="Ray: GPUs per run; 0.25 puts four runs on one GPU. Default: 0.")]
Tune = Annotated[
    int | None,
    Parameter(
        help="First search every method's settings on validation, with this many trials each; see docs/how-to/search.md."
    ),
]
SkipImpossible = Annotated[
    bool,
    Parameter(negative="", help="Leave out methods that need groups on tasks without them, instead of refusing."),
]
PlanOnly = Annotated[bool, Parameter(name=["--plan", "--dry-run"], negative="", help="Show the plan and run nothing.")]
Schema = Annotated[bool, Parameter(negative="", help="Print the JSON schema of study files.")]
