# How much of a path `adaptive` takes: round trips of 0 to 200 ms, random loss of 0 to 10 %.
#
# Two nodes over memif with the path emulator between them: a link of 1 Gbit/s (frames with FCS, preamble and gap)
# with a queue of one BDP, 10 ms at least, then the loss, then half of the RTT each way. One session from memory to
# null: in each run, which is cancelled when it was looked at for long enough. fraction: goodput between the start-up
# and the end, over C (1 - p), where C is what the link carries of payload when it is full. Start-up is `skip_s`.
# time_to_95_s: from the first datagram until 95 % of C (1 - p) left the path for 100 ms, or for one RTT. queue_ms: the
# median of what waited in the link's queue after the start-up, looked at every 10 ms.
#
# `starts`: how sessions start in virtual time (`sluice-starts`), many of each cell of round trip, loss and buffer: what they take of
# the path from the fifth to the eighth second. worst_start: the least of all; bad_starts: how many took less than 0.7.
#
# Cells of 10 Gbit/s have a link of that rate, or of 0.8 of what the emulator carried when it was asked to carry as
# much as it can (`emulator_gbps`); `capacity_gbps` says which.
# SPDX-License-Identifier: Apache-2.0
import json

from .. import trace, watch
from ..emulated import EmulatedNodes, Looker, for_seconds, goodput_limit_bps, queue_for
from ..figures import gbps, median, ratio, rounded
from ..probe import program
from ..stopwatch import timed
from . import shapes

HELP = "adaptive over RTT 0 to 200 ms and loss 0 to 10 %: goodput, time to 95 %, queue"
REAL = False
PACKAGES = watch.PACKAGES
RTTS_MS = (0, 1, 20, 100, 200)
LOSSES = (0.0, 0.001, 0.01, 0.05, 0.1)
_QUICK_CELLS = ((1, 0.0), (20, 0.0), (20, 0.01), (100, 0.01), (200, 0.0))
_RATE_GBPS, _FAST_GBPS = 1.0, 10.0
_FAST_CELLS = ((1, 0.0), (20, 0.0), (100, 0.0), (20, 0.01))
_EMULATOR_SHARE = 0.8
_MEMORY_MIB = 1024
_STARTS_QUICK, _STARTS = 10, 1000  # of each of 80 cells: a thousand take half an hour of both cores


def run(bench):
    with EmulatedNodes(memory_mib=bench.pick(512, _MEMORY_MIB)) as nodes:
        nodes.start()
        bench.describe(nodes)
        fastest = emulator_gbps(nodes, bench.pick(2.0, 5.0))
        settings = cells(bench.quick, fastest)
        samples = bench.interleave(settings, lambda each: measure(nodes, each, bench.pick(2.0, 20.0)),
                                   lambda _each: None)  # fmt: skip
    bench.described["emulator_gbps"] = rounded(fastest)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    starts = starts_in_virtual_time(bench.pick(_STARTS_QUICK, _STARTS))
    return {"rows": rows, "starts": starts,
            "summary": {**summary(rows), **summary_of_starts(starts), "emulator_gbps": rounded(fastest)}}  # fmt: skip


def starts_in_virtual_time(starts):
    finished = timed([program("sluice-starts"), "--starts", starts], 120 + 10 * starts)
    finished.must_have_worked("sluice-starts")
    return [json.loads(line) for line in finished.stdout.splitlines()]


def summary_of_starts(cells):
    return {"worst_start": min(each["least"] for each in cells), "bad_starts": sum(each["bad"] for each in cells),
            "starts": sum(each["starts"] for each in cells)}  # fmt: skip


def cells(quick, fastest_gbps):
    def cell(link, rtt_ms, loss, capacity_gbps):
        return {"link": link, "rtt_ms": rtt_ms, "loss_percent": loss * 100, "capacity_gbps": capacity_gbps}

    grid = _QUICK_CELLS if quick else [(rtt, loss) for rtt in RTTS_MS for loss in LOSSES]
    fast_gbps = rounded(min(_FAST_GBPS, _EMULATOR_SHARE * fastest_gbps), 3)
    fast = () if quick else _FAST_CELLS
    return [cell("1G", *each, _RATE_GBPS) for each in grid] + [cell("10G", *each, fast_gbps) for each in fast]


def emulator_gbps(nodes, seconds):
    """What the emulator passes on when neither a link nor a law holds the sender back."""
    nodes.shape(0, 0)
    with nodes.session("--mode", "fixed") as session:
        for_seconds(session, seconds)
        end_s = session.samples[-1][0]
    return (trace.goodput_bps(session.samples, end_s - seconds / 2, end_s) or 0) / 1e9


