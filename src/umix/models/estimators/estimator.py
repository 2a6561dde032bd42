"""Estimators as models: a forest or any other estimator of a library, fitted to weighted rows in one go.

The features of an example are the logits by the first tenth of the estimator's stages, by two tenths, … by all. The head takes the
last of them as they are. Refitting it, as DFR does, weighs the parts of the model anew.
"""

import abc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, field_validator
from pydantic_core import from_json
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from umix.data.loader import batches
from umix.data.task import Split
from umix.errors import Setting, UserError, cause
from umix.models.estimators.library import Floats, Ints, Labels, Library
from umix.models.estimators.tree_layers import TreeLayers
from umix.models.model import Capability, Model, ModelSettings

BLOCKS = 10  # parts of the stages that features tell apart
_AT_ONCE = 2**17  # rows that are predicted at once
_FEW = 2**18  # rows × columns that one thread fits as fast as several
_NEVER = -1e9  # the logit of a class that no row of the fit has: below all others, but finite


class EstimatorSettings(ModelSettings, abc.ABC):
    """Options of a learner that is fitted to weighted rows in one go instead of by gradient steps."""

    offers: ClassVar[frozenset[Capability]] = frozenset({"sample_weight"})
    fit_options: ClassVar[frozenset[str] | None] = frozenset({"epochs"})
    from_data: ClassVar[tuple[str, ...]] = ("categories",)

    folds: int = Field(
        5,
        ge=1,
        le=100,
        description="parts of the training rows: whether a row is uncertain is judged by a model that was fitted without its part; "
        "1 judges by models that have seen the row",
    )
    options: dict[str, Any] = Field(
        {}, description="further options of the library's own estimator, by their names there"
    )
    categories: tuple[int, ...] = Field(
        (), description="values of each column that holds codes, 0 for numbers; the data say it"
    )

    @field_validator("options", mode="before")
    @classmethod
    def _options_may_be_json(cls, options: Any) -> Any:
        if not isinstance(options, str):
            return options
        try:
            return from_json(options)
        except ValueError:
            return options  # refused as what it is

    @property
    @abc.abstractmethod
    def kind(self) -> Library:
        """The library of the estimator."""

    @property
    def has_epochs(self) -> bool:
        return bool(self.kind.stages_option)

    @property
    def per_epoch(self) -> int:
        """How many stages an epoch adds."""
        return 1

    def stages_after(self, epochs: int) -> int:
        """How many stages the model has after so many epochs."""
        return self.per_epoch * epochs

    def rows(self, x: np.ndarray) -> Any:
        """The rows that the estimator is given for the inputs ``x`` of a task: these, unless they only stand for others."""
        return x

    def labels(self, seen: Ints, codes: Ints) -> Labels:
        """What the estimator is told of the classes of its rows, [n]: ``codes``, which are places in ``seen``, or names."""
        return codes

    @abc.abstractmethod
    def make(self, *, stages: int, seed: int) -> Any:
        """A new estimator of so many stages, not fitted yet."""

    def with_categories(self, categories: tuple[int, ...]) -> Self:
        return self.model_copy(update={"categories": categories})

    def check_example(self, example: Tensor, *, data: str) -> None:
        if example.dim() != 1 or not example.is_floating_point():
            raise UserError(
                f"{self.title} must be given rows of numbers, got examples of shape {list(example.shape)} in {data}; choose a net "
                "with ",
                Setting("net"),
                ".",
            )

    def build(self, example: Tensor, n_classes: int) -> "EstimatorModel":
        return EstimatorModel(self, n_classes)

    def made(self, factory: Any, options: Mapping[str, Any]) -> Any:
        """``factory`` called with ``options`` and those that the user gave; an option that it does not take raises UserError."""
        title = getattr(factory, "__name__", factory)
        if both := sorted(set(options) & set(self.options)):
            raise UserError(
                f"net.options must leave out {both[0]}, which other settings of this learner decide; umix nets shows them."
            )
        try:
            return factory(**{**options, **self.options})
        except TypeError as error:
            if not self.options:
                raise UserError(
                    f"{title} must be callable without arguments, but it is not ({cause(error)}); name a function that returns an "
                    "estimator."
                ) from None
            raise UserError(f"net.options must be options of {title}, got {self.options}: {cause(error)}.") from None

    @contextmanager
    def asked_to(self, do: str) -> Iterator[None]:
        """Inside the block the library's estimator is asked to ``do`` something; what it raises becomes one sentence."""
        try:
            yield
        except (UserError, MemoryError):
            raise
        except Exception as error:
            raise UserError(
                f"{self.title} must {do}, but its estimator raised {cause(error)}; change its options or the data."
            ) from error


