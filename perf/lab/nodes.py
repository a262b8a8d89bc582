# The nodes of an experiment: a pair that the lab starts itself, or real ones given with --node.
#
# Both offer transfer(): one `sluice send` to its end, with everything that a row tells of it.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import shutil
import signal

from harness import HarnessError, MemifWire, Node, Pair, find_binaries
from harness.system import allowed_cores

from . import sides
from .errors import MISSING, LabError
from .figures import gbps, ratio
from .meter import Meter
from .stopwatch import timed

# More than any wire here carries, so that the path is the limit; real ports keep their own [port] rate.
RATE_UNLIMITED = "800G"
CHUNK_STEP_BYTES = 4
# Ethernet header, FCS, preamble and gap; IPv4 and UDP; ours. What the pacer counts beside the payload.
_ETHERNET_BYTES, _WIRE_GAP_BYTES, _IP_UDP_BYTES, _HEADER_BYTES = 14, 24, 28, 72
FRAME_OVERHEAD_BYTES = _ETHERNET_BYTES + _IP_UDP_BYTES + _HEADER_BYTES
DATAGRAM_OVERHEAD_BYTES = _IP_UDP_BYTES + _HEADER_BYTES


def datagrams_sent(session):
    """Chunks, chunks again, and repair symbols."""
    return session["chunks"] + session["retransmits"] + session["parity"]


def wire_bytes(session):
    """Bytes of the session's data as [port] rate counts them: with headers, FCS, preamble and gap."""
    frames = datagrams_sent(session)
    payload = session["bytes_sent"] + (frames - session["chunks"]) * session["chunk_bytes"]
    return payload + frames * (FRAME_OVERHEAD_BYTES + _WIRE_GAP_BYTES)


def sample(session, finished, meter, by_wall, whole):
    """A run as the rows want it. goodput is by the session's own clock, or by the client's wall. whole: the meter
    saw both nodes; if not, its figures are those of this machine only, and have other names."""
    done = session["bytes_done"]
    session_gbps = gbps(done, session["data_elapsed_s"])
    wall_gbps = gbps(done, finished.wall_s)
    cpu_s_per_gb = ratio(meter["cpu_s"], done / 1e9)
    local = {} if whole else {"local_cpu_s_per_gb": cpu_s_per_gb, "local_rss_mb": meter["rss_mb"]}
    return {
        "goodput_gbps": wall_gbps if by_wall else session_gbps,
        "session_gbps": session_gbps,
        "wall_gbps": wall_gbps,
        "loss": ratio(session["lost"], datagrams_sent(session)) or 0.0,
        "retransmits": session["retransmits"],
        "parity": session["parity"],
        "cpu_s_per_gb": cpu_s_per_gb if whole else None,
        "rss_mb": meter["rss_mb"] if whole else None,
        "hugepages_mb": meter["hugepages_mb"],
        "bytes": done,
        "wire_bytes": wire_bytes(session),
        "session_s": session["data_elapsed_s"],
        "wall_s": finished.wall_s,
        "chunk_bytes": session["chunk_bytes"],
        "lanes": session["lanes"],
        "crc": session["crc"],
        "protection": session["protection"],
        "crc_errors": session["crc_errors"],
        "steal_s": meter["steal_s"],
        "foreign_cpu_s": meter["foreign_cpu_s"] if whole else None,
        **local,
    }


