"""The nets by name: a line for each net or provider of nets in umix, and the entry points ``umix.nets`` of installed packages."""

from typing import TYPE_CHECKING, Any

from umix.errors import UserError, unknown
from umix.registry import Registry

if TYPE_CHECKING:
    from umix.models.model import LearnerSettings, ModelSettings

NETS: "Registry[LearnerSettings]" = Registry(
    "net",
    base="umix.models.model:LearnerSettings",
    group="umix.nets",
    own={
        "auto": "umix.models.model:AutoNet",
        "mlp": "umix.models.mlp:MLP",
        "tabular": "umix.models.tabular:Tabular",
        "cnn": "umix.models.cnn:CNN",
        "linear": "umix.models.mlp:Linear",
        "hf": "umix.models.hf:HuggingFace",
        "monai": "umix.models.image_nets:Monai",
        "torchvision": "umix.models.image_nets:TorchVision",
        "timm": "umix.models.image_nets:Timm",
        "trees": "umix.models.estimators.boosted:Trees",
        "lightgbm": "umix.models.estimators.boosted:LightGBM",
        "xgboost": "umix.models.estimators.boosted:XGBoost",
        "catboost": "umix.models.estimators.boosted:CatBoost",
        "estimator": "umix.models.estimators.own:OwnEstimator",
        "own": "umix.models.own:OwnNet",
    },
)


#: Nets and estimators that a factory of the user makes.
_MADE_BY_CODE = ("estimator", "own")


def names_code(name: str) -> bool:
    """Whether ``name`` means code, ``module.path:factory``, which is imported when the name is looked up.

    >>> names_code("mynets:small"), names_code("hf:distilbert"), names_code("mlp")
    (True, False, False)
    """
    provider, _, factory = name.partition(":")
    kind = None if provider in _MADE_BY_CODE else NETS.get(provider)
    if kind is not None and kind.options_in(name) is not None:
        return False
    return all(part.isidentifier() for part in (*provider.split("."), factory))


def net_kind(name: str) -> "tuple[type[LearnerSettings], dict[str, Any]]":
    """The class of the net called ``name`` and the options that the name stands for.

    A name is that of a net, ``provider:name``, or ``module.path:factory`` for a net or an estimator of your own.

    >>> net_kind("hf:distilbert-base-uncased")[1]
    {'model': 'distilbert-base-uncased'}
    """
    for key in (name.partition(":")[0], *_MADE_BY_CODE):
        kind = NETS.get(key)
        options = None if kind is None else kind.options_in(name)
        if kind is not None and options is not None:
            return kind, options
    raise unknown("net", name, [kind.usage() for kind in NETS.values()])


def learner_settings(name: str, **options: Any) -> "LearnerSettings":
    """The settings of what ``--net`` calls ``name``: a model, or several to choose from."""
    kind, implied = net_kind(name)
    return kind(**options, **implied)


def net_settings(name: str, **options: Any) -> "ModelSettings":
    """The settings of the model called ``name``, not built yet.

    >>> net_settings("mlp", hidden=[64]).hidden
    (64,)
    """
    from umix.models.model import ModelSettings

    settings = learner_settings(name, **options)
    if not isinstance(settings, ModelSettings):
        raise UserError(f"net must name one learner here, got {name!r}, which tries several; name one of them.")
    return settings
