"""Nets: features of the input, and a head on top of them."""

from umix.nets.net import Net, NetSettings
from umix.nets.registry import NETS, net_kind, net_settings

__all__ = ["NETS", "Net", "NetSettings", "net_kind", "net_settings"]
