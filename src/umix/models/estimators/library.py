"""What umix needs of a library of estimators beside ``fit`` and ``predict_proba``: stages, and a file without pickle.

A boosted model is a sum of stages, so the model of the first k trees is known as soon as all of them are: its logits are read off
stage by stage. An estimator that is not boosted has one stage.
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
Labels = NDArray[Any]  # classes by number or by name


class Library(abc.ABC):
    """How the estimators of one library are fitted, cut after some of their stages, and stored."""

    stages_option: str = ""  # the option of an estimator that sets how many stages it has; empty: it has one
    usual_stages: int = 100  # how many it has where that option is not set
    goes_on: bool = False  # whether a fitted model can be fitted on, with the same result as in one go
    takes_labels: bool = True  # whether classes may be called otherwise than 0 … k-1

    def fit(self, model: Any, x: Any, y: Labels, weight: Floats | None, categories: Sequence[int]) -> None:
        """Fit ``model`` to the rows ``x``, their classes ``y`` [n] and their ``weight`` [n], or none.

        ``categories`` has the number of values of every column that holds codes, and 0 for numbers.
        """
        model.fit(x, y, **({} if weight is None else {of_last_step(model, "sample_weight"): weight}))

    def trial_rows(self, model: Any, x: Any, categories: Sequence[int]) -> Any:
        """The rows that ``model`` is fitted to in a trial instead of ``x``; nearly the same ones where that is much faster."""
        return x

    def stages_set(self, estimator: Any) -> int:
        """How many stages ``estimator`` will have when it is fitted, unless it stops before."""
        return int(estimator.get_params().get(self.stages_option) or self.usual_stages) if self.stages_option else 1

    def n_stages(self, model: Any) -> int:
        """How many stages the fitted ``model`` has."""
        return 1

    @abc.abstractmethod
    def scores(self, model: Any, x: Any, ends: Sequence[int], categories: Sequence[int]) -> Floats:
        """What the first ``end`` stages say of the rows ``x``, for each of ``ends``, which rise: [ends, n, columns].

        Columns are the logits of the classes. Of two classes there may be one column, how far the second is ahead.
        """

    def treelite(self, model: Any) -> Any:
        """The trees of ``model`` as treelite reads them, a stage after the other; None where it cannot."""
        return None

    @abc.abstractmethod
    def dumps(self, model: Any) -> bytes:
        """The fitted ``model`` in a format that no code is stored in."""

    @abc.abstractmethod
    def loads(self, content: bytes, fresh: Any) -> Any:
        """The model that ``dumps`` wrote; ``fresh`` is an estimator that is not fitted. Nothing in it is executed."""


def is_pipeline(estimator: Any) -> bool:
    """Whether ``estimator`` is a list of steps, of which the last one predicts."""
    return isinstance(getattr(estimator, "steps", None), list)


def last_step(estimator: Any) -> Any:
    """The last step of a pipeline, also of one within another; any other estimator itself."""
    return last_step(estimator.steps[-1][1]) if is_pipeline(estimator) else estimator


def of_last_step(estimator: Any, option: str) -> str:
    """What an option of the last step is called in a pipeline: after the name of the step."""
    if not is_pipeline(estimator):
        return option
    name, step = estimator.steps[-1]
    return f"{name}__{of_last_step(step, option)}"


def summed(parts: Sequence[Floats], last: Floats) -> Floats:
    """Scores after each of several blocks of stages, [blocks, n, columns], from what each adds; ``last`` are the final ones.

    Sums of parts may differ from the library's own sum in the last digit, so the last scores are its own.
    """
    scores: Floats = np.cumsum(np.stack(parts), axis=0)
    scores[-1] = last
    return scores


def load_skops(content: bytes, *, trusted: Callable[[str], bool]) -> Any:
    """The model that ``skops.io.dumps`` wrote; a type that skops does not trust itself is loaded if ``trusted`` says yes."""
    import skops.io

    return skops.io.loads(
        content, trusted=[name for name in skops.io.get_untrusted_types(data=content) if trusted(name)]
    )
