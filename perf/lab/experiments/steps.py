# What `adaptive` does when the path changes under it.
#
# Two nodes over memif with the path emulator between them, one session from memory to null:. Cases:
#   capacity     the link has C, then C/2, then C again. rtts_down, rtts_up: round trips from a step to the first
#                of two windows in a row, of one RTT each (20 ms at least), in which at least 90 % of what the link
#                can carry left it, and the median of its queue was at most 10 ms and a twentieth of the RTT
#   figure4      256 MB over 200 Mbit/s, of which half is taken away for the second third: a sample each 100 ms, as
#                Phatpackets (docs/SOURCES.md), Figure 4
#   blackhole    nothing passes for 5 s in either direction; back_s: from its end to 90 % of the link
#   report-loss  5 % of what the receiver reports is lost
#   policer      a queue of 0.2 ms, and of 1 ms. overdrive: frames sent for each that the queue took
# fraction is as in `path`, in the last part of the run.
# SPDX-License-Identifier: Apache-2.0
import time

from .. import trace, watch
from ..emulated import EmulatedNodes, Looker, for_seconds, goodput_limit_bps, queue_for
from ..errors import LabError
from ..figures import gbps, ratio, rounded
from . import path, shapes

HELP = "capacity halves and comes back, a blackhole, lost reports, a policer: how soon, how much too much"
REAL = False
PACKAGES = watch.PACKAGES
_GBPS = 1.0
_FIGURE_BYTES, _FIGURE_BPS = 256_000_000, 200e6
_BLACKHOLE_S = 5
_MEMORY_MIB = 1024


def run(bench):
    with EmulatedNodes(memory_mib=bench.pick(512, _MEMORY_MIB)) as nodes:
        nodes.start()
        bench.describe(nodes)
        fastest = path.emulator_gbps(nodes, bench.pick(2.0, 5.0))
        settings = cells(bench.quick, fastest)
        samples = bench.interleave(settings, lambda each: measure(nodes, each, bench.quick), lambda _each: None)
    bench.described["emulator_gbps"] = rounded(fastest)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": rows, "summary": summary(rows)}


def cells(quick, fastest_gbps):
    def cell(case, rtt_ms, capacity_gbps=_GBPS, **more):
        return {"case": case, "rtt_ms": rtt_ms, "capacity_gbps": capacity_gbps, **more}

    # 10 Gbit/s, or as near to it as the emulator comes.
    fast_gbps = rounded(min(10.0, 0.8 * fastest_gbps), 3)
    rtts_ms = (20, 100) if quick else (20, 100, 200)
    out = [cell("capacity", rtt) for rtt in rtts_ms]
    if not quick:
        out += [cell("capacity", rtt, fast_gbps) for rtt in rtts_ms]
    out += [cell("figure4", 20, _FIGURE_BPS / 1e9), cell("blackhole", 20), cell("report-loss", 20)]
    return out + [cell("policer", 20, buffer_ms=each) for each in ((0.2,) if quick else (0.2, 1.0))]


def measure(nodes, setting, quick):
    return {"capacity": capacity, "figure4": figure4, "blackhole": blackhole, "report-loss": report_loss,
            "policer": policer}[setting["case"]](nodes, setting, quick)  # fmt: skip


def shape(nodes, setting, **more):
    rate_bps, rtt_ms = setting["capacity_gbps"] * 1e9, setting["rtt_ms"]
    nodes.shape(rate_bps, rtt_ms, **{"queue_bytes": queue_for(rate_bps, rtt_ms), **more})


def full_bps(rate_bps):
    """What leaves a full link, as the emulator counts bytes: without FCS, preamble and gap."""
    return goodput_limit_bps(rate_bps) * (8192 + 106) / 8192


def relink(nodes, rate_bps):
    """Another rate from now on, whatever waits."""
    nodes.wire.set("a_to_b", rate={"bits_per_s": int(rate_bps)})
    return time.monotonic()


def outcome(session, points, link_bps, from_s, until_s, window_s=0.1, **more):
    goodput = trace.goodput_bps(session.samples, from_s, until_s)
    seen = trace.between(points, from_s, until_s)
    return {
        "goodput_gbps": gbps(goodput, 8) if goodput is not None else None,
        "fraction": ratio(goodput, goodput_limit_bps(link_bps, session.last.chunk_bytes)),
        "queue_ms": trace.queue_ms(seen, link_bps),
        "retransmits": session.last.retransmits,
        "rate_states": session.states(),
        **session.told(),
        "series": trace.series(points, window_s, link_bps),
        **more,
    }


# ---- the cases ----------------------------------------------------------------------------------


def capacity(nodes, setting, _quick):
    rate_bps, rtt_s = setting["capacity_gbps"] * 1e9, setting["rtt_ms"] / 1e3
    phase_s = max(3.0, 30 * rtt_s)
    shape(nodes, setting)
    with Looker(nodes.wire) as looker, nodes.session() as session:
        for_seconds(session, path.skip_s(setting["rtt_ms"]) + phase_s)
        steps = []
        for link_bps in (rate_bps / 2, rate_bps):
            steps.append((relink(nodes, link_bps), link_bps))
            for_seconds(session, phase_s)
        end_s = looker.now_s()
    points = looker.points
    ends = [steps[1][0], end_s]
    settled = [rtts_to_settle(points, step_s, until_s, link_bps, rtt_s)
               for (step_s, link_bps), until_s in zip(steps, ends)]  # fmt: skip
    return outcome(session, points, rate_bps, end_s - phase_s / 3, end_s, rtts_down=settled[0], rtts_up=settled[1],
                   rtts_given=phase_s / rtt_s, steps_s=[each[0] - points[0].t_s for each in steps])  # fmt: skip


