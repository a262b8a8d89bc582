# Exports on several disks: a session to one of them, alone, and while sessions to another one, which is slow or has stopped, hold
# what memory they get of the same worker.
#
# `slow` writes 1 MB/s (perf/lab/slow_disk.py), `stopped` nothing at all. Goodput is generated memory into a file of the node's own file
# system, over the wall of the whole client. Ratios are taken within a round. A run counts only if the other sessions were under way to its end.
# SPDX-License-Identifier: Apache-2.0
import contextlib

from harness import wait_until

from .. import watch
from ..emulated import running_session
from ..errors import LabError
from ..figures import by_round, spread
from ..slow_disk import SlowDisk
from . import shapes

HELP = "a session beside others whose disk is slow, or stands still"
REAL = False
PACKAGES = watch.PACKAGES
_OTHERS = 2  # sessions to the other disk
_OTHER_BYTES = 300 << 20
_SLOW_BYTES_PER_S = 1_000_000
_END_S = 120


def run(bench):
    size = bench.pick(256 << 20, 1 << 30)
    settings = [{"other": other} for other in ("none", "slow", "stopped")]
    with bench.nodes(pinned=False, bytes_needed=size + 4 * _OTHER_BYTES) as nodes, \
            SlowDisk(nodes.pair.base, 3 * _OTHER_BYTES) as disk:  # fmt: skip
        nodes.b.add_export("slow", disk.folder)
        nodes.b.write_configuration()
        nodes.start()
        bench.describe(nodes)
        disk.hold(nodes.b.dataplane.pid)
        runs = _Runs(nodes, disk, size)
        samples = bench.interleave(settings, lambda setting: runs.measure(setting["other"]))
        # The nodes go before the file system that they have open.
        nodes.stop()
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": rows, "summary": summary(samples)}


class _Runs:
    def __init__(self, nodes, disk, size):
        self._nodes, self._disk, self._size = nodes, disk, size
        self._target = nodes.b.export() / "measured.bin"

    def measure(self, other):
        self._target.unlink(missing_ok=True)
        if other == "none":
            return self._transfer()
        with contextlib.ExitStack() as stack:
            others = [stack.enter_context(self._session(number)) for number in range(_OTHERS)]
            for each in others:
                wait_until(lambda each=each: each.last and each.last.bytes_done > 0, 60, "the other disk is being written")
            stack.callback(self._disk.limit, None)  # or their end would take as long as what is under way
            if other == "stopped":
                stack.enter_context(self._disk.frozen())
            else:
                self._disk.limit(_SLOW_BYTES_PER_S)
            out = self._transfer()
            if any(each.done() for each in others):
                raise LabError("exports: a session to the other disk ended before the one that was measured")
        return out

    @contextlib.contextmanager
    def _session(self, number):
        target = self._disk.folder / f"{number}.bin"
        # Slower than any disk here, so that they last.
        with running_session(self._nodes.a, self._nodes.peer, f"memory:{_OTHER_BYTES}", f"slow/{target.name}", "--rate", "100M") as session:
            yield session
        if not session.wait(_END_S):
            raise LabError(f"exports: a session to the other disk did not end in {_END_S} s")
        target.unlink(missing_ok=True)

    def _transfer(self):
        return self._nodes.transfer(f"memory:{self._size}", f"data/{self._target.name}", by_wall=True)


def summary(samples):
    alone, slow, stopped = samples
    return {**spread("alone_gbps", [each.get("goodput_gbps") for each in alone]),
            **spread("ratio_slow", by_round(slow, alone, "goodput_gbps")),
            **spread("ratio_stopped", by_round(stopped, alone, "goodput_gbps"))}  # fmt: skip


def plots(result):
    return [("goodput", lambda axes: shapes.bars(axes, shapes.good(result["rows"]), "other", "goodput_gbps", "Gbit/s"))]
