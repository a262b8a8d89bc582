# Directories: Sluice beside rsync -a, tar over socat, scp -r, GridFTP -cc 8 -pp and nginx with curl --parallel, and beside
# a bare loop that only creates, syncs once a thousand and renames.
#
# Trees are made from a seed: `small` (files of 4 KiB, a hundred in a directory), `kernel` (a Linux kernel's number of
# files and bytes), `large` and `mixed` (both kinds together; Sluice alone), `million` (files of one byte; Sluice alone,
# for the memory of its daemons), `unchanged` (the same once more, by `--sync` and `rsync -a`: the destination has all of it
# already). Otherwise the destination is an empty folder; nothing is removed right before a run. files_per_s counts the
# wall of the whole client, and a `sync -f` of the destination's file system after it, for everybody; for `disk` the page
# cache is dropped before. reserve.py gives each program memory that was touched before.
# After each run diff compares the trees. Each end has one core (--cores: more), as in `peers`; TCP tools run with CUBIC. Modes, times
# and owners are kept by those that keep them: curl and GridFTP do not.
# SPDX-License-Identifier: Apache-2.0
import contextlib

from harness import MemifWire

from ..errors import MISSING, LabError
from ..figures import by_round, interval, narrow, ratio
from ..meter import forget_peak, peak_mb
from ..nodes import RATE_UNLIMITED
from ..peers import ends, forests, ours, tree_tools
from ..peers.roster import Roster
from ..reserve import Reserve
from ..stopwatch import timed
from . import shapes

HELP = "directories and a million small files, beside rsync, tar, scp, GridFTP, nginx and a bare loop"
REAL = False
PACKAGES = ()
_OURS = "sluice"
_OF_OURS_ALONE = ("large", "mixed", "million")
# What --budget makes sure of.
RATIOS = ("ratio_rsync", "tmpfs_ratio_rsync", "kernel_tree_ratio_best", "unchanged_ratio_rsync", "mixed")
_UNCHANGED, _COMPARING = "unchanged", (_OURS, "rsync")


def run(bench):
    reason = ends.missing()
    if reason:
        raise LabError(f"trees: {reason}", MISSING)
    planted = _forests(bench)
    on_tmpfs = planted["small"].on_disk_bytes()
    with forests.Grounds(sum(each.on_disk_bytes() for each in planted.values()), on_tmpfs) as grounds:
        bench.described = {"kind": "own", "file_systems": grounds.describe(), "wire": "memif; the others: veth, MTU 9000",
                           "files": {name: len(each.files) for name, each in planted.items()}}  # fmt: skip
        with _Race(bench, grounds, planted) as race:
            settings = race.settings()
            samples = bench.interleave(settings, race.measure, race.possible,
                                       enough=lambda samples: _sure(summary(bench.rows(settings, samples)), bench))  # fmt: skip
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": rows, "summary": summary(rows)}


def _forests(bench):
    small = forests.small(bench.pick(4_000, 100_000))
    half = forests.small(bench.pick(2_000, 50_000))
    large = forests.large(8, bench.pick(16 << 20, 1 << 30))
    all_of = [small, forests.kernel_like(bench.pick(0.05, 1.0)), large, forests.mixed(large, half)]
    if not bench.quick:
        million = forests.small(1_000_000, size=1)
        million.name = "million"
        all_of.append(million)
    half.name = "half"
    return {each.name: each for each in [*all_of, half]}


def _unchanged(planted):
    return planted.get("million", planted["small"])


