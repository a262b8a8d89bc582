# The destination of the data: says what it holds and what it lacks, and names a file once it is proven.
# docs/WIRE.md, 1.5, 2.3.
# SPDX-License-Identifier: Apache-2.0
import os
import secrets
import time

from . import coding, compression, digests, grants, kept, packs, times, wire
from .arriving import Arriving
from .control import Failed, pb
from .receiving_lane import CREDIT, MS, ReceivingLane
from .session import MAX_RANGES, Session, fold, ranges_of

INTEGRITY, STORAGE = 11, 16
ECHOES_MAX = 1 << 16  # of a flow


class Incoming:
    """One file: its temporary name, and the CRC of each extent that is written."""

    def __init__(self, offered, folder, final):
        self.size, self.mode, self.mtime_ns, self.attributes = offered.size, offered.mode, times.told(offered), offered.attributes
        self.expected, self.digests = list(offered.expected), []  # what a list wants; what was computed (2.18)
        self.name, self.final, self.kind, self.members = os.fsdecode(offered.path), final, offered.kind, offered.members
        folder.mkdir(parents=True, exist_ok=True)
        self.temporary = folder / f".{final.name}.{secrets.token_hex(4)}"
        self.fd = os.open(self.temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.truncate(self.fd, self.size)
        self.crcs = {}  # extent -> CRC: what is held
        self.durable = set()
        self.reported = set()  # extents whose first pass the source says has left
        self.digest = None  # as the source says
        self.given = False  # it has its name; whether for good only its directory's sync tells
        self.done = False
        self.failed = None  # as it is told, once nothing of it will have its name

    def discard(self):
        if not self.done and not self.given:
            os.close(self.fd)
            self.temporary.unlink(missing_ok=True)


class Destination(Arriving, Session):
    role = 2

    def __init__(self, node, session_id, initiator, paths=(), rules=(), names=(), keep=0):
        """rules: pairs, whether to include and a pattern; names: of the one directory. 2.8."""
        super().__init__(node, session_id, initiator)
        self.files = []
        self._request = {"source_paths": list(paths), "names": list(names), "keep": keep,
                         "rules": [{"include": include, "pattern": pattern} for include, pattern in rules]}  # fmt: skip
        self._last_data_ns = self._last_need_ns = 0
        self._said_done_ns = 0
        self.needs_sent = self.decoded = self.false_parity = self.reflected = self.restored = self.not_restored = 0

    def forget(self):
        for file in self.files:
            file.discard()
        self.files, self.known = [], False

    # ---- steps 4 to 6 -----------------------------------------------------------------------------

    def agree_on_files(self):
        if self.initiator:
            self.stream.send("transfer_request", **self._request)
        offered, first = [], None
        while first is None or offer.more:
            _, offer = self.stream.expect("transfer_offer", timeout_s=None)
            first = first or offer
            offered += offer.files
        if self.grant is not None and not self.initiator:
            try:
                grants.check_offer(grants.read(self.grant), first, sum(each.size for each in offered))
            except Failed as error:
                self.stream.fail(error.code, str(error))
        if self.files:
            same = [(os.fsdecode(each.path), each.size, times.told(each)) for each in offered]
            if same != [(file.name, file.size, file.mtime_ns) for file in self.files]:
                self.stream.fail(7, "the offer is not what it was")
        else:
            finals = self.node.places(self, first, offered)
            try:
                self.files = [Incoming(each, final if each.kind else final.parent, final)
                              for each, final in zip(offered, finals)]  # fmt: skip
            except OSError as error:
                self.stream.fail(16, str(error))
            self._overwrite = first.overwrite
        self._digests = first.digests if self.terms.digests else 0
        if self._digests & ~digests.KNOWN:
            self.stream.fail(15, "a digest is wanted that is not known here")
        self._keep = kept.agree(self.stream, first.keep, self._request["keep"] if self.initiator else None)
        self.known = True
        flow_ids = [secrets.randbits(63) + 1 for _ in range(self.terms.lanes)]
        self.make_lanes(flow_ids, ReceivingLane)
        self.stream.send("transfer_ready", flow_ids=flow_ids, credit_extents=[CREDIT] * len(flow_ids),
                         final_paths=[str(file.final) for file in self.files], keep=self._keep)  # fmt: skip

    def begin(self, goes_on):
        self._said_done_ns = 0
        if not goes_on:
            for file in self.files:
                file.reported.clear()
        extent_bytes = self.terms.extent_bytes
        for number, file in enumerate(self.files):
            file.digest = None
            held = ranges_of(file.crcs, extent_bytes)
            if file.done:
                self._say_ended(number, file, self.stream)
            for at in range(0, 0 if file.done else len(held), MAX_RANGES):
                self.stream.send("object_state", object=number, held=held[at : at + MAX_RANGES])
        self.stream.send("object_state", end=True)

    def _say_ended(self, number, file, stream):
        if file.failed is not None:
            stream.send("object_failed", object=number, failures=file.failed)
        else:
            self._say_digests(number, file, stream)
            stream.send("object_state", object=number, done=True, digest=self._digest(file))

    def _say_digests(self, number, file, stream):
        if self.terms.digests:
            digests.say(stream, number, file.digests)

    # ---- what the source says ---------------------------------------------------------------------

    def on_object_failed(self, message):
        """The source cannot send it: it is given up. Of one that has its name the source has heard that."""
        file = self._file(message.object)
        if self._alone():
            self.stream.fail(15, "the only name of a session is called failed")
        if file.done:
            return
        if file.given:
            self.stream.fail(INTEGRITY, f"{file.name}: stands there, perhaps not for good, and cannot be sent again")
        self._give_up(message.object, file, message.failures)

    def _alone(self):  # one name: with it the session fails
        return sum(each.members if each.kind else 1 for each in self.files) == 1

    def _give_up(self, number, file, failures):
        os.close(file.fd)
        os.unlink(file.temporary)
        if not self._settled(file.temporary.parent):
            self.stream.fail(STORAGE, f"{file.name}: nobody knows whether it is gone for good")
        file.done, file.failed = True, [{"path": each.path, "failure": each.failure} for each in failures]
        self.stream.send("object_failed", object=number, failures=file.failed)

    def on_partition_sent(self, message):
        file = self._file(message.object)
        extent_bytes, range_ = self.terms.extent_bytes, message.range
        end = range_.offset + range_.length
        if message.lane >= len(self.lanes) or range_.length == 0 or end > file.size:
            self.stream.fail(15, "a partition of no lane, or beyond its file")
        file.reported |= set(range(range_.offset // extent_bytes, -(-end // extent_bytes)))
        self._last_data_ns = time.monotonic_ns()

    def on_file_digest(self, message):
        file = self._file(message.object)
        if message.size != file.size:
            self.stream.fail(15, f"{file.name}: offered with {file.size} bytes, digest of {message.size}")
        file.digest = message.digest

    def on_session_done(self, _message):
        if not self._said_done_ns:
            self.stream.fail(15, "SessionDone before all files are done")
        self.ended = True

    def _file(self, number):
        if number >= len(self.files):
            self.stream.fail(15, f"there is no object {number}")
        return self.files[number]

    # ---- datagrams that come: data and probes -----------------------------------------------------

    def on_datagram(self, lane, datagram):
        now = time.monotonic_ns()
        fits = {wire.DATA: self._fits, wire.PARITY: self._is_parity, wire.PROBE: lambda _: True,
                wire.ECHO: self._is_echo}  # fmt: skip
        if datagram.type not in fits or not fits[datagram.type](datagram):
            lane.dropped += 1
            return
        if datagram.type == wire.PARITY:
            if lane.fresh(datagram.tx_seq):
                lane.record(datagram, now)
                self._keep_parity(lane, datagram)
            return
        lane.heard(datagram, now)
        if datagram.type == wire.ECHO:
            lane.send(wire.Datagram(wire.ECHO, lane.flow_id, datagram.tx_seq, now, datagram.payload, wire.REFLECTED))
            self.reflected += 1
        if datagram.type == wire.DATA and lane.fresh(datagram.tx_seq):
            lane.record(datagram, now)
            self._take(lane, datagram)
            self._last_data_ns = now

    def _fits(self, datagram):
        """A whole chunk, where chunks are."""
        if datagram.object >= len(self.files):
            return False
        file, extent_bytes = self.files[datagram.object], self.terms.extent_bytes
        extent, within = divmod(datagram.offset, extent_bytes)
        if extent >= self.extents_of(file) or within % self.terms.chunk_bytes:
            return False
        if datagram.flags & compression.COMPRESSED:
            length = self.extent_length(file, extent)
            return self.terms.zstd and compression.fits(datagram, length, self.terms.chunk_bytes, within)
        return len(datagram.payload) == min(self.terms.chunk_bytes, self.extent_length(file, extent) - within) > 0

    def _is_echo(self, datagram):
        """On its way there, and one of those that may be."""
        return (self.terms.echoes and not datagram.flags and datagram.tx_seq < ECHOES_MAX
                and len(datagram.payload) <= self.terms.chunk_bytes)  # fmt: skip

    def _take(self, lane, datagram):
        file = self.files[datagram.object]
        extent = datagram.offset // self.terms.extent_bytes
        if extent in file.crcs or file.done:
            return
        if datagram.flags & compression.COMPRESSED:
            return self._take_compressed(lane, datagram, file, extent)
        if datagram.offset in lane.partial.setdefault((datagram.object, extent), {}):
            return
        self._store(lane, datagram.object, datagram.offset, datagram.payload, datagram.chunk_crc)
        if lane.parity and extent not in file.crcs:
            blocks = coding.Blocks(self.terms, self.extent_length(file, extent))
            chunk = datagram.offset % self.terms.extent_bytes // self.terms.chunk_bytes
            self._decode(lane, datagram.object, extent, chunk % blocks.blocks)

    def _store(self, lane, number, offset, payload, crc):
        file, extent = self.files[number], offset // self.terms.extent_bytes
        chunks = lane.partial[number, extent]
        os.pwrite(file.fd, payload, offset)
        chunks[offset] = crc
        length = self.extent_length(file, extent)
        if len(chunks) < -(-length // self.terms.chunk_bytes):
            return
        crc, left = 0, length
        for offset in sorted(chunks):
            count = min(self.terms.chunk_bytes, left)
            crc, left = self.terms.crc.joined(crc, chunks[offset], count), left - count
        file.crcs[extent] = crc
        lane.complete(number, extent)

    # ---- what is due ------------------------------------------------------------------------------

    def tick(self, now):
        for lane in self.lanes:
            lane.say_status(now)
        for number, file in enumerate(self.files):
            if not file.done:
                self._sync(number, file, now)
        if now - self._last_data_ns > 100 * MS and now - self._last_need_ns > 100 * MS:
            self._last_need_ns = now
            self._ask()
        if all(file.done for file in self.files):
            self._say_done(now)

    def _sync(self, number, file, now):
        whole = len(file.crcs) == self.extents_of(file)
        unsynced = set(file.crcs) - file.durable
        if unsynced and (whole or len(unsynced) >= 64 or now - self._last_data_ns > 50 * MS):
            os.fsync(file.fd)
            file.durable |= unsynced
            if file.kind:
                unsynced = ()  # of a pack nothing is durable before it is unpacked
            ranges = ranges_of(unsynced, self.terms.extent_bytes)
            for at in range(0, len(ranges), MAX_RANGES):
                self.stream.send("partition_done", object=number, ranges=ranges[at : at + MAX_RANGES])
        others_done = all(each.done for each in self.files if each is not file)
        if whole and file.digest is not None and (file.kind != packs.LAST_PACK or others_done):
            self._commit(number, file)

    def _commit(self, number, file):
        """Digests are compared, then the file gets its name, and that is made durable."""
        digest = self._digest(file)
        if digest != file.digest and not file.given:
            if self._alone():
                self.stream.fail(INTEGRITY, f"{file.name}: the digests differ")
            # Of a pack that is not what was sent nobody knows the names.
            what = [] if file.kind else [pb.FailedName(path=os.fsencode(file.name), failure=packs.DAMAGED)]
            return self._give_up(number, file, what)
        if file.kind:
            return self._unpack(number, file, digest)
        if self._digests and not file.given:
            content = os.pread(file.fd, file.size, 0)
            file.digests = [{"size": file.size, "digests": digests.of(content, self._digests)}]
            if digests.differ(file.expected, file.digests[0]["digests"]):
                if self._alone():
                    self.stream.fail(INTEGRITY, f"{file.name}: differs from the list")
                failed = pb.FailedName(path=os.fsencode(file.name), failure=digests.NOT_AS_LISTED)
                return self._give_up(number, file, [failed])
        if not file.given:
            kept.finish(file, self._keep)
            os.fsync(file.fd)
            os.close(file.fd)
            if self.terms.discard:
                os.unlink(file.temporary)
            else:
                os.rename(file.temporary, file.final)
            file.given = True
        if self._settled(file.final.parent):  # otherwise it is tried again
            file.done = True
            self._say_digests(number, file, self.stream)
            self.stream.send("file_done", object=number, digest=digest)

    def _settled(self, folder):
        """Whether what was named or removed in it is so for good."""
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        except OSError:
            return False
        finally:
            os.close(opened)
        return True

    def _unpack(self, number, file, digest):
        try:
            became = packs.unpack(os.pread(file.fd, file.size, 0), file.final, self._overwrite, self._keep,
                                  self._digests)  # fmt: skip
        except packs.Wrong as wrong:
            self.stream.fail(15, str(wrong))
        file.discard()
        file.done, file.digests = True, became.digests
        self._say_digests(number, file, self.stream)
        self.stream.send("file_done", object=number, digest=digest, failed=became.failed, left_out=became.left_out,
                         failures=became.failures)  # fmt: skip

    def _digest(self, file):
        return fold(file, file.crcs, self.terms.extent_bytes, self.terms.crc)

    def _ask(self):
        """NEED: of what the source says it has sent, what is not here."""
        for number, file in enumerate(self.files):
            lacking = file.reported - set(file.crcs)
            for at, lane in enumerate(self.lanes):
                for extent in [extent for extent in lacking if (number, extent) in lane.partial]:
                    lacking.discard(extent)
                    self._need(number, self._holes(file, extent, lane.partial[number, extent]), lane=at)
            self._need(number, ranges_of(lacking, self.terms.extent_bytes))

    def _holes(self, file, extent, chunks):
        begin = extent * self.terms.extent_bytes
        for offset in range(begin, begin + self.extent_length(file, extent), self.terms.chunk_bytes):
            if offset not in chunks:
                yield {"offset": offset, "length": self.terms.chunk_bytes}

    def _need(self, number, ranges, **lane):
        ranges = list(ranges)[:MAX_RANGES]
        if ranges:
            self.needs_sent += 1
            self.stream.send("need", object=number, ranges=ranges, **lane)

    def _say_done(self, now):
        if not self._said_done_ns:
            self._said_done_ns = now
            self.stream.send("session_done", files=len(self.files), bytes=sum(file.size for file in self.files))
        elif now - self._said_done_ns > 5_000 * MS:
            self.ended = True  # every file is named, and the source can ask
