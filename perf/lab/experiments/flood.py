# What a session keeps of its wire while others send what nobody wants.
#
# `strangers`, `wrong tag`: two nodes (af_packet, MTU 1500) at the ends of one bottleneck, and a third host at the sender's
# side that takes 25, 50 or 75 % of it with datagrams as long as the session's own: of a flow that nobody named, or with
# the flow's addresses, ports and id, a number that is to come and a tag that is none, so that each of them is deciphered.
# `alone`: nobody does. kept: goodput over that of `alone` in the same round, over the share of the link that is left;
# share: what the flood was sent with, over the link's rate. refused: of the flood's datagrams, those that the receiver
# counted under the name that they must have; the others the bottleneck dropped. `lost`, `forged`: two nodes (memif) on
# a path on which 1 % of the frames is lost, or altered as somebody in the path would (docs/WIRE-EMULATOR.md, corrupt.forge).
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import socket
import sys

from harness import veth_missing
from harness.middle import DATA, kind_of
from harness.system import run as run_tool
from harness.wires import inside_namespace

from .. import floods, flooder, trace, watch
from ..emulated import EmulatedNodes, Looker, for_seconds, queue_for, running_session
from ..errors import MISSING, LabError
from ..figures import by_round, gbps, median, ratio, rounded, spread
from ..shared import Bottleneck, Crowd
from ..stopwatch import Running
from . import shapes

HELP = "goodput beside floods of 25, 50, 75 % of the wire, and of 1 % forged datagrams"
REAL = False
PACKAGES = watch.PACKAGES
RTT_MS, FORGED_RTT_MS = 5, 20
_SHARES = (0.25, 0.5, 0.75)
_FORGED_BPS = 1e9
_BAD_SHARE = 0.01
_SETTLE_S = 1.5
_FRAMES = 512  # of which the flood consists, in turn
_ETH_P_ALL = 3


def run(bench):
    reason = veth_missing()
    if reason:
        raise LabError(f"flood: {reason}", MISSING)
    rate_bps, seconds = bench.pick(100e6, 200e6), bench.pick(1.5, 5.0)
    shares = bench.pick((0.5,), _SHARES)
    settings = [{"case": "alone", "flood_percent": 0}]
    settings += [{"case": kind, "flood_percent": int(share * 100)} for kind in floods.COUNTERS for share in shares]
    with Bottleneck() as bottleneck, Crowd(bottleneck, 1) as crowd, Flooder(bottleneck) as flood:
        bench.described = {"kind": "own", "wire": "bridged af_packet, emulated", "mtu": 1500, "link_gbps": rate_bps / 1e9}
        samples = bench.interleave(settings, lambda each: beside(bottleneck, crowd, flood, each, rate_bps, seconds),
                                   lambda _each: None)  # fmt: skip
    keep(settings, samples)
    damages = [{"case": case, "flood_percent": None} for case in ("lost", "forged")]
    with EmulatedNodes() as nodes:
        nodes.start()
        damaged = bench.interleave(damages, lambda each: damage(nodes, each["case"], seconds), lambda _each: None)
    rows = bench.must_have_rows(bench.rows(settings + damages, samples + damaged))
    return {"rows": rows, "summary": summary(shares, settings, samples, damaged)}


class Flooder(contextlib.ExitStack):
    """A host at the sender's side of the bottleneck."""

    def __init__(self, bottleneck):
        super().__init__()
        self._bottleneck = bottleneck
        self._namespace = f"{bottleneck.namespace}fl"

    def __enter__(self):
        super().__enter__()
        run_tool(["ip", "netns", "add", self._namespace])
        self.callback(run_tool, ["ip", "netns", "del", self._namespace])
        self._bottleneck.attach(self._namespace, "flood0", 0)
        link = json.loads(run_tool(["ip", "-n", self._namespace, "-j", "link", "show", "flood0"]))[0]
        self._mac = bytes.fromhex(link["address"].replace(":", ""))
        return self

    @contextlib.contextmanager
    def at(self, rate_bps, kind, seen):
        """Sends while the block lasts; what it yields has its report afterwards."""
        path = self._bottleneck.base / "flood.hex"
        path.write_text("\n".join(frame.hex() for frame in floods.made_of(seen, kind, _FRAMES, self._mac)))
        report = {}
        running = Running(["nsenter", f"--net=/run/netns/{self._namespace}", "--", sys.executable, flooder.__file__, "flood0",
                           rate_bps, path])  # fmt: skip
        try:
            yield report
        finally:
            ended = running.stop()
        ended.must_have_worked("the flood")
        report.update(json.loads(ended.stdout))