class _Race(contextlib.ExitStack):
    def __init__(self, bench, grounds, planted):
        super().__init__()
        self._bench, self._grounds, self._planted = bench, grounds.all, planted
        self._timeout_s = bench.pick(120, 1800)
        self._base = grounds.base
        self._roster = Roster(self)
        # Each file takes a page at either end, an inode and a name.
        self._reserve = Reserve(bench.pick(1 << 30, 4 << 30))

    def __enter__(self):
        super().__enter__()
        self.enter_context(self._reserve)
        groups = self.enter_context(ends.Groups())
        joined = self.enter_context(ends.Ends(groups))
        self._groups = groups
        exports = {name: ground.folder for name, ground in self._grounds.items()}
        self._roster.start(ours.Ours(_OURS, MemifWire(rate=RATE_UNLIMITED), groups, exports, lossless=True))
        for kind in tree_tools.TREE_PEERS:
            self._roster.start_kind(kind, joined, self._base)
        joined.use("cubic")
        return self

    def settings(self):
        shared = [("small", "disk"), ("small", "tmpfs"), ("kernel", "disk")]
        out = [{"tree": tree, "storage": storage, "peer": name} for tree, storage in shared for name in self._roster.peers]
        out += [{"tree": tree, "storage": "disk", "peer": _OURS} for tree in (*_OF_OURS_ALONE, "half")
                if tree in self._planted]  # fmt: skip
        return out + [{"tree": _UNCHANGED, "storage": "disk", "peer": name} for name in _COMPARING]

    def possible(self, setting):
        """And its tree planted: only those that --only leaves, since a million files take minutes."""
        self._roster.must_have_started(setting["peer"])
        ground = self._grounds[setting["storage"]]
        if setting["tree"] != _UNCHANGED:
            ground.plant_once(self._planted[setting["tree"]])
            return
        ground.plant_once(_unchanged(self._planted))
        ground.plant_same_once(_unchanged(self._planted))

    def measure(self, setting):
        peer, ground = self._roster.peers[setting["peer"]], self._grounds[setting["storage"]]
        if setting["tree"] == _UNCHANGED:
            forest, target, ours_runs = _unchanged(self._planted), ground.same, self._ours_synced
            ground.make_cold()
        else:
            forest, target, ours_runs = self._planted[setting["tree"]], ground.target, self._ours
            ground.make_ready()
        self._reserve.top_up()
        if peer.name == _OURS:
            sample = ours_runs(peer, ground, forest)
        else:
            sample = self._theirs(peer, ground, forest, target)
        ground.check(forest, target)
        sample["files_per_s"] = len(forest.files) / sample["wall_s"]
        return sample

    def _ours(self, peer, ground, forest):
        nodes = peer.nodes
        nodes.thaw()
        try:
            for pid in nodes.pids():
                forget_peak(pid)
            before_mb = {pid: peak_mb(pid) for pid in nodes.pids()}
            cpu_s = peer.cpu_s()
            sample = nodes.transfer(f"{ground.source(forest)}/", f"{ground.name}/dst/", "--rate", RATE_UNLIMITED,
                                    by_wall=True, timeout_s=self._timeout_s, after=ground.make_durable)  # fmt: skip
            sample["cpu_s"] = peer.cpu_s() - cpu_s
            sample["rss_of_one_mb"] = max(peak_mb(pid) for pid in nodes.pids())
            sample["rss_grown_mb"] = max(peak_mb(pid) - mb for pid, mb in before_mb.items())
        finally:
            nodes.freeze()
        return sample

    def _ours_synced(self, peer, ground, forest):
        """Two lists are compared, and no session follows."""
        nodes = peer.nodes
        nodes.thaw()
        try:
            cpu_s = peer.cpu_s()
            command = nodes.a.command("send", "--sync", f"{ground.source(forest)}/", f"b:{ground.name}/same/")
            finished = timed([*nodes.client_prefix, *command], self._timeout_s, ground.make_durable)
            finished.must_have_worked("sluice send --sync")
            if "nothing to do" not in finished.stdout:
                raise LabError(f"sluice send --sync found something to do: {finished.stdout.strip()}")
            return {"wall_s": finished.wall_s, "cpu_s": peer.cpu_s() - cpu_s,
                    "rss_of_one_mb": max(peak_mb(pid) for pid in nodes.pids())}  # fmt: skip
        finally:
            nodes.freeze()

    def _theirs(self, peer, ground, forest, target):
        groups = [self._groups.of(peer.name, side) for side in (0, 1)]
        cpu_s = sum(group.cpu_s() for group in groups)
        finished = peer.copy(ground.source(forest), target, self._timeout_s, ground.make_durable)
        finished.must_have_worked(peer.name)
        return {"wall_s": finished.wall_s, "goodput_gbps": forest.size_bytes * 8 / finished.wall_s / 1e9,
                "cpu_s": sum(group.cpu_s() for group in groups) - cpu_s}  # fmt: skip


# ---- what it says -------------------------------------------------------------------------------


def _sure(known, bench):
    return all(narrow(known, name, bench.budget.within) for name in RATIOS if known[name] is not None)


def summary(rows):
    """Ratios are those within a round, their medians and intervals (figures.interval)."""

    def best(tree, storage, *peers):
        found = [row for row in rows
                 if (row["tree"], row["storage"]) == (tree, storage) and row["peer"] in peers
                 and row.get("files_per_s") is not None]  # fmt: skip
        return max(found, key=lambda row: row["files_per_s"], default=None)

    def against(name, tree, storage, *peers):
        ours_row, other = best(tree, storage, _OURS), best(tree, storage, *peers)
        return interval(name, by_round(ours_row["runs"], other["runs"], "files_per_s") if ours_row and other else [])

    def walls_s(tree):
        return [run.get("wall_s") for row in rows if row["tree"] == tree for run in row["runs"]]

    slower = [max(parts) if all(parts) else None for parts in zip(walls_s("large"), walls_s("half"))]
    tools = [kind.name for kind in tree_tools.TREE_PEERS if kind is not tree_tools.BareLoop]
    return {
        "files_per_s": (best("small", "disk", _OURS) or {}).get("files_per_s"),
        **against("ratio_rsync", "small", "disk", "rsync"),
        **against("ratio_best", "small", "disk", *tools),
        **against("ratio_bare_loop", "small", "disk", "bare-loop"),
        **against("tmpfs_ratio_rsync", "small", "tmpfs", "rsync"),
        **against("unchanged_ratio_rsync", _UNCHANGED, "disk", "rsync"),
        **against("kernel_tree_ratio_best", "kernel", "disk", *tools),
        # Both parts together over the slower one.
        **interval("mixed", [ratio(both, one) for both, one in zip(walls_s("mixed"), slower)]),
        "rss_mb_million": next((row.get("rss_grown_mb") for row in rows if row["tree"] == "million"), None),
    }


def plots(result):
    def panel(tree, storage):
        def draw(axes):
            rows = [row for row in result["rows"] if (row["tree"], row["storage"]) == (tree, storage)]
            rows = sorted(rows, key=lambda row: -(row.get("files_per_s") or 0))
            shapes.bars(axes, rows, "peer", "files_per_s", "files/s")

        return draw

    return [(f"{tree}-{storage}", panel(tree, storage))
            for tree, storage in (("small", "disk"), ("small", "tmpfs"), ("kernel", "disk"))]  # fmt: skip
