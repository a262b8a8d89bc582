# Tornado's figures (docs/SOURCES.md; section 3): a file over a link of 12 Mbit/s, Sluice with each choice of --fec beside scp.
#
# All go through one emulated link (perf/lab/shared.py, MTU 1500), one after the other, from a file to a file on the same
# file system, which is compared with it. wall_s is that of the whole client. The paper says neither the size of Figures
# 1 and 2, here 10 MB, nor the delay of Figure 1, here 10 ms one way. Loss is that of the data; what comes back is not lost, for
# nobody. Sluice's control connection is on loopback: its handshake does not feel the delay, as scp's does. scp runs with CUBIC, and in
# full runs with BBR where the kernel has it. Quick runs have 3 MB, and Figure 1 alone.
# least_s: what the link needs for the file at that loss, with our headers (72 bytes, IP and UDP) and a chunk that fits.
# Rows whose figure is `hypothesis` or `mistakes` are perf/lab/tornado_code.py's.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json

from harness.system import random_file, same_bytes

from .. import tornado_code
from ..emulated import WIRE_GAP_BYTES, queue_for
from ..errors import MISSING, LabError
from ..figures import gbps, ratio, rounded
from ..nodes import FRAME_OVERHEAD_BYTES
from ..peers import ends, tools
from ..peers.roster import Roster
from ..shared import Bottleneck, BottleneckEnds, Crowd
from ..stopwatch import timed
from . import shapes

HELP = "Tornado's figures: --fec off, auto, rs and raptorq beside scp at 12 Mbit/s"
REAL = False
PACKAGES = tools.Scp.packages
CODES = ("off", "auto", "rs", "raptorq")
_RATE_BPS = 12e6
_MB = 1_000_000
_LOSSES = (0.0, 1.0, 2.0, 5.0, 10.0)
_DELAYS_MS = (0, 10, 50, 100)  # one way
_SIZES_MB = (10, 20, 30, 40, 50)
_DELAY_MS = 10
_REPEATS = 10


def grid(quick):
    """Each figure's settings: what it draws along its axis, and what all others have."""
    if quick:
        return [*({"figure": 1, "loss_percent": loss, "delay_ms": _DELAY_MS, "size_mb": 3} for loss in (0.0, 2.0, 10.0)),
                *({"figure": 2, "loss_percent": 0.0, "delay_ms": delay, "size_mb": 3} for delay in (_DELAYS_MS[0], _DELAYS_MS[-1])),
                *({"figure": 3, "loss_percent": 0.0, "delay_ms": _DELAY_MS, "size_mb": size} for size in _SIZES_MB[:2])]  # fmt: skip
    return [*({"figure": 1, "loss_percent": loss, "delay_ms": _DELAY_MS, "size_mb": 10} for loss in _LOSSES),
            *({"figure": 2, "loss_percent": 0.0, "delay_ms": delay, "size_mb": 10} for delay in _DELAYS_MS),
            *({"figure": 3, "loss_percent": 0.0, "delay_ms": _DELAY_MS, "size_mb": size} for size in _SIZES_MB)]  # fmt: skip


def run(bench):
    reason = ends.missing()
    if reason:
        raise LabError(f"tornado: {reason}", MISSING)
    cells = grid(bench.quick)
    with contextlib.ExitStack() as stack:
        game = _Game(bench, stack, {each["size_mb"] for each in cells})
        settings = [{**cell, "what": what} for cell in cells for what in game.whats(bench.pick(("cubic",), ("cubic", "bbr")))]
        bench.described = {"kind": "own", "wire": "bridged af_packet, emulated", "mtu": 1500, "link_gbps": _RATE_BPS / 1e9}
        samples = bench.interleave(settings, game.measure, game.possible, repeats=bench.repeats_or(1, _REPEATS))
    rows = bench.must_have_rows([*bench.rows(settings, samples), *tornado_code.rows(bench)])
    return {"rows": rows, "summary": {**summary(rows), **tornado_code.summary(rows)}}


