# Who gets how much of one bottleneck: Sluice's sessions among themselves, and beside real TCP.
#
# One link (perf/lab/shared.py): the path emulator between two bridges, with MTU 1500; to its one side the sending nodes
# and iperf3's client are attached by veths of their own, to the other one receiving node and iperf3's server. Every
# sending node has a law of its own. Nodes that do not take part are stopped. What is measured lies within the time in
# which all are there, after a start-up. Goodputs are payload of either; a fair share is the link's payload rate
# over the number of flows, a session being one.
#   flows    2, 4, 8 sessions of equal RTT, begun one after the other; `rtts`: 20 beside 100 ms; `shallow`: 0.5 ms of buffer
#   alone    so many TCP flows by themselves
#   versus   a session beside so many TCP flows, which begin first
# tcp_kept: of what the same TCP flows get alone over the same buffer, in the same round. tcp_share, sluice_share: of a
# fair share. jain: Jain's index.
# SPDX-License-Identifier: Apache-2.0
import contextlib

from .. import trace, watch
from ..emulated import Looker, for_seconds, running_session
from ..errors import MISSING, LabError
from ..figures import gbps, median, ratio, rounded
from ..peers import ends
from ..shared import Bottleneck, BottleneckEnds, Crowd
from ..tcp_flows import TcpFlows, mean_bps
from . import shapes

HELP = "2, 4, 8 sessions, and sessions beside CUBIC and BBR, through one bottleneck"
REAL = False
PACKAGES = (*watch.PACKAGES, *TcpFlows.packages)
RTT_MS = 20
_DETOUR_MS = 80
_TCP_PAYLOAD = 1448 / (1500 + 14 + 24)
_BUFFERS_BDP = (0.25, 1, 4)
_SHALLOW_MS = (0.2, 1.0)


def run(bench):
    reason = ends.missing()
    if reason:
        raise LabError(f"fairness: {reason}", MISSING)
    rate_bps = bench.pick(100e6, 200e6)
    settings = cells(bench.quick, rate_bps)
    most = max(each.get("sessions", 1) for each in settings)
    with contextlib.ExitStack() as stack:
        bottleneck = stack.enter_context(Bottleneck())
        # The last of the senders is farther away.
        crowd = stack.enter_context(Crowd(bottleneck, most + 1, detours_ms=(*[0] * most, _DETOUR_MS)))
        groups = stack.enter_context(ends.Groups())
        tcp = TcpFlows(stack.enter_context(BottleneckEnds(groups, bottleneck)), bottleneck.base)
        stack.callback(tcp.stop)
        tcp.start()
        game = _Game(bottleneck, crowd, tcp, rate_bps, bench.pick(6.0, 20.0))
        bench.described = {"kind": "own", "wire": "bridged af_packet, emulated", "mtu": 1500, "link_gbps": rate_bps / 1e9}
        samples = bench.interleave(settings, game.measure, lambda _each: None)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    keep(settings, samples, rows)
    return {"rows": rows, "summary": summary(rows)}


# ---- what is run --------------------------------------------------------------------------------


def cells(quick, rate_bps):
    bdp_ms = RTT_MS

    def flows(sessions, **more):
        return {"case": "flows", "sessions": sessions, "buffer_ms": bdp_ms, **more}

    def tcp(case, buffer_ms, control="cubic", count=1, mode=None):
        return {"case": case, "mode": mode, "congestion_control": control, "tcp_flows": count, "buffer_ms": buffer_ms}

    out = [flows(each) for each in ((2, 4) if quick else (2, 4, 8))]
    out += [flows(2, rtts="20, 100"), flows(4, buffer_ms=0.5, rtts="shallow")]
    if quick:
        grid = [("cubic", 1, bdp_ms, ("adaptive", "cubic")), ("cubic", 1, 1.0, ("adaptive",))]
    else:
        grid = [(control, count, share * bdp_ms, ("adaptive", "cubic") if control == "cubic" else ("adaptive",))
                for control in ("cubic", "bbr") for count in (1, 4) for share in _BUFFERS_BDP]  # fmt: skip
        grid += [("cubic", 1, each, ("adaptive",)) for each in _SHALLOW_MS]
    for control, count, buffer_ms, modes in grid:
        out.append(tcp("alone", buffer_ms, control, count))
        out += [tcp("versus", buffer_ms, control, count, mode) for mode in modes]
    return out


