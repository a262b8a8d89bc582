# What joins two nodes: a shared-memory wire (memif), the same through the path emulator, or a veth pair
# between two network namespaces.
#
# Only the dataplanes live in the namespaces; the controls stay outside and meet on 127.0.0.1.
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import ctypes
import itertools
import json
import os
import shutil
import socket

from .process import Daemon
from .system import HarnessError, find_binaries, is_root, run, wait_until

_serial = itertools.count(1)
_CLONE_NEWNET = 0x40000000
# Frames of 9000 bytes and their headers fit; framesz must not exceed the mbuf's data room.
_AF_PACKET_ARGUMENTS = "blocksz=36864,framesz=9216,framecnt=2048,qdisc_bypass=1"


class Wire:
    """What Pair asks of any wire: place, enter, device and enter(side), exit."""

    hugepages_mib = 0  # of its own, besides those of the nodes

    def place(self, directory, hugepages):
        """Before __enter__: the pair's folder, and whether the hugepages are there."""

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        pass

    def enter(self, _side):
        """Prefix of a command that shall run where the data interface of this side is."""
        return []


class MemifWire(Wire):
    name = "memif"

    def __init__(self, mtu=9000, rate="200G"):
        self.mtu = mtu
        self.rate = rate

    def device(self, side, directory):
        role = "server" if side == 0 else "client"
        # One frame per buffer: the MTU and the Ethernet header, rounded up.
        bsize = (self.mtu + 14 + 1023) // 1024 * 1024
        return f"net_memif0,role={role},id=0,socket={directory}/memif.sock,socket-abstract=no,bsize={bsize}"


class EmulatorControl:
    """One connection to a running sluice-wire; of one thread."""

    def __init__(self, path, process):
        self._process = process
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(path))
        except OSError:
            connection.close()
            raise
        connection.settimeout(30)
        self._file = connection.makefile("rw")
        connection.close()  # the file keeps it open

    def command(self, command, **arguments):
        """One request; the reply without `ok`. An error is raised as the emulator words it."""
        self._file.write(json.dumps({"command": command, **arguments}) + "\n")
        self._file.flush()
        line = self._file.readline()
        if not line:
            raise HarnessError(f"sluice-wire: no answer; its log ends:\n{self._process.log_tail()}")
        reply = json.loads(line)
        if not reply.pop("ok"):
            raise HarnessError(f"sluice-wire: {reply['error']}")
        return reply

    def close(self):
        self._file.close()


class EmulatedWire(Wire):
    """Two memifs with sluice-wire in between (docs/WIRE-EMULATOR.md), for as long as the pair lives.

    settings: for both directions, as {section: {key: value}}; settings_a_to_b, settings_b_to_a: for one.
    The emulator is the server of both memifs, so that it sees a node go and come as a mere reconnection."""

    name = "emulated"
    hugepages_mib = 96

    def __init__(self, settings=None, mtu=9000, rate="4G", seed=1, settings_a_to_b=None,
                 settings_b_to_a=None):  # fmt: skip
        self.mtu = mtu
        self.rate = rate
        self.seed = seed
        named = {"both": settings, "a_to_b": settings_a_to_b, "b_to_a": settings_b_to_a}
        self._settings = {direction: each or {} for direction, each in named.items()}
        self._directory = None
        self._memory = "no-huge"
        self.process = None
        self._connection = None

    def place(self, directory, hugepages):
        self._directory = directory
        self._memory = "hugepages" if hugepages else "no-huge"

    def _port(self, side, role):
        return (f"net_memif{side if role == 'server' else 0},role={role},id=0,"
                f"socket={self._directory}/wire-{'ab'[side]}.sock,socket-abstract=no,bsize=9216")  # fmt: skip

    def __enter__(self):
        program = find_binaries() / "sluice-wire"
        if not program.exists():
            raise HarnessError(f"{program}: not built; run ./dev build, or set SLUICE_BIN")
        settings = self._directory / "wire.json"
        settings.write_text(json.dumps(self._settings))
        self._control_path = self._directory / "wire.sock"
        self.process = Daemon("sluice-wire", [
            *self.enter_middle(), program, "--port-a", self._port(0, "server"), "--port-b", self._port(1, "server"),
            "--control", self._control_path, "--settings", settings, "--seed", self.seed, "--mtu", self.mtu,
            "--memory", self._memory, "--memory-mib", self.hugepages_mib,
        ], self._directory / "wire.log")  # fmt: skip
        self.process.start()
        try:
            self._connection = wait_until(self._connect, 30, "sluice-wire answers")
        except BaseException:
            self.__exit__()
            raise
        return self

    def enter_middle(self):
        """Prefix of the emulator's command."""
        return []

    def _connect(self):
        if not self.process.running():
            raise HarnessError(f"sluice-wire ended with status {self.process.exit_status()}; its log ends:\n"
                               f"{self.process.log_tail()}")  # fmt: skip
        try:
            return self.connection()
        except OSError:
            return None

    def connection(self):
        """One more, for another thread."""
        return EmulatorControl(self._control_path, self.process)

    def __exit__(self, *_error):
        if self._connection:
            self._connection.close()
            self._connection = None
        status = self.process.stop()
        if status not in (0, None):
            raise HarnessError(f"sluice-wire ended with status {status}; its log ends:\n"
                               f"{self.process.log_tail()}")  # fmt: skip

    def device(self, side, _directory):
        return self._port(side, "client")

    # ---- while it runs ------------------------------------------------------------------------

    def command(self, command, **arguments):
        return self._connection.command(command, **arguments)

    def set(self, direction="both", **settings):
        """On top of what is set; None takes a section or a key back to its default."""
        self.command("set", direction=direction, settings=settings)

    def clear(self):
        """A perfect path in both directions."""
        sections = self.settings()["a_to_b"]
        self.set("both", **dict.fromkeys(sections))

    def settings(self):
        return self.command("get")["settings"]

    def counters(self):
        """{"a_to_b": {...}, "b_to_a": {...}}: totals since the start."""
        return self.command("counters")["counters"]

    def ports_up(self):
        return all(port["up"] for port in self.command("counters")["ports"].values())

    def blackhole(self, seconds, direction="both"):
        self.command("blackhole", direction=direction, seconds=seconds)


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