def rtts_to_settle(points, step_s, until_s, link_bps, rtt_s):
    took_s = trace.settle_s(points, step_s, until_s, 0.9 * full_bps(link_bps), link_bps, 0.010 + 0.05 * rtt_s,
                            max(rtt_s, 0.020))  # fmt: skip
    return ratio(took_s, rtt_s)


def figure4(nodes, setting, _quick):
    shape(nodes, setting)
    third_s = _FIGURE_BYTES * 8 / _FIGURE_BPS / 3
    with Looker(nodes.wire) as looker, nodes.session(source=f"memory:{_FIGURE_BYTES}") as session:
        for_seconds(session, third_s)
        low_s = relink(nodes, _FIGURE_BPS / 2)
        for_seconds(session, third_s)
        high_s = relink(nodes, _FIGURE_BPS)
        if not session.wait(20 * third_s):
            raise LabError(f"figure4: not ended after {22 * third_s:.0f} s")
        end_s = looker.now_s()
    if session.state() != "SUCCEEDED":
        raise LabError(f"figure4: {session.state()}: {session.last.error}")
    # With a third of the time at half the rate: what it would take at best.
    best_s = 3.5 * third_s
    return outcome(session, looker.points, _FIGURE_BPS, high_s, end_s, elapsed_s=session.last.data_elapsed_s,
                   best_s=best_s, low_goodput_mbps=(trace.goodput_bps(session.samples, low_s, high_s) or 0) / 1e6)  # fmt: skip


def blackhole(nodes, setting, quick):
    rate_bps, rtt_s = setting["capacity_gbps"] * 1e9, setting["rtt_ms"] / 1e3
    shape(nodes, setting)
    with Looker(nodes.wire) as looker, nodes.session() as session:
        for_seconds(session, path.skip_s(setting["rtt_ms"]) + 1)
        nodes.wire.blackhole(_BLACKHOLE_S)
        back_at_s = looker.now_s() + _BLACKHOLE_S
        for_seconds(session, _BLACKHOLE_S + (5 if quick else 15))
        end_s = looker.now_s()
    back_s = trace.time_to(looker.points, back_at_s, 0.9 * full_bps(rate_bps), max(0.1, rtt_s))
    return outcome(session, looker.points, rate_bps, end_s - 2, end_s, back_s=back_s)


def report_loss(nodes, setting, quick):
    rate_bps = setting["capacity_gbps"] * 1e9
    shape(nodes, setting, status_loss=0.05)
    with Looker(nodes.wire) as looker, nodes.session() as session:
        for_seconds(session, path.skip_s(setting["rtt_ms"]) + (3 if quick else 10))
        end_s = looker.now_s()
    begin_s = looker.points[0].t_s + path.skip_s(setting["rtt_ms"])
    return outcome(session, looker.points, rate_bps, begin_s, end_s)


def policer(nodes, setting, quick):
    rate_bps = setting["capacity_gbps"] * 1e9
    shape(nodes, setting, queue_bytes=rate_bps / 8e3 * setting["buffer_ms"])
    with Looker(nodes.wire) as looker, nodes.session() as session:
        for_seconds(session, path.skip_s(setting["rtt_ms"]) + (3 if quick else 10))
        end_s = looker.now_s()
    begin_s = looker.points[0].t_s + path.skip_s(setting["rtt_ms"])
    return outcome(session, looker.points, rate_bps, begin_s, end_s,
                   overdrive=trace.overdrive(trace.between(looker.points, begin_s, end_s)))  # fmt: skip


# ---- what it says -------------------------------------------------------------------------------


def summary(rows):
    """A step that was not settled in the time given counts as that time, at least."""
    settled = {}
    for row in rows:
        if row.get("case") == "capacity" and row.get("n"):
            settled[row["rtt_ms"]] = max(settled.get(row["rtt_ms"], 0), *(
                row["rtts_given"] if row[key] is None else row[key] for key in ("rtts_down", "rtts_up")
            ))  # fmt: skip
    def of(case, key):
        values = [row[key] for row in rows if row.get("case") == case and row.get(key) is not None]
        return max(values, default=None)

    return {
        "rtts_to_settle_worst": max(settled.values(), default=None),
        **{f"rtts_to_settle_{rtt}ms": value for rtt, value in sorted(settled.items())},
        "blackhole_back_s": of("blackhole", "back_s"),
        "overdrive": of("policer", "overdrive"),
        "report_loss_fraction": of("report-loss", "fraction"),
    }


def plots(result):
    def over_time(rows, title):
        def draw(axes):
            for row in rows:
                series = row.get("series") or []
                axes.plot([each[0] for each in series], [each[1] for each in series], label=title(row))
            axes.set_xlabel("s")
            axes.set_ylabel("Mbit/s that left the path")
            shapes.legend(axes)

        return draw

    names = list(dict.fromkeys(row["case"] for row in result["rows"] if "case" in row))
    return [(name, over_time([row for row in result["rows"] if row.get("case") == name],
                             lambda row: f"{row['rtt_ms']} ms, {row['capacity_gbps']:g} Gbit/s"))
            for name in names]  # fmt: skip
