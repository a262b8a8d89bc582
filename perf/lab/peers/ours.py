# Sluice as one of the peers: nodes of its own, each side on one core and in its cgroup, as the others are.
#
# Between its runs the nodes are stopped (SIGSTOP): idle workers poll, and the others shall have the cores.
# SPDX-License-Identifier: Apache-2.0
import contextlib

from harness import EmulatedWire, MemifWire, VethWire

from ..figures import ratio
from ..nodes import RATE_UNLIMITED, OwnNodes
from .ends import pinned

IN_THE_CLEAR = "sluice-memif-clear"
_WARM_BYTES = 256 << 20
# Rates to try where frames would be dropped above what the path carries; an operator would set [port] rate.
_RATES = ("2G", "3G", "4G", "5G", "6G", "8G")


class Ours:
    """exports: {name: folder} of the file systems in question. wire: what it runs over; lossless wires hold the
    sender back by themselves, on others the rate is found by trying. clear: without a cipher, as most others are."""

    tcp = False
    file = True

    def __init__(self, name, wire, groups, exports, lossless, clear=False):
        self.name = name
        self._protection = "crc" if clear else "aes-128-gcm"
        self.rate = RATE_UNLIMITED if lossless else None
        self._groups = groups
        self.nodes = OwnNodes(wire=wire, prefix=lambda side: pinned(groups.of(name, side), side),
                              settings={"transfer": {"protection": self._protection}})  # fmt: skip
        self._exports = exports
        self._started = contextlib.ExitStack()

    def start(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.nodes)
            for node in (self.nodes.a, self.nodes.b):
                for name, folder in self._exports.items():
                    node.add_export(name, folder)
                node.write_configuration()
            self.nodes.start()
            if self.rate is None:
                self.rate = self._best_rate()
            self.nodes.freeze()
            self._started = stack.pop_all()

    def stop(self):
        self._started.close()

    def _best_rate(self):
        """The rate with which a transfer is fastest: above what the path carries, repairs eat what it brings."""
        speed = {}
        for rate in _RATES:
            speed[rate] = self._warm(rate)["wall_gbps"]
        return max(speed, key=speed.get)

    def _warm(self, rate):
        return self.nodes.transfer(f"memory:{_WARM_BYTES}", "null:", "--rate", rate)

    def measure(self, source, folder, target, timeout_s, after, ready):
        """ready() is called once the nodes are warm, just before the clock starts."""
        self.nodes.thaw()
        try:
            self._warm(self.rate)
            ready()
            before = self.cpu_s()
            sample = self.nodes.transfer(source, f"{folder}/{target.name}", "--overwrite", "--rate", self.rate,
                                         by_wall=True, timeout_s=timeout_s, after=after)  # fmt: skip
            sample["cpu_s_per_gb"] = ratio(self.cpu_s() - before, sample["bytes"] / 1e9)
        finally:
            self.nodes.freeze()
        sample["rate"], sample["protection"] = self.rate, self._protection
        return sample

    def cpu_s(self):
        return sum(self._groups.of(self.name, side).cpu_s() for side in (0, 1))


def all_of(groups, exports, loss_percent):
    if not loss_percent:
        return [Ours("sluice-memif", MemifWire(rate=RATE_UNLIMITED), groups, exports, lossless=True),
                Ours(IN_THE_CLEAR, MemifWire(rate=RATE_UNLIMITED), groups, exports, lossless=True, clear=True),
                Ours("sluice-af-packet", VethWire(rate=RATE_UNLIMITED), groups, exports, lossless=False)]  # fmt: skip
    # A packet socket sees frames before the hook where the others lose theirs: a bridge in between loses them.
    veth = VethWire(rate=RATE_UNLIMITED, lose=round(loss_percent * 10))
    loss = {"loss": {"probability": loss_percent / 100}}
    return [Ours("sluice-emulated-memif", EmulatedWire(loss, rate=RATE_UNLIMITED), groups, exports, lossless=False),
            Ours("sluice-af-packet", veth, groups, exports, lossless=False)]  # fmt: skip
