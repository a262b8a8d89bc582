# One file from three sources, as of Table 1 of "Phatpackets" (docs/SOURCES.md; section 2.2): each alone, all together, and what
# becomes of them when one dies, slows down, is far away or loses.
#
# The links are of 30, 37 and 43 Mbit/s, the client's of 200. These rates are the paper's; the size, 256 MB, is inferred. Each source
# has a link of its own, by the path emulator (perf/lab/legs.py), and no limit in its configuration: a server's path is what limits it
# in the paper, it can be changed midway, and the nodes have to find its rate. The session's own law does that (adaptive), so each
# transfer has its ramp, also each of those that are compared with.
#
#   path      80ms     all three at 80 ms
#             mixed    the three at 1, 80 and 200 ms, the slowest nearest
#             loss     80 ms, and the third loses 1 % of what it sends
#             killed   80 ms; both daemons of the third are killed when half of the file is there
#             slowed   80 ms; the third's link has a tenth of its rate from then on
#             first    200 ms, one file of one source: how many round trips until its first byte leaves. That of a session which a
#                      third node has ordered begins when the source has the order
#   sources   send, order: of `first`; alpha, beta, gamma: that one alone, by an ordinary `get`; all: `get --from alpha,beta,gamma`
#
# Rates are bytes of the file over the wall of the whole command: what came twice does not count, the way to the first byte does.
# of_sum: that of all over the sum of what each reached alone with the same file in the same round.
# of_best_single: that of all over the best alone, in the same round.
# over_rest: the wall over the time until the event and what the rest of the file would need then, at the sum of the rates that the
# others reached alone in the same run of the experiment; the slowed one counts with its tenth.
# SPDX-License-Identifier: Apache-2.0
import json
import shutil

from harness import HarnessError, group_missing, wait_until
from harness.system import random_file, same_bytes

from .. import watch
from ..errors import MISSING, LabError
from ..figures import by_round, gbps, ratio, rounded, spread
from ..legs import Legs
from ..stopwatch import Running
from . import shapes

HELP = "one file from three sources: the sum of their rates, the best alone, one killed, cut off, slowed, other paths"
REAL = False
PACKAGES = watch.PACKAGES
RATES_MBPS = {"alpha": 30, "beta": 37, "gamma": 43}
CLIENT_MBPS = 200
ALL = "all"
TABLE_1, MIXED, LOSS, KILLED, CUT, SLOWED, FIRST = "80ms", "mixed", "loss", "killed", "cut", "slowed", "first"
EVENTS = (KILLED, CUT, SLOWED)
RTTS_MS = {MIXED: {"alpha": 1, "beta": 80, "gamma": 200}, FIRST: dict.fromkeys(RATES_MBPS, 200)}
_RTT_MS = 80
_LOSS = 0.01
_VICTIM = "gamma"
_TENTH = 0.1
_MB = 1_000_000
_SLACK = 6  # times what the links need


def sizes(quick):
    """MB of each path."""
    if quick:
        return {TABLE_1: (1, 4, 32), MIXED: (1, 16), LOSS: (16,), KILLED: (32,), CUT: (32,), SLOWED: (32,), FIRST: (1,)}
    return {TABLE_1: (1, 4, 16, 64, 256), MIXED: (1, 4, 16, 64), LOSS: (64,), KILLED: (256,), CUT: (256,), SLOWED: (256,), FIRST: (1,)}


def settings_of(path, sizes_mb):
    whats = (ALL,) if path in EVENTS else ("send", "order") if path == FIRST else (*RATES_MBPS, ALL)
    return [{"path": path, "sources": what, "size_mb": size} for size in sizes_mb for what in whats]