def inside_namespace(name, make):
    """Calls `make` in a network namespace: a socket that it makes belongs there for good."""
    libc = ctypes.CDLL(None, use_errno=True)

    def there():
        # Of this thread alone, which ends with the call.
        with open(f"/run/netns/{name}", "rb") as namespace:
            if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                raise HarnessError(f"setns: {os.strerror(ctypes.get_errno())}")
        return make()

    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(there).result()


class VethWire(Wire):
    """kernel_addresses: the second end belongs to the kernel's own IP stack, with these addresses, rather
    than to a dataplane. lose: of 1000 frames, so many are dropped on the way, by a bridge in between.
    middle_mtu: between two bridges is a link of this MTU; longer packets are dropped there without a word.
    sockets: of these sides (0, 1) the dataplane uses the kernel's sockets, the others af_packet."""

    name = "af_packet"

    def __init__(self, mtu=9000, kernel_addresses=(), rate="4G", lose=0, sockets=(), middle_mtu=0):
        self.mtu = mtu
        self.rate = rate
        self._lose = lose
        self._middle_mtu = middle_mtu
        self._has_middle = bool(lose or middle_mtu)
        self._sockets = set(sockets)
        self._kernel_addresses = [[f"10.77.0.{side + 1}/24", f"fd77::{side + 1}/64"] if side in self._sockets else
                                  list(kernel_addresses) * side for side in (0, 1)]  # fmt: skip
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
        for namespace in [*self._namespaces, *([self._bridge] if self._has_middle else [])]:
            run(["ip", "netns", "add", namespace])
            self._made.append(namespace)
        if self._has_middle:
            self._make_middle()
        else:
            self._make_veth(self._namespaces[0], self._namespaces[1], "data0")
        for side, namespace in enumerate(self._namespaces):
            for address in self._kernel_addresses[side]:
                extra = ["nodad"] if ":" in address else []
                run(["ip", "-n", namespace, "address", "add", address, "dev", "data0", *extra])
            self._raise(namespace, "data0", addresses=bool(self._kernel_addresses[side]))
        for namespace in self._namespaces:
            wait_until(lambda: "state UP" in run(["ip", "-n", namespace, "link", "show", "data0"]), 10,
                       f"data0 of {namespace} is up")  # fmt: skip

    def _make_veth(self, namespace, other, other_name):
        run(["ip", "-n", namespace, "link", "add", "data0", "mtu", self.mtu, "type", "veth",
             "peer", "name", other_name, "mtu", self.mtu, "netns", other])  # fmt: skip

    def _make_middle(self):
        middle = self._bridge
        # A link that is narrow stands between two bridges: neither node's own interface meets it.
        bridges = ["br0", "br1"] if self._middle_mtu else ["br0", "br0"]
        for bridge in sorted(set(bridges)):
            run(["ip", "-n", middle, "link", "add", bridge, "mtu", self.mtu, "type", "bridge", "stp_state", "0",
                 "forward_delay", "0", "mcast_snooping", "0"])  # fmt: skip
        for side, namespace in enumerate(self._namespaces):
            self._make_veth(namespace, middle, f"port{side}")
            run(["ip", "-n", middle, "link", "set", f"port{side}", "master", bridges[side]])
            self._raise(middle, f"port{side}", addresses=False)
        if self._middle_mtu:
            run(["ip", "-n", middle, "link", "add", "inner0", "type", "veth", "peer", "name", "inner1"])
            for side in (0, 1):
                run(["ip", "-n", middle, "link", "set", f"inner{side}", "master", bridges[side]])
                self._raise(middle, f"inner{side}", addresses=False)
            self.narrow(self._middle_mtu)
        for bridge in sorted(set(bridges)):
            self._raise(middle, bridge, addresses=False)
        if not self._lose:
            return
        rules = ("add table bridge lossy; "
                 "add chain bridge lossy way { type filter hook forward priority 0; policy accept; }; "
                 f"add rule bridge lossy way numgen random mod 1000 < {self._lose} drop")  # fmt: skip
        run([*self._enter(middle), "nft", rules])

    def set_link(self, side, up):
        """Raises the interface of a side's data, or sets it down, by which the other one has no carrier."""
        run(["ip", "-n", self._namespaces[side], "link", "set", "data0", "up" if up else "down"])

    def close_udp(self, side):
        """The firewall of a side's host drops all UDP that comes in."""
        rules = ("add table inet closed; "
                 "add chain inet closed incoming { type filter hook input priority 0; policy accept; }; "
                 "add rule inet closed incoming meta l4proto udp drop")  # fmt: skip
        run([*self._enter(self._namespaces[side]), "nft", rules])

    def open_udp(self, side):
        run([*self._enter(self._namespaces[side]), "nft", "delete table inet closed"])

    def narrow(self, mtu):
        """From now on the middle carries no longer packets than that, in both directions."""
        for side in (0, 1):
            run(["ip", "-n", self._bridge, "link", "set", f"inner{side}", "mtu", mtu])

    def _raise(self, namespace, device, addresses):
        if not device.startswith("br") and (len(self._sockets) < 2 or self._has_middle):
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

    def device(self, side, _directory):
        return "udp" if side in self._sockets else f"net_af_packet0,iface=data0,{_AF_PACKET_ARGUMENTS}"

    @staticmethod
    def _enter(namespace):
        return ["nsenter", f"--net=/run/netns/{namespace}", "--"]

    def enter(self, side):
        """Prefix of a command that shall run in the namespace of this side."""
        return self._enter(self._namespaces[side])

    def namespace(self, side):
        return self._namespaces[side]

    def inside(self, side, make):
        """Calls `make` in the namespace of this side: a socket that it makes belongs there for good."""
        return inside_namespace(self._namespaces[side], make)


