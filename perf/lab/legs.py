# A client and several sources, each source at the end of a path of its own: rate, round trip and loss by the path emulator.
#
#   source's veth - sluice-wire - bridge - client's veth
#
# What the nodes say to each other takes the same path as the data. MTU 1500, no offloads: one datagram is one frame.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import tempfile

from harness import Group
from harness.system import run

from .emulated import path_settings, queue_for
from .shared import MTU, BridgedWire, raise_device


class Legs(Group):
    """client: the first name; what comes to it and leaves it has client_mbps. Until `shape` a source's path is perfect."""

    def __init__(self, client, sources, client_mbps, **options):
        super().__init__([client, *sources], settings={"port": {"mtu": MTU}}, **options)
        self._client_mbps = client_mbps
        self._wires = {}

    def _plug_in(self, place):
        super()._plug_in(place)
        inside, port, switch = self._name_of(place), f"port{place}", self._stem
        run(["ip", "-n", inside, "link", "set", "data0", "mtu", MTU])
        raise_device(inside, "data0", addresses=True)
        raise_device(switch, port)
        if place == 0:
            for namespace, device in ((inside, "data0"), (switch, port)):
                run(["tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{self._client_mbps}mbit",
                     "burst", "64kb", "latency", "50ms"])  # fmt: skip
            return
        far, leg = f"far{place}", f"leg{place}"
        run(["ip", "-n", switch, "link", "set", port, "nomaster"])
        run(["ip", "-n", switch, "link", "add", far, "mtu", MTU, "type", "veth", "peer", "name", leg, "mtu", MTU])
        run(["ip", "-n", switch, "link", "set", leg, "master", "switch"])
        for device in (far, leg):
            raise_device(switch, device)
        wire = BridgedWire(switch, (port, far), mtu=MTU)
        wire.place(pathlib.Path(tempfile.mkdtemp(dir=self.base)), False)
        self._wires[self.names[place]] = self._stack.enter_context(wire)

    def shape(self, name, rate_mbps, rtt_ms, loss=0.0):
        """The path of this source: half of the round trip each way, what it sends limited and lost; a queue of one BDP."""
        there, back = path_settings(rate_mbps * 1e6, rtt_ms, loss=loss, queue_bytes=queue_for(rate_mbps * 1e6, rtt_ms))
        self._wires[name].clear()
        self._wires[name].set("a_to_b", **there)
        self._wires[name].set("b_to_a", **back)

    def slow_down(self, name, rate_mbps):
        """Only the rate becomes another; the queue stays, and what is in it."""
        self._wires[name].set("a_to_b", rate={"bits_per_s": int(rate_mbps * 1e6)})

    def path_of(self, name):
        """Frames of this source's path: those that its queue did not hold, and all."""
        counted = self._wires[name].counters()["a_to_b"]
        return counted["drops"]["queue"], counted["in"]
