# HIPSTER's channel (docs/SOURCES.md, section 3), twice: by sluice-wire, and by sluice-channel, which shares no code.
#
# Either stands between the bridges of perf/lab/shared.py; its laws are measured with UDP datagrams of the kernel.
# SPDX-License-Identifier: Apache-2.0
import math
import socket
import statistics
import struct
import time

from harness import wait_until
from harness.process import Daemon

from .errors import LabError
from .peers.ends import ADDRESSES
from .probe import program
from .shared import Bottleneck

L0_BYTES = 1024
DELAY_MS = 1024
SETTINGS = {"loss": {"length_l0_bytes": L0_BYTES}, "delay": {"exponential_us_over_ln": DELAY_MS * 1000}}
_PORT = 4460
_SENT_S = struct.Struct("!d")
_GATHER_S = 3.0  # after the last was sent; ten times the mean delay
_GAP_S = 0.0005


class FirstChannel(Bottleneck):
    name = "sluice-wire"

    def _join(self):
        super()._join()
        self.wire.set("both", **SETTINGS)


class SecondChannel(Bottleneck):
    name = "sluice-channel"

    def _join(self):
        command = ["nsenter", f"--net=/run/netns/{self.namespace}", "--", program("sluice-channel"), "--if-a", "port0",
                   "--if-b", "port1", "--l0-bytes", L0_BYTES, "--delay-ms", DELAY_MS]  # fmt: skip
        self._daemon = Daemon("sluice-channel", command, self.base / "channel.log")
        self._stack.callback(self._daemon.stop)
        self._daemon.start()
        wait_until(self._ready, 10, "sluice-channel is ready")

    def _ready(self):
        if not self._daemon.running():
            raise LabError(f"sluice-channel: ended; its log ends: {self._daemon.log_tail()}")
        return "ready" in self._daemon.log_tail()


# ---- the laws -----------------------------------------------------------------------------------


def drop_law(length):
    return 1 - math.exp(-length / L0_BYTES)


def delay_law_ms(length):
    return DELAY_MS / math.log(length)


def kolmogorov(delays, mean):
    """The largest distance between the distribution of these and the exponential of this mean."""
    ordered, n = sorted(delays), len(delays)
    worst = 0.0
    for number, value in enumerate(ordered):
        law = 1 - math.exp(-value / mean)
        worst = max(worst, law - number / n, (number + 1) / n - law)
    return worst


def laws(ends, lengths, count):
    """[{length, sent, arrived, dropped, dropped_law, delay_ms, delay_ms_law, distance, delays}] of the channel."""
    with ends.inside(0, _udp) as sender, ends.inside(1, _udp) as receiver:
        sender.bind((ADDRESSES[0], _PORT))
        receiver.bind((ADDRESSES[1], _PORT))
        # Two hosts that know each other: the first datagrams would wait for a neighbour.
        _exchange(sender, receiver, lengths[:1], 50)
        delays = _exchange(sender, receiver, lengths, count)
    return [law(length, count, delays[length]) for length in lengths]


def law(length, sent, delays):
    """delays: in s, of those that arrived."""
    delays = [1e3 * each for each in delays]
    return {
        "length": length,
        "sent": sent,
        "dropped": 1 - len(delays) / sent,
        "dropped_law": drop_law(length),
        "delay_ms": statistics.fmean(delays) if delays else None,
        "delay_ms_law": delay_law_ms(length),
        # 1.36 / sqrt(n) is passed by one in twenty that follow the law.
        "distance": kolmogorov(delays, delay_law_ms(length)) * math.sqrt(len(delays)) if delays else None,
        "delays_ms": sorted(delays),
    }


def _udp():
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
    one.setblocking(False)
    return one


def _exchange(sender, receiver, lengths, count):
    """{length: delays in s}: `count` datagrams of each length, evenly spaced, in turn."""
    delays = {length: [] for length in lengths}

    def gather():
        while True:
            try:
                data = receiver.recv(2048)
            except BlockingIOError:
                return
            delays.setdefault(len(data), []).append(time.monotonic() - _SENT_S.unpack_from(data)[0])

    next_s = time.monotonic()
    for _ in range(count):
        for length in lengths:
            sender.sendto(_SENT_S.pack(time.monotonic()) + bytes(length - _SENT_S.size), (ADDRESSES[1], _PORT))
            next_s += _GAP_S
            while time.monotonic() < next_s:
                gather()
    end_s = time.monotonic() + _GATHER_S
    while time.monotonic() < end_s:
        gather()
        time.sleep(0.0002)
    return delays