def _last_block(n_classes: int) -> nn.Linear:
    """A head that takes the last block of the features as logits."""
    head = nn.Linear(BLOCKS * n_classes, n_classes)
    with torch.no_grad():
        head.weight.zero_()
        head.weight[:, -n_classes:] = torch.eye(n_classes)
        head.bias.zero_()
    return head.requires_grad_(False)


@final
class EstimatorModel(Model):
    """An estimator that is fitted or will be; ``cut`` is how many of its stages predict."""

    def __init__(self, settings: EstimatorSettings, n_classes: int) -> None:
        nn.Module.__init__(self)
        self.is_linear = False
        self.encoder = None
        self.head = _last_block(n_classes)
        self.companion = None
        self.settings = settings
        self.n_classes = n_classes
        self.cut = 0
        self._is_trial = False
        self._model: Any = None
        self._seen = np.zeros(0, dtype=np.int64)  # the classes of the rows that were fitted
        self._stored: Tensor | None = None  # the model as bytes, once it was asked for
        self._looks: _Looks | None = None  # what is known of splits while the stages are looked at

    @property
    def model(self) -> Any:
        """The library's fitted model; None before the fit, or where all rows had one class."""
        return self._model

    @property
    def stages(self) -> int:
        """How many stages the model has."""
        return self.settings.kind.n_stages(self._model) if self._model is not None else self.cut

    def fit(self, x: np.ndarray, y: Ints, weight: Floats | None, *, stages: int, seed: int) -> None:
        """Fit the model until it has so many ``stages``.

        A fitted model goes on if its library can do that, else it starts again.
        """
        settings, kind = self.settings, self.settings.kind
        self._seen, codes = np.unique(y, return_inverse=True)
        self._stored, self.cut = None, stages
        if len(self._seen) < 2:
            self._model = None
            return
        if self._model is None or not kind.goes_on:
            self._model = settings.make(stages=stages, seed=seed)
        else:
            self._model.set_params(**{kind.stages_option: stages})
        with settings.asked_to(f"be fitted to {len(x):,} rows"):
            rows, y = settings.rows(x), settings.labels(self._seen, codes.astype(np.int64))
            if self._is_trial:
                rows = kind.trial_rows(self._model, rows, settings.categories)
            kind.fit(self._model, rows, y, weight, settings.categories)
        self.cut = self.stages

    def logits_at(self, x: np.ndarray, ends: Sequence[int]) -> Tensor:
        """The logits by the first ``end`` stages, for each of ``ends``, float32 [ends, n, classes]."""
        if not len(x):
            return torch.zeros(len(ends), 0, self.n_classes)
        return torch.from_numpy(self.scores_at(self.settings.rows(x), ends, n=len(x)).astype(np.float32))

    def scores_at(self, rows: Any, ends: Sequence[int], *, n: int) -> Floats:
        """As ``logits_at``, but of ``n`` rows as the estimator takes them, float64."""
        logits: Floats = np.full((len(ends), n, self.n_classes), _NEVER)
        if self._model is None:
            logits[:, :, self._seen] = 0.0
            return logits
        stages = [min(end, self.stages) for end in ends]
        rising = sorted(set(stages))
        with self.settings.asked_to(f"predict {n:,} rows"):
            scores = self.settings.kind.scores(self._model, rows, rising, self.settings.categories)
        if scores.shape[1:] not in ((n, 1), (n, len(self._seen))) or not np.isfinite(scores).all():
            raise UserError(
                f"{self.settings.title} must give a finite probability of each of {len(self._seen)} classes for {n:,} rows, got "
                f"{list(scores.shape[1:])} numbers, {int((~np.isfinite(scores)).sum()):,} of them not finite; change the estimator."
            )
        if scores.shape[2] == 1:
            scores = np.concatenate([-scores / 2, scores / 2], axis=2)
        logits[:, :, self._seen] = scores[[rising.index(end) for end in stages]]
        return logits

    @property
    def tenths(self) -> list[int]:
        """How many stages every tenth of those that predict ends after."""
        return [max(1, round(self.cut * (block + 1) / BLOCKS)) for block in range(BLOCKS)]

    def encoded_features(self, x: Tensor) -> Tensor:
        """The logits by every tenth of the stages, [n, 10 × classes], the last by all that predict."""
        logits = self.logits_at(x.cpu().numpy(), self.tenths)
        return logits.transpose(0, 1).flatten(1).to(x.device)

    def looks(self, ends: Sequence[int], *, threads: int) -> Iterator[Self]:
        """This model, cut after each of ``ends`` in turn; the logits of a split are computed once for all of them."""
        looks = _Looks(tuple(ends), threads)
        try:
            for looks.place, self.cut in enumerate(ends):
                self._looks = looks
                yield self
        finally:
            self._looks = None

    def known_logits(self, split: Split) -> Tensor | None:
        if self._looks is None:
            return None
        looks = self._looks
        if split not in looks.logits:
            with estimator_threads(looks.threads):
                looks.logits[split] = self.split_logits(split, looks.ends)
        return looks.logits[split][looks.place].to(split.y.device)

    def split_logits(self, split: Split, ends: Sequence[int]) -> Tensor:
        """The logits of every example of ``split`` by the first ``end`` stages, for each of ``ends``: [ends, n, classes]."""
        logits = torch.empty(len(ends), len(split), self.n_classes)
        for batch in batches(split, torch.arange(len(split)), batch_size=_AT_ONCE) if len(split) else ():
            logits[:, batch.index.cpu()] = self.logits_at(batch.x.cpu().numpy(), ends)
        return logits

    def row_logits(self, rows: Any, *, n: int) -> NDArray[np.float64]:
        """The logits of ``n`` rows, as the estimator takes them, [n, classes], in double precision."""
        head, last = self.head.double(), _last_block(self.n_classes).double().state_dict()
        if all(torch.equal(tensor, last[name]) for name, tensor in head.state_dict().items()):
            scores: NDArray[np.float64] = self.scores_at(rows, [self.cut], n=n)[0]
            return scores
        with torch.no_grad():
            blocks = torch.from_numpy(self.scores_at(rows, self.tenths, n=n)).transpose(0, 1).flatten(1)
            logits: NDArray[np.float64] = head(blocks).numpy()
        return logits

    def for_trial(self) -> Self:
        self._is_trial = True
        return self

    def as_layers(self, title: str) -> NoReturn:
        raise UserError(
            f"A state dict is one of a net, but this run is {title}; export it as .onnx or .pt2, or use ",
            Setting("format", "mlflow"),
            ".",
        )

    def as_module(self, title: str) -> TreeLayers:
        if self._model is None:
            raise UserError(f"A model that is exported must know two classes, but this run is {title}, fitted to one.")
        with self.settings.asked_to("be read by treelite"):
            trees = self.settings.kind.treelite(self._model)
        if trees is None:
            raise UserError(
                f"This export works for nets and for trees, lightgbm and xgboost, but this run is {title}; use ",
                Setting("format", "mlflow"),
                ".",
            )
        scores, never = (
            torch.eye(self.n_classes, dtype=torch.float64)[self._seen],
            torch.full((self.n_classes,), _NEVER),
        )
        never[self._seen] = 0.0
        if len(self._seen) == 2:
            scores = (scores[1:] - scores[:1]) / 2
        last = self.head.state_dict()
        return TreeLayers.of(trees, last["weight"], last["bias"], ends=self.tenths, logits=scores, never=never.double())

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        if self._stored is None:
            content = b"" if self._model is None else self.settings.kind.dumps(self._model)
            self._stored = torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else torch.zeros(0).byte()
        destination[f"{prefix}model"] = self._stored
        destination[f"{prefix}classes"] = torch.from_numpy(self._seen)
        destination[f"{prefix}cut"] = torch.tensor(self.cut)

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        self._stored, self.cut = state_dict[f"{prefix}model"], int(state_dict[f"{prefix}cut"])
        self._seen = state_dict[f"{prefix}classes"].cpu().numpy()
        content = bytes(self._stored.cpu().numpy())
        fresh = self.settings.make(stages=max(1, self.cut), seed=0)
        try:
            self._model = self.settings.kind.loads(content, fresh) if content else None
        except Exception as error:  # every library raises other exceptions for a file that is not whole
            raise UserError(
                f"A stored model must be whole, but it cannot be read ({cause(error)}); train it again."
            ) from None


@dataclass(eq=False)
class _Looks:
    """The stages that are looked at, which of them now, and the logits of splits by each of them."""

    ends: tuple[int, ...]
    threads: int
    place: int = 0
    logits: dict[Split, Tensor] = field(default_factory=dict)


def threads_for(train: Split) -> int:
    """How many threads an estimator is fitted with: as many as torch has, and one where there are few rows.

    The threads of a boosted tree wait for each other at every split, actively: on few rows they only slow each other down, and
    where another process wants their core, by a factor of ten and more.
    """
    return 1 if len(train) * max(1, train.example.numel()) < _FEW else torch.get_num_threads()


@contextmanager
def estimator_threads(count: int) -> Iterator[None]:
    """Inside the block estimators use so many threads."""
    before = torch.get_num_threads()
    try:
        with threadpool_limits(count, user_api="openmp"):
            yield
    finally:
        torch.set_num_threads(before)
