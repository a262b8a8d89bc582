# What the network log of a session costs: goodput at each of its levels, memory to discard, beside that without it.
# MCDTP's (docs/SOURCES.md; section 4.2.1) wrote files; here a worker notes on the board, and control takes it off.
# SPDX-License-Identifier: Apache-2.0
import threading
import time

from ..bench import bytes_for
from ..figures import by_round, spread
from . import shapes

HELP = "the network log at each level: goodput beside that without it, CPU"
REAL = False
PACKAGES = ()
LEVELS = ("off", "events", "packets")


class AtPeer:
    """Sets the level of the next session that the other node receives, as soon as there is one."""

    def __init__(self, node, level):
        self._node, self._level = node, level
        self._before = {session["id"] for session in node.sessions()}
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._over = False

    def _wait(self):
        while not self._over:
            for session in self._node.sessions():
                if session["id"] not in self._before:
                    self._node.sluice("session", "log-level", session["id"], self._level)
                    return
            time.sleep(0.05)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_error):
        self._over = True
        self._thread.join()


def run(bench):
    settings = [{"log": level} for level in LEVELS]
    seconds = bench.pick(1.0, 4.0)
    size = {}
    with bench.nodes() as nodes:
        nodes.start()
        bench.describe(nodes)

        def transfer(setting, bytes_):
            with AtPeer(nodes.pair.b, setting["log"]):
                return nodes.transfer(f"memory:{bytes_}", "null:", "--rate", shapes.RATE, "--log-level", setting["log"])

        def warm_up(setting):
            size.setdefault("bytes", bytes_for(transfer(setting, 1 << 30), seconds))

        samples = bench.interleave(settings, lambda each: transfer(each, size["bytes"]), warm_up)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": rows, "summary": summary(samples)}


def summary(samples):
    """Goodput beside that of the same round without a log."""
    off, *others = samples
    out = {}
    for level, runs in zip(LEVELS[1:], others):
        out.update(spread(f"ratio_{level}", by_round(runs, off, "goodput_gbps")))
    return out


def plots(result):
    return [("goodput", lambda axes: shapes.bars(axes, result["rows"], "log", "goodput_gbps", "goodput, Gbit/s"))]