def run(bench):
    if (reason := group_missing()) is not None:
        raise LabError(f"servers: {reason}", MISSING)
    wanted = sizes(bench.quick)
    largest = max(max(each) for each in wanted.values())
    settings, samples = [], []
    with Legs("home", RATES_MBPS, CLIENT_MBPS, bytes_needed=10 * largest * _MB) as group:
        game = Game(group, {size for each in wanted.values() for size in each})
        bench.described = {"kind": "own", "wire": "udp over emulated paths", "mtu": 1500, "link_mbps": RATES_MBPS, "client_mbps": CLIENT_MBPS}
        for path, sizes_mb in wanted.items():
            game.shape(path)
            cells = settings_of(path, sizes_mb)
            samples += bench.interleave(cells, game.measure, game.warm_up, repeats=repeats(bench, path))
            settings += cells
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": judge(rows, samples), "summary": summary(rows)}


def repeats(bench, path):
    """Quick runs have one round, and two of what the bars are about."""
    if not bench.quick:
        return None
    return 2 if path == TABLE_1 else 1


class Game:
    def __init__(self, group, sizes_mb):
        self._group, self._home = group, group["home"]
        self._warm = set()
        self._files = {size: random_file(group["alpha"].export() / f"{size}.bin", size * _MB, seed=size) for size in sizes_mb}
        for name in list(RATES_MBPS)[1:]:
            for file in self._files.values():
                shutil.copy(file, group[name].export() / file.name)
        self.shape(TABLE_1)
        group.start()

    def shape(self, path):
        for name, rate in RATES_MBPS.items():
            rtt_ms = RTTS_MS.get(path, {}).get(name, _RTT_MS)
            self._group.shape(name, rate, rtt_ms, loss=_LOSS if path == LOSS and name == _VICTIM else 0.0)
        self._warm.clear()

    def warm_up(self, setting):
        """The node then knows each path's rate, as one does that has used it before."""
        if setting["path"] == FIRST:
            return
        if setting["sources"] not in self._warm:
            self._warm.add(setting["sources"])
            self._transfer(min(self._files, key=lambda size: abs(size - 4)), setting["sources"], None)

    def measure(self, setting):
        if setting["path"] == FIRST:
            return self._first(setting["sources"])
        event = setting["path"] if setting["path"] in EVENTS else None
        try:
            return self._transfer(setting["size_mb"], setting["sources"], event)
        finally:
            self._mend(event)

    def _mend(self, event):
        """As it was before the event. What the source keeps of the session would share its path with the next one."""
        if event is None:
            return
        node = self._group[_VICTIM]
        if event == SLOWED:
            self._group.slow_down(_VICTIM, RATES_MBPS[_VICTIM])
        elif event == CUT:
            self._group.cut(_VICTIM, False)
        elif not node.dataplane.running():
            node.start_dataplane()
        if not node.control.running():
            node.start_control()
        for session in _running(node):
            node.sluice("session", "cancel", session)
        wait_until(lambda: not _running(node), 60, f"no session is left at {_VICTIM}")

    def _transfer(self, size_mb, what, event):
        source, target = self._files[size_mb], self._home.export() / "got.bin"
        target.unlink(missing_ok=True)
        names = ["--from", ",".join(RATES_MBPS), f"data/{source.name}"] if what == ALL else [f"{what}:data/{source.name}"]
        before = {name: self._group.path_of(name) for name in RATES_MBPS}
        running = Running(self._home.command("get", *names, target, "--json", "--quiet"))
        try:
            at = self._midway(running, event, size_mb * _MB) if event else {}
        except HarnessError:
            running.stop_if_running()
            raise
        finished = running.end(_SLACK * size_mb * 8 / min(RATES_MBPS.values()) + 60)
        finished.must_have_worked(f"sluice get {' '.join(names)}")
        if not same_bytes(source, target):
            raise LabError("what arrived differs from the source")
        session = json.loads(finished.stdout.strip().splitlines()[-1])
        paths = {name: [now - then for now, then in zip(self._group.path_of(name), before[name])] for name in RATES_MBPS}
        return {**figures(session, finished.wall_s, size_mb * _MB), **at, "overrun": {name: each[0] for name, each in paths.items()},
                "frames": {name: each[1] for name, each in paths.items()}}  # fmt: skip

    def _first(self, what):
        """Its first byte may leave when both ends are ready; what follows is not looked at."""
        source, target = self._files[1], self._home.export() / "got.bin"
        target.unlink(missing_ok=True)
        words = [f"alpha:data/{source.name}"] if what == "order" else [source]
        issuer = self._group["gamma" if what == "order" else "alpha"]
        reply = issuer.must("send", *words, f"home:data/{target.name}", "--json", "--quiet")
        session = json.loads(reply.stdout.strip().splitlines()[-1])
        if what == "order":
            session = json.loads(self._group["alpha"].must("session", "show", session["id"], "--json").stdout)
        before_s = session["elapsed_s"] - session["data_elapsed_s"]
        return {"first_byte_s": before_s, "first_byte_rtts": before_s * 1e3 / RTTS_MS[FIRST]["alpha"]}

    def _midway(self, running, event, size_bytes):
        """Waits until half of the file is there; then the event. When that was, and what was there."""
        session = watch.Watch(self._home, wait_until(self._session, 30, "the session is there", interval_s=0.02))
        wait_until(lambda: session.samples and session.samples[-1][1] >= size_bytes / 2 or session.done(), 600, "half of the file",
                   interval_s=0.01)  # fmt: skip
        if session.done():
            raise LabError(f"{event}: the session ended before half of the file was there")
        at_s, done, _state = session.samples[-1]
        if event == KILLED:
            self._group[_VICTIM].control.kill()
            self._group[_VICTIM].dataplane.kill()
        elif event == CUT:
            self._group.cut(_VICTIM)
        else:
            self._group.slow_down(_VICTIM, RATES_MBPS[_VICTIM] * _TENTH)
        return {"event_s": at_s - running.started, "event_bytes": done}

    def _session(self):
        return next(iter(_running(self._home)), None)


