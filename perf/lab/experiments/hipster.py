# HIPSTER's channel (docs/SOURCES.md): its Tables 1 and 2, its Figures 4 to 8, and its own sender beside Sluice.
#
# A datagram of L bytes is lost with probability 1 - exp(-L/1024), and else late by an exponential time of mean
# 1024/ln(L) ms, in both directions; order is not kept. Two channels that share no code (perf/lab/channels.py) take the
# place of the paper's two: `sluice-wire`, over memif for Sluice and between veths for HIPSTER, and `sluice-channel`, between
# veths for both. A real file goes from one end to the other, and is compared. goodput of Sluice: file bytes over the wall of the
# whole client; of HIPSTER as in the paper: until the acknowledgement of the end. ratio: over the paper's goodput for
# that size, Table 1 for the first channel and Table 2 for the second. half_ratio: the second half of the bytes over the
# first, by rate. A MB of the paper's files is 2^20 bytes, those of its MB/s 10^6: its rates compare with those of our MB, its
# times with rows of `unit` MiB. What the paper leaves open of the sender is in perf/hipster/hipster.h: rows of `hipster` are what that
# makes here, and the paper's own figures stand beside them as paper_mb_s.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json

from harness.system import random_file, same_bytes

from .. import channels, watch
from ..emulated import EmulatedNodes, running_session
from ..errors import MISSING, LabError
from ..figures import gbps, ratio, rounded
from ..peers import ends
from ..peers.ends import ADDRESSES
from ..peers.tools import Peer
from ..seeds import papers
from ..shared import BottleneckEnds, Crowd
from . import shapes

HELP = "HIPSTER's channel: Sluice and HIPSTER's own sender, 1 to 500 MB; the laws of the channel"
REAL = False
PACKAGES = watch.PACKAGES
_SIZES_MB = (1, 5, 10, 50, 100, 200, 500)
TABLES = {name: {size: papers.load().number(f"H-t{number}-{size}-g") for size in _SIZES_MB}
          for number, name in ((1, "sluice-wire"), (2, "sluice-channel"))}  # fmt: skip
_UNIT_BYTES = {"MB": 1_000_000, "MiB": 1 << 20}
_LENGTHS = (12, 112, 212, 312, 412, 512, 612, 712, 812, 912, 1012)
# About L0 with our header; the channel loses 62 % of such datagrams, and says nothing of why. Nor does it say how
# fast it is: each is offered what its wire carries here.
OPTIONS = ("--chunk-bytes", "936", "--expect-loss", "65", "--overwrite", "--fec", "off")
# With repair symbols, and shorter datagrams, of which more arrive: 640 bytes lose half.
FEC_OPTIONS = ("--chunk-bytes", "640", "--expect-loss", "50", "--overwrite", "--fec", "auto")
_WHATS = (("sluice", "MB"), ("sluice", "MiB"), ("sluice-fec", "MB"), ("hipster", "MB"))
_RATES = {"sluice-wire": "2G", "sluice-channel": "1G"}
_MEMORY_MIB = 1024  # much is under way where the last chunk of an extent comes late
_PORT = 4444


def run(bench):
    reason = ends.missing()
    if reason:
        raise LabError(f"hipster: {reason}", MISSING)
    sizes = bench.pick((1, 10), _SIZES_MB)
    rows, measured = [], {}
    for kind in (channels.FirstChannel, channels.SecondChannel):
        with contextlib.ExitStack() as stack:
            game = _Game(bench, stack, kind, max(sizes))
            measured[kind.name] = game.laws()
            settings = [{"channel": kind.name, "what": what, "size_mb": size, "unit": unit} for size in sizes
                        for what, unit in _WHATS]
            samples = bench.interleave(settings, game.measure, lambda _each: None)
        rows += bench.rows(settings, samples)
    bench.described = {"kind": "own", "wire": "emulated memif; bridged af_packet, sluice-channel", "options": OPTIONS,
                       "fec_options": FEC_OPTIONS, "rates": _RATES}
    rows = bench.must_have_rows(rows)
    return {"rows": rows, "laws": measured, "summary": summary(rows, measured)}