def seen_at(namespace):
    """A full datagram of data that arrives there."""

    def look():
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL)) as port:
            port.bind(("data0", 0))
            port.settimeout(5)
            for _ in range(10_000):
                frame = port.recv(65536)
                if kind_of(frame) == DATA and len(frame) > 1000:
                    return frame
        raise LabError("no datagram of the session went by")

    return inside_namespace(namespace, look)


def beside(bottleneck, crowd, flood, setting, rate_bps, seconds):
    kind, share = setting["case"], setting["flood_percent"] / 100
    bottleneck.shape(rate_bps, RTT_MS, queue_bytes=queue_for(rate_bps, RTT_MS))
    counter = floods.COUNTERS.get(kind)
    with Looker(bottleneck.wire) as looker, running_session(crowd.senders[0], "sink", "memory:1T", "null:") as session:
        for_seconds(session, 1.0)
        before = crowd.sink.counters()
        wave = flood.at(share * rate_bps, kind, seen_at(f"{bottleneck.namespace}sink")) if counter else \
            contextlib.nullcontext({})
        with wave as report:
            for_seconds(session, _SETTLE_S)
            from_s = looker.now_s()
            for_seconds(session, seconds)
            until_s = looker.now_s()
        after = crowd.sink.counters()
    sample = outcome(looker, session, from_s, until_s, rate_bps)
    if counter:
        sample["share"] = report["bps"] / rate_bps
        sample["refused"] = ratio(after[counter] - before[counter], report["frames"])
    return sample


def damage(nodes, case, seconds):
    lost = {"loss": _BAD_SHARE} if case == "lost" else {}
    nodes.shape(_FORGED_BPS, FORGED_RTT_MS, queue_bytes=queue_for(_FORGED_BPS, FORGED_RTT_MS), **lost)
    if case == "forged":
        nodes.wire.set("a_to_b", corrupt={"forge": _BAD_SHARE})
    before = nodes.b.counters()["rx_drop_forged"]
    with Looker(nodes.wire) as looker, nodes.session() as session:
        for_seconds(session, 2.0)
        from_s = looker.now_s()
        for_seconds(session, seconds)
        until_s = looker.now_s()
    sample = outcome(looker, session, from_s, until_s, _FORGED_BPS)
    chunks = session.last.chunks + session.last.retransmits
    return {**sample, "refused": ratio(nodes.b.counters()["rx_drop_forged"] - before, chunks)}


def outcome(looker, session, from_s, until_s, rate_bps):
    points = trace.between(looker.points, from_s, until_s)
    goodput = trace.goodput_bps(session.samples, from_s, until_s)
    return {
        "goodput_gbps": gbps(goodput, 8) if goodput is not None else None,
        "loss": ratio(session.last.lost, session.last.chunks + session.last.retransmits),
        "retransmits": session.last.retransmits,
        **session.told(),
        "queue_ms": trace.queue_ms(points, rate_bps),
        "rate_states": session.states(),
    }


def keep(settings, samples):
    """kept of each run beside a flood: of what the session gets alone in that round, and of the share that is left."""
    for setting, runs in zip(settings, samples):
        if setting["case"] == "alone":
            continue
        for run_, alone in zip(runs, samples[0]):
            kept = ratio(run_.get("goodput_gbps"), alone.get("goodput_gbps"))
            if kept is not None:
                run_["kept"] = kept / (1 - run_["share"])


def summary(shares, settings, samples, damaged):
    """Of the two floods the one that leaves less counts."""

    def kept(percent):
        return [median([run_.get("kept") for run_ in runs]) for setting, runs in zip(settings, samples)
                if setting["flood_percent"] == percent]  # fmt: skip

    out = {}
    for share in shares:
        percent = int(share * 100)
        known = [each for each in kept(percent) if each is not None]
        out[f"kept_{percent}"] = rounded(min(known)) if len(known) == len(floods.COUNTERS) else None
    return {**out, **spread("forged_1", by_round(damaged[1], damaged[0], "goodput_gbps"))}


def plots(result):
    def goodput(axes):
        rows = [row for row in result["rows"] if row.get("flood_percent") is not None]
        for kind in floods.COUNTERS:
            shapes.line(axes, [row for row in rows if row["case"] in ("alone", kind)], "flood_percent", "goodput_gbps", kind)
        alone = next((row["goodput_gbps"] for row in shapes.good(rows) if row["case"] == "alone"), None)
        if alone is not None:
            axes.plot([0, 100], [alone, 0], color="#888888", linewidth=0.8)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("of the wire taken by the flood, %")
        axes.set_ylabel("goodput, Gbit/s")
        shapes.legend(axes)

    return [("goodput", goodput)]
