"""Nets: features of the input, and a head on top of them."""

from umix.models.net import Net, NetSettings
from umix.models.registry import NETS, net_kind, net_settings

__all__ = ["NETS", "Net", "NetSettings", "net_kind", "net_settings"]
