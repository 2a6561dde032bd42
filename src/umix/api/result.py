"""The result of one run: rates, predictions, weights, a model to export, however the run was made."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

from rich.console import Group
from rich.text import Text

from umix.bench.evaluation.evaluate import evaluate
from umix.bench.evaluation.evaluated import Evaluated
from umix.bench.predict import PredictedBlocks, reader
from umix.bench.runs.example_files import held_out_logits, held_out_table, image_files, training_rows
from umix.bench.runs.example_tables import (
    example_table,
    group_column,
    load_examples,
    named_frame,
    no_weights,
    read_held_out,
)
from umix.bench.runs.folds import pooled_summary
from umix.bench.runs.load_net import load_net, net_with
from umix.bench.runs.record import RunRecord, load_run
from umix.bench.runs.summary import Summary
from umix.bench.runs.train_run import TrainedRun
from umix.core.selection import Threshold
from umix.data.rows.reader import Reader
from umix.errors import UmixWarning, UserError, unknown
from umix.exports.exported import Format
from umix.models.model import Model
from umix.reports.arrange import Gathered, arrange
from umix.reports.metrics import CALIBRATED, DIFFERENCES, Metric, by_group, difference, uncalibrated
from umix.reports.page.training_table import with_id
from umix.reports.sentences import calibration_words, choice_words, fold_words, pooled_words, threshold_words
from umix.reports.tables.run_table import fold_table, result_table, run_table
from umix.reports.tables.text_table import terminal
from umix.reports.target import TargetCheck, check_target
from umix.terminal import as_html, as_text
from umix.training.progress import Progress, Silent

if TYPE_CHECKING:
    import polars
    from torch import Tensor

    from umix.data.task import Task
    from umix.exports.exported import Exported


@final
class RunResult:
    """A trained run. Shows itself as a table of rates, in a terminal and in a notebook.

    ``record`` holds the counts of every epoch; ``directory`` is the run's folder, None for a run in memory.
    ``folds`` are the results of the folds, where rows were divided into some: then all rates are over the test rows of all of them,
    ``record`` is that of the first fold, and there is no single model to predict with.
    """

    def __init__(
        self,
        record: RunRecord,
        *,
        net: Callable[[int], Model],
        reader: Callable[[], Reader],
        examples: Callable[[], "polars.DataFrame"],
        held_out: Callable[[], "polars.DataFrame"],
        directory: Path | None,
        folds: "Sequence[RunResult]" = (),
    ) -> None:
        self.record = record
        self.directory = directory
        self.folds = tuple(folds)
        self._net = net
        self._reader = reader
        self._examples = examples
        self._held_out = held_out

    @classmethod
    def in_folder(cls, record: RunRecord, *, trust_code: bool = False) -> Self:
        """The result of a finished run that has a folder; its net may be code only with ``trust_code``."""
        return cls(
            record,
            net=lambda epoch: load_net(record, epoch=epoch, trust_code=trust_code),
            reader=lambda: reader(record),
            examples=lambda: load_examples(record),
            held_out=lambda: read_held_out(record),
            directory=record.directory,
        )

    @classmethod
    def in_memory(cls, trained: TrainedRun, task: "Task") -> Self:
        """The result of a run that was trained in this process on ``task`` and wrote no files."""
        record, result, preprocessing = trained.record, trained.result, task.preprocessing

        def examples() -> "polars.DataFrame":
            if not result.per_example:
                raise no_weights(record)
            return example_table(record, training_rows(task.splits["train"], image_files(task)), result.per_example)

        def held_out() -> "polars.DataFrame":
            choice = record.choice()
            logits = held_out_logits(result, task, result.history.best.held[choice.epoch])
            return held_out_table(result, logits, record.biases(choice), record.calibration(choice), task)

        def known_reader() -> Reader:
            if not isinstance(preprocessing, Reader):
                raise UserError(
                    f"Predictions must come from a run on data of one's own, got a run on {record.title}, which nothing new can be "
                    "read for; result.net() is the trained net."
                )
            return preprocessing

        return cls(
            record,
            net=lambda epoch: net_with(record, result.history.best.held[epoch], trust_code=True),
            reader=known_reader,
            examples=examples,
            held_out=held_out,
            directory=None,
        )

    @classmethod
    def of_folds(cls, folds: "Sequence[RunResult]") -> Self:
        """The result of all folds together."""
        import polars

        def no_model(*_: Any) -> Any:
            raise UserError(
                f"A model must come from one run, but these are {len(folds)} folds with a model each; train without folds for "
                "one to use."
            )

        def held_out() -> "polars.DataFrame":
            of_test = [fold._held_out().filter(polars.col("split") == "test") for fold in folds]
            return polars.concat(of_test, how="diagonal_relaxed")

        record = folds[0].record
        return cls(
            record, net=no_model, reader=no_model, examples=no_model, held_out=held_out, directory=None, folds=folds
        )

    @property
    def records(self) -> list[RunRecord]:
        """The record of every fold, or of the one run."""
        return [fold.record for fold in self.folds] or [self.record]

    @property
    def choices(self) -> dict[str, Any]:
        """What was left open (``best``, ``auto``, blank groups) and how it was decided, as in ``--json``."""
        return dict(self.record.choices)

    def summary(self, select: str | None = None, threshold: Threshold | None = None) -> Summary:
        """Test rates at the epoch and with the threshold that the rule ``select`` chooses on validation.

        ``threshold="off"`` predicts the class with the largest logit instead; by default it is as the run was told. Of folds, hits
        and sizes are added, each at its own epoch and threshold.
        """
        return pooled_summary(self.records, select, threshold)

    def net(self, select: str | None = None, threshold: Threshold | None = None) -> Model:
        """The trained net at that epoch, in evaluation mode; ``summary().biases`` were chosen with it."""
        return self._net(self.record.best_epoch(select, threshold))

    def predict(
        self,
        new: Any,
        *,
        select: str | None = None,
        threshold: Threshold | None = None,
        progress: Progress | None = None,
    ) -> "polars.DataFrame":
        """The predicted label and the probability of every class for each example in ``new``.

        ``new`` is of the kind that the run was trained on; for a table a path, a polars or a pandas frame, or an open file with
        CSV. No labels are needed.
        The label is decided as in ``summary(select, threshold)``; the probabilities are calibrated where the run could do so.
        """
        blocks = self._reader().blocks(new)
        choice = self.record.choice(select, threshold)
        prediction = PredictedBlocks(self._net(choice.epoch), blocks, self.record, choice, progress=progress).whole()
        for note in (*filter(None, [fold_words(self.record)]), *prediction.notes):
            warnings.warn(note, UmixWarning, stacklevel=2)
        return prediction.table

    def evaluated(
        self,
        new: Any,
        options: Mapping[str, Any],
        select: str | None,
        threshold: Threshold | None,
        *,
        with_importance: bool,
        progress: Progress | None,
    ) -> Evaluated:
        """The run on labelled new data, as ``umix.evaluate`` shows it."""
        choice, test, held_out = (
            self.record.choice(select, threshold),
            self.summary(select, threshold),
            self._held_out(),
        )
        known = (self.record, self._reader(), self._net(choice.epoch), choice, test, held_out)
        return evaluate(*known, new, options, with_importance=with_importance, progress=progress or Silent())

    def inputs(self, new: Any) -> "Tensor":
        """What the net takes for ``new``, [n, ...], made as ``predict`` makes it: for a model that was exported without it."""
        return self._reader().inputs(new).ready()

    def export(
        self,
        output: str | Path,
        *,
        format: Format | None = None,
        select: str | None = None,
        threshold: Threshold | None = None,
        license: str | None = None,
    ) -> "Exported":
        """Write the model for use elsewhere and return what was written: see ``umix.export``."""
        from umix.exports.trained_model import TrainedModel
        from umix.exports.write import export_model

        trained = TrainedModel(self.record, self._net, self._reader, select=select, threshold=threshold)
        return export_model(trained, Path(output), format=format, license=license)

    def weights(self, *, id: str | None = None) -> "polars.DataFrame":
        """Uncertainty and weight of every training example, the names of its label and group, and where it came from.

        ``row`` is its row in the table or array that was trained on, counted from 0 as pandas and polars do; of images, ``file`` is
        the path; ``index``, where neither is known, is the place in the training split. ``id`` is a column of the table, whose
        values are added.
        """
        return with_id(self._examples(), self.record, id)

    def frame(self, split: str = "test") -> "polars.DataFrame":
        """Label, prediction, probabilities and groups of every example of ``split`` under what the default rule chooses.

        A row per example, for fairlearn's MetricFrame, scikit-learn's metrics, or anything else. Of folds it has every row of the
        data once, predicted by the fold that did not train on it.
        """
        if self.folds and split != "test":
            raise UserError(f"split must be test where rows are divided into folds, got {split!r}; see result.folds.")
        return named_frame(self.record, self._held_out(), split)

    def metrics(self, *names: str, by: str | Sequence[str] | None = None, split: str = "test") -> "polars.DataFrame":
        """Metrics by group: one row per metric and group, the first of each over all examples.

        ``names`` are accuracy, balanced_accuracy, macro_f1, log_loss, brier and calibration_error, or of a class, as
        ``recall:yes``, recall, precision, f1, false_positive_rate, selection_rate, auroc, average_precision, or costs of mistakes,
        as ``cost:FN=5,FP=1``. ``by`` are group columns; by default all of them. ``before_calibration`` is the value with the
        probabilities that the model gives by itself, where a metric is asked for
        that calibration changes.
        """
        import polars

        known = self.record.group_columns[1:]
        chosen = known if by is None else [by] if isinstance(by, str) else list(by)
        for name in chosen:
            if name not in known:
                raise unknown("group column of this run", name, known)
        frame, classes, columns = self.frame(split), self.record.classes, [group_column(name) for name in chosen]
        raw = uncalibrated(self.record, frame)
        rows: list[tuple[Any, ...]] = []
        for text in names or ("accuracy",):
            if not isinstance(text, str):
                raise UserError(f"metrics must be given names such as 'recall:yes', one by one, got {text!r}.")
            metric = Metric.parse(text, classes)
            if metric.name in DIFFERENCES:
                value = difference(frame, metric, classes, columns, min_group=self.record.min_group)
                rows.append((str(metric), "all", value, math.nan, math.nan, len(frame), None))
                continue
            before = {}
            if raw is not None and metric.name in CALIBRATED:
                before = by_group(raw, metric, classes, columns, draws=0)
            for group, measured in by_group(frame, metric, classes, columns).items():
                low, high = measured.interval.low, measured.interval.high
                earlier = before[group].value if before else None
                rows.append((str(metric), group or "all", measured.value, low, high, measured.size, earlier))
        schema = ["metric", "group", "value", "low", "high", "n", "before_calibration"]
        types = {"before_calibration": polars.Float64}
        table = polars.DataFrame(rows, schema=schema, schema_overrides=types, orient="row", infer_schema_length=None)
        return table if any(name in CALIBRATED for name in names) else table.drop("before_calibration")

    def target(self, target: float, *, select: str | None = None, threshold: Threshold | None = None) -> TargetCheck:
        """Whether every judged group reaches ``target`` on test, 0.7 for 70 %: ``met``, and by how much it is ``missed`` where."""
        return check_target(self.record, self.summary(select, threshold), target)

    def gathered(self) -> tuple[Gathered, Path]:
        """This run as a page takes it, and its folder."""
        if all(record.has_directory for record in self.records):
            return Gathered(arrange(self.records), [], []), self.directory or self.record.directory.parent
        raise UserError("A report must be made of a run with a folder, got a run in memory; train it with out='runs'.")

    def __str__(self) -> str:
        return as_text(self._shown())

    def __repr__(self) -> str:
        summary = self.summary()
        worst = "unknown" if summary.worst is None else f"{summary.worst:.3f}"
        average = "unknown" if summary.average is None else f"{summary.average:.3f}"
        run = f"seed {self.record.seed}, {len(self.folds)} folds" if self.folds else self.record.words
        return f"<RunResult {self.record.title} · {self.record.method} · {run}: worst {worst}, average {average}>"

    def _repr_html_(self) -> str:
        return as_html(self._shown())

    def _shown(self) -> Group:
        """The table of rates, what was decided automatically, and the warnings of the run."""
        lines = [
            f"warning: {words}" for words in dict.fromkeys(words for one in self.records for words in one.warnings)
        ]
        summary = self.summary()
        if self.folds:
            said = Text(pooled_words(len(self.folds)))
            table = result_table(self.record, summary, all_groups="result.summary().groups")
            return Group(terminal(table), said, terminal(fold_table(self.records, summary.select)), *map(Text, lines))
        decided = (choice_words(self.record, summary), calibration_words(self.record, summary))
        words = filter(None, (*decided, threshold_words(self.record)))
        return Group(run_table(self.record, summary), *map(Text, [*words, *lines]))


def load_result(directory: str | Path, *, trust_code: bool = False) -> RunResult:
    """The result of a finished run.

    Args:
        directory: folder of the run.
        trust_code: whether the record may name code as its net, ``module:factory``, which is then imported.

    """
    return RunResult.in_folder(load_run(directory), trust_code=trust_code)


def as_result(run: RunResult | RunRecord | str | Path, *, trust_code: bool = False) -> RunResult:
    """``run``, which is a result, a record or a run's folder, as a result."""
    if isinstance(run, RunRecord):
        return RunResult.in_folder(run, trust_code=trust_code)
    return run if isinstance(run, RunResult) else load_result(run, trust_code=trust_code)