class _Game:
    def __init__(self, bench, stack, sizes):
        self._bottleneck = stack.enter_context(Bottleneck())
        self._timeout_s = bench.pick(90, 900)
        self._crowd = stack.enter_context(Crowd(self._bottleneck, 1))
        self._sender = self._crowd.senders[0]
        self._ends = stack.enter_context(BottleneckEnds(stack.enter_context(ends.Groups()), self._bottleneck))
        folder = self._bottleneck.base / "files"
        folder.mkdir()
        self._target = folder / "target.bin"
        self._sources = {size: random_file(self._sender.export() / f"{size}.bin", size * _MB) for size in sizes}
        self._tools = Roster(stack)
        self._tools.start_kind(tools.Scp, self._ends, folder)

    @staticmethod
    def whats(controls):
        return [f"fec-{code}" for code in CODES] + [f"scp-{control}" for control in controls]

    def possible(self, setting):
        if setting["what"].startswith("scp"):
            self._tools.must_have_started("scp")

    def measure(self, setting):
        source, (tool, choice) = self._sources[setting["size_mb"]], setting["what"].split("-")
        rtt_ms = 2 * setting["delay_ms"]
        self._bottleneck.shape(_RATE_BPS, rtt_ms, loss=setting["loss_percent"] / 100, queue_bytes=queue_for(_RATE_BPS, rtt_ms))
        if tool == "fec":
            return self._sluice(source, choice, setting["loss_percent"] / 100)
        with self._crowd.only([]):
            self._ends.use(choice)
            self._target.unlink(missing_ok=True)
            finished = self._tools.peers["scp"].copy(source, self._target, self._timeout_s, lambda: None)
            return self._outcome(finished, source, self._target)

    def _sluice(self, source, code, loss):
        target = self._crowd.sink.export() / source.name
        target.unlink(missing_ok=True)
        finished = timed(self._sender.command("send", source, "sink:data/", "--fec", code, "--json", "--quiet"), self._timeout_s)
        sample = self._outcome(finished, source, target)
        session = json.loads(finished.stdout.strip().splitlines()[-1])
        frames = -(-sample["bytes"] // session["chunk_bytes"])
        least = (sample["bytes"] + frames * (FRAME_OVERHEAD_BYTES + WIRE_GAP_BYTES)) * 8 / _RATE_BPS / (1 - loss)
        return {**sample, "least_s": least, "of_least": sample["wall_s"] / least,
                **{key: session[key] for key in ("retransmits", "parity", "lost", "chunk_bytes", "protection", "crc", "crc_errors")}}  # fmt: skip

    @staticmethod
    def _outcome(finished, source, target):
        finished.must_have_worked("the client")
        if not same_bytes(source, target):
            raise LabError("what arrived differs from the source")
        size = source.stat().st_size
        return {"goodput_gbps": gbps(size, finished.wall_s), "wall_s": finished.wall_s, "bytes": size}


def summary(rows):
    def wall_s(loss, *whats):
        found = [row["wall_s"] for row in rows if row["figure"] == 1 and row["loss_percent"] == loss
                 and row["what"] in whats and row.get("wall_s")]  # fmt: skip
        return min(found, default=None)

    out = {}
    for loss in _LOSSES:
        ours, scp = wall_s(loss, "fec-auto"), wall_s(loss, "scp-cubic", "scp-bbr")
        out[f"ratio_scp_{loss:g}"] = rounded(ratio(scp, ours)) if ours and scp else None
        best = wall_s(loss, *(f"fec-{code}" for code in CODES))
        out[f"auto_of_best_{loss:g}"] = rounded(ratio(best, ours)) if ours and best else None
    ten = [row for row in rows if row["size_mb"] == 10]
    for loss in (0.0, 10.0):
        out[f"seconds_{loss:g}"] = next((rounded(row["wall_s"]) for row in ten if row["figure"] == 1 and row["loss_percent"] == loss
                                         and row["what"] == "fec-auto" and row.get("wall_s")), None)  # fmt: skip
    return out


def plots(result):
    def figure(number, key, label):
        def draw(axes):
            rows = [row for row in result["rows"] if row.get("figure") == number]
            for what in dict.fromkeys(row["what"] for row in rows):
                shapes.line(axes, [row for row in rows if row["what"] == what], key, "wall_s", what)
            axes.set_xlabel(label)
            axes.set_ylabel("transfer time, s")
            axes.set_ylim(bottom=0)
            shapes.legend(axes)

        return draw

    drawn = [(1, "loss_percent", "loss, %"), (2, "delay_ms", "one-way delay, ms"), (3, "size_mb", "MB")]
    present = {row.get("figure") for row in result["rows"]}
    return [(f"figure-{number}", figure(number, key, label)) for number, key, label in drawn if number in present]
