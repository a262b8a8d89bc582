# One emulated bottleneck that Sluice's nodes and the kernel's TCP share: namespaces, bridges, and sluice-wire between.
#
#   sender's veth ─┐                                      ┌─ receiver's veth
#   sender's veth ─┼─ bridge 0 ─ veth ─ sluice-wire ─ veth ─ bridge 1 ─┤
#   TCP's veth    ─┘                                      └─ TCP's veth
#
# The emulator's two ports are af_packet devices, each on one end of a veth pair whose other end is in a bridge. A node's
# port is af_packet on a veth of its own; TCP has addresses on veths of its own. No device has offloads, so that what
# passes is what a wire would carry.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import itertools
import os
import pathlib
import shutil
import signal
import tempfile

from harness import EmulatedWire, Node, find_binaries
from harness.stacked import Stacked
from harness.system import free_ports, run, scratch_parent

from . import sides
from .emulated import path_settings
from .nodes import RATE_UNLIMITED
from .peers.ends import Ends

MTU = 1500
_NODE_MIB = 128
_PAGE_BYTES = 4096
_BRIDGES = ("br0", "br1")
_serial = itertools.count(1)


def raise_device(namespace, device, addresses=False):
    if not device.startswith("br"):
        run(["ip", "netns", "exec", namespace, "ethtool", "-K", device, "tx", "off", "gso", "off", "tso", "off", "gro",
             "off"])  # fmt: skip
    if not addresses:
        # The kernel would answer beside whoever has the device.
        run(["ip", "-n", namespace, "link", "set", device, "addrgenmode", "none"])
    run(["ip", "-n", namespace, "link", "set", device, "up"])


def frames(mtu):
    """Arguments of an af_packet device: a ring of 8 MiB and more, of frames that this MTU needs."""
    if mtu <= MTU:
        return "blocksz=65536,framesz=2048,framecnt=4096,qdisc_bypass=1"
    frame_bytes = (mtu + 14 + 1023) // 1024 * 1024
    return f"blocksz={_PAGE_BYTES * frame_bytes // 1024},framesz={frame_bytes},framecnt=1024,qdisc_bypass=1"


class BridgedWire(EmulatedWire):
    """The emulator in the namespace of the bridges, on devices port0 and port1 there."""

    def __init__(self, namespace, ports=("port0", "port1"), mtu=MTU, **options):
        super().__init__(mtu=mtu, **options)
        self._namespace = namespace
        self._ports = ports

    def enter_middle(self):
        return ["nsenter", f"--net=/run/netns/{self._namespace}", "--"]

    def _port(self, side, role):
        return f"net_af_packet{side},iface={self._ports[side]},{frames(self.mtu)}"


class Bottleneck(Stacked):
    """`attach` joins a namespace to one of its sides; `shape` sets the path."""

    def __init__(self, mtu=MTU):
        super().__init__()
        self.mtu = mtu
        self.namespace = f"slmid{os.getpid()}n{next(_serial)}"
        self._ports = itertools.count()

    def _make(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="sluice-", dir=scratch_parent(256 << 20)))
        self._stack.callback(shutil.rmtree, self.base, ignore_errors=True)
        run(["ip", "netns", "add", self.namespace])
        self._stack.callback(run, ["ip", "netns", "del", self.namespace])
        for side, bridge in enumerate(_BRIDGES):
            run(["ip", "-n", self.namespace, "link", "add", bridge, "mtu", self.mtu, "type", "bridge", "stp_state", "0",
                 "forward_delay", "0", "mcast_snooping", "0"])  # fmt: skip
            raise_device(self.namespace, bridge)
            self._veth(self.namespace, f"port{side}", bridge)
        self._join()

    def _join(self):
        """What joins port0 and port1."""
        self.wire = BridgedWire(self.namespace, mtu=self.mtu)
        self.wire.place(self.base, False)
        self._stack.enter_context(self.wire)

    def _veth(self, namespace, device, bridge, addresses=False):
        """A device in this namespace whose other end is in the bridge."""
        peer = f"leg{next(self._ports)}"
        run(["ip", "-n", namespace, "link", "add", device, "mtu", self.mtu, "type", "veth", "peer", "name", peer, "mtu", self.mtu,
             "netns", self.namespace])  # fmt: skip
        run(["ip", "-n", self.namespace, "link", "set", peer, "master", bridge])
        raise_device(self.namespace, peer)
        raise_device(namespace, device, addresses)

    def attach(self, namespace, device, side, addresses=False):
        self._veth(namespace, device, _BRIDGES[side], addresses)

    def detour(self, namespace, device, side, rtt_ms):
        """As attach, but through an emulator of its own that only makes the way longer."""
        near, far = f"near{next(self._ports)}", f"far{next(self._ports)}"
        run(["ip", "-n", namespace, "link", "add", device, "mtu", self.mtu, "type", "veth", "peer", "name", near, "mtu", self.mtu,
             "netns", self.namespace])  # fmt: skip
        raise_device(self.namespace, near)
        raise_device(namespace, device)
        self._veth(self.namespace, far, _BRIDGES[side])
        wire = BridgedWire(self.namespace, (near, far), mtu=self.mtu, settings=path_settings(0, rtt_ms)[1])
        wire.place(pathlib.Path(tempfile.mkdtemp(dir=self.base)), False)
        self._stack.enter_context(wire)

    def shape(self, rate_bps, rtt_ms, **more):
        there, back = path_settings(rate_bps, rtt_ms, **more)
        self.wire.clear()
        self.wire.set("a_to_b", **there)
        self.wire.set("b_to_a", **back)


