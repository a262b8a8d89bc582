# The source of the data: offers files, sends chunks, repeats what was lost. docs/WIRE.md, 1.5 to 1.7, 2.3.
# SPDX-License-Identifier: Apache-2.0
import collections
import os
import time
import types

from . import coding, compression, kept, packs, times, wire
from .control import INCOMPATIBLE
from .outgoing import Outgoing
from .parts import Parts
from .sending_lane import MS, SendingLane
from .session import MAX_RANGES, Session, fold

INTEGRITY = 11
PARITY_OF_BLOCK = 16  # repair symbols that follow an extent, for each block; how many is the source's choice


class Source(Session):
    role = 1

    def __init__(self, node, session_id, initiator, paths=(), destination="", is_directory=False, overwrite=False,
                 keep=0, mkdir=False):  # fmt: skip
        super().__init__(node, session_id, initiator)
        self.files = self.opened(paths, keep)
        self._offer = {"destination": destination, "overwrite": overwrite, "keep": keep, "mkdir": mkdir,
                       "destination_is_directory": is_directory or len(self.files) > 1}  # fmt: skip
        self.partitions = collections.deque()
        self._may_send = False
        self._allowance_bits, self._last_ns = 0, time.monotonic_ns()
        self.chunks_sent = self.repairs_sent = self.parity_sent = self.compressed_sent = 0
        self._parts = Parts(self)
        self.failed = {}  # number of a file -> names that the destination calls failed, and why

    @staticmethod
    def opened(paths, keep=0):
        """A directory is a pack of its files, and the last pack."""
        whole = [path for path in paths if not os.path.isdir(path)]
        found = [Outgoing(path) for path in whole]
        for path in paths:
            if path not in whole:
                found += [Outgoing(path, *each) for each in packs.tree(path, keep)]
        return found

    def forget(self):
        """The peer knows nothing of this session: begin with all."""
        for file in self.files:
            file.held.clear()
            file.digest_told = file.done = False

    # ---- steps 4 to 6 -----------------------------------------------------------------------------

    def agree_on_files(self):
        if not self.initiator:
            _, request = self.stream.expect("transfer_request")
            self.check_selection(request)
            self._offer["keep"] = kept.agree(self.stream, request.keep)
            if not self.files:
                self.files = self.opened(self.node.named(self.stream, request.source_paths), request.keep)
        offers = [{"object": number, "path": b"" if file.kind else os.fsencode(os.path.basename(file.path)),
                   "size": file.size, "mode": file.stat.st_mode & 0o777, **times.of(file.stat),
                   "kind": file.kind, "members": file.members, "holes": file.holes(self.terms.extent_bytes),
                   "attributes": None if file.kind else kept.of(file.path, self._offer["keep"])}
                  for number, file in enumerate(self.files)]  # fmt: skip
        for at in range(0, len(offers), 64):
            more = at + 64 < len(offers)
            self.stream.send("transfer_offer", files=offers[at : at + 64], more=more, **self._offer)
        _, ready = self.stream.expect("transfer_ready", timeout_s=None)
        kept.agree(self.stream, ready.keep, self._offer["keep"])
        if len(ready.flow_ids) != self.terms.lanes or len(ready.credit_extents) != self.terms.lanes \
                or 0 in ready.flow_ids:  # fmt: skip
            self.stream.fail(INCOMPATIBLE, "not one flow for each lane")
        self.known = True
        self.make_lanes(ready.flow_ids, SendingLane)
        for lane, credit in zip(self.lanes, ready.credit_extents):
            lane.credit = credit

    def check_selection(self, request):
        """We send all of a tree, or nothing: what was not asked for would be refused."""
        if request.rules or request.names:
            self.stream.fail(INCOMPATIBLE, "cannot select: ask for files and whole directories")

    def begin(self, goes_on):
        """Nothing is sent before the last ObjectState."""
        self._goes_on, self._may_send, self._limit_bps = goes_on, False, None
        self._parts.begin()
        for file in self.files:
            file.held.clear()
            file.told.clear()
            file.digest_told = False
            if not goes_on:
                file.sent.clear()

    # ---- what the destination says ----------------------------------------------------------------

    def on_object_state(self, state):
        if state.end:
            self._states_are_complete()
            return
        self._take_held(state.object, state.held)
        if state.done and state.object < len(self.files):
            self._take_digest(self.files[state.object], state.digest)

    def on_want(self, message):
        self._parts.want(message)

    def on_digests_wanted(self, message):
        self._parts.want_digests(message)

    def on_rate_limit(self, message):
        """0: the destination sets no limit any more."""
        self._limit_bps = message.rate_bps or None

    def on_partition_done(self, message):
        self._take_held(message.object, message.ranges)

    def on_need(self, need):
        """These bytes again, in whole chunks. What was never sent comes in its turn."""
        if need.object >= len(self.files):
            return
        file, extent_bytes = self.files[need.object], self.terms.extent_bytes
        for each in need.ranges:
            end = min(each.offset + each.length, file.size)
            for extent in range(each.offset // extent_bytes, -(-end // extent_bytes)):
                file.held.discard(extent)
                begin, length = extent * extent_bytes, self.extent_length(file, extent)
                whole = each.offset <= begin and end >= begin + length
                if whole and extent not in file.sent and (self.terms.parts or extent not in file.crcs):
                    continue
                # Parts of an extent go where the destination has the rest of it.
                number = file.sent.get(extent, need.lane)
                number = need.lane if need.HasField("lane") and not whole else number
                if number < len(self.lanes):
                    self._repair(self.lanes[number], need.object, extent, each.offset, end)

    def _repair(self, lane, number, extent, first, end):
        chunk_bytes, begin = self.terms.chunk_bytes, extent * self.terms.extent_bytes
        extent_end = begin + self.extent_length(self.files[number], extent)
        if first <= begin and end >= extent_end:  # it has nothing of it: perhaps it could not restore it
            lane.compressed.pop((number, extent), None)
        for offset in range(begin, extent_end, chunk_bytes):
            if offset < end and min(offset + chunk_bytes, extent_end) > first:
                lane.repeats.append((number, offset, wire.REPAIR))

    def on_file_done(self, message):
        if message.object < len(self.files):
            self._take_digest(self.files[message.object], message.digest)

    def on_object_failed(self, message):
        """Nothing of it is at the destination, and nothing more of it is sent: to the lanes it is all there."""
        if message.object >= len(self.files):
            return
        file = self.files[message.object]
        file.done = file.digest_told = True
        self.failed[message.object] = [(each.path, each.failure) for each in message.failures]
        self._take_held(message.object, [types.SimpleNamespace(offset=0, length=file.size)])

    def on_session_done(self, _message):
        self.stream.send("session_done", files=len(self.files), bytes=sum(file.size for file in self.files))
        self.ended = True

    def _take_digest(self, file, digest):
        """The destination has the file. It is ours only if it is what we read, all of it."""
        if not self.terms.parts:
            self._read_unknown(file)
        known = len(file.crcs) == self.extents_of(file)  # in parts it is the destination's business
        if known and digest != fold(file, file.crcs, self.terms.extent_bytes, self.terms.crc):
            self.stream.fail(INTEGRITY, f"{file.path}: the destination has another digest")
        file.done = True
        file.held = set(range(self.extents_of(file)))

    def _take_held(self, number, ranges):
        """The whole extents in these ranges. One that its lane has not listed gives its credit back: another lane
        may have completed it. Should its lane list it after all, it counts from then on."""
        if len(ranges) > MAX_RANGES:
            self.stream.fail(INCOMPATIBLE, "too many ranges")
        if number >= len(self.files):
            return
        file, extent_bytes = self.files[number], self.terms.extent_bytes
        for each in ranges:
            end = min(each.offset + each.length, file.size)
            last = self.extents_of(file) if end == file.size else end // extent_bytes
            found = range(-(-each.offset // extent_bytes), last)
            file.held.update(found)
            file.told.update(found)
            for lane in self.lanes:
                lane.opened -= {(number, extent) for extent in found} - lane.listed

    def _states_are_complete(self):
        """Now it is known what the destination lacks: that is cut into partitions, or reported once more."""
        self._may_send = True
        per_partition = self.terms.partition_bytes // self.terms.extent_bytes
        if self._goes_on:
            for number, file in enumerate(self.files):
                for extent in sorted(file.sent.keys() - file.held):
                    self._say_sent(number, extent, 1, file.sent[extent])
            return
        self.partitions.clear()
        for number, file in enumerate([] if self.terms.parts else self.files):
            for first in range(0, self.extents_of(file), per_partition):
                self.partitions.append((number, first, min(per_partition, self.extents_of(file) - first)))

    # ---- datagrams that come: statuses ------------------------------------------------------------

    def on_datagram(self, lane, datagram):
        if datagram.type != wire.STATUS:
            return
        try:
            status = wire.Status.unpack(datagram.payload)
        except wire.Invalid:
            lane.dropped += 1
            return
        lane.heard_ns = time.monotonic_ns()
        lane.statuses_heard = (lane.statuses_heard + 1) % (1 << 32)
        if status.echo_send_time:
            lane.rtt_ns = max(0, lane.heard_ns - status.echo_send_time - status.echo_hold)
        lane.credit = max(lane.credit, status.credit_extents)
        for at, (number, extent) in status.done():
            if at != lane.done_seen:
                continue
            lane.done_seen = (lane.done_seen + 1) % (1 << 32)
            lane.opened.add((number, extent))  # a repair may have opened it
            lane.listed.add((number, extent))
            if number < len(self.files) and extent < self.extents_of(self.files[number]):
                self.files[number].held.add(extent)
        for first, count in status.gaps:
            for tx_seq in range(first, min(first + count, lane.tx_seq)):
                number, offset = lane.carried.pop(tx_seq, (None, 0))
                if number is not None and offset // self.terms.extent_bytes not in self.files[number].held:
                    lane.repeats.append((number, offset, wire.RETRANSMISSION))

    # ---- datagrams that go ------------------------------------------------------------------------

    def tick(self, now):
        self._refill(now)
        for lane in self.lanes:
            while self._may_send and self._allowance_bits > 0 and lane.rate_share(now):
                if not self._send_one(lane):
                    self._probe(lane, now)
                    self._report_what_left(lane, now)
                    break
        if self.terms.parts:
            self._parts.tick(now)
            return
        for number, file in enumerate(self.files):
            if self._may_send and not file.digest_told and len(file.sent.keys() | file.held) == self.extents_of(file):
                self._say_digest(number, file)

    def _refill(self, now):
        share = max((lane.rate_share(now) for lane in self.lanes), default=0)
        rate_bps = min(self.terms.rate_bps, self._limit_bps or self.terms.rate_bps)
        self._allowance_bits += rate_bps * share * (now - self._last_ns) / 1e9
        # After a pause not more at once than two milliseconds would have carried, or one datagram.
        most = max(rate_bps * 0.002, 8 * self.terms.chunk_bytes)
        self._allowance_bits, self._last_ns = min(self._allowance_bits, most), now

    def _send_one(self, lane):
        if lane.repeats:
            number, offset, flags = lane.repeats.popleft()
        elif lane.parity:
            self._send_parity(lane, *lane.parity.popleft())
            return True
        else:
            if not lane.chunks and not self._open_extent(lane):
                return False
            (number, offset), flags = lane.chunks.popleft(), 0
        file = self.files[number]
        extent = offset // self.terms.extent_bytes
        end = extent * self.terms.extent_bytes + self.extent_length(file, extent)
        data = os.pread(file.fd, min(self.terms.chunk_bytes, end - offset), offset)
        if (chunks := lane.compressed.get((number, extent))) is not None:
            at = offset % self.terms.extent_bytes // self.terms.chunk_bytes
            if at >= len(chunks):  # of what it would be if it were not compressed
                return True
            data, flags = chunks[at], flags | compression.COMPRESSED
        datagram = wire.Datagram(wire.DATA, lane.flow_id, lane.tx_seq, time.monotonic_ns(), data, flags, offset, number,
                                 lane.done_seen, lane.statuses_heard)  # fmt: skip
        lane.send(datagram)
        lane.carried[lane.tx_seq] = (number, offset)
        lane.tx_seq += 1
        lane.sent_ns = lane.chunk_ns = time.monotonic_ns()
        lane.probe_ns = MS
        self.chunks_sent += 1
        self.repairs_sent += flags & wire.REPAIR != 0
        self._allowance_bits -= 8 * (len(data) + wire.HEADER_BYTES + 66)
        if flags == compression.COMPRESSED:
            lane.extent_crc = compression.split(data)[0].plain_digest
        flags &= ~compression.COMPRESSED
        if not flags and chunks is None:
            lane.extent_crc = self.terms.crc.joined(lane.extent_crc, datagram.chunk_crc, len(data))
        if not flags and not lane.chunks:
            file.sent[extent] = self.lanes.index(lane)
            file.crcs[extent] = lane.extent_crc
            self._parts.was_read(number, extent)
            if self.terms.reed_solomon and chunks is None:  # of what is compressed none is sent, which is allowed
                blocks = coding.Blocks(self.terms, self.extent_length(file, extent)).blocks
                lane.parity.extend((number, extent, block, symbol)
                                   for symbol in range(PARITY_OF_BLOCK) for block in range(blocks))  # fmt: skip
            if not lane.extents:
                self._report_sent(lane, sum(lane.partition[1:]))
        return True

    def _send_parity(self, lane, number, extent, block, symbol):
        file, begin, chunk_bytes = self.files[number], extent * self.terms.extent_bytes, self.terms.chunk_bytes
        length = self.extent_length(file, extent)
        if extent in file.held:
            return
        blocks = coding.Blocks(self.terms, length)
        chunks = [os.pread(file.fd, min(chunk_bytes, length - at * chunk_bytes), begin + at * chunk_bytes)
                  for at in blocks.chunks_of(block)]  # fmt: skip
        lane.send(wire.Datagram(wire.PARITY, lane.flow_id, lane.tx_seq, time.monotonic_ns(),
                                blocks.repair(chunks, symbol), 0, begin, number, block=block, repair_id=symbol,
                                block_digest=coding.digest(chunks)))  # fmt: skip
        lane.tx_seq += 1
        lane.sent_ns = time.monotonic_ns()
        self.parity_sent += 1
        self._allowance_bits -= 8 * (blocks.symbol_bytes + wire.HEADER_BYTES + 66)

    def _open_extent(self, lane):
        while not lane.extents:
            if not self.partitions:
                return False
            number, first, count = lane.partition = self.partitions.popleft()
            lane.said_sent = first
            held = self.files[number].held
            lane.extents.extend((number, extent) for extent in range(first, first + count) if extent not in held)
        if len(lane.opened) >= lane.credit:
            return False
        number, extent = lane.extents.popleft()
        lane.opened.add((number, extent))
        lane.extent_crc = 0
        file = self.files[number]
        begin = extent * self.terms.extent_bytes
        end = begin + self.extent_length(file, extent)
        if self.terms.zstd:
            plain = os.pread(file.fd, end - begin, begin)
            if (chunks := compression.chunks_of(plain, self.terms.chunk_bytes, self.terms.crc)) is not None:
                lane.compressed[number, extent] = chunks
                self.compressed_sent += 1
                end = begin + sum(map(len, chunks))
        lane.chunks.extend((number, offset) for offset in range(begin, end, self.terms.chunk_bytes))
        return True

    def _probe(self, lane, now):
        """Makes losses at the tail visible: the next tx_seq tells how many were sent."""
        waits = any(file.sent.keys() - file.held for file in self.files)
        if waits and now - lane.sent_ns > max(lane.rtt_ns / 4, lane.probe_ns):
            lane.send(wire.Datagram(wire.PROBE, lane.flow_id, lane.tx_seq, time.monotonic_ns(),
                                    done_seen=lane.done_seen, statuses_heard=lane.statuses_heard))  # fmt: skip
            lane.sent_ns, lane.probe_ns = now, min(lane.probe_ns * 3 // 2, 1000 * MS)

    # ---- what we say ------------------------------------------------------------------------------

    def _report_what_left(self, lane, now):
        """A lane that stands still may have used its credit up for extents with holes. The destination asks for
        these only if it knows that they were sent: so what has left is reported, though more is to come."""
        if lane.extents and now - lane.chunk_ns > 200 * MS:
            self._report_sent(lane, lane.extents[0][1])

    def _report_sent(self, lane, end):
        number = lane.partition[0]
        if end > lane.said_sent:
            self._say_sent(number, lane.said_sent, end - lane.said_sent, self.lanes.index(lane))
        lane.said_sent = end

    def _say_sent(self, number, first, count, lane):
        extent_bytes = self.terms.extent_bytes
        length = min(count * extent_bytes, self.files[number].size - first * extent_bytes)
        self.stream.send("partition_sent", object=number, lane=lane,
                         range={"offset": first * extent_bytes, "length": length})  # fmt: skip

    def _say_digest(self, number, file):
        self._read_unknown(file)
        if not file.unchanged():
            self.stream.fail(INTEGRITY, f"{file.path}: changed while it was sent")
        digest = fold(file, file.crcs, self.terms.extent_bytes, self.terms.crc)
        self.stream.send("file_digest", object=number, size=file.size, digest=digest)
        file.digest_told = True

    def read_extent(self, file, extent):
        data = os.pread(file.fd, self.extent_length(file, extent), extent * self.terms.extent_bytes)
        file.crcs[extent] = self.terms.crc.of(data)

    def _read_unknown(self, file):
        """What the destination had already, of which we have no CRC of our own."""
        for extent in range(self.extents_of(file)):
            if extent not in file.crcs:
                self.read_extent(file, extent)
