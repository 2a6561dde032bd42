"""Every method keeps the contract; and the contract catches methods that do not."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal, final, get_args, get_origin

import numpy as np
import pytest
import torch
from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo
from torch import Tensor

from umix.data.batch import Batch
from umix.errors import UserError
from umix.methods.method import Method
from umix.methods.registry import METHODS
from umix.models.net import Net
from umix.testing import (
    CHECKS,
    ContractError,
    check_beats_chance,
    check_finite_on_hostile_batches,
    check_method,
    check_picklable,
    check_resume,
    check_training,
    check_weights,
)
from umix.training.context import Context
from umix.training.objective import MeanRisk, Objective, State
from umix.training.stage import ErmStage
from umix.training.train_result import TrainResult

#: Settings that keep a method's stages short on the small task; everything else is its default.
SHORT: dict[str, dict[str, object]] = {
    **{name: {"length": 2} for name in ("umix", "lisa_umix")},
    **{name: {"layer_epochs": 3, "layer_lr": 0.1} for name in ("afr", "self", "cb_last_layer", "crt")},
    **{name: {"attribute_epochs": 2} for name in ("ssa", "pg_dro")},
    "eiil": {"inference_steps": 10},
}

MIXED = [{"mixing": "features"}, {"mixing": "cutmix"}]
INFERRED = [
    {"adjustment": 1.0},
    {"then": "umix", "class_balance": True, "mixing": "features"},
    {"then": "umix", "class_balance": False, "mixing": "cutmix"},
]
WEIGHED = [
    {"eta": "auto", "pool": "auto", "length": "auto", "budget": 0.1},
    {"pool": "class", "normalize": False, "start": 1, "record": "epoch_end", "mixing": "features"},
    {"pool": "balance", "uncertainty": "ensemble", "mixing": "cutmix"},
    {"pool": "cell", "power": 0.5},
    {"pool": "neighbours"},
]
BY_GROUP = [
    {"scheme": "effective"},
    {"by": "group", "scheme": "effective"},
    {"by": "group", "groups_from": "few", "power": 0.5},
]

#: Settings that switch the optional parts of a method on, as many at once as go together. What a method does after a number of
#: steps or epochs happens here within the few that the contract trains.
VARIANTS: dict[str, list[dict[str, object]]] = {
    "best": [{"trials": 3, "time": 1e6, "mixing": "features"}, {"trials": 2, "mixing": "cutmix"}],
    "umix": [*WEIGHED, {"per_example": True, "sigma": 1.0}],
    "mixup": MIXED,
    "focal": [{"class_balance": "inverse"}, {"class_balance": "effective"}],
    "cvar_dro": [{"alpha": "auto"}],
    "chi2_dro": [{"alpha": "auto"}],
    "jtt": [{"identification_epochs": "auto", "upweight": "auto"}, {"record": "online"}],
    "bam": [{"strength": 0.0}],
    "lc": [{"mix": False, "eta": 0.0}, {"mixing": "features", "ramp": 0}, {"mixing": "cutmix", "smoothing": 0.0}],
    "lff": [{"smoothing": 0.9}],
    "eiil": INFERRED,
    "xrm": [{"twin_epochs": 1, "tries": 2, "batches": "shuffled"}, {"then": "umix", "class_balance": False}],
    "george": [
        {"reference_epochs": 1, "kind": "kmeans", "clusters": 2},
        {"then": "umix", "by": "hardness", "clusters": 2},
    ],
    "spare": [{"clusters": 2, "power": "auto"}],
    "afr": [{"lam": 0.1}, {"lam": 0.1, "sigma": 0.5}],
    "self": [{"by": "loss"}],
    "dpe": [{"by": "class", "members": 3}],
    "evals": [{"k": 10, "penalty": "l2"}],
    "reweight": BY_GROUP,
    "resample": BY_GROUP[-1:],
    "logit_adjustment": [{"when": "post_hoc"}],
    "ldam": [{"reweight_from": 0.5}],
    "crt": [{"by": "group"}, {"by": "group", "balance": "weights"}],
    "dfr": [{"penalty": "l2", "share": 0.8, "repeats": 2}],
    "ssa": [{"adjustment": 1.0}],
    "pg_dro": [{"adjustment": 1.0, "estimate": "net", "batches": "shuffled"}],
    "group_dro": [{"step_size": 0.5, "adjustment": 1.0}, {"step_size": "auto"}, {"groups_from": "few"}],
    "group_mixup": [{"mixing": "features", "per_example": True}, {"mixing": "cutmix", "groups_from": "few"}],
    "ingroup_mixup": MIXED,
    "lisa": [
        {"mixing": "features", "balance": False, "per_example": True},
        {"mixing": "cutmix", "partners": "group"},
    ],
    "lisa_umix": [WEIGHED[0], {"balance": True, "mixing": "features"}, {"mixing": "cutmix"}],
    "domainmix": MIXED,
    "pde": [{"group_size": 5, "warm_up": 0.3, "added": 0.8, "expansions": 2, "lr_factor": 0.5}],
    "irm": [{"anneal": 3}, {"anneal": 4, "domains": "group"}],  # between two epochs, and within one
    "ib_irm": [{"anneal": 3, "bottleneck_anneal": 7}],
    "vrex": [{"anneal": 4}],
    "fish": [{"warmup": 4}],
}


def made(name: str, settings: dict[str, object]) -> Method:
    return METHODS[name](**{**SHORT.get(name, {}), **settings})


@pytest.mark.parametrize("name", METHODS)
def test_method_keeps_the_contract(name: str) -> None:
    check_method(made(name, {}))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param(name, settings, id=",".join([name, *(f"{key}={value}" for key, value in settings.items())]))
        for name, variants in VARIANTS.items()
        for settings in variants
    ],
)
def test_variant_of_a_method_keeps_the_contract(name: str, settings: dict[str, object]) -> None:
    method = made(name, settings)
    for check in CHECKS:
        if check is not check_beats_chance:  # that an optional part learns quickly is not promised
            check(method)


def choices(annotation: object) -> Iterator[object]:
    """The values that a field of this type may have besides numbers."""
    if annotation is bool:
        yield from (False, True)
    for part in get_args(annotation):
        if get_origin(annotation) is Literal:
            yield part
        else:
            yield from choices(part)


def owner(name: str, field: str) -> type:
    """The class that declares the setting: its own, or one that several methods derive from."""
    return next(kind for kind in METHODS[name].__mro__ if field in vars(kind).get("__annotations__", {}))


@pytest.mark.parametrize("name", METHODS)
def test_every_optional_part_of_a_method_is_switched_on_in_a_variant(name: str) -> None:
    """What several methods inherit from one class is switched on in one of them."""
    for field, info in METHODS[name].model_fields.items():
        alike = [other for other in METHODS if field in METHODS[other].model_fields]
        alike = [other for other in alike if owner(other, field) is owner(name, field)]
        tried = [made(one, settings).model_dump()[field] for one in alike for settings in VARIANTS.get(one, [])]
        switched_off = info.default is None or (info.default == 0 and info.annotation is not bool)
        assert not switched_off or any(value != info.default for value in tried), f"{field} is {info.default} in all"
        assert {*choices(info.annotation)} <= {info.default, *tried}, f"{field} is never one of its choices"


def out_of_range(info: FieldInfo) -> Iterator[float]:
    """Numbers that break a bound of the field."""
    for bound in info.metadata:
        match bound:
            case Ge():
                yield bound.ge - 1  # type: ignore[operator]
            case Gt():
                yield bound.gt  # type: ignore[misc]
            case Le():
                yield bound.le + 1  # type: ignore[operator]
            case Lt():
                yield bound.lt  # type: ignore[misc]


@pytest.mark.parametrize("name", METHODS)
def test_a_number_out_of_its_range_is_refused_in_a_sentence_that_names_the_setting(name: str) -> None:
    for field, info in METHODS[name].model_fields.items():
        for number in out_of_range(info):
            with pytest.raises(UserError, match=rf"^{name}\.{field} must be .*, got {number:g}"):
                METHODS[name](**{field: number})


@pytest.mark.parametrize("name", ["erm", "jtt", "group_dro"])
def test_the_contract_fails_where_no_checkpoint_can_be_loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: Path, **options: object) -> None:
        raise UserError(f"{path} must be whole, but it is not; delete it.")

    monkeypatch.setattr("umix.training.fit.load_checkpoint", fails)
    with pytest.raises(
        ContractError, match=r"must go on with .* when it was killed after 1 epochs, got .* starts again"
    ):
        check_resume(made(name, {}))


class GlobalNoise(Objective):
    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        return net(batch.x + float(np.random.rand())).square().mean(), state


class Drifts(Objective):
    """Counts batches outside of its state, so a resumed run forgets the count."""

    def __init__(self) -> None:
        self.count = 0

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        self.count += 1
        return torch.nn.functional.cross_entropy(net(batch.x), batch.y) * self.count, state


class Explodes(Objective):
    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        return (net(batch.x).var(dim=0, correction=0) ** -1).sum(), state


def broken(objective: Callable[[], Objective], label: str) -> type[Method]:
    @final
    class Broken(Method):
        name: ClassVar[str] = label
        paper: ClassVar[str] = "none"

        def train(self, context: Context) -> TrainResult:
            return context.fit(objective())

    return Broken


class Unseeded(Objective):
    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        return net(batch.x + np.random.default_rng().random()).square().mean(), state


class DropsWeights(Objective):
    takes_weights = True

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        return torch.nn.functional.cross_entropy(net(batch.x), batch.y), state


class IgnoresWeights(Method):
    name: ClassVar[str] = "ignores"
    paper: ClassVar[str] = "none"
    takes_weights: ClassVar[bool] = True

    def train(self, context: Context) -> TrainResult:
        return context.fit(DropsWeights())


class CountsItsAttempts(Method):
    name: ClassVar[str] = "counts"
    paper: ClassVar[str] = "none"

    def train(self, context: Context) -> TrainResult:
        if context.directory is not None:
            context.directory.mkdir(exist_ok=True)
            with open(context.directory / "attempts.txt", "a") as attempts:
                attempts.write("another")
        return context.fit(MeanRisk())


class PeeksAtGroups(Method):
    name: ClassVar[str] = "peeks"
    paper: ClassVar[str] = "none"

    def train(self, context: Context) -> TrainResult:
        size = float(context.task.splits["train"].groups.sizes[0])
        return replace(context, seed=int(size)).fit(MeanRisk())


class HidesItsStage(Method):
    name: ClassVar[str] = "hides"
    paper: ClassVar[str] = "none"

    def train(self, context: Context) -> TrainResult:
        context.reference(ErmStage("reference", 1))
        return context.fit(MeanRisk())


class DoesNotListItsStage(Method):
    name: ClassVar[str] = "unlisted"
    paper: ClassVar[str] = "none"

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return (ErmStage("reference", epochs),)

    def train(self, context: Context) -> TrainResult:
        context.reference(*self.erm_stages(context.settings.epochs))
        return context.fit(MeanRisk())


@pytest.mark.parametrize(
    ("method", "check", "complaint"),
    [
        pytest.param(broken(GlobalNoise, "noise")(), check_training, "global generators", id="global noise"),
        pytest.param(broken(Unseeded, "unseeded")(), check_training, "same net for the same seed", id="unseeded"),
        pytest.param(PeeksAtGroups(), check_training, "without declaring needs_groups", id="peeks at groups"),
        pytest.param(IgnoresWeights(), check_weights, "must use the weights of examples", id="ignores weights"),
        pytest.param(HidesItsStage(), check_training, r"must name \['reference'\] in", id="hides a stage"),
        pytest.param(DoesNotListItsStage(), check_training, "must name {'reference'} in", id="unlisted stage"),
        pytest.param(broken(Drifts, "drifts")(), check_resume, "same net when it was killed", id="forgets on resume"),
        pytest.param(CountsItsAttempts(), check_resume, "same file attempts.txt", id="another file"),
        pytest.param(broken(Explodes, "explodes")(), check_finite_on_hostile_batches, "of one example", id="explodes"),
        pytest.param(broken(Drifts, "local")(), check_picklable, "pickl", id="not picklable"),
    ],
)
def test_the_contract_catches_a_broken_method(method: Method, check: Callable[[Method], None], complaint: str) -> None:
    with pytest.raises(ContractError, match=complaint):
        check(method)