class Hipster(Peer):
    name = "hipster"

    def transfer(self, source, target, timeout_s):
        """(figures of the sender, useful bytes of each half second at the receiver)"""
        program = channels.program("hipster")
        receiver = self.client(1, [program, "receive", target, "--address", ADDRESSES[1], "--port", _PORT,
                                   "--size-bytes", source.stat().st_size])  # fmt: skip
        try:
            sender = self.client(0, [program, "send", source, "--address", ADDRESSES[1], "--port", _PORT])
            finished = sender.end(timeout_s)
        finally:
            said = receiver.stop().stdout
        finished.must_have_worked("hipster")
        return json.loads(finished.stdout), json.loads(said)["useful_bytes"]


class _Game:
    def __init__(self, bench, stack, kind, most_mb):
        self._timeout_s = bench.pick(120, 900)
        self._count = bench.pick(150, 1000)
        self._channel = stack.enter_context(kind())
        self._folder = self._channel.base
        self._ends = stack.enter_context(BottleneckEnds(stack.enter_context(ends.Groups()), self._channel))
        self._hipster = Hipster(self._ends, self._folder)
        if kind is channels.FirstChannel:
            nodes = stack.enter_context(EmulatedNodes(memory_mib=_MEMORY_MIB, bytes_needed=4 * _UNIT_BYTES["MiB"] * most_mb))
            nodes.start()
            nodes.wire.set("both", **channels.SETTINGS)
            self._from, self._to = nodes.a, nodes.b
        else:
            crowd = stack.enter_context(Crowd(self._channel, 1, memory_mib=_MEMORY_MIB))
            self._from, self._to = crowd.senders[0], crowd.sink

    def laws(self):
        return channels.laws(self._ends, _LENGTHS, self._count)

    def measure(self, setting):
        size = setting["size_mb"] * _UNIT_BYTES[setting["unit"]]
        source = random_file(self._from.export() / "source.bin", size)
        target = self._to.export() / "source.bin"
        target.unlink(missing_ok=True)
        if setting["what"] == "hipster":
            sample = self._hipsters(source, target)
        else:
            sample = self._sluice(source, FEC_OPTIONS if setting["what"] == "sluice-fec" else OPTIONS)
        if not same_bytes(source, target):
            raise LabError(f"{setting['what']}: what arrived differs from the source")
        paper = TABLES[setting["channel"]][setting["size_mb"]]
        mb_s = size / 1e6 / sample["wall_s"]
        return {"goodput_gbps": gbps(size, sample["wall_s"]), "mb_s": mb_s, "paper_mb_s": paper,
                "ratio": ratio(mb_s, paper), **sample}  # fmt: skip

    def _sluice(self, source, options):
        options = (*options, "--rate", _RATES[self._channel.name])
        with running_session(self._from, self._to.name, source, "data/", *options) as session:
            if not session.wait(self._timeout_s):
                raise LabError(f"not ended after {self._timeout_s} s: {session.last.bytes_done} bytes are there, "
                               f"{session.last.rate_state}")  # fmt: skip
        last = session.last
        if session.state() != "SUCCEEDED":
            raise LabError(f"{session.state()}: {last.error}")
        done = [(t_s - session.samples[0][0], done) for t_s, done, _ in session.samples]
        return {"wall_s": last.elapsed_s, "sent_bytes": last.bytes_sent + last.bytes_resent,
                "duplicates": last.duplicates, "retransmits": last.retransmits, "parity": last.parity, "half_ratio": half_ratio(done),
                "rate_states": session.states(), "useful_mb_s": by_half_seconds(done), **session.told()}  # fmt: skip

    def _hipsters(self, source, target):
        figures, useful = self._hipster.transfer(source, target, self._timeout_s)
        total, done = 0, [(0.0, 0)]
        for number, each in enumerate(useful):
            total += each
            done.append((0.5 * (number + 1), total))
        return {"wall_s": figures["seconds"], "sent_bytes": figures["sent"] * 1000, "half_ratio": half_ratio(done),
                "useful_mb_s": [each / 0.5e6 for each in useful]}  # fmt: skip


# ---- of (t_s, bytes done) -----------------------------------------------------------------------