class FallbackWire(VethWire):
    """A bridge to which each side has two interfaces: data0, its dataplane's, and host0, with an address of the kernel's own.
    data0 can be taken away while a dataplane uses it, and given back."""

    def __init__(self, mtu=1500, rate="1G"):
        super().__init__(mtu=mtu, rate=rate)
        self._has_middle = True

    def _make_middle(self):
        super()._make_middle()
        for side, namespace in enumerate(self._namespaces):
            # Else data0 answers for host0's address, too.
            run([*self._enter(namespace), "sysctl", "-qw", "net.ipv4.conf.all.arp_ignore=1"])
            run(["ip", "-n", namespace, "link", "add", "host0", "mtu", self.mtu, "type", "veth",
                 "peer", "name", f"hostport{side}", "mtu", self.mtu, "netns", self._bridge])  # fmt: skip
            run(["ip", "-n", self._bridge, "link", "set", f"hostport{side}", "master", "br0"])
            self._raise(self._bridge, f"hostport{side}", addresses=False)
            self._raise(namespace, "host0", addresses=True)
            run(["ip", "-n", namespace, "address", "add", self.fallback_address(side), "dev", "host0"])

    @staticmethod
    def fallback_address(side):
        return f"10.77.0.{side + 11}/24"

    def delete(self, side):
        """As a card that fails."""
        run(["ip", "-n", self._namespaces[side], "link", "del", "data0"])

    def make_anew(self, side):
        namespace, middle = self._namespaces[side], self._bridge
        self._make_veth(namespace, middle, f"port{side}")
        run(["ip", "-n", middle, "link", "set", f"port{side}", "master", "br0"])
        self._raise(middle, f"port{side}", addresses=False)
        self._raise(namespace, "data0", addresses=False)

    def move_away(self, side):
        """As a card that is taken from its driver."""
        run(["ip", "-n", self._namespaces[side], "link", "set", "data0", "down"])
        run(["ip", "-n", self._namespaces[side], "link", "set", "data0", "netns", self._bridge, "name", f"away{side}"])

    def move_back(self, side):
        namespace = self._namespaces[side]
        run(["ip", "-n", self._bridge, "link", "set", f"away{side}", "netns", namespace, "name", "data0"])
        self._raise(namespace, "data0", addresses=False)
