"""Models: nets, which are trained by gradient steps, and estimators, which are fitted to weighted rows."""

from umix.models.model import Model, ModelSettings
from umix.models.net import Net, NetSettings
from umix.models.registry import NETS, net_kind, net_settings

__all__ = ["NETS", "Model", "ModelSettings", "Net", "NetSettings", "net_kind", "net_settings"]
