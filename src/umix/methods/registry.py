"""The methods of umix by name: a new method adds one line."""

from typing import Any

from umix.errors import unknown
from umix.methods.coral import CORAL
from umix.methods.dfr import DFR
from umix.methods.domainmix import DomainMix
from umix.methods.doro import Chi2DORO, CVaRDORO
from umix.methods.dro import Chi2DRO, CVaRDRO
from umix.methods.eiil import EIIL
from umix.methods.erm import ERM
from umix.methods.fish import Fish
from umix.methods.focal import Focal
from umix.methods.group_dro import GroupDRO
from umix.methods.ib_irm import IBIRM
from umix.methods.irm import IRM
from umix.methods.jtt import JTT
from umix.methods.lff import LfF
from umix.methods.lisa import LISA
from umix.methods.lisa_umix import LISAUMIX
from umix.methods.method import Method
from umix.methods.mixup import InGroupMixup, Mixup
from umix.methods.reweight import Resample, Reweight
from umix.methods.umix import UMIX
from umix.methods.vrex import VREx

_KINDS: tuple[type[Method], ...] = (
    ERM,
    UMIX,
    GroupDRO,
    Focal,
    CVaRDRO,
    Chi2DRO,
    CVaRDORO,
    Chi2DORO,
    JTT,
    Reweight,
    Resample,
    DFR,
    Mixup,
    InGroupMixup,
    LISA,
    LISAUMIX,
    LfF,
    EIIL,
    IRM,
    IBIRM,
    VREx,
    CORAL,
    Fish,
    DomainMix,
)

METHODS: dict[str, type[Method]] = {kind.name: kind for kind in _KINDS}


def method(name: str, **settings: Any) -> Method:
    """The method called ``name`` with these hyperparameters.

    >>> method("umix", eta=20, sigma=0).eta
    20.0
    """
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name](**settings)
