# Several nodes on one switch, each in a network namespace of its own, each with one export `data`, trusting each other.
#
#   with Group(["home", "alpha", "beta"]) as group: group.start(); group["home"].must("get", ...)
#
# The nodes use the kernel's sockets, and their controls meet on the same network: what is said and what is sent takes the
# same path. perf/lab/legs.py puts the path emulator in front of some.
# SPDX-License-Identifier: Apache-2.0
import itertools
import os
import pathlib
import shutil
import tempfile

from .node import Node
from .stacked import Stacked
from .system import HarnessError, find_binaries, is_root, run, scratch_parent, wait_until

_serial = itertools.count(1)
_CONTROL_PORT = 7400


def group_missing():
    """Why there can be no group here; None: there can."""
    if not is_root():
        return "network namespaces need root"
    return None if shutil.which("ip") else "ip is missing: install iproute2"


class Group(Stacked):
    """settings: for all nodes, as {section: {key: value}}; of_node: {name: the same} for some."""

    def __init__(self, names, settings=None, of_node=None, bytes_needed=0, in_memory=True):
        super().__init__()
        self.names = list(names)
        self._settings, self._of_node = settings or {}, of_node or {}
        self._bytes_needed, self._in_memory = bytes_needed, in_memory
        self._stem = f"sl{os.getpid()}g{next(_serial)}"
        self.nodes = []

    def __getitem__(self, name):
        return self.nodes[self.names.index(name)]

    def _make(self):
        if (reason := group_missing()) is not None:
            raise HarnessError(reason)
        parent = scratch_parent(self._bytes_needed, self._in_memory)
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="sluice-", dir=parent))
        self._stack.callback(shutil.rmtree, self.base, ignore_errors=True)
        self._namespace(self._stem)
        run(["ip", "-n", self._stem, "link", "add", "switch", "type", "bridge", "stp_state", "0", "forward_delay", "0",
             "mcast_snooping", "0"])  # fmt: skip
        run(["ip", "-n", self._stem, "link", "set", "switch", "up"])
        for place, name in enumerate(self.names):
            self._plug_in(place)
            self.nodes.append(self._node(place, name))
        for node in self.nodes:
            for other in self.nodes:
                if other is not node:
                    node.trust(other)

    def _namespace(self, name):
        run(["ip", "netns", "add", name])
        self._stack.callback(run, ["ip", "netns", "del", name])

    def _name_of(self, place):
        return f"{self._stem}n{place}"

    def _plug_in(self, place):
        inside, port = self._name_of(place), f"port{place}"
        self._namespace(inside)
        run(["ip", "-n", inside, "link", "add", "data0", "mtu", "9000", "type", "veth", "peer", "name", port, "mtu", "9000",
             "netns", self._stem])  # fmt: skip
        run(["ip", "-n", self._stem, "link", "set", port, "master", "switch"])
        run(["ip", "-n", self._stem, "link", "set", port, "up"])
        run(["ip", "-n", inside, "address", "add", f"10.77.1.{place + 1}/24", "dev", "data0"])
        for device in ("lo", "data0"):
            run(["ip", "-n", inside, "link", "set", device, "up"])
        wait_until(lambda: "state UP" in run(["ip", "-n", inside, "link", "show", "data0"]), 10, f"{inside} is connected")

    def _node(self, place, name):
        address = f"10.77.1.{place + 1}"
        node = Node(find_binaries(), self.base / name, name, _CONTROL_PORT, settings={
            "control": {"listen": f"{address}:{_CONTROL_PORT}"},
            "port": {"device": "udp", "address4": f"{address}/24", "mtu": 9000, "rate": "10G"},
        }, prefix=self.enter(name))  # fmt: skip
        node.address = f"{address}:{_CONTROL_PORT}"
        return self._with_data(node, self._settings, self._of_node.get(name, {}))

    def enter(self, name):
        """Prefix of a command that shall run where this node is."""
        return ["nsenter", f"--net=/run/netns/{self._name_of(self.names.index(name))}", "--"]

    def cut(self, name, whether=True):
        """Takes this node's cable out, or puts it in again."""
        run(["ip", "-n", self._name_of(self.names.index(name)), "link", "set", "data0", "down" if whether else "up"])

    def start(self):
        for node in self.nodes:
            node.start_dataplane()
        for node in self.nodes:
            node.start_control()
