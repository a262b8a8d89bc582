# Files over paths with loss and delay: Sluice beside scp, rsync and GridFTP, which use the kernel's TCP, in one run.
#
# All go through the same emulated link (perf/lab/shared.py, MTU 1500), one after the other, from one file to another on
# the same file system; the destination is compared with the source. goodput is file bytes over the wall of the whole
# client. Sluice's control connection is on loopback, so its handshake does not feel the RTT as ssh's does: the size is
# such that this is little. `sluice-long` sends 16 times as much. Loss is that of the way of the data; what comes
# back is not lost, for nobody. TCP tools run with CUBIC, and where the kernel has it with BBR.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json

from harness.system import random_file, same_bytes

from ..emulated import queue_for
from ..errors import MISSING, LabError
from ..figures import gbps, ratio, rounded
from ..peers import ends, tools
from ..peers.roster import Roster
from ..shared import Bottleneck, BottleneckEnds, Crowd
from ..stopwatch import timed
from . import shapes

HELP = "Sluice beside scp, rsync and GridFTP over paths with loss and delay"
REAL = False
PACKAGES = ()
TOOLS = (tools.Scp, tools.Rsync, tools.GridFtp, tools.GridFtpStreams)
_PATHS = ((0.0, 20), (0.1, 20), (1.0, 20), (0.0, 100), (0.1, 100), (1.0, 100))
_ASKED = (1.0, 100)  # percent, ms: the path of the summary
_LONG = 16


def run(bench):
    reason = ends.missing()
    if reason:
        raise LabError(f"tcp: {reason}", MISSING)
    size = bench.pick(4 << 20, 16 << 20)
    with contextlib.ExitStack() as stack:
        bottleneck = stack.enter_context(Bottleneck())
        game = _Game(bench, stack, bottleneck, size)
        settings = game.settings(bench.pick((_ASKED,), _PATHS), bench.pick(("cubic",), ("cubic", "bbr")))
        bench.described = {"kind": "own", "wire": "bridged af_packet, emulated", "mtu": 1500,
                           "link_gbps": game.rate_bps / 1e9, "size_bytes": size}  # fmt: skip
        samples = bench.interleave(settings, game.measure, game.possible)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": rows, "summary": summary(rows)}


class _Game:
    def __init__(self, bench, stack, bottleneck, size):
        self._bottleneck, self._size = bottleneck, size
        self.rate_bps = bench.pick(100e6, 200e6)
        self._timeout_s = bench.pick(90, 900)
        self._crowd = stack.enter_context(Crowd(bottleneck, 1))
        self._sender = self._crowd.senders[0]
        self._ends = stack.enter_context(BottleneckEnds(stack.enter_context(ends.Groups()), bottleneck))
        folder = bottleneck.base / "files"
        folder.mkdir()
        # GridFTP's server is nobody.
        bottleneck.base.chmod(0o755)
        folder.chmod(0o777)
        exported = self._sender.export()
        self._source = random_file(exported / "source.bin", size)
        self._long = random_file(exported / "long.bin", size * _LONG, seed=2)
        self._target = folder / "target.bin"
        self._tools = Roster(stack)
        for kind in TOOLS:
            self._tools.start_kind(kind, self._ends, folder)

    def settings(self, paths, controls):
        """Every tool on every path with every congestion control; Sluice has its own."""
        out = []
        for loss, rtt_ms in paths:
            path = {"loss_percent": loss, "rtt_ms": rtt_ms}
            out += [{"peer": peer, "congestion_control": None, **path} for peer in ("sluice", "sluice-long")]
            out += [{"peer": tool, "congestion_control": control, **path}
                    for tool in self._tools.peers for control in controls]  # fmt: skip
        return out

    def possible(self, setting):
        self._tools.must_have_started(setting["peer"])

    def measure(self, setting):
        rtt_ms = setting["rtt_ms"]
        self._bottleneck.shape(self.rate_bps, rtt_ms, loss=setting["loss_percent"] / 100,
                               queue_bytes=queue_for(self.rate_bps, rtt_ms))  # fmt: skip
        if setting["peer"].startswith("sluice"):
            return self._sluice(self._long if setting["peer"] == "sluice-long" else self._source)
        with self._crowd.only([]):
            return self._tool(self._tools.peers[setting["peer"]], setting["congestion_control"])

    def _sluice(self, source):
        target = self._crowd.sink.export() / source.name
        command = self._sender.command("send", source, "sink:data/", "--overwrite", "--json", "--quiet")
        finished = timed(command, self._timeout_s)
        sample = self._outcome(finished, source, target, "sluice send")
        target.unlink()
        session = json.loads(finished.stdout.strip().splitlines()[-1])
        return {**sample, **{key: session[key] for key in ("protection", "crc", "crc_errors")}}

    def _tool(self, tool, congestion_control):
        self._ends.use(congestion_control)
        self._target.unlink(missing_ok=True)
        finished = tool.copy(self._source, self._target, self._timeout_s, lambda: None)
        return self._outcome(finished, self._source, self._target, tool.name)

    @staticmethod
    def _outcome(finished, source, target, name):
        finished.must_have_worked(name)
        if not same_bytes(source, target):
            raise LabError(f"{name}: what arrived differs from the source")
        size = source.stat().st_size
        return {"goodput_gbps": gbps(size, finished.wall_s), "wall_s": finished.wall_s, "bytes": size}


def summary(rows):
    asked = [row for row in rows if (row["loss_percent"], row["rtt_ms"]) == _ASKED and row["goodput_gbps"] is not None]

    def best(*peers):
        return max((row["goodput_gbps"] for row in asked if row["peer"] in peers), default=None)

    def cubic(peer):
        return max((row["goodput_gbps"] for row in asked
                    if row["peer"] == peer and row["congestion_control"] == "cubic"), default=None)  # fmt: skip

    ours, long = best("sluice"), best("sluice-long")
    return {
        "ratio_scp_1pct_100ms": rounded(ratio(ours, cubic("scp"))),
        "ratio_rsync_1pct_100ms": rounded(ratio(ours, cubic("rsync"))),
        "ratio_gridftp_1pct_100ms": rounded(ratio(ours, cubic("gridftp"))),
        "ratio_best_1pct_100ms": rounded(ratio(ours, best(*(tool.name for tool in TOOLS)))),
        "sluice_mbps": rounded(ours * 1e3) if ours else None,
        "sluice_long_mbps": rounded(long * 1e3) if long else None,
    }


def plots(result):
    def panel(loss, rtt_ms):
        def draw(axes):
            rows = [{**row, "name": row["peer"] + (f" ({row['congestion_control']})" if row["congestion_control"] else "")}
                    for row in result["rows"] if (row.get("loss_percent"), row.get("rtt_ms")) == (loss, rtt_ms)]  # fmt: skip
            shapes.bars(axes, rows, "name", "goodput_gbps", "Gbit/s")
            axes.set_xscale("log")

        return draw

    paths = dict.fromkeys((row["loss_percent"], row["rtt_ms"]) for row in result["rows"] if "rtt_ms" in row)
    return [(f"{loss:g}pct-{rtt_ms}ms", panel(loss, rtt_ms)) for loss, rtt_ms in paths]