class Crowd(Stacked):
    """Senders at side 0 and one receiver, `sink`, at side 1. detours_ms: how much longer the round trip of each is."""

    def __init__(self, bottleneck, senders, detours_ms=(), memory_mib=_NODE_MIB):
        super().__init__()
        self._bottleneck = bottleneck
        self._count = senders
        self._detours_ms = dict(enumerate(detours_ms))
        self._memory_mib = memory_mib

    def _make(self):
        self._binaries = find_binaries()
        ports = free_ports(self._count + 1)
        self.sink = self._node("sink", 1, 200, ports[0], 0)
        self.senders = [self._node(f"s{number}", 0, 1 + number, port, self._detours_ms.get(number, 0))
                        for number, port in enumerate(ports[1:])]  # fmt: skip
        for sender in self.senders:
            sender.trust(self.sink)
            self.sink.trust(sender)
        for node in (self.sink, *self.senders):
            node.start()

    @contextlib.contextmanager
    def only(self, senders):
        """The others are stopped meanwhile: idle workers poll. No session may run."""
        others = [node for node in self.senders if node not in senders]
        try:
            for node in others:
                # Control first, and last to wake: it never sees a dataplane that does not answer.
                os.kill(node.control.pid, signal.SIGSTOP)
                os.kill(node.dataplane.pid, signal.SIGSTOP)
            yield
        finally:
            for node in others:
                os.kill(node.dataplane.pid, signal.SIGCONT)
                os.kill(node.control.pid, signal.SIGCONT)

    def _node(self, name, side, host, port, detour_ms):
        namespace = f"{self._bottleneck.namespace}{name}"
        run(["ip", "netns", "add", namespace])
        self._stack.callback(run, ["ip", "netns", "del", namespace])
        if detour_ms:
            self._bottleneck.detour(namespace, "data0", side, detour_ms)
        else:
            self._bottleneck.attach(namespace, "data0", side)
        directory = self._bottleneck.base / namespace
        node = Node(self._binaries, directory / name, name, port, ["nsenter", f"--net=/run/netns/{namespace}", "--"], {
            "transfer": {"rate": RATE_UNLIMITED},
            "port": {"device": f"net_af_packet0,iface=data0,{frames(self._bottleneck.mtu)}", "address4": f"10.66.0.{host}/24",
                     "mtu": self._bottleneck.mtu, "rate": RATE_UNLIMITED},
            "dataplane": {"memory": "no-huge", "memory_mib": self._memory_mib, "cores": sides.cores(side)[:1]},
        })  # fmt: skip
        node.add_export("data", directory / "data")
        node.create()
        self._stack.callback(node.stop)
        return node


class BottleneckEnds(Ends):
    """The two hosts of the kernel's tools, each at its side of the bottleneck."""

    def __init__(self, groups, bottleneck):
        super().__init__(groups)
        self._bottleneck = bottleneck

    def _join(self):
        for side, (name, device) in enumerate(zip(self._names, ("va", "vb"))):
            self._bottleneck.attach(name, device, side, addresses=True)