def _running(node):
    return [each["id"] for each in node.sessions() if each["state"] not in ("succeeded", "failed", "cancelled")]


def figures(session, wall_s, size_bytes):
    return {
        "goodput_gbps": gbps(size_bytes, wall_s),
        "session_gbps": gbps(size_bytes, session["data_elapsed_s"]),
        "wall_s": wall_s,
        "session_s": session["data_elapsed_s"],
        "by_source": {leg["peer"]: leg["bytes"] for leg in session["legs"]},
        "twice": session["duplicates"] * session["chunk_bytes"] / size_bytes,
        **{key: session[key] for key in ("lost", "duplicates", "chunk_bytes", "protection", "crc", "crc_errors", "attempts")},
    }


# ---- what the samples say -----------------------------------------------------------------------


def judge(rows, samples):
    """Gives the rows of all sources what they are compared with."""
    alone = {}
    for row, runs in zip(rows, samples):
        if row["sources"] != ALL:
            alone.setdefault((row["path"], row["size_mb"]), []).append(runs)
    for row, runs in zip(rows, samples):
        if row["path"] == FIRST:
            row.update(spread("first_byte_rtts", [each.get("first_byte_rtts") for each in runs]))
        if row["sources"] != ALL:
            continue
        beside = alone.get((row["path"], row["size_mb"]))
        if beside and len(beside) == len(RATES_MBPS):
            for key, bases in (("goodput_gbps", ""), ("session_gbps", "_session")):
                row.update(spread(f"of_sum{bases}", by_round(runs, together(beside, key, sum), key)))
                row.update(spread(f"of_best_single{bases}", by_round(runs, together(beside, key, max), key)))
        elif row["path"] in EVENTS:
            row.update(spread("over_rest", [over_rest(each, row, left_gbps(row["path"], rows, row["size_mb"])) for each in runs]))
            row.update(spread("after_over_rest", [after_over_rest(each, row, left_gbps(row["path"], rows, row["size_mb"])) for each in runs]))
    return rows