def predict(
    run: RunResult | RunRecord | str | Path,
    new: Any,
    *,
    select: str | None = None,
    threshold: Threshold | None = None,
    progress: Progress | None = None,
    trust_code: bool = False,
) -> "polars.DataFrame":
    """The predicted label and the probability of every class for each example in ``new``, as a polars frame.

    Args:
        run: a result, a record or a run's folder.
        new: data of the kind that the run was trained on; for a table a path, a polars or a pandas frame, or an open file with CSV.
            No labels are needed.
        select: rule that picks the epoch and, with ``threshold``, the threshold.
        threshold: ``tuned`` or ``off``; by default as the run was told.
        progress: is told how far the work is.
        trust_code: whether the record of the run may name code as its net, ``module:factory``, which is then imported.

    """
    result = as_result(run, trust_code=trust_code)
    return result.predict(new, select=select, threshold=threshold, progress=progress)


def export(
    run: RunResult | RunRecord | str | Path,
    output: str | Path,
    *,
    format: Format | None = None,
    select: str | None = None,
    threshold: Threshold | None = None,
    license: str | None = None,
    trust_code: bool = False,
) -> "Exported":
    """Write the model of a finished run for use elsewhere and return what was written; its outputs equal those of ``predict``.

    Args:
        run: a result, a record or a run's folder.
        output: ``model.onnx``, ``model.pt2`` (torch.export), ``model.safetensors`` (a plain state dict), ``README.md`` (a model
            card), or a folder: state dict, config and card, or with ``format="mlflow"`` a model of MLflow.
        format: ``onnx``, ``pt2``, ``state_dict``, ``card`` or ``mlflow``; by default what the suffix of ``output`` says.
        select: rule that picks the epoch and, with ``threshold``, the threshold.
        threshold: ``tuned`` or ``off``; by default as the run was told.
        license: licence that the model card names, as the Hugging Face hub spells it (``mit``).
        trust_code: whether the record of the run may name code as its net, ``module:factory``, which is then imported.

    """
    result = as_result(run, trust_code=trust_code)
    return result.export(output, format=format, select=select, threshold=threshold, license=license)
