"""``umix.evaluate``: a run on labelled new data."""

from pathlib import Path
from typing import Any, final

from pydantic import PrivateAttr
from rich.console import Group

from umix.api.result import RunResult, as_result
from umix.bench.evaluation.evaluated import Evaluated
from umix.bench.runs.record import RunRecord
from umix.core.selection import Threshold
from umix.reports.tables.evaluation_tables import evaluation_tables
from umix.reports.tables.text_table import terminal
from umix.run_folder import IMPORTANCE
from umix.store import write_json
from umix.terminal import as_html, as_text
from umix.training.progress import Progress


@final
class EvaluationResult(Evaluated):
    """A run on labelled new data. Shows itself as tables, in a terminal and in a notebook.

    ``polars.DataFrame(result.drift)`` and ``polars.DataFrame(result.importance.columns)`` are frames of these.

    Attributes:
        run: the name of the run's folder, or of its task and method.
        data: what was evaluated.
        rows: how many rows it has.
        average: accuracy over all rows.
        worst: lowest rate of a judged group or margin, as in the summary of a run.
        worst_group: its name.
        rates: those of groups, then margins, then classes, by name.
        test: the run's summary, whose rates stand beside.
        drift: what was compared with training, the largest first.
        importance: which columns matter, if asked for.
        notes: what is to be known of the data.

    """

    _record: RunRecord = PrivateAttr()

    @property
    def shown(self) -> Group:
        """The tables."""
        return Group(*map(terminal, evaluation_tables(self._record, self)))

    def __str__(self) -> str:
        return as_text(self.shown)

    def _repr_html_(self) -> str:
        return as_html(self.shown)


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
    result, options = as_result(run, trust_code=trust_code), {"metadata": metadata, "rows": rows}
    found = result.evaluated(data, options, select, threshold, with_importance=importance, progress=progress)
    if found.importance is not None and result.directory is not None and select is None and threshold is None:
        write_json(result.directory / IMPORTANCE, found.importance)
    shown = EvaluationResult(**dict(found))
    shown._record = result.record
    return shown
