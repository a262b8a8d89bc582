# What joins two nodes: a shared-memory wire (memif), or a veth pair between two network namespaces.
#
# Only the dataplanes live in the namespaces; the controls stay outside and meet on 127.0.0.1.
# SPDX-License-Identifier: Apache-2.0
import itertools
import os
import shutil

from .system import HarnessError, is_root, run, wait_until

_serial = itertools.count(1)
# Frames of 9000 bytes and their headers fit; framesz must not exceed the mbuf's data room.
_AF_PACKET_ARGUMENTS = "blocksz=36864,framesz=9216,framecnt=2048,qdisc_bypass=1"


class MemifWire:
    name = "memif"
    mtu = 9000
    rate = "200G"

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        pass

    def device(self, side, directory):
        role = "server" if side == 0 else "client"
        return f"net_memif0,role={role},id=0,socket={directory}/memif.sock,socket-abstract=no,bsize=9216"

    def enter(self, _side):
        return []


def veth_missing(lossy=False):
    """Why a VethWire cannot be made here, or None."""
    if not is_root():
        return "network namespaces need root"
    for tool in ("ip", "ethtool", "nsenter", *(["nft"] if lossy else [])):
        if shutil.which(tool) is None:
            return f"{tool} is not installed; run ./dev deps"
    name = f"slprobe{os.getpid()}"
    try:
        run(["ip", "netns", "add", name])
    except HarnessError as error:
        return f"no network namespaces here: {error}"
    run(["ip", "netns", "del", name])
    return None


class VethWire:
    """kernel_addresses: the second end belongs to the kernel's own IP stack, with these addresses, rather
    than to a dataplane. lose: of 1000 frames, so many are dropped on the way, by a bridge in between."""

    name = "af_packet"

    def __init__(self, mtu=9000, kernel_addresses=(), rate="4G", lose=0):
        self.mtu = mtu
        self.rate = rate
        self._lose = lose
        self._kernel_addresses = kernel_addresses
        stem = f"sl{os.getpid()}n{next(_serial)}"
        self._namespaces = [stem + "a", stem + "b"]
        self._bridge = stem + "m"
        self._made = []

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self):
        for namespace in [*self._namespaces, *([self._bridge] if self._lose else [])]:
            run(["ip", "netns", "add", namespace])
            self._made.append(namespace)
        if self._lose:
            self._make_bridge()
        else:
            self._make_veth(self._namespaces[0], self._namespaces[1], "data0")
        for side, namespace in enumerate(self._namespaces):
            kernel = side == 1 and self._kernel_addresses
            for address in self._kernel_addresses if kernel else ():
                extra = ["nodad"] if ":" in address else []
                run(["ip", "-n", namespace, "address", "add", address, "dev", "data0", *extra])
            self._raise(namespace, "data0", addresses=kernel)
        for namespace in self._namespaces:
            wait_until(lambda: "state UP" in run(["ip", "-n", namespace, "link", "show", "data0"]), 10,
                       f"data0 of {namespace} is up")  # fmt: skip

    def _make_veth(self, namespace, other, other_name):
        run(["ip", "-n", namespace, "link", "add", "data0", "mtu", self.mtu, "type", "veth",
             "peer", "name", other_name, "mtu", self.mtu, "netns", other])  # fmt: skip

    def _make_bridge(self):
        middle = self._bridge
        run(["ip", "-n", middle, "link", "add", "br0", "mtu", self.mtu, "type", "bridge", "stp_state", "0",
             "forward_delay", "0", "mcast_snooping", "0"])  # fmt: skip
        for side, namespace in enumerate(self._namespaces):
            self._make_veth(namespace, middle, f"port{side}")
            run(["ip", "-n", middle, "link", "set", f"port{side}", "master", "br0"])
            self._raise(middle, f"port{side}", addresses=False)
        self._raise(middle, "br0", addresses=False)
        rules = ("add table bridge lossy; "
                 "add chain bridge lossy way { type filter hook forward priority 0; policy accept; }; "
                 f"add rule bridge lossy way numgen random mod 1000 < {self._lose} drop")  # fmt: skip
        run([*self._enter(middle), "nft", rules])

    def _raise(self, namespace, device, addresses):
        if device != "br0":
            # A veth passes partial checksums and super-frames, which no real wire carries.
            run([*self._enter(namespace), "ethtool", "-K", device, "tx", "off", "gso", "off", "tso", "off",
                 "gro", "off"])  # fmt: skip
        if not addresses:
            # The kernel would answer beside the dataplane if it had an address, even a link-local one.
            run(["ip", "-n", namespace, "link", "set", device, "addrgenmode", "none"])
        run(["ip", "-n", namespace, "link", "set", device, "up"])

    def __exit__(self, *_error):
        while self._made:
            run(["ip", "netns", "del", self._made.pop()])

    def device(self, _side, _directory):
        return f"net_af_packet0,iface=data0,{_AF_PACKET_ARGUMENTS}"

    @staticmethod
    def _enter(namespace):
        return ["nsenter", f"--net=/run/netns/{namespace}", "--"]

    def enter(self, side):
        """Prefix of a command that shall run in the namespace of this side."""
        return self._enter(self._namespaces[side])
