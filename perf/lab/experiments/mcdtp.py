# MCDTP's tests (docs/SOURCES.md; chapter 5): 1,000,000,000 bytes over 1, 2, 4 and 8 lanes, clean and with 14 % of loss.
#
# Two nodes over memif with the path emulator between them: 80 ms there and back, as from New York to Amsterdam, a queue of one
# BDP, datagrams of 1400 bytes. The paper does not know its path's rate: the link has 200 Mbit/s, and in full runs 20 Mbit/s too, where
# the transfer takes some intervals of 60 s, as the paper's did. Its loss, of its own making, is 14 % with one channel; here the path
# loses so much at random, whatever the lanes.
# Series are those of both ends' network logs (perf/lab/netlogs.py), `server_mbps` of the source and `client_mbps` of the
# destination, one value each `interval_s`; log_error: by how much the bytes of the destination's log differ from a capture between the
# nodes. `max` is the best interval, the mean that of the whole session.
# SPDX-License-Identifier: Apache-2.0
import time

from .. import netlogs, watch
from ..emulated import EmulatedNodes, Looker, goodput_limit_bps, queue_for
from ..errors import LabError
from ..figures import gbps, ratio, rounded
from ..nodes import CHUNK_STEP_BYTES
from . import shapes

HELP = "MCDTP's tests: 1 GB over 1, 2, 4 and 8 lanes of a long path, clean and with 14 % loss"
REAL = False
PACKAGES = watch.PACKAGES
LANES = (1, 2, 4, 8)
BYTES = 1_000_000_000
RTT_MS = 80
LOSSES = (0.0, 14.0)  # percent
_HEADER_BYTES = 72
_CHUNK_BYTES = (1400 - _HEADER_BYTES) // CHUNK_STEP_BYTES * CHUNK_STEP_BYTES
_LINKS = ({"link_mbps": 200, "interval_s": 1}, {"link_mbps": 20, "interval_s": 60})
# What the link carries of payload when it is full.
LOSSY_GBPS = goodput_limit_bps(_LINKS[0]["link_mbps"] * 1e6, _CHUNK_BYTES) * (1 - LOSSES[1] / 100) / 1e9
_MEMORY_MIB = 1024
_SLACK = 12  # times what a full link takes


def cells(link):
    return [{**link, "loss_percent": loss, "lanes": lanes} for loss in LOSSES for lanes in LANES]


def run(bench):
    with EmulatedNodes(memory_mib=_MEMORY_MIB) as nodes:
        nodes.start()
        bench.describe(nodes)
        settings = cells(_LINKS[0])
        samples = bench.interleave(settings, lambda each: measure(nodes, each), lambda _each: None, repeats=1 if bench.quick else None)
        if not bench.quick:
            slow = cells(_LINKS[1])
            samples += bench.interleave(slow, lambda each: measure(nodes, each), lambda _each: None, repeats=1)
            settings += slow
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": rows, "summary": summary(rows)}


def measure(nodes, setting):
    rate_bps, interval_s = setting["link_mbps"] * 1e6, setting["interval_s"]
    nodes.shape(rate_bps, RTT_MS, loss=setting["loss_percent"] / 100, queue_bytes=queue_for(rate_bps, RTT_MS))
    options = ["--lanes", setting["lanes"], "--chunk-bytes", _CHUNK_BYTES]
    if setting["loss_percent"]:
        options += ["--expect-loss", f"{setting['loss_percent']:g}"]
    logs = [netlogs.Follower(node) for node in nodes.pair.nodes]
    offset_s = time.time() - time.monotonic()
    with Looker(nodes.wire, 0.05) as looker, nodes.session(*options, source=f"memory:{BYTES}") as session:
        for log in logs:
            log.begin()
        if not session.wait(_SLACK * BYTES * 8 / rate_bps + 30):
            raise LabError(f"not ended: {session.last.bytes_done} bytes are there, {session.last.rate_state}")
    if session.state() != "SUCCEEDED":
        raise LabError(f"{session.state()}: {session.last.error}")
    return figures(session, [log.end() for log in logs], looker.points, offset_s, interval_s)


def figures(session, logs, points, offset_s, interval_s):
    last = session.last
    (server, server_missing), (client, client_missing) = logs
    if not server or not client:
        raise LabError("a network log without a completion")
    wire = netlogs.captured(points, last.chunk_bytes, offset_s)
    begin_s = min(at_s for at_s, size in wire if size)
    series = {name: [each / 1e6 for each in netlogs.whole_intervals(done, begin_s, interval_s)]
              for name, done in (("server", server), ("client", client), ("capture", wire))}  # fmt: skip
    # What came twice left the path twice.
    logged = sum(size for _, size in client)
    seen = sum(size for _, size in wire) - last.duplicates * last.chunk_bytes
    return {
        "goodput_gbps": gbps(last.bytes_done, last.data_elapsed_s),
        "session_s": last.data_elapsed_s,
        "max_server_mbps": max(series["server"]),
        "max_client_mbps": max(series["client"]),
        "loss": ratio(last.lost, last.chunks + last.retransmits) or 0.0,
        "retransmits": last.retransmits,
        "duplicates": last.duplicates,
        "chunk_bytes": last.chunk_bytes,
        "log_error": abs(logged / seen - 1),
        "log_records_missing": server_missing + client_missing,
        **session.told(),
        **{f"{name}_mbps": [rounded(each, 4) for each in speeds] for name, speeds in series.items()},
    }


def summary(rows):
    fast = [row for row in rows if row["link_mbps"] == _LINKS[0]["link_mbps"] and row.get("goodput_gbps")]

    def of(lanes, loss):
        return next((row["goodput_gbps"] for row in fast if (row["lanes"], row["loss_percent"]) == (lanes, loss)), None)

    clean, lossy = [[of(lanes, loss) for lanes in LANES] for loss in LOSSES]
    return {
        "goodput_gbps_1": clean[0],
        "ratio_8_to_1": rounded(ratio(clean[-1], clean[0])),
        "ratio_8_to_1_lossy": rounded(ratio(lossy[-1], lossy[0])),
        "lossy_share_worst": rounded(min((each / LOSSY_GBPS for each in lossy if each), default=None)),
        "log_error_worst": max((row["log_error"] for row in rows if row.get("log_error") is not None), default=None),
    }


def plots(result):
    def goodput(axes):
        for loss in LOSSES:
            shapes.line(axes, [row for row in result["rows"] if row.get("loss_percent") == loss and row["link_mbps"] == _LINKS[0]["link_mbps"]],
                        "lanes", "goodput_gbps", f"{loss:g} % loss")  # fmt: skip
        axes.set_ylim(bottom=0)
        axes.set_xlabel("lanes")
        axes.set_ylabel("goodput, Gbit/s")
        shapes.legend(axes)

    return [("goodput", goodput)]
