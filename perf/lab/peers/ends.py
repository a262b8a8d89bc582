# Two hosts on this machine for tools of the kernel's network: namespaces joined by a veth pair.
#
# Everything of one end runs on the cores of its side, in its namespace, and in a cgroup by which its CPU is counted with all
# of its children. Whatever is made or set here is taken back.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import platform
import re
import shutil

from harness.stacked import Stacked
from harness.system import is_root, run, wait_until
from harness.wires import inside_namespace

from .. import sides
from ..errors import MISSING, LabError

ADDRESSES = ("10.88.0.1", "10.88.0.2")
MTU = 9000
CONGESTION_CONTROLS = ("cubic", "bbr")
_ALLOWED = "net.ipv4.tcp_allowed_congestion_control"
_SOCKET_BUFFER_MAX = 256 << 20
_CPU_STAT = re.compile(r"^usage_usec (\d+)$", re.MULTILINE)


def cgroup_root():
    """Where cgroup 2 is mounted; its CPU time needs no controller."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[0] == "cgroup2":
            return pathlib.Path(before.split()[4])
    raise LabError("cgroup 2 is not mounted: the CPU of the peers cannot be counted; mount it", MISSING)


class Group:
    """A cgroup of its own: what runs in it, how much CPU it used."""

    def __init__(self, path):
        self._path = path
        path.mkdir()

    def prefix(self):
        return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(self._path / "cgroup.procs")]

    def cpu_s(self):
        return int(_CPU_STAT.search((self._path / "cpu.stat").read_text())[1]) / 1e6

    def pids(self):
        return [int(word) for word in (self._path / "cgroup.procs").read_text().split()]

    def remove(self):
        # The last process may be gone and not yet buried.
        wait_until(lambda: not self.pids(), 20, f"{self._path} is empty")
        self._path.rmdir()


class Groups:
    """`with Groups() as groups:` groups.of(peer, side), made when first asked for."""

    def __init__(self):
        self._root = cgroup_root() / f"sluice-lab-{os.getpid()}"
        self._groups = {}

    def __enter__(self):
        self._root.mkdir()
        return self

    def of(self, peer, side):
        if (peer, side) not in self._groups:
            self._groups[peer, side] = Group(self._root / f"{peer}-{'ab'[side]}")
        return self._groups[peer, side]

    def __exit__(self, *_error):
        for group in self._groups.values():
            group.remove()
        self._root.rmdir()


def pinned(group, side):
    return [*group.prefix(), *sides.pin(side)]


def missing():
    if not is_root():
        return "network namespaces, tmpfs and pinned cgroups need root"
    for tool in ("ip", "ethtool", "nft", "ss", "taskset", "sysctl"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed; run ./dev deps"
    return None


class Ends(Stacked):
    """Names pa and pb resolve in both namespaces. loss_percent: random, both ways, one packet each: offloads off."""

    def __init__(self, groups, loss_percent=0.0):
        super().__init__()
        self._groups = groups
        self._loss_percent = loss_percent
        self._names = [f"sllab{os.getpid()}{side}" for side in "ab"]

    def _make(self):
        for side, name in enumerate(self._names):
            run(["ip", "netns", "add", name])
            self._stack.callback(run, ["ip", "netns", "del", name])
            # `ip netns exec` shows this as /etc/hosts to what it runs.
            folder = pathlib.Path("/etc/netns") / name
            folder.mkdir(parents=True)
            self._stack.callback(shutil.rmtree, folder)
            # Some servers want to know what this host's own name means.
            hosts = ["127.0.0.1 localhost", f"{ADDRESSES[0]} pa", f"{ADDRESSES[1]} pb",
                     f"{ADDRESSES[side]} {platform.node()}"]  # fmt: skip
            (folder / "hosts").write_text("\n".join(hosts) + "\n")
        self._join()
        for name, device, address in zip(self._names, ("va", "vb"), ADDRESSES):
            run(["ip", "-n", name, "address", "add", f"{address}/24", "dev", device])
            run(["ip", "-n", name, "link", "set", "lo", "up"])
            run(["ip", "-n", name, "link", "set", device, "up"])
            if self._loss_percent:
                self._lose(name, device)
        for key in ("net.core.rmem_max", "net.core.wmem_max"):
            if int(run(["sysctl", "-n", key])) < _SOCKET_BUFFER_MAX:
                self._set_sysctl(key, _SOCKET_BUFFER_MAX)
        allowed = run(["sysctl", "-n", _ALLOWED]).split()
        known = run(["sysctl", "-n", "net.ipv4.tcp_available_congestion_control"]).split()
        # A namespace may use only what is allowed to everybody.
        self._set_sysctl(_ALLOWED, " ".join(dict.fromkeys([*allowed, *(set(CONGESTION_CONTROLS) & set(known))])))

    def _join(self):
        """Makes va in the first namespace and vb in the second, joined."""
        first, second = self._names
        run(["ip", "-n", first, "link", "add", "va", "mtu", MTU, "type", "veth", "peer", "name", "vb", "mtu", MTU,
             "netns", second])  # fmt: skip

    def _lose(self, name, device):
        # With offloads one drop would take a super-packet of 64 KiB.
        run(["ip", "netns", "exec", name, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off"])
        of_100000 = round(self._loss_percent * 1000)
        rules = (f"add table netdev loss; add chain netdev loss i {{ type filter hook ingress device {device} "
                 f"priority 0; policy accept; }}; add rule netdev loss i numgen random mod 100000 < {of_100000} "
                 "counter drop")  # fmt: skip
        run(["ip", "netns", "exec", name, "nft", rules])

    def _set_sysctl(self, key, value):
        before = run(["sysctl", "-n", key]).strip()
        run(["sysctl", "-q", "-w", f"{key}={value}"])
        self._stack.callback(run, ["sysctl", "-q", "-w", f"{key}={before}"])

    # ---- for peers ------------------------------------------------------------------------------

    def prefix(self, peer, side):
        """Before a command of this peer at that end: its cgroup, core and namespace. All of it is exec'ed away."""
        return [*pinned(self._groups.of(peer, side), side), "ip", "netns", "exec", self._names[side]]

    def inside(self, side, make):
        """Calls `make` in the namespace of this end: a socket that it makes belongs there for good."""
        return inside_namespace(self._names[side], make)

    def use(self, congestion_control):
        for name in self._names:
            run(["ip", "netns", "exec", name, "sysctl", "-q", "-w",
                 f"net.ipv4.tcp_congestion_control={congestion_control}"])  # fmt: skip

    def limit_datagrams(self, mtu):
        """From now on, at both ends; what TCP learned of the path is forgotten."""
        for name, device in zip(self._names, ("va", "vb")):
            run(["ip", "-n", name, "link", "set", device, "mtu", mtu])
            run(["ip", "-n", name, "tcp_metrics", "flush", "all"])

    def listening(self, side, port, kind="tcp"):
        """Whether a socket waits there."""
        option = "-Hltn" if kind == "tcp" else "-Hlun"
        return run(["ip", "netns", "exec", self._names[side], "ss", option, f"sport = :{port}"]).strip() != ""