class _Game:
    def __init__(self, bottleneck, crowd, tcp, rate_bps, seconds):
        self._bottleneck, self._crowd, self._tcp = bottleneck, crowd, tcp
        self._rate_bps, self._seconds = rate_bps, seconds

    def measure(self, setting):
        self._bottleneck.shape(self._rate_bps, RTT_MS, queue_bytes=self._rate_bps / 8e3 * setting["buffer_ms"])
        return self._flows(setting) if setting["case"] == "flows" else self._beside(setting)

    def _flows(self, setting):
        senders = self._crowd.senders[: setting["sessions"]]
        if setting.get("rtts") == "20, 100":
            senders = [self._crowd.senders[0], self._crowd.senders[-1]]
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._crowd.only(senders))
            looker = stack.enter_context(Looker(self._bottleneck.wire))
            sessions = []
            for sender in senders:
                sessions.append(stack.enter_context(running_session(sender, "sink", "memory:1T", "null:")))
                for_seconds(sessions[-1], 1.0)
            for_seconds(sessions[-1], self._seconds / 2)
            from_s = looker.now_s()
            for_seconds(sessions[-1], self._seconds)
            until_s = looker.now_s()
        return self._outcome(looker, sessions, [], from_s, until_s, {})

    def _beside(self, setting):
        total_s = self._seconds * 2 + 2
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._crowd.only(self._crowd.senders[:1] if setting["mode"] else []))
            looker = stack.enter_context(Looker(self._bottleneck.wire))
            flows = self._tcp.run(setting["tcp_flows"], setting["congestion_control"], int(total_s))
            stack.callback(flows.stop)
            sessions = []
            if setting["mode"]:
                sessions.append(stack.enter_context(running_session(
                    self._crowd.senders[0], "sink", "memory:1T", "null:", "--mode", setting["mode"])))  # fmt: skip
            intervals = flows.end()
            until_s = min(looker.now_s(), intervals[-1][1])
        return self._outcome(looker, sessions, intervals, until_s - self._seconds, until_s, setting)

    def _outcome(self, looker, sessions, intervals, from_s, until_s, setting):
        points = trace.between(looker.points, from_s, until_s)
        shares = [trace.goodput_bps(each.samples, from_s, until_s) or 0.0 for each in sessions]
        tcp_bps = mean_bps(intervals, from_s, until_s) if intervals else None
        tcp_flows = setting.get("tcp_flows", 0)
        fair_bps = self._rate_bps * _TCP_PAYLOAD / (len(sessions) + tcp_flows)
        return {
            "goodput_gbps": gbps(sum(shares) + (tcp_bps or 0.0), 8),
            "sessions_mbps": [round(each / 1e6, 2) for each in shares],
            "jain": trace.jain(shares) if len(shares) > 1 else None,
            "tcp_mbps": tcp_bps / 1e6 if tcp_bps is not None else None,
            "tcp_share": ratio(tcp_bps, fair_bps * tcp_flows) if tcp_flows else None,
            "sluice_share": shares[0] / fair_bps if tcp_flows and shares else None,
            "queue_ms": trace.queue_ms(points, self._rate_bps),
            "overdrive": trace.overdrive(points),
            "rate_states": sessions[0].states() if sessions else None,
        }


# ---- what it says -------------------------------------------------------------------------------


def _same_tcp(one, other):
    return all(one.get(key) == other.get(key) for key in ("congestion_control", "tcp_flows", "buffer_ms"))


def keep(settings, samples, rows):
    """tcp_kept of each `versus` row: the median over the rounds of what TCP got, over what it gets alone."""
    for setting, runs, row in zip(settings, samples, rows):
        if setting["case"] != "versus":
            continue
        alone = next(others for each, others in zip(settings, samples)
                     if each["case"] == "alone" and _same_tcp(each, setting))  # fmt: skip
        kept = [ratio(run.get("tcp_mbps"), other.get("tcp_mbps")) for run, other in zip(runs, alone)]
        row["tcp_kept"] = rounded(median(kept))


def summary(rows):
    def of(key, **wanted):
        found = [row[key] for row in rows if row.get(key) is not None
                 and all(row.get(name) == value for name, value in wanted.items())]  # fmt: skip
        return found[0] if found else None

    beside = {"case": "versus", "congestion_control": "cubic", "tcp_flows": 1}
    shallow = [min(row["sluice_share"], row["tcp_share"]) for row in rows
               if row.get("case") == "versus" and row["mode"] == "adaptive" and row["buffer_ms"] <= max(_SHALLOW_MS)
               and row.get("tcp_share") is not None]  # fmt: skip
    return {
        "jain_2": of("jain", case="flows", sessions=2, buffer_ms=RTT_MS),
        "jain_4": of("jain", case="flows", sessions=4, buffer_ms=RTT_MS),
        "jain_8": of("jain", case="flows", sessions=8, buffer_ms=RTT_MS),
        "jain_20_100ms": of("jain", rtts="20, 100"),
        "cubic_kept_1bdp": of("tcp_kept", **beside, mode="adaptive", buffer_ms=RTT_MS),
        "cubic_share": of("sluice_share", **beside, mode="cubic", buffer_ms=RTT_MS),
        "shallow_share": min(shallow, default=None),
        "overdrive_4_shallow": of("overdrive", rtts="shallow"),
    }


def plots(result):
    def versus(axes):
        rows = [{**row, "name": f"{row['mode']} | {row['tcp_flows']} {row['congestion_control']} | {row['buffer_ms']:g} ms"}
                for row in result["rows"] if row.get("case") == "versus"]  # fmt: skip
        shapes.bars(axes, rows, "name", "sluice_share", "of a fair share")
        axes.axvline(1, color="#888888", linewidth=0.8)

    def jain(axes):
        rows = [{**row, "name": f"{row['sessions']} {row.get('rtts') or 'equal'}"}
                for row in result["rows"] if row.get("case") == "flows"]  # fmt: skip
        shapes.bars(axes, rows, "name", "jain", "Jain's index")

    return [("versus", versus), ("jain", jain)]
