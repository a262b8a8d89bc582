# One byte: how long the whole command takes, from its start to its end, of files on a disk, of files in memory, and
# of generated memory into null:; beside it what `sluice --version` takes, which is the command's own start.
#
# Each run is a row of sends, one after the other with a pause between, and its figure their median; files have names of
# their own, so nothing is replaced. send_ms of a row is the median of all sends of all runs, with the tenth and the
# ninetieth percentile beside; session_ms the same of the session's own time, from the wish to its end. Nothing is
# pinned but the workers.
# SPDX-License-Identifier: Apache-2.0
import json
import time

from ..errors import LabError
from ..figures import median, percentile, rounded
from ..machine import file_system
from ..meter import host_cpu_s
from ..stopwatch import timed
from . import shapes

HELP = "send of one byte: disk to disk, tmpfs to tmpfs, into null:; the wall of the whole command"
REAL = False
PACKAGES = ()
WHAT = ("command", "null", "memory", "disk")
_TMPFS_MIB = 16
# Longer than what a session leaves to be done after its end, and off the beat of any timer.
_PAUSE_S = 0.013


def run(bench):
    settings = [{"what": what} for what in WHAT]
    with bench.nodes(pinned=False) as nodes:
        runs = _Runs(nodes, bench.pick(10, 40))
        nodes.start()
        bench.describe(nodes)
        bench.described["file_system"] = file_system(nodes.pair.base)
        samples = bench.interleave(settings, runs.measure, runs.warm_up)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    for row, setting in zip(rows, settings):
        _add_spread(row, runs.of(setting))
    return {"rows": rows, "summary": summary(rows)}


def _add_spread(row, sends):
    for key in ("send_ms", "session_ms"):
        times = [send[key] for send in sends if send[key] is not None]
        row[key] = rounded(median(times))
        row[f"{key}_p10"], row[f"{key}_p90"] = (rounded(percentile(times, share)) for share in (0.1, 0.9))
    row["sends"] = len(sends)


def summary(rows):
    by_name = {row["what"]: row for row in rows}
    disk = by_name["disk"]
    return {"send_1_byte_ms": disk["send_ms"], "send_1_byte_ms_p10": disk["send_ms_p10"],
            "send_1_byte_ms_p90": disk["send_ms_p90"], "n": disk["sends"], "session_ms": disk["session_ms"],
            "memory_ms": by_name["memory"]["send_ms"], "null_ms": by_name["null"]["send_ms"],
            "command_ms": by_name["command"]["send_ms"]}  # fmt: skip


class _Runs:
    """Makes the exports: two folders of each node's on a disk and in memory."""

    def __init__(self, nodes, count):
        self._nodes = nodes
        self._count = count
        self._sends = {}
        self._sent = 0
        self._folders = {"disk": (nodes.a.export(), nodes.b.export())}
        mounted = nodes.pair.mount_tmpfs("memory", _TMPFS_MIB)
        self._folders["memory"] = (mounted / "a", mounted / "b")
        for node, folder in zip(nodes.pair.nodes, self._folders["memory"]):
            node.add_export("memory", folder)
            node.write_configuration()
        for source, _target in self._folders.values():
            (source / "one-byte").write_bytes(b"1")

    def of(self, setting):
        return self._sends.get(setting["what"], [])

    def warm_up(self, setting):
        self._one(setting["what"])

    def measure(self, setting):
        before = host_cpu_s()[1]
        sends = []
        for _ in range(self._count):
            time.sleep(_PAUSE_S)
            sends.append(self._one(setting["what"]))
        self._sends.setdefault(setting["what"], []).extend(sends)
        return {"send_ms": median([send["send_ms"] for send in sends]), "steal_s": host_cpu_s()[1] - before}

    def _one(self, what):
        if what == "command":
            return self._time([self._nodes.a.binaries / "sluice", "--version"])
        if what == "null":
            return self._time(self._nodes.a.command("send", "memory:1", "b:null:", "--json", "--quiet"))
        source, target = self._folders[what]
        self._sent += 1
        name = f"{what}-{self._sent}"
        sent = self._time(self._nodes.a.command("send", source / "one-byte", f"b:{target / name}", "--json", "--quiet"))
        if (target / name).read_bytes() != b"1":
            raise LabError(f"{target / name} differs from its source")
        (target / name).unlink()
        return sent

    @staticmethod
    def _time(command):
        finished = timed(command, 60)
        if finished.status != 0:
            raise LabError(f"{' '.join(map(str, command))}: exit {finished.status}: {finished.reason()}")
        said = finished.stdout.strip().splitlines()
        session_s = json.loads(said[-1])["elapsed_s"] if "--json" in command else None
        return {"send_ms": finished.wall_s * 1e3, "session_ms": None if session_s is None else session_s * 1e3}


def plots(result):
    # A kind of which no run ended well has no figures.
    rows = [{**row, "send_ms_min": row.get("send_ms_p10"), "send_ms_max": row.get("send_ms_p90")}
            for row in result["rows"]]  # fmt: skip
    return [("start", lambda axes: shapes.bars(axes, rows, "what", "send_ms", "ms, p10 to p90"))]
