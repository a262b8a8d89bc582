# Two nodes joined by a wire, each with one export `data`, trusting each other.
#
#   with Pair() as pair: pair.start(); pair.a.must("send", file, "b:data/")
# SPDX-License-Identifier: Apache-2.0
import contextlib
import pathlib
import shutil
import tempfile

from .hugepages import Hugepages
from .node import Node
from .stacked import Stacked
from .system import HarnessError, allowed_cores, find_binaries, free_ports, is_root, run, scratch_parent
from .wires import MemifWire

_MEMORY_MIB = 256
# Page tables of EAL, alignment of its zones.
_HUGEPAGE_MARGIN_MIB = 32


class Pair(Stacked):
    """settings: for both nodes; settings_a, settings_b: for one; all as {section: {key: value}}.
    prefix(side): words before the command of each daemon of that side, such as taskset's.
    binaries: of each side; none: those of this build.
    in_memory: its files are in a tmpfs, if there is one: thousands of them are synced and removed there in no time."""

    def __init__(self, wire=None, bytes_needed=0, settings=None, settings_a=None, settings_b=None,
                 memory_mib=_MEMORY_MIB, keep=False, prefix=None, in_memory=False, binaries=(None, None)):  # fmt: skip
        super().__init__()
        self.wire = wire or MemifWire()
        self.keep = keep
        self._bytes_needed = bytes_needed
        self._in_memory = in_memory
        self._binaries = binaries
        self._settings = (settings or {}, settings_a or {}, settings_b or {})
        self._memory_mib = memory_mib
        self._prefix = prefix or (lambda _side: [])

    def _make(self):
        binaries = [find_binaries(given) for given in self._binaries]
        parent = scratch_parent(self._bytes_needed, self._in_memory)
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="sluice-", dir=parent))
        if not self.keep:
            self._stack.callback(shutil.rmtree, self.base, ignore_errors=True)
        node_mib = self._memory_mib + _HUGEPAGE_MARGIN_MIB
        self.pages = self._stack.enter_context(Hugepages(2 * node_mib + self.wire.hugepages_mib))
        self.wire.place(self.base, self.pages.available)
        self._stack.enter_context(self.wire)
        self._mounts = self._stack.enter_context(contextlib.ExitStack())
        # The first nodes to go, before the wire and the pages that they use.
        ports = free_ports(2)
        self.a = self._node(binaries[0], 0, "a", ports[0])
        self.b = self._node(binaries[1], 1, "b", ports[1])
        self.a.trust(self.b)
        self.b.trust(self.a)

    def _node(self, binaries, side, name, port):
        cores = allowed_cores()
        core = cores[side % len(cores)]
        node = Node(binaries, self.base / name, name, port, self.wire.enter(side), {
            "transfer": {"rate": self.wire.rate},
            "port": {
                "device": self.wire.device(side, self.base),
                "address4": f"10.77.0.{side + 1}/24",
                "address6": f"fd77::{side + 1}/64",
                "mtu": self.wire.mtu,
                "rate": self.wire.rate,
            },
            "dataplane": {
                "memory": "hugepages" if self.pages.available else "no-huge",
                "memory_mib": self._memory_mib,
                "cores": [core],
            },
        }, self._prefix(side))  # fmt: skip
        return self._with_data(node, self._settings[0], self._settings[1 + side])

    @property
    def nodes(self):
        return (self.a, self.b)

    def start(self):
        # Both dataplanes first: a memif client waits for its server, controls for their dataplane.
        for node in self.nodes:
            node.start_dataplane()
        for node in self.nodes:
            node.start_control()

    def mount_tmpfs(self, name, mib):
        """A small file system of its own beneath the pair's folder, unmounted at the end."""
        if not is_root():
            raise HarnessError("mounting a tmpfs needs root")
        path = self.base / name
        path.mkdir()
        run(["mount", "-t", "tmpfs", "-o", f"size={mib}M", "sluice-test", path])
        self._mounts.callback(run, ["umount", path])
        return path
