"""The methods by name: a line for each method of umix, and the entry points ``umix.methods`` of installed packages."""

from typing import TYPE_CHECKING, Any

from umix.registry import Registry

if TYPE_CHECKING:
    from umix.methods.method import Method

METHODS: "Registry[Method]" = Registry(
    "method",
    base="umix.methods.method:Method",
    group="umix.methods",
    own={
        "best": "umix.methods.best:Best",
        "erm": "umix.methods.erm:ERM",
        "umix": "umix.methods.umix:UMIX",
        "group_dro": "umix.methods.group_dro:GroupDRO",
        "focal": "umix.methods.focal:Focal",
        "cvar_dro": "umix.methods.dro:CVaRDRO",
        "chi2_dro": "umix.methods.dro:Chi2DRO",
        "cvar_doro": "umix.methods.doro:CVaRDORO",
        "chi2_doro": "umix.methods.doro:Chi2DORO",
        "jtt": "umix.methods.jtt:JTT",
        "reweight": "umix.methods.reweight:Reweight",
        "resample": "umix.methods.reweight:Resample",
        "dfr": "umix.methods.dfr:DFR",
        "mixup": "umix.methods.mixup:Mixup",
        "ingroup_mixup": "umix.methods.mixup:InGroupMixup",
        "group_mixup": "umix.methods.group_mixup:GroupMixup",
        "lisa": "umix.methods.lisa:LISA",
        "lisa_umix": "umix.methods.lisa_umix:LISAUMIX",
        "lff": "umix.methods.lff:LfF",
        "eiil": "umix.methods.eiil:EIIL",
        "irm": "umix.methods.irm:IRM",
        "ib_irm": "umix.methods.ib_irm:IBIRM",
        "vrex": "umix.methods.vrex:VREx",
        "coral": "umix.methods.coral:CORAL",
        "fish": "umix.methods.fish:Fish",
        "domainmix": "umix.methods.domainmix:DomainMix",
        "balanced_softmax": "umix.methods.balanced_softmax:BalancedSoftmax",
        "logit_adjustment": "umix.methods.logit_adjustment:LogitAdjustment",
        "ldam": "umix.methods.ldam:LDAM",
        "ula": "umix.methods.ula:ULA",
        "mmd": "umix.methods.mmd:MMD",
        "pde": "umix.methods.pde:PDE",
        "ssa": "umix.methods.ssa:SSA",
        "pg_dro": "umix.methods.pg_dro:PGDRO",
        "afr": "umix.methods.afr:AFR",
        "self": "umix.methods.self:SELF",
        "cb_last_layer": "umix.methods.cb_last_layer:CBLastLayer",
        "crt": "umix.methods.crt:CRT",
        "evals": "umix.methods.evals:EVaLS",
        "george": "umix.methods.george:GEORGE",
        "xrm": "umix.methods.xrm:XRM",
        "spare": "umix.methods.spare:SPARE",
        "cnc": "umix.methods.cnc:CnC",
    },
)


def method(name: str, **settings: Any) -> "Method":
    """The method called ``name`` with these hyperparameters.

    >>> method("umix", eta=20, sigma=0).eta
    20.0
    """
    return METHODS.find(name)(**settings)
