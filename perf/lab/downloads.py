# Downloads of so many bytes through one link with a finite queue, by datagrams of one size: the kernel's TCP, and Sluice.
#
# Both use the bottleneck of perf/lab/shared.py, one after the other. TCP's segment is set by the MTU of both ends' devices, and
# what it learned of the path is forgotten before each run, as a first download has nothing to learn from.
# SPDX-License-Identifier: Apache-2.0
import socket
import threading
import time

from harness.stacked import Stacked

from .emulated import queue_for
from .errors import LabError
from .figures import gbps
from .nodes import CHUNK_STEP_BYTES, DATAGRAM_OVERHEAD_BYTES
from .peers import ends
from .peers.ends import ADDRESSES
from .shared import Bottleneck, BottleneckEnds, Crowd

RTT_MS = 20
_PORT = 4470
_TIMEOUT_S = 120
_MEMORY_MIB = 256
_BLOCK_BYTES = 1 << 16


class Downloads(Stacked):
    def __init__(self, rate_bps, mtu):
        super().__init__()
        self._rate_bps, self._mtu = rate_bps, mtu

    def _make(self):
        bottleneck = self._stack.enter_context(Bottleneck(self._mtu))
        self._crowd = self._stack.enter_context(Crowd(bottleneck, 1, memory_mib=_MEMORY_MIB))
        self._ends = self._stack.enter_context(BottleneckEnds(self._stack.enter_context(ends.Groups()), bottleneck))
        bottleneck.shape(self._rate_bps, RTT_MS, queue_bytes=queue_for(self._rate_bps, RTT_MS))
        self._ends.use("cubic")

    def tcp(self, datagram_bytes, size):
        """Seconds from the connection's first word until all is there."""
        self._ends.limit_datagrams(datagram_bytes)
        with self._crowd.only([]), self._ends.inside(1, _socket) as listener:
            listener.bind((ADDRESSES[1], _PORT))
            listener.listen(1)
            with self._ends.inside(0, _socket) as sender:
                sending = threading.Thread(target=_send, args=(sender, size), daemon=True)
                began_s = time.monotonic()
                sending.start()
                received = _receive(listener)
                took_s = time.monotonic() - began_s
                sending.join(_TIMEOUT_S)
        if received != size:
            raise LabError(f"TCP: {received} bytes of {size} came")
        return {"goodput_gbps": gbps(size, took_s), "session_s": took_s, "wall_s": took_s, "bytes": size,
                "crc": "none", "protection": "none"}  # fmt: skip

    def sluice(self, datagram_bytes, size):
        chunk = (datagram_bytes - DATAGRAM_OVERHEAD_BYTES) // CHUNK_STEP_BYTES * CHUNK_STEP_BYTES
        sender = self._crowd.senders[0]
        status, session, error = sender.json("send", f"memory:{size}", "sink:null:", "--chunk-bytes", chunk, "--quiet")
        if status != 0:
            raise LabError(f"sluice send: exit {status}: {session.get('message') if session else error.strip()}")
        return {"goodput_gbps": gbps(size, session["data_elapsed_s"]), "session_s": session["data_elapsed_s"],
                "wall_s": session["elapsed_s"], "bytes": size, "retransmits": session["retransmits"], "crc": session["crc"],
                "protection": session["protection"], "crc_errors": session["crc_errors"], "chunk_bytes": session["chunk_bytes"]}  # fmt: skip


def _socket():
    one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.settimeout(_TIMEOUT_S)
    return one


def _send(sender, size):
    try:
        sender.connect((ADDRESSES[1], _PORT))
        left, block = size, bytes(_BLOCK_BYTES)
        while left:
            left -= sender.send(block[: min(left, _BLOCK_BYTES)])
        sender.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the receiver sees that bytes are missing


def _receive(listener):
    connection, _ = listener.accept()
    received = 0
    with connection:
        connection.settimeout(_TIMEOUT_S)
        while data := connection.recv(1 << 20):
            received += len(data)
    return received