def skip_s(rtt_ms):
    """Until a session is past its start."""
    return 1.0 + 0.02 * rtt_ms


def measure(nodes, setting, seconds):
    rate_bps, rtt_ms = setting["capacity_gbps"] * 1e9, setting["rtt_ms"]
    loss = setting["loss_percent"] / 100
    nodes.shape(rate_bps, rtt_ms, loss=loss, queue_bytes=queue_for(rate_bps, rtt_ms))
    with Looker(nodes.wire) as looker, nodes.session() as session:
        for_seconds(session, skip_s(rtt_ms) + seconds)
        end_s = looker.now_s()
    return figures(looker.points, session, rate_bps, rtt_ms, loss, end_s)


def figures(points, session, rate_bps, rtt_ms, loss, end_s):
    points = [each for each in points if each.t_s <= end_s]
    begin_s = trace.began_s(points)
    limit_bps = goodput_limit_bps(rate_bps, session.last.chunk_bytes) * (1 - loss)
    settled_s = begin_s + skip_s(rtt_ms)
    goodput = trace.goodput_bps(session.samples, settled_s, end_s)
    settled = trace.between(points, settled_s, end_s)
    # What leaves is counted without FCS, preamble and gap: so is what could.
    chunk = session.last.chunk_bytes
    full_bps = limit_bps * (chunk + 114) / chunk
    return {
        "goodput_gbps": gbps(goodput, 8) if goodput is not None else None,
        "fraction": ratio(goodput, limit_bps),
        "time_to_95_s": trace.time_to(points, begin_s, 0.95 * full_bps, max(0.1, rtt_ms / 1e3)),
        "queue_ms": trace.queue_ms(settled, rate_bps),
        "overdrive": trace.overdrive(settled),
        "overrun": points[-1].overrun - points[0].overrun,
        "loss": ratio(session.last.lost, session.last.chunks + session.last.retransmits),
        "retransmits": session.last.retransmits,
        "duplicates": session.last.duplicates,
        "rate_states": session.states(),
        **session.told(),
        "series": trace.series(trace.between(points, begin_s, end_s), 0.1, rate_bps),
    }


def summary(rows):
    slow = [row for row in rows if row["link"] == "1G"]
    fractions = [row["fraction"] for row in slow if row.get("fraction") is not None]
    queues = [row["queue_ms"] for row in slow if row.get("queue_ms") is not None]
    fast = [row["fraction"] for row in rows if row["link"] == "10G" and row.get("fraction") is not None]
    return {
        "worst_fraction": min(fractions) if len(fractions) == len(slow) and slow else None,
        "time_to_95_s_20ms": _time_to_95(slow, 20),
        "time_to_95_s_200ms": _time_to_95(slow, 200),
        "queue_ms_median": rounded(median(queues)),
        "queue_ms_worst": max(queues, default=None),
        "worst_fraction_10g": min(fast, default=None),
    }


def _time_to_95(rows, rtt_ms):
    """Without loss, or with as little as there is. None also when it was never reached."""
    rows = sorted((row for row in rows if row["rtt_ms"] == rtt_ms), key=lambda row: row["loss_percent"])
    return rows[0].get("time_to_95_s") if rows else None


def plots(result):
    slow = [row for row in result["rows"] if row.get("link") == "1G"]

    def fraction(axes):
        for rtt_ms in sorted({row["rtt_ms"] for row in slow}):
            shapes.line(axes, [row for row in slow if row["rtt_ms"] == rtt_ms], "loss_percent", "fraction",
                        f"{rtt_ms} ms")  # fmt: skip
        axes.axhline(0.95, color="#888888", linewidth=0.8)
        axes.set_xscale("symlog", linthresh=0.1)
        axes.set_ylim(0, 1.05)
        axes.set_xlabel("random loss, %")
        axes.set_ylabel("goodput / C(1-p)")
        shapes.legend(axes)

    def start(axes):
        for row in slow:
            series = row.get("series")
            if series and row["loss_percent"] == 0:
                axes.plot([each[0] for each in series], [each[1] for each in series], label=f"{row['rtt_ms']} ms")
        axes.set_xlabel("s")
        axes.set_ylabel("Mbit/s that left the path")
        shapes.legend(axes)

    def queue(axes):
        for loss in sorted({row["loss_percent"] for row in slow}):
            shapes.line(axes, [row for row in slow if row["loss_percent"] == loss], "rtt_ms", "queue_ms", f"{loss:g} %")
        axes.set_xlabel("RTT, ms")
        axes.set_ylabel("median queue, ms")
        shapes.legend(axes)

    return [("fraction", fraction), ("start", start), ("queue", queue)]
