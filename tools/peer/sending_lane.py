# One flow of a source: its credit, what it carried, what is to be sent again. docs/WIRE.md, 1.5 to 1.7.
# SPDX-License-Identifier: Apache-2.0
import collections
import time

from .session import Lane

MS = 1_000_000


class SendingLane(Lane):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.tx_seq = 0
        self.credit = 0
        self.opened = set()  # (object, extent): as many as the credit allows
        self.listed = set()  # of these, what a status has named as complete
        self.done_seen = self.statuses_heard = 0
        self.carried = {}  # tx_seq -> (object, offset): what a gap would mean
        self.repeats = collections.deque()  # (object, offset, flags)
        self.parity = collections.deque()  # (object, extent, block, number of the symbol)
        self.compressed = {}  # (object, extent) -> the payloads of its chunks, while it travels so
        self.partition = None  # (object, first extent, extents) of which we send the first pass
        self.said_sent = 0  # so many extents of it were reported by PartitionSent
        self.extents = collections.deque()  # of it, not opened yet
        self.chunks = collections.deque()  # of the extent that is being sent: (object, offset)
        self.extent_crc = 0  # of what has left of it
        self.heard_ns = time.monotonic_ns()  # the opening counts as a first status
        self.sent_ns = self.chunk_ns = 0
        self.rtt_ns = 0
        self.probe_ns = MS

    def rate_share(self, now):
        """The full rate while statuses come; a crawl, then nothing, without."""
        silent = now - self.heard_ns
        if silent > 10_000 * MS:
            return 0
        return 1 if silent < max(200 * MS, 4 * self.rtt_ns) else 0.01
