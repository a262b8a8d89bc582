# What both ends' network logs say of a session's bytes over time, and what a capture between them says.
#
# `sluice session log ID --follow --json` at either node; a record `completion` is an extent that was written, or, at the
# source, that the other node has. The capture is the emulator's count of what left the path.
# SPDX-License-Identifier: Apache-2.0
import json

from harness import wait_until

from .nodes import FRAME_OVERHEAD_BYTES
from .stopwatch import Running

_FOLLOW_END_S = 60


class Follower:
    """Follows the log of the newest session of a node that was not there before."""

    def __init__(self, node):
        self._node = node
        self._before = {session["id"] for session in node.sessions()}
        self._running = None

    def begin(self):
        session = wait_until(self._newest, 30, f"node {self._node.name} has the session")
        self._running = Running(self._node.command("session", "log", session, "--follow", "--json"))

    def _newest(self):
        return next((each["id"] for each in self._node.sessions() if each["id"] not in self._before), None)

    def end(self):
        """(completions, records that are missing): [(seconds of the calendar, bytes)]"""
        finished = self._running.end(_FOLLOW_END_S)
        finished.must_have_worked("sluice session log")
        return completions(finished.stdout)


def completions(text):
    done, missing = [], 0
    for line in text.splitlines():
        record = json.loads(line)
        if record["kind"] == "completion":
            done.append((record["unix_ns"] * 1e-9, record["length_bytes"]))
        elif record["kind"] == "dropped":
            missing += record["count"]
    return done, missing


def by_interval(done, begin_s, interval_s):
    """bit/s of each interval from begin_s on, the last one over what there is of it; [(seconds, bytes)] in any order."""
    if not done:
        return []
    end_s = max(at_s for at_s, _ in done)
    count = int((end_s - begin_s) / interval_s) + 1
    sums = [0] * count
    for at_s, size in done:
        sums[min(count - 1, max(0, int((at_s - begin_s) / interval_s)))] += size
    lengths = [interval_s] * (count - 1) + [max(end_s - begin_s - interval_s * (count - 1), 1e-3)]
    return [size * 8 / length_s for size, length_s in zip(sums, lengths)]


def whole_intervals(done, begin_s, interval_s):
    """As by_interval, without the last one unless it is the only one or nearly whole: a short rest has any rate."""
    speeds = by_interval(done, begin_s, interval_s)
    rest_s = max(at_s for at_s, _ in done) - begin_s - interval_s * (len(speeds) - 1)
    return speeds if len(speeds) == 1 or rest_s > 0.9 * interval_s else speeds[:-1]


def captured(points, chunk_bytes, offset_s):
    """[(seconds of the calendar, bytes of payload)] of the emulator's counts. offset_s: calendar less its clock."""
    share = chunk_bytes / (chunk_bytes + FRAME_OVERHEAD_BYTES)
    return [(after.t_s + offset_s, (after.out_bytes - before.out_bytes) * share) for before, after in zip(points, points[1:])]