def together(runs_of_each, key, how):
    """Samples with how(what each source reached in this round); of rounds in which all did."""
    out = []
    for runs in zip(*runs_of_each):
        values = [each.get(key) for each in runs]
        out.append({key: how(values)} if all(values) else {})
    return out


def left_gbps(path, rows, size_mb):
    """What is left after the event: the sum of what the others reached alone, and of the slowed one's a tenth; null where
    that was not measured."""
    alone = {row["sources"]: row.get("goodput_gbps") for row in rows if row["path"] == TABLE_1 and row["size_mb"] == size_mb}
    share = {name: 1.0 for name in RATES_MBPS} | {_VICTIM: _TENTH if path == SLOWED else 0.0}
    if not all(alone.get(name) for name in RATES_MBPS):
        return None
    return sum(alone[name] * share[name] for name in RATES_MBPS)


def _rest_s(sample, row, left):
    if left is None or sample.get("event_s") is None:
        return None
    return (row["size_mb"] * _MB - sample["event_bytes"]) * 8 / (left * 1e9)


def over_rest(sample, row, left):
    rest_s = _rest_s(sample, row, left)
    return None if rest_s is None else sample["wall_s"] / (sample["event_s"] + rest_s)


def after_over_rest(sample, row, left):
    rest_s = _rest_s(sample, row, left)
    return None if rest_s is None else (sample["wall_s"] - sample["event_s"]) / rest_s


def summary(rows):
    def of_all(path):
        return [row for row in rows if row["path"] == path and row["sources"] == ALL]

    def last(path, key):
        found = of_all(path)
        return found[-1].get(key) if found else None

    singles = [row for row in rows if row.get("of_best_single") is not None]
    worst = min(singles, key=lambda row: row["of_best_single"], default=None)
    return {
        "size_mb": max((row["size_mb"] for row in rows), default=None),
        **{key: last(TABLE_1, key) for key in ("of_sum", "of_sum_low", "of_sum_high", "of_sum_session")},
        "of_sum_mixed": last(MIXED, "of_sum"),
        "of_sum_loss": last(LOSS, "of_sum"),
        "worst_of_best_single": worst and worst["of_best_single"],
        "worst_of_best_single_at": worst and f"{worst['path']} {worst['size_mb']} MB",
        "killed": last(KILLED, "over_rest"),
        "killed_after": last(KILLED, "after_over_rest"),
        "cut": last(CUT, "over_rest"),
        "cut_after": last(CUT, "after_over_rest"),
        "slowed": last(SLOWED, "over_rest"),
        "slowed_after": last(SLOWED, "after_over_rest"),
        "twice_worst": rounded(max((row["twice"] for row in rows if row.get("twice") is not None), default=None)),
        "goodput_mbps": rounded(ratio(last(TABLE_1, "goodput_gbps"), 1e-3)),
        **{f"first_byte_rtts_{row['sources']}": row.get("first_byte_rtts") for row in rows if row["path"] == FIRST},
        "failed": sum("error" in each and not each["error"].startswith("left out") for row in rows for each in row["runs"]),
    }


def plots(result):
    rows = [row for row in result["rows"] if row.get("goodput_gbps")]

    def best(axes):
        for path in (TABLE_1, MIXED, LOSS):
            shapes.line(axes, [row for row in rows if row["path"] == path and row["sources"] == ALL], "size_mb", "of_best_single", path)
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("size, MB")
        axes.set_ylabel("rate of all over that of the best alone")
        shapes.legend(axes)

    def rates(axes):
        largest = max((row["size_mb"] for row in rows), default=None)
        shapes.bars(axes, [{**row, "name": f"{row['sources']}, {row['path']}"} for row in rows if row["size_mb"] == largest], "name",
                    "goodput_gbps", f"goodput, Gbit/s, {largest} MB")  # fmt: skip

    return [("of_best_single", best), ("rates", rates)]
