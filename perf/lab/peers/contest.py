# Runs every peer on every place in turn, and makes rows of it.
#
# A peer that cannot be installed, started or used is a row with its error. The first run of each is for nothing:
# there its memory is looked at, which would disturb a run that counts.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import threading

from harness import HarnessError
from harness.stacked import Stacked

from ..bench import brief
from ..errors import LabError
from ..figures import gbps, ratio, row
from ..meter import host_cpu_s, peak_mb
from ..reserve import Reserve
from . import ours
from .ends import CONGESTION_CONTROLS, Ends, Groups
from .files import NEW, Places
from .roster import Roster

_SAMPLE_S = 0.01


class MemoryWatch:
    """While it is open: the peak of every process in these groups, added up."""

    def __init__(self, groups):
        self._groups = groups
        self._peaks = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_error):
        self._done.set()
        self._thread.join()

    def _watch(self):
        while not self._done.wait(_SAMPLE_S):
            for group in self._groups:
                for pid in group.pids():
                    with contextlib.suppress(OSError):
                        self._peaks[pid] = max(self._peaks.get(pid, 0.0), peak_mb(pid))

    def mb(self):
        return sum(self._peaks.values()) or None


class Contest(Stacked):
    """Sluice and `kinds` of tools; of all cells those that are wanted(cell), and have the words of --only."""

    def __init__(self, bench, kinds, wanted=lambda _cell: True):
        super().__init__()
        self._wanted = wanted
        self._bench = bench
        self._kinds = kinds
        self._timeout_s = bench.pick(60, 900)
        self._seconds = bench.pick(1, 5)
        self._memory = {}

    def _make(self):
        bench = self._bench
        names = ("tmpfs",) if bench.loss_percent else ("tmpfs", NEW, "disk")
        # Smaller files would rank tools by how they start.
        self._size = bench.pick(2 << 30, 4 << 30)
        places = self._stack.enter_context(Places(self._size, names))
        self._places = {place.name: place for place in places.all}
        bench.described = {"kind": "own", "file_systems": places.describe(), "size_bytes": self._size}
        # What a tool takes anew: the cache of a disk, or the temporary file of one that renames.
        self._reserve = self._stack.enter_context(Reserve(bench.pick(2 * self._size, None)))
        self._groups = self._stack.enter_context(Groups())
        self._ends = self._stack.enter_context(Ends(self._groups, bench.loss_percent))
        exports = {place.export: place.folder for place in places.all}
        self._roster = Roster(self._stack)
        for peer in ours.all_of(self._groups, exports, bench.loss_percent):
            self._roster.start(peer)
        for kind in self._kinds:
            self._roster.start_kind(kind, self._ends, places.base)

    # ---- the rounds -----------------------------------------------------------------------------

    def cells(self):
        """Every peer, in every place, with every congestion control that matters to it."""
        out = []
        for peer in self._roster.peers.values():
            for place in self._places if peer.file else ("none",):
                for control in CONGESTION_CONTROLS if peer.tcp else (None,):
                    out.append({"peer": peer.name, "storage": place, "congestion_control": control})
        return out

    def run(self, enough=None):
        """enough(rows): with a budget of time, no more rounds are needed."""
        cells = [cell for cell in self.cells() if self._wanted(cell) and not self._bench.left_out(cell)]
        first = [self._first(cell) for cell in cells]
        chosen = [index for index in range(len(cells)) if not self._bench.quick or self._better(cells, first, index)]

        def tried(cell):
            sample = first[cells.index(cell)]
            if "error" in sample:
                raise LabError(sample["error"])

        def rows(samples):
            by_cell = dict(zip(chosen, samples))
            # With --quick the other congestion control has its first run only.
            return [row(cell, by_cell.get(index) or [first[index]]) for index, cell in enumerate(cells)]

        samples = self._bench.interleave([cells[index] for index in chosen], self.measure, tried,
                                         enough=enough and (lambda samples: enough(rows(samples))))  # fmt: skip
        out = rows(samples)
        for each in out:
            each["counts"] = each["goodput_gbps"] is not None and each["goodput_gbps"] == max(
                other["goodput_gbps"] or 0 for other in out
                if other["peer"] == each["peer"] and other["storage"] == each["storage"]
            )  # fmt: skip
        return out

    def _first(self, cell):
        groups = [self._groups.of(cell["peer"], side) for side in (0, 1)]
        with MemoryWatch(groups) as watch:
            try:
                sample = self.measure(cell)
            except HarnessError as error:
                sample = {"error": str(error).splitlines()[0]}
        self._memory[cell["peer"]] = watch.mb()
        sample.setdefault("rss_mb", watch.mb())
        self._bench.say(f"first: {self._bench.name_of(cell)}: {sample.get('error') or brief(sample)}")
        return sample

    @staticmethod
    def _better(cells, first, index):
        def speed(number):
            return first[number].get("goodput_gbps") or 0

        same = [number for number, cell in enumerate(cells)
                if (cell["peer"], cell["storage"]) == (cells[index]["peer"], cells[index]["storage"])]  # fmt: skip
        return index == max(same, key=speed)

    def measure(self, cell):
        self._roster.must_have_started(cell["peer"])
        peer = self._roster.peers[cell["peer"]]
        if cell["congestion_control"]:
            self._ends.use(cell["congestion_control"])
        if not peer.file:
            return self._counted(peer, lambda: peer.measure(self._seconds))
        place = self._places[cell["storage"]]
        if isinstance(peer, ours.Ours):
            sample = peer.measure(place.source, f"{place.export}/dst", place.target, self._timeout_s, place.make_durable,
                                  lambda: self._make_ready(place))  # fmt: skip
        else:
            self._make_ready(place)
            sample = self._counted(peer, lambda: self._copy(peer, place))
        if not place.same():
            raise LabError(f"{peer.name}: what arrived differs from the source")
        return sample

    def _make_ready(self, place):
        place.make_ready()
        self._reserve.top_up()

    def _copy(self, peer, place):
        finished = peer.copy(place.source, place.target, self._timeout_s, place.make_durable)
        finished.must_have_worked(peer.name)
        return {"goodput_gbps": gbps(self._size, finished.wall_s), "wall_s": finished.wall_s, "bytes": self._size}

    def _counted(self, peer, action):
        groups = [self._groups.of(peer.name, side) for side in (0, 1)]
        before = [group.cpu_s() for group in groups]
        busy_s, steal_s = host_cpu_s()
        sample = action()
        ends_s = [group.cpu_s() - at_first for group, at_first in zip(groups, before)]
        busy_s, steal_s = (now - then for now, then in zip(host_cpu_s(), (busy_s, steal_s)))
        sample["cpu_s_per_gb"] = ratio(sum(ends_s), sample["bytes"] / 1e9)
        sample["cpu_s_sender"], sample["cpu_s_receiver"] = ends_s
        sample["steal_s"], sample["foreign_cpu_s"] = steal_s, max(0.0, busy_s - sum(ends_s))
        if peer.name in self._memory:
            sample["rss_mb"] = self._memory[peer.name]
        return sample