def _reason(finished):
    """What the command says went wrong: with --json, in the object of the error or of the session."""
    try:
        reply = json.loads(finished.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return finished.reason()
    return reply.get("message") or reply.get("error") or finished.reason()


class _Nodes:
    """What both kinds share. `a` sends, `peer` is the name of the other node there."""

    real = False
    a = None
    peer = "b"
    client_prefix = ()

    def pids(self):
        raise NotImplementedError

    def busy_ns(self):
        """Of each node's workers, since it was started."""
        return [node.counters()["busy_ns"] for node in self._seen()]

    def _seen(self):
        return [self.a]

    def transfer(self, source, destination, *options, by_wall=False, timeout_s=900, after=None, busy=False):
        """a sends `source` to `destination` of the peer. Counters are read when the session has ended. `busy`: and
        what each chunk took of a worker's time."""
        return self.transfer_words(["send", source, f"{self.peer}:{destination}"], *options, by_wall=by_wall, timeout_s=timeout_s,
                                   after=after, busy=busy)  # fmt: skip

    def transfer_words(self, words, *options, by_wall=False, timeout_s=900, after=None, busy=False):
        """The same of any command of a: send or get, and what of where."""
        command = [*self.client_prefix, *self.a.command(*words, *options, "--json", "--quiet")]
        busy_before = self.busy_ns() if busy else []
        meter = Meter(self.pids()).start()
        finished = timed(command, timeout_s, after)
        figures = meter.stop(finished)
        if finished.timed_out:
            raise LabError(f"sluice {' '.join(map(str, words))}: not ended after {timeout_s:g} s; the daemons' logs tell more")
        if finished.status != 0:
            raise LabError(f"sluice {' '.join(map(str, [*words, *options]))}: exit {finished.status}: "
                           f"{_reason(finished)}")  # fmt: skip
        session = json.loads(finished.stdout.strip().splitlines()[-1])
        out = sample(session, finished, figures, by_wall, whole=not self.real)
        if busy:
            for end, now_ns, then_ns in zip(("sender", "receiver"), self.busy_ns(), busy_before):
                out[f"busy_ns_{end}"] = ratio(now_ns - then_ns, session["chunks"])
        return out


class OwnNodes(_Nodes):
    """A Pair of the lab's own. pinned: each side's daemons, and the client, on the cores of this side."""

    def __init__(self, wire=None, settings=None, pinned=True, bytes_needed=0, prefix=None, **options):
        # What a reserved path carries, unless an experiment is about the laws of the rate.
        settings = {**(settings or {}), "transfer": {"mode": "fixed", **(settings or {}).get("transfer", {})}}
        self._prefix = prefix or (sides.pin if pinned else None)
        self.client_prefix = self._prefix(0) if self._prefix else []
        for side, name in enumerate(("settings_a", "settings_b")):
            own = options.get(name) or {}
            options[name] = {**own, "dataplane": {"cores": sides.cores(side)[:1], **own.get("dataplane", {})}}
        self.pair = Pair(wire or MemifWire(rate=RATE_UNLIMITED), bytes_needed=bytes_needed, settings=settings,
                         prefix=self._prefix, **options)  # fmt: skip

    def __enter__(self):
        self.pair.__enter__()
        self.a, self.b = self.pair.nodes
        return self

    def __exit__(self, *error):
        # A stopped process does not hear that it shall end.
        self.thaw()
        return self.pair.__exit__(*error)

    def _seen(self):
        return self.pair.nodes

    def start(self):
        self.pair.start()
        return self

    def free_control(self):
        """Control and client on any core: only the dataplanes stay where they are. A worker that shares its core
        with them loses it for milliseconds, which is not its pacing's doing."""
        self.client_prefix = []
        for node in self.pair.nodes:
            for task in pathlib.Path(f"/proc/{node.control.pid}/task").iterdir():
                os.sched_setaffinity(int(task.name), allowed_cores())

    def freeze(self):
        """Not there for a while, for something else to have the cores: idle workers poll. No session may run."""
        # Control first, and last to wake: it never sees a dataplane that does not answer.
        self._signal(signal.SIGSTOP, lambda node: (node.control, node.dataplane))

    def thaw(self):
        self._signal(signal.SIGCONT, lambda node: (node.dataplane, node.control))

    def _signal(self, number, order):
        for node in self.pair.nodes:
            for daemon in order(node):
                if daemon.running():
                    os.kill(daemon.pid, number)

    def stop(self):
        for node in self.pair.nodes:
            for what, status in zip(("sluice-control", "sluice-dataplane"), node.stop()):
                if status not in (0, None):
                    raise LabError(f"{what} of node {node.name}: ended with status {status}")

    def pids(self):
        return [daemon.pid for node in self.pair.nodes for daemon in (node.dataplane, node.control)]

    def describe(self):
        _status, reply, _error = self.a.json("node", "show")
        return {"kind": "own", "wire": self.pair.wire.name, "hugepages": self.pair.pages.available,
                "pinned": self._prefix is not None,
                "crc_variant": (reply.get("live") or {}).get("crc_variant")}  # fmt: skip


class RealNodes(_Nodes):
    """A directory of a running node here, and the name by which it knows a peer that runs elsewhere. What the
    peer's machine uses of CPU and memory is not seen: cpu_s_per_gb and rss_mb are null."""

    real = True

    def __init__(self, directory, peer):
        self.directory = pathlib.Path(directory).resolve()
        self.peer = peer
        try:
            binaries = find_binaries()
        except HarnessError:
            program = shutil.which("sluice")
            if program is None:
                raise LabError("sluice: neither built here nor in PATH; run ./dev build", MISSING) from None
            binaries = pathlib.Path(program).parent
        self.a = Node(binaries, self.directory, "local", 0)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        pass

    def start(self):
        status, reply, error = self.a.json("node", "show")
        if status != 0:
            raise LabError(f"--node {self.directory}: {error.strip() or 'no node there'}", MISSING)
        if not (reply.get("live") or {}).get("dataplane_attached"):
            raise LabError(f"--node {self.directory}: its daemons do not run; start them", MISSING)
        if self.peer not in [peer["name"] for peer in reply["peers"]]:
            raise LabError(f"--node {self.peer}: {self.directory} trusts no peer of that name", MISSING)
        self.live = reply["live"]
        return self

    def freeze(self):
        """They are not ours: nothing else is measured beside them."""

    def thaw(self):
        """Nor were they frozen."""

    def pids(self):
        """Of the local node's daemons; a control that was started otherwise than from here included."""
        return [int((self.directory / "run" / "control.lock").read_text()), self._dataplane_pid()]

    def _dataplane_pid(self):
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue  # ended meanwhile
            if words[0].endswith("sluice-dataplane") and any(self._is_ours(entry, word) for word in words[1:]):
                return int(entry.name)
        raise LabError(f"--node {self.directory}: no sluice-dataplane of it runs here", MISSING)

    def _is_ours(self, entry, word):
        try:
            return ((entry / "cwd").resolve() / word.removeprefix("--node=")).resolve() == self.directory
        except OSError:
            return False

    def describe(self):
        return {"kind": "real", "directory": str(self.directory), "peer": self.peer, "live": self.live,
                "crc_variant": self.live.get("crc_variant")}  # fmt: skip
