"""Which columns of a table a trained model relies on: scikit-learn's permutation importance, over all rows and for one group."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
from numpy.typing import NDArray

from umix.bench.evaluation.evaluated import ColumnImportance, Importance
from umix.bench.evaluation.labelled import Labelled
from umix.core.streams import stream
from umix.data.tables.preprocessing import TablePreprocessing
from umix.training.progress import Progress

if TYPE_CHECKING:
    from torch import Tensor

#: How often each column is shuffled, and among how many rows.
REPEATS, MOST_ROWS = 5, 2000
_ALL, _WORST = "all", "worst"


@final
class _Model:
    """A fitted estimator for scikit-learn, whose inputs [n, columns] say from which row the value of each column is taken.

    So a column that becomes several numbers, such as a date or a category, is shuffled as a whole.
    """

    def __init__(
        self,
        reader: TablePreprocessing,
        codes: NDArray[np.float32],
        predict: "Callable[[Tensor], NDArray[np.int64]]",
        progress: Progress,
    ) -> None:
        self._reader, self._codes, self._predict, self._progress = reader, codes, predict, progress

    def fit(self, rows: Any, y: Any) -> Self:
        return self

    def predict(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The classes of the rows that are put together so."""
        taken = np.empty((len(rows), self._codes.shape[1]), dtype=np.float32, order="F")
        for number, place in enumerate(self._reader.places.values()):
            taken[:, place] = self._codes[rows[:, number], place]
        self._progress.advance(1)
        return self._predict(self._reader.from_codes(taken))


def importance(
    reader: TablePreprocessing,
    data: Labelled,
    predict: "Callable[[Tensor], NDArray[np.int64]]",
    *,
    worst: tuple[str, NDArray[np.bool_]] | None,
    seed: int,
    progress: Progress,
) -> Importance:
    """The importance of the input columns of ``data``, found on at most 2,000 of its rows.

    Values are shuffled between all of these rows; ``worst`` is a group's name and members [n], whose accuracy is looked at too.
    """
    from sklearn.inspection import permutation_importance

    rng, columns = stream(seed, "evaluate", "importance"), list(reader.places)
    kept = np.sort(rng.permutation(len(data.y))[:MOST_ROWS])
    label, inside = data.y[kept], np.zeros(len(kept), dtype=bool) if worst is None else worst[1][kept]

    def score(model: _Model, rows: NDArray[np.int64], label: NDArray[np.int64]) -> dict[str, float]:
        correct = model.predict(rows) == label
        scores = {_ALL: float(correct.mean())}
        return scores | {_WORST: float(correct[inside].mean())} if inside.any() else scores

    progress.start("importance", total=1 + len(columns) * REPEATS, done=0)
    try:
        found = permutation_importance(
            _Model(reader, reader.codes(data.frame[kept]), predict, progress),
            np.repeat(np.arange(len(kept))[:, None], len(columns), axis=1),
            label,
            scoring=score,
            n_repeats=REPEATS,
            random_state=int(rng.integers(2**32)),
        )
    finally:
        progress.finish()
    means = {name: (one.importances_mean.tolist(), one.importances_std.tolist()) for name, one in found.items()}
    of_worst = means.get(_WORST, ([None] * len(columns),) * 2)
    rows = [
        ColumnImportance(column=name, all=mean, all_std=std, worst=worst_mean, worst_std=worst_std)
        for name, mean, std, worst_mean, worst_std in zip(columns, *means[_ALL], *of_worst, strict=True)
    ]
    return Importance(
        data=data.title,
        rows=len(kept),
        repeats=REPEATS,
        worst_group=worst[0] if worst is not None and inside.any() else None,
        worst_rows=int(inside.sum()),
        columns=sorted(rows, key=lambda one: -one.all),
    )