def time_of(done, wanted):
    """When so many bytes were there, between the samples by a straight line."""
    before_s, before = done[0]
    for t_s, value in done:
        if value >= wanted:
            return t_s if value == before else before_s + (t_s - before_s) * (wanted - before) / (value - before)
        before_s, before = t_s, value
    return None


def half_ratio(done):
    """The rate of the second half of the bytes over that of the first."""
    total = done[-1][1]
    half_s, end_s = time_of(done, total / 2), time_of(done, total)
    if not total or half_s is None or end_s <= half_s:
        return None
    return half_s / (end_s - half_s)


def by_half_seconds(done):
    """MB/s of each half second."""
    out, edge_s, before = [], 0.5, 0
    for t_s, value in done:
        if t_s >= edge_s:
            out.append(round((value - before) / (t_s - edge_s + 0.5) / 1e6, 3))
            edge_s, before = t_s + 0.5, value
    return out


# ---- what it says -------------------------------------------------------------------------------


def summary(rows, measured):
    ours = [row for row in rows if row["what"] == "sluice" and row["unit"] == "MB"]
    ratios = [row.get("ratio") or 0.0 for row in ours]
    largest = [row for row in ours if row["size_mb"] == max(each["size_mb"] for each in ours)]
    halves = [row["half_ratio"] for row in ours if row["size_mb"] >= 50 and row.get("half_ratio") is not None]
    with_fec = [row["mb_s"] for row in rows if row["what"] == "sluice-fec" and row["size_mb"] == 500
                and row["channel"] == "sluice-wire" and row.get("mb_s")]  # fmt: skip
    return {
        "mb_s_500_fec": min(with_fec, default=None),
        "mb_s_500": min((row["mb_s"] for row in ours if row["size_mb"] == 500 and row.get("mb_s")), default=None),
        "mb_s_largest": min((row["mb_s"] for row in largest if row.get("mb_s")), default=None),
        "ratio_worst": min(ratios, default=None),
        "half_ratio_worst": min(halves, default=None),
        "drop_error_worst": rounded(max(abs(each["dropped"] - each["dropped_law"]) for laws in measured.values()
                                        for each in laws)),
        "distance_worst": rounded(max(each["distance"] for laws in measured.values() for each in laws
                                      if each["distance"] is not None)),
    }  # fmt: skip


def plots(result):
    def law(key, law_key, unit):
        def draw(axes):
            for name, measured in result.get("laws", {}).items():
                axes.plot([each["length"] for each in measured], [each[key] for each in measured], "o", label=name)
                axes.plot([each["length"] for each in measured], [each[law_key] for each in measured], color="#888888")
            axes.set_xlabel("payload, bytes")
            axes.set_ylabel(unit)
            shapes.legend(axes)

        return draw

    def cdf(axes):
        for name, measured in result.get("laws", {}).items():
            delays = measured[-1]["delays_ms"]
            axes.plot(delays, [(number + 1) / len(delays) for number in range(len(delays))], label=name)
        axes.set_xlabel("delay at 1012 bytes, ms")
        axes.set_ylabel("fraction")
        shapes.legend(axes)

    def over_time(size_mb):
        def draw(axes):
            for row in result["rows"]:
                if row.get("size_mb") == size_mb and row.get("useful_mb_s"):
                    axes.plot([0.5 * number for number in range(len(row["useful_mb_s"]))], row["useful_mb_s"],
                              label=f"{row['what']}, {row['channel']}")  # fmt: skip
            axes.set_xlabel("s")
            axes.set_ylabel("MB/s at the receiver")
            shapes.legend(axes)

        return draw

    def table(axes):
        for what in ("sluice", "sluice-fec", "hipster"):
            for name in TABLES:
                shapes.line(axes, [row for row in result["rows"] if row.get("what") == what and row["channel"] == name],
                            "size_mb", "mb_s", f"{what}, {name}")  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlabel("MB")
        axes.set_ylabel("MB/s")
        shapes.legend(axes)

    largest = sorted({row["size_mb"] for row in result["rows"] if "size_mb" in row})[-2:]
    return [("dropping", law("dropped", "dropped_law", "dropped")), ("delay", law("delay_ms", "delay_ms_law", "mean delay, ms")),
            ("cdf", cdf), ("goodput", table), *((f"time-{size}mb", over_time(size)) for size in largest)]  # fmt: skip
