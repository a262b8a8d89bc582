# Nodes with the path emulator between them, and what is looked at while a session runs: the bottleneck and the session.
#
# The emulator is a third busy process, so nothing is pinned but the workers.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import threading
import time

from harness import EmulatedWire

from . import trace
from .errors import LabError
from .nodes import RATE_UNLIMITED, OwnNodes
from .watch import Watch

WIRE_GAP_BYTES = 24  # preamble, FCS and gap: a link's rate counts them
FRAME_BYTES = 8192 + 114  # of a full chunk, without these
LOOK_EVERY_S = 0.01
_ENDLESS_BYTES = 1 << 40  # a session that is cancelled when it was looked at for long enough


def loss_settings(loss, run_mean):
    """Of the emulator: so much is lost, on the average `run_mean` frames one behind the other (Gilbert's model)."""
    if run_mean <= 1:
        return {"probability": loss}
    leaves = 1 / run_mean
    return {"burst": {"p": loss * leaves / (1 - loss), "r": leaves}}


def path_settings(rate_bps, rtt_ms, loss=0.0, queue_bytes=0, status_loss=0.0, loss_run_mean=1):
    """(a_to_b, b_to_a): half of the RTT each way, order kept; loss of what is sent, and of what is reported."""
    delay = {"fixed_us": rtt_ms * 500, "keep_order": True}
    there = {"delay": delay, "loss": loss_settings(loss, loss_run_mean),
             "rate": {"bits_per_s": int(rate_bps), "queue_bytes": int(queue_bytes), "overhead_bytes": WIRE_GAP_BYTES}}
    return there, {"delay": delay, "loss": {"probability": status_loss}}


def queue_for(rate_bps, rtt_ms):
    """One BDP, at least 10 ms of the link's rate: what a router has."""
    return rate_bps / 8 * max(rtt_ms, 10) / 1e3


class Looker:
    """While it is open: the bottleneck every 10 ms, in `points`."""

    def __init__(self, wire, every_s=LOOK_EVERY_S):
        self.points = []
        self._control = wire.connection()
        self._every_s = every_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def _look(self):
        while True:
            self.points.append(trace.point(self._control.command("counters")))
            if self._done.wait(self._every_s):
                return

    def __exit__(self, *_error):
        self._done.set()
        self._thread.join()
        self._control.close()

    def now_s(self):
        """The emulator's clock is this machine's."""
        return time.monotonic()


class EmulatedNodes(OwnNodes):
    """A pair joined by the emulator, which is as the last `shape` made it."""

    def __init__(self, **options):
        # Other experiments are not about the law; these are.
        super().__init__(wire=EmulatedWire(rate=RATE_UNLIMITED), pinned=False,
                         settings={"transfer": {"mode": "adaptive"}}, **options)  # fmt: skip

    @property
    def wire(self):
        return self.pair.wire

    def shape(self, rate_bps, rtt_ms, **more):
        there, back = path_settings(rate_bps, rtt_ms, **more)
        self.wire.clear()
        self.wire.set("a_to_b", **there)
        self.wire.set("b_to_a", **back)

    @contextlib.contextmanager
    def session(self, *options, source=f"memory:{_ENDLESS_BYTES}", destination="null:"):
        """A session from a to b that runs while the block does, as a Watch; cancelled at its end if it has not ended."""
        with running_session(self.a, self.peer, source, destination, *options) as watch:
            yield watch


@contextlib.contextmanager
def running_session(node, peer, source, destination, *options):
    status, reply, error = node.json("send", source, f"{peer}:{destination}", *options, "--detach")
    if status != 0:
        raise LabError(f"sluice send {source} {' '.join(map(str, options))}: exit {status}: {error.strip()}")
    watch = Watch(node, reply["id"])
    try:
        yield watch
    finally:
        if not watch.done():
            node.sluice("session", "cancel", watch.session)
        watch.close()


def for_seconds(watch, seconds):
    """Waits so long; an end of the session meanwhile is an error."""
    if watch.wait(seconds):
        raise LabError(f"session {watch.session}: {watch.state()} early: {watch.last.error if watch.last else ''}")


def goodput_limit_bps(rate_bps, chunk_bytes=8192, overhead_bytes=114):
    """What a link of this rate carries of payload: headers, FCS, preamble and gap count."""
    return rate_bps * chunk_bytes / (chunk_bytes + overhead_bytes + WIRE_GAP_BYTES)
