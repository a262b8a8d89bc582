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


def veth_missing():
    """Why a VethWire cannot be made here, or None."""
    if not is_root():
        return "network namespaces need root"
    for tool in ("ip", "ethtool", "nsenter"):
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
    than to a dataplane."""

    name = "af_packet"
    rate = "4G"

    def __init__(self, mtu=9000, kernel_addresses=()):
        self.mtu = mtu
        self._kernel_addresses = kernel_addresses
        stem = f"sl{os.getpid()}n{next(_serial)}"
        self._namespaces = [stem + "a", stem + "b"]
        self._made = []

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self):
        first, second = self._namespaces
        for namespace in self._namespaces:
            run(["ip", "netns", "add", namespace])
            self._made.append(namespace)
        run(["ip", "-n", first, "link", "add", "data0", "mtu", self.mtu, "type", "veth",
             "peer", "name", "data0", "mtu", self.mtu, "netns", second])  # fmt: skip
        for side, namespace in enumerate(self._namespaces):
            kernel = side == 1 and self._kernel_addresses
            # A veth passes partial checksums and super-frames, which no real wire carries.
            run([*self.enter(side), "ethtool", "-K", "data0", "tx", "off", "gso", "off", "tso", "off",
                 "gro", "off"])  # fmt: skip
            if kernel:
                for address in self._kernel_addresses:
                    extra = ["nodad"] if ":" in address else []
                    run(["ip", "-n", namespace, "address", "add", address, "dev", "data0", *extra])
            else:
                # The kernel would answer beside the dataplane if it had an address, even a link-local one.
                run(["ip", "-n", namespace, "link", "set", "data0", "addrgenmode", "none"])
            run(["ip", "-n", namespace, "link", "set", "lo", "up"])
            run(["ip", "-n", namespace, "link", "set", "data0", "up"])
        for namespace in self._namespaces:
            wait_until(lambda: "state UP" in run(["ip", "-n", namespace, "link", "show", "data0"]), 10,
                       f"data0 of {namespace} is up")  # fmt: skip

    def __exit__(self, *_error):
        while self._made:
            run(["ip", "netns", "del", self._made.pop()])

    def device(self, _side, _directory):
        return f"net_af_packet0,iface=data0,{_AF_PACKET_ARGUMENTS}"

    def enter(self, side):
        """Prefix of a command that shall run in the namespace of this side."""
        return ["nsenter", f"--net=/run/netns/{self._namespaces[side]}", "--"]
