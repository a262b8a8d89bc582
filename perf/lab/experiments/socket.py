# The socket port (`device = "udp"`) on a veth pair, memory to discard with CRC-64, beside iperf3 on the same pair and
# the DPDK port on a memif; and a file sent by user nobody over a path of 1 Gbit/s.
#
# `sluice` runs once for each cap of its rate, since a veth pushes nothing back: what the receiver cannot take is lost.
# The best cap of the medians counts. iperf3 -u sends datagrams as long as ours, as fast as it can; what arrived
# counts. UDT (perf/udt, Debian's libudt) sends as fast as its own rate control goes. One core for each side, of every
# tool; both pairs stand still while something else runs.
#
# `nobody`: both nodes run as a user without any capability and without hugepages; a token bucket of 1 Gbit/s stands on
# the sender's interface, and the session's rate is a little less. The file is of 100 MB, and goodput is by the session's
# own time, from the first byte that might leave to the file's name.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import subprocess

from harness import VethWire, veth_missing, wait_until
from harness.system import random_file, run as command

from ..bench import bytes_for
from ..errors import MISSING, LabError
from ..figures import by_round, median, rounded, spread
from ..nodes import OwnNodes
from ..sides import pin
from ..probe import last_object, program
from ..stopwatch import Running, timed
from . import shapes

HELP = "the socket port on veth beside iperf3 -u, iperf3 TCP, UDT and the DPDK port; user nobody at 1 Gbit/s"
REAL = False
PACKAGES = ("iperf3", "iproute2", "util-linux")
RATES = ("10G", "20G", "40G")
CHUNKS = (2400, 1100)
_MTU = 9000
_CHUNK_BYTES = 8192
_FILE_BYTES = 100_000_000
_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
_PORT = 5201


def run(bench):
    if (missing := veth_missing()) is not None:
        raise LabError(f"socket: {missing}", MISSING)
    settings = [{"tool": "sluice", "rate": rate} for rate in RATES]
    settings += [{"tool": "iperf3-udp"}, {"tool": "iperf3-tcp"}, {"tool": "udt"}, {"tool": "dpdk-memif"}]
    slow = [{"tool": "nobody", "chunk_bytes": chunk} for chunk in CHUNKS]
    with contextlib.ExitStack() as stack:
        nodes = stack.enter_context(OwnNodes(VethWire(mtu=_MTU, rate=shapes.RATE, sockets=(0, 1)),
                                             {"dataplane": {"memory_mib": 512, "extents_per_worker": 128}}))  # fmt: skip
        memif = stack.enter_context(OwnNodes())
        for each in (nodes, memif):
            each.start()
            each.freeze()
        bench.describe(nodes)
        runs = _Runs(nodes, memif, bench.pick(1.0, 4.0))
        samples = bench.interleave(settings, runs.measure)
    with OwnNodes(VethWire(mtu=_MTU, rate="1G", sockets=(0, 1)), prefix=lambda _side: _NOBODY) as nodes:
        samples += bench.interleave(slow, _Gigabit(nodes).measure)
    rows = bench.must_have_rows(bench.rows(settings + slow, samples))
    return {"rows": rows, "summary": summary(settings + slow, samples)}


def summary(settings, samples):
    def of(tool):
        return [runs for setting, runs in zip(settings, samples) if setting["tool"] == tool]

    best = max(of("sluice"), key=lambda runs: median([each.get("goodput_gbps") for each in runs]) or 0)
    udp, tcp, udt, dpdk = (of(tool)[0] for tool in ("iperf3-udp", "iperf3-tcp", "udt", "dpdk-memif"))
    out = {"goodput_gbps": rounded(median([each.get("goodput_gbps") for each in best])),
           "rate": settings[samples.index(best)]["rate"]}  # fmt: skip
    for name, theirs in (("iperf3_udp", udp), ("iperf3_tcp", tcp), ("udt", udt), ("dpdk_memif", dpdk)):
        out.update(spread(f"ratio_{name}", by_round(best, theirs, "goodput_gbps")))
    for chunk, runs in zip(CHUNKS, of("nobody")):
        goodput = median([each.get("goodput_gbps") for each in runs])
        out[f"nobody_mbps_{chunk}"] = None if goodput is None else round(goodput * 1000, 1)
    return out


