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
        # Without group labels: weights, risks and mixtures.
        "mixup": "umix.methods.mixup:Mixup",
        "focal": "umix.methods.focal:Focal",
        "cvar_dro": "umix.methods.dro:CVaRDRO",
        "chi2_dro": "umix.methods.dro:Chi2DRO",
        "cvar_doro": "umix.methods.doro:CVaRDORO",
        "chi2_doro": "umix.methods.doro:Chi2DORO",
        "jtt": "umix.methods.jtt:JTT",
        "bam": "umix.methods.bam:BAM",
        "lff": "umix.methods.lff:LfF",
        "lc": "umix.methods.lc:LC",
        "ula": "umix.methods.ula:ULA",
        "cnc": "umix.methods.cnc:CnC",
        # Without group labels: groups are inferred.
        "eiil": "umix.methods.eiil:EIIL",
        "xrm": "umix.methods.xrm:XRM",
        "george": "umix.methods.george:GEORGE",
        "spare": "umix.methods.spare:SPARE",
        # Without group labels: the last layer is trained again.
        "afr": "umix.methods.afr:AFR",
        "self": "umix.methods.self:SELF",
        "cb_last_layer": "umix.methods.cb_last_layer:CBLastLayer",
        "dpe": "umix.methods.dpe:DPE",
        "evals": "umix.methods.evals:EVaLS",
        # Class imbalance; the first two also balance groups.
        "reweight": "umix.methods.reweight:Reweight",
        "resample": "umix.methods.reweight:Resample",
        "suby": "umix.methods.subsample:SUBY",
        "balanced_softmax": "umix.methods.balanced_softmax:BalancedSoftmax",
        "logit_adjustment": "umix.methods.logit_adjustment:LogitAdjustment",
        "ldam": "umix.methods.ldam:LDAM",
        "crt": "umix.methods.crt:CRT",
        # With the groups of validation, or of a few rows.
        "dfr": "umix.methods.dfr:DFR",
        "ssa": "umix.methods.ssa:SSA",
        "pg_dro": "umix.methods.pg_dro:PGDRO",
        # With the groups of all training rows; some also with estimates from a few.
        "group_dro": "umix.methods.group_dro:GroupDRO",
        "subg": "umix.methods.subsample:SUBG",
        "group_mixup": "umix.methods.group_mixup:GroupMixup",
        "ingroup_mixup": "umix.methods.mixup:InGroupMixup",
        "lisa": "umix.methods.lisa:LISA",
        "lisa_umix": "umix.methods.lisa_umix:LISAUMIX",
        "domainmix": "umix.methods.domainmix:DomainMix",
        "pde": "umix.methods.pde:PDE",
        "irm": "umix.methods.irm:IRM",
        "ib_irm": "umix.methods.ib_irm:IBIRM",
        "vrex": "umix.methods.vrex:VREx",
        "coral": "umix.methods.coral:CORAL",
        "mmd": "umix.methods.mmd:MMD",
        "fish": "umix.methods.fish:Fish",
    },
)


def method(name: str, **settings: Any) -> "Method":
    """The method called ``name`` with these hyperparameters.

    Args:
        name: a name that ``umix methods`` lists.
        settings: its hyperparameters, as ``eta=20``; the others have their defaults.

    >>> method("umix", eta=20, sigma=0).eta
    20.0

    """
    return METHODS.find(name)(**settings)
