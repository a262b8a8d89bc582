# One flow of a destination: which datagrams came, and the statuses that tell the source so. docs/WIRE.md, 1.5, 1.6.
# SPDX-License-Identifier: Apache-2.0
from . import wire
from .session import Lane

MS = 1_000_000
CREDIT = 16  # extents that a lane may have open


class ReceivingLane(Lane):
    """The numbers of one flow: which tx_seq came, which are lost, which extents are complete."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.partial = {}  # (object, extent) -> {offset: CRC of the chunk}
        self.compressed = {}  # (object, extent) -> what came of it compressed
        self.parity = {}  # (object, extent, block) -> {number of a repair symbol: its datagram}
        self._received_end = 0
        self._missing = {}  # tx_seq -> datagrams that had come when it was missed
        self._gaps = {}  # lost tx_seq -> statuses that shall still name it
        self._datagrams = self._bytes = 0
        self._completed = []  # every extent of this flow, in order
        self._done_seen = 0
        self._echo, self._echo_at = 0, 0
        self._delays = []
        self._statuses, self._status_ns = 0, 0
        self._padded, self._padded_ns = {}, 0  # bytes of padding -> probes that came; and when the last one did
        self.wants_status = True

    def fresh(self, tx_seq):
        return tx_seq >= self._received_end or tx_seq in self._missing or tx_seq in self._gaps

    def heard(self, datagram, now):
        """Of every datagram of the flow, probes included."""
        self._echo, self._echo_at = datagram.send_time, now
        self._done_seen = datagram.done_seen
        if datagram.type == wire.PROBE:
            # Everything below its number was sent. What is missing is lost.
            self._miss_up_to(datagram.tx_seq)
            self._gaps.update(dict.fromkeys(self._missing, 3))
            self._missing.clear()
            self.wants_status = True
            if datagram.payload:
                size = len(datagram.payload)
                self._padded = {size: self._padded.pop(size, 0) + 1, **self._padded}
                self._padded_ns = now

    def record(self, datagram, now):
        """A chunk that was taken: its number is used up."""
        self._miss_up_to(datagram.tx_seq)
        self._received_end = max(self._received_end, datagram.tx_seq + 1)
        self._missing.pop(datagram.tx_seq, None)
        self._gaps.pop(datagram.tx_seq, None)
        self._datagrams += 1
        self._bytes += len(datagram.payload)
        self._delays.append(now - datagram.send_time)
        for tx_seq in [each for each, then in self._missing.items() if self._datagrams - then > 3]:
            del self._missing[tx_seq]
            self._gaps[tx_seq] = 3
            self.wants_status = True

    def _miss_up_to(self, end):
        for tx_seq in range(max(self._received_end, end - 131072), end):
            if tx_seq not in self._missing and tx_seq not in self._gaps:
                self._missing[tx_seq] = self._datagrams

    def complete(self, number, extent):
        self.partial.pop((number, extent), None)
        self.compressed.pop((number, extent), None)
        self.parity = {key: kept for key, kept in self.parity.items() if key[:2] != (number, extent)}
        self._completed.append((number, extent))

    def say_status(self, now):
        """Every 10 ms, every millisecond while data comes, and at once when something is new."""
        if not self.wants_status and now - self._status_ns < (MS if self._delays else 10 * MS):
            return
        # Of the 32-bit number that the source echoes we need how far it is behind our own.
        behind = (len(self._completed) - self._done_seen) % (1 << 32)
        first = len(self._completed) - behind if behind <= len(self._completed) else len(self._completed)
        runs = []
        for number, extent in self._completed[first : first + 64]:
            if runs and (number, extent) == (runs[-1][0], runs[-1][1] + runs[-1][2]):
                runs[-1][2] += 1
            else:
                runs.append([number, extent, 1])
        status = wire.Status(self._echo, now - self._echo_at if self._echo else 0, self._received_end,
                             self._datagrams, 0, 0, len(self._completed) + CREDIT, 0, self._bytes,
                             min(self._delays, default=0), max(self._delays, default=0),
                             len(self._completed) % (1 << 32), len(self._completed) - first, runs,
                             self.gap_list(),
                             list(self._padded.items())[:16] if now - self._padded_ns < 1000 * MS else [])  # fmt: skip
        self.send(wire.Datagram(wire.STATUS, self.flow_id, self._statuses, now, status.pack()))
        self._statuses += 1
        self._status_ns, self._delays, self.wants_status = now, [], False

    def gap_list(self):
        """Runs of lost numbers; each number stands in three statuses. With 64 of them and 64 extents a status is
        always short enough."""
        runs = []
        for tx_seq in sorted(self._gaps):
            if runs and runs[-1][0] + runs[-1][1] == tx_seq:
                runs[-1][1] += 1
            elif len(runs) < 64:
                runs.append([tx_seq, 1])
            else:
                break
            self._gaps[tx_seq] -= 1
        self._gaps = {tx_seq: left for tx_seq, left in self._gaps.items() if left > 0}
        return runs