class _Runs:
    def __init__(self, nodes, memif, seconds):
        self._nodes = nodes
        self._memif = memif
        self._seconds = seconds
        self._bytes = {}

    def measure(self, setting):
        tool = setting["tool"]
        if tool.startswith("iperf3"):
            return self._iperf3(["-u", "-b", "0", "-l", str(_CHUNK_BYTES + 64)] if tool == "iperf3-udp" else [])
        if tool == "udt":
            return self._udt()
        return self._transfer(self._nodes if tool == "sluice" else self._memif, tool, setting.get("rate", shapes.RATE))

    def _transfer(self, nodes, tool, rate):
        nodes.thaw()
        try:
            first = nodes.transfer(f"memory:{1 << 30}", "null:", "--rate", rate)
            size = self._bytes.setdefault((tool, rate), bytes_for(first, self._seconds))
            return nodes.transfer(f"memory:{size}", "null:", "--rate", rate, "--crc", "crc64", "--chunk-bytes",
                                  _CHUNK_BYTES)  # fmt: skip
        finally:
            nodes.freeze()

    def _iperf3(self, options):
        wire = self._nodes.pair.wire
        client = [*wire.enter(0), *pin(0), "iperf3", "-c", "10.77.0.2", "-p", _PORT, "-J", "-t",
                  max(1, int(self._seconds)), *options]  # fmt: skip
        server = Running([*wire.enter(1), *pin(1), "iperf3", "-s", "-1", "-p", _PORT])
        try:
            # Refused until the server listens.
            end = wait_until(lambda: _end_of(timed(client, 60)), 20, "iperf3: no run of it ended well")
        finally:
            server.end(10)
        if not options:
            return {"goodput_gbps": end["sum_received"]["bits_per_second"] / 1e9, "loss": 0.0}
        lost = end["sum"]["lost_percent"] / 100
        return {"goodput_gbps": end["sum"]["bits_per_second"] / 1e9 * (1 - lost), "loss": lost}


    def _udt(self):
        wire = self._nodes.pair.wire
        options = ["--address", "10.77.0.2", "--port", _PORT, "--mtu", _MTU]
        server = Running([*wire.enter(1), *pin(1), program("udt"), "receive", *options])
        try:
            # UDT tries by itself until the receiver listens.
            sent = timed([*wire.enter(0), *pin(0), program("udt"), "send", *options, "--seconds", self._seconds], 60)
        finally:
            finished = server.end(10)
        if sent.status != 0:
            raise LabError(f"udt: {sent.reason()}")
        came = last_object(finished, "udt")
        return {"goodput_gbps": came["bytes"] * 8e-9 / came["seconds"]}

def _end_of(finished):
    """What iperf3 reports, or None: an error is told in the same way, with status 0 or 1."""
    try:
        reply = json.loads(finished.stdout)
    except ValueError:
        return None
    return None if "error" in reply else reply["end"]


class _Gigabit:
    def __init__(self, nodes):
        self._nodes = nodes
        pair = nodes.pair
        self._source = random_file(pair.a.export() / "file.bin", _FILE_BYTES)
        subprocess.run(["chown", "-R", "65534:65534", str(pair.base)], check=True)
        nodes.start()
        command(["tc", "-n", pair.wire.namespace(0), "qdisc", "add", "dev", "data0", "root", "tbf", "rate", "1gbit",
                 "burst", "256k", "latency", "20ms"])  # fmt: skip

    def measure(self, setting):
        return self._nodes.transfer(self._source, "data/", "--overwrite", "--rate", "1G", "--crc", "crc64",
                                    "--chunk-bytes", setting["chunk_bytes"])  # fmt: skip


def plots(result):
    rows = [dict(row, name=" ".join(str(row[key]) for key in ("tool", "rate", "chunk_bytes") if row.get(key)))
            for row in result["rows"]]  # fmt: skip
    return [("goodput", lambda axes: shapes.bars(axes, rows, "name", "goodput_gbps", "Gbit/s"))]
