"""The result of one run: rates, predictions, weights, however the run was made."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

from umix.bench.predict import predict_inputs, reader
from umix.bench.runs.example_table import example_table, load_examples, no_weights
from umix.bench.runs.load_net import load_net, net_with
from umix.bench.runs.record import RunRecord, Summary, load_run
from umix.bench.runs.train_run import TrainedRun
from umix.data.rows.reader import Reader
from umix.errors import UserError
from umix.nets.net import Net
from umix.reports.arrange import arrange
from umix.reports.gather import Gathered
from umix.reports.tables.run_table import run_table
from umix.terminal import as_html, as_text
from umix.training.progress import Progress, Silent

if TYPE_CHECKING:
    import polars

    from umix.data.task import Preprocessing


@final
class RunResult:
    """A trained run. Shows itself as a table of rates, in a terminal and in a notebook.

    ``record`` holds the counts of every epoch; ``directory`` is the run's folder, None for a run in memory.
    """

    def __init__(
        self,
        record: RunRecord,
        *,
        net: Callable[[int], Net],
        reader: Callable[[], Reader],
        examples: Callable[[], "polars.DataFrame"],
        directory: Path | None,
    ) -> None:
        self.record = record
        self.directory = directory
        self._net = net
        self._reader = reader
        self._examples = examples

    @classmethod
    def in_folder(cls, record: RunRecord) -> Self:
        """The result of a finished run that has a folder."""
        return cls(
            record,
            net=lambda epoch: load_net(record, epoch=epoch),
            reader=lambda: reader(record),
            examples=lambda: load_examples(record),
            directory=record.directory,
        )

    @classmethod
    def in_memory(cls, trained: TrainedRun, preprocessing: "Preprocessing | None") -> Self:
        """The result of a run that was trained in this process and wrote no files."""
        record, trainer = trained.record, trained.trainer

        def examples() -> "polars.DataFrame":
            if not trainer.kept:
                raise no_weights(record)
            return example_table({**trainer.kept, "label": trainer.task.splits["train"].y})

        def known_reader() -> Reader:
            if not isinstance(preprocessing, Reader):
                raise UserError(
                    f"Predictions must come from a run on data of one's own, got a run on {record.title}, which nothing new can be "
                    "read for; result.net() is the trained net."
                )
            return preprocessing

        return cls(
            record,
            net=lambda epoch: net_with(record, trainer.history.best.held[epoch]),
            reader=known_reader,
            examples=examples,
            directory=None,
        )

    def summary(self, select: str | None = None) -> Summary:
        """Test rates at the epoch that the rule ``select`` chooses on validation."""
        return self.record.summary(select)

    def net(self, select: str | None = None) -> Net:
        """The trained net at that epoch, in evaluation mode."""
        return self._net(self.record.best_epoch(select))

    def predict(self, new: Any, *, select: str | None = None, progress: Progress | None = None) -> "polars.DataFrame":
        """The predicted label and the probability of every class for each example in ``new``.

        ``new`` is of the kind that the run was trained on; for a table a path, a polars or a pandas frame. No labels are needed.
        """
        inputs = self._reader().inputs(new)
        return predict_inputs(self.net(select), inputs, self.record.classes, progress=progress or Silent()).table

    def weights(self) -> "polars.DataFrame":
        """Index, uncertainty, weight and label of every training example."""
        return self._examples()

    def gathered(self) -> tuple[Gathered, Path]:
        """This run as a page takes it, and its folder."""
        if self.directory is None:
            raise UserError(
                "A report must be made of a run with a folder, got a run in memory; train it with out='runs'."
            )
        return Gathered(arrange([self.record]), [], []), self.directory

    def __str__(self) -> str:
        return as_text(run_table(self.record, self.summary()))

    def __repr__(self) -> str:
        summary = self.summary()
        worst = "unknown" if summary.worst is None else f"{summary.worst:.3f}"
        average = "unknown" if summary.average is None else f"{summary.average:.3f}"
        return f"<RunResult {self.record.title} · {self.record.method} · seed {self.record.seed}: worst {worst}, average {average}>"

    def _repr_html_(self) -> str:
        return as_html(run_table(self.record, self.summary()))


def load_result(directory: str | Path) -> RunResult:
    """The result of the finished run in ``directory``."""
    return RunResult.in_folder(load_run(directory))


def predict(
    run: RunResult | RunRecord | str | Path, new: Any, *, select: str | None = None, progress: Progress | None = None
) -> "polars.DataFrame":
    """Predictions of a finished run for ``new``: see ``RunResult.predict``. ``run`` is a result, a record or a run's folder."""
    if isinstance(run, RunRecord):
        run = RunResult.in_folder(run)
    result = run if isinstance(run, RunResult) else load_result(run)
    return result.predict(new, select=select, progress=progress)
