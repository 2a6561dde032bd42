"""``umix.evaluate``: a run on labelled new data."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from rich.console import Group

from umix.api.result import RunResult, as_result
from umix.bench.evaluation.evaluated import Evaluated, NewRate
from umix.bench.runs.record import RunRecord
from umix.core.selection import Threshold
from umix.reports.tables.evaluation_tables import evaluation_tables
from umix.reports.tables.text_table import terminal
from umix.run_folder import IMPORTANCE
from umix.store import write_json
from umix.terminal import as_html, as_text
from umix.training.progress import Progress

if TYPE_CHECKING:
    import polars


@final
class EvaluationResult:
    """A run on labelled new data. Shows itself as tables, in a terminal and in a notebook.

    ``evaluated`` has everything, as ``umix evaluate --json`` prints it.
    """

    def __init__(self, record: RunRecord, evaluated: Evaluated) -> None:
        self.record, self.evaluated = record, evaluated

    @property
    def average(self) -> float:
        """The accuracy over all new rows."""
        return self.evaluated.average

    @property
    def worst(self) -> float | None:
        """The accuracy of the worst group, by the rule of ``RunResult.summary``; None where nothing is judged."""
        return self.evaluated.worst

    @property
    def worst_group(self) -> str | None:
        """Which group or margin that is."""
        return self.evaluated.worst_group

    @property
    def rates(self) -> dict[str, NewRate]:
        """The rate of every group, margin and class, with its interval, beside that on test."""
        return self.evaluated.rates

    @property
    def notes(self) -> list[str]:
        """What is to be known of the new data."""
        return self.evaluated.notes

    @property
    def drift(self) -> "polars.DataFrame":
        """What has moved since training: a row for each column that was compared, the largest first."""
        import polars

        return polars.DataFrame([one.model_dump() for one in self.evaluated.drift])

    @property
    def importance(self) -> "polars.DataFrame | None":
        """The importance of every input column, over all rows and for the worst group, the largest first; None if not asked for."""
        import polars

        found = self.evaluated.importance
        return None if found is None else polars.DataFrame([one.model_dump() for one in found.columns])

    def __str__(self) -> str:
        return as_text(self.shown)

    def _repr_html_(self) -> str:
        return as_html(self.shown)

    @property
    def shown(self) -> Group:
        """The tables."""
        return Group(*map(terminal, evaluation_tables(self.record, self.evaluated)))


def evaluate(
    run: RunResult | RunRecord | str | Path,
    data: Any = None,
    *,
    importance: bool = False,
    metadata: str | Path | None = None,
    rows: Any = None,
    select: str | None = None,
    threshold: Threshold | None = None,
    progress: Progress | None = None,
    trust_code: bool = False,
) -> EvaluationResult:
    """The rates of a finished run on labelled new data beside those on test, what has moved, and which inputs matter.

    Args:
        run: a result, a record or a run's folder.
        data: labelled data of the kind that the run was trained on, with the same columns for label and groups: a file, a folder of
            images, a frame, or a mapping from names to arrays. By default the test rows of what the run was trained on.
        importance: also which columns of a table matter; without ``select`` and ``threshold`` it is written into the run's folder,
            where the report finds it.
        metadata: table of the images, if it is not in their folder.
        rows: table with label and groups of every row of an .npy file.
        select: rule that picks the epoch and, with ``threshold``, the threshold.
        threshold: ``tuned`` or ``off``; by default as the run was told.
        progress: is told how far the work is.
        trust_code: whether the record of the run may name code as its net, ``module:factory``, which is then imported.

    """
    result = as_result(run, trust_code=trust_code)
    evaluated = result.evaluated(
        data,
        {"metadata": metadata, "rows": rows},
        with_importance=importance,
        select=select,
        threshold=threshold,
        progress=progress,
    )
    is_runs_choice = select is None and threshold is None
    if evaluated.importance is not None and result.directory is not None and is_runs_choice:
        write_json(result.directory / IMPORTANCE, evaluated.importance)
    return EvaluationResult(result.record, evaluated)
