# Real TCP flows over the shared bottleneck: iperf3, and what it says of each second.
# SPDX-License-Identifier: Apache-2.0
import json
import time

from .errors import LabError
from .peers.ends import ADDRESSES
from .peers.tools import Peer

_PORT = 5201
_INTERVAL_S = 0.5
_END_DEADLINE_S = 60


class TcpFlows(Peer):
    name = "iperf3"
    packages = ("iperf3",)

    def start(self):
        self.serve(1, ["iperf3", "-s", "-p", str(_PORT)], _PORT)

    def run(self, flows, congestion_control, seconds):
        """Starts so many flows from side 0 to 1, for so long."""
        command = ["iperf3", "-c", ADDRESSES[1], "-p", str(_PORT), "-J", "-i", str(_INTERVAL_S), "-t", str(seconds),
                   "-P", str(flows), "-C", congestion_control]  # fmt: skip
        return Flows(self.client(0, command), seconds)


class Flows:
    def __init__(self, running, seconds):
        self._running = running
        self._seconds = seconds
        self.began_s = time.monotonic()

    def end(self):
        """[(from, until, bit/s)] of all flows together, seconds of the monotonic clock."""
        finished = self._running.end(self._seconds + _END_DEADLINE_S)
        try:
            report = json.loads(finished.stdout)
        except ValueError:
            raise LabError(f"iperf3: exit {finished.status}: {finished.reason()}") from None
        if "error" in report:
            raise LabError(f"iperf3: {report['error']}")
        return [(self.began_s + begin_s, self.began_s + end_s, bps) for begin_s, end_s, bps in intervals(report)]

    def stop(self):
        self._running.stop_if_running()


def intervals(report):
    """[(start, end, bit/s)] of iperf3's JSON: what the sender's kernel took; a window later it has arrived."""
    return [(each["sum"]["start"], each["sum"]["end"], each["sum"]["bits_per_second"]) for each in report["intervals"]]


def mean_bps(intervals_, from_s, until_s):
    """Over the intervals that lie within."""
    inside = [each for each in intervals_ if from_s <= each[0] and each[1] <= until_s]
    span_s = sum(end_s - begin_s for begin_s, end_s, _ in inside)
    return sum((end_s - begin_s) * bps for begin_s, end_s, bps in inside) / span_s if span_s > 0 else None
