# A wire with a router in its middle: side 0 is behind its NAT and its firewall, side 1 is in the world. Both nodes
# are whole in their namespaces, their controls too: side 0 calls through the NAT.
# SPDX-License-Identifier: Apache-2.0
import socket
import struct

from .system import HarnessError, run
from .wires import VethWire, inside_namespace, veth_missing

_INSIDE, _ROUTER_INSIDE, _ROUTER_OUTSIDE = "192.168.7.2", "192.168.7.1", "10.77.0.1"
_CONTROL = "10.77.0.2"  # of side 1, and of its data if that goes over sockets
_DATA = "10.77.0.3"  # else
_NETFILTER = 12  # NETLINK_NETFILTER
_FORGET_ALL = struct.pack("=IHHIIBBH", 20, 1 << 8 | 2, 5, 1, 0, 0, 0, 0)  # IPCTNL_MSG_CT_DELETE


def nat_missing():
    """Why a NatWire cannot be made here, or None."""
    return veth_missing(lossy=True)


class NatWire(VethWire):
    """sockets: as of VethWire; side 0 has them always."""

    name = "nat"

    def __init__(self, mtu=1500, rate="1G", sockets=(0, 1)):
        super().__init__(mtu=mtu, rate=rate, sockets={0, *sockets})
        self._router = self._bridge

    def node_settings(self, side):
        """What such a node configures besides; side 0 only calls."""
        if side == 0:
            return {"control": {"listen": "none"}, "port": {"address4": f"{_INSIDE}/24", "address6": ""}}
        data = _CONTROL if side in self._sockets else _DATA
        return {"control": {"listen": f"{_CONTROL}:7400"}, "port": {"address4": f"{data}/24", "address6": ""}}

    @staticmethod
    def introduce(inside, outside):
        """They trust each other, and only side 1 can be called."""
        inside.trust(outside, address=f"{_CONTROL}:7400")
        for left in (outside.directory / "trusted").glob("a.*"):
            left.unlink()
        outside.must("node", "trust", inside.name, inside.certificate)

    def _make(self):
        inside, outside = self._namespaces
        router = self._router
        for namespace in (inside, outside, router):
            run(["ip", "netns", "add", namespace])
            self._made.append(namespace)
        self._make_veth(inside, router, "in0")
        self._make_veth(outside, router, "out0")
        for namespace, device, address in ((inside, "data0", _INSIDE), (router, "in0", _ROUTER_INSIDE),
                                           (router, "out0", _ROUTER_OUTSIDE), (outside, "data0", _CONTROL)):  # fmt: skip
            run(["ip", "-n", namespace, "address", "add", f"{address}/24", "dev", device])
            self._raise(namespace, device, addresses=True)
        run(["ip", "-n", inside, "route", "add", "default", "via", _ROUTER_INSIDE])
        run([*self._enter(router), "sysctl", "-q", "net.ipv4.ip_forward=1"])
        self.give_ports("20000-29999")
        run([*self._enter(router), "nft",
             "add table ip wall; add chain ip wall way { type filter hook forward priority 0; policy drop; }; "
             "add rule ip wall way iifname in0 accept; "
             "add rule ip wall way ct state established,related accept"])  # fmt: skip

    def give_ports(self, ports):
        """From now on the NAT shows UDP flows that are new to it under one of these ports."""
        run([*self._enter(self._router), "nft",
             "add table ip nat; flush table ip nat; "
             "add chain ip nat post { type nat hook postrouting priority srcnat; }; "
             f"add rule ip nat post oifname out0 ip protocol udp masquerade to :{ports} random; "
             "add rule ip nat post oifname out0 masquerade"])  # fmt: skip

    def forget(self):
        """The NAT forgets every connection, as when it was restarted."""
        netlink = inside_namespace(
            self._router, lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETFILTER)
        )
        with netlink:
            netlink.send(_FORGET_ALL)
            error = struct.unpack_from("=i", netlink.recv(4096), 16)[0]
        if error != 0:
            raise HarnessError(f"the NAT does not forget: error {-error}")
