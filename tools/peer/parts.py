# A source of which a destination wants parts of files. docs/WIRE.md, 2.1.6.
# SPDX-License-Identifier: Apache-2.0
from .control import INCOMPATIBLE
from .sending_lane import MS

INTEGRITY = 11
MAX_RANGES = 4096  # and digests, of a message
GATHER_NS, GATHER = 50 * MS, 64


class Parts:
    """What a source still has to read and to say for its destination."""

    def __init__(self, source):
        self._source = source
        self._read = set()  # (object, extent): their digests are to be said
        self._demanded = set()
        self._last = set()  # to be read and said once all that is wanted of their files was read
        self._due_ns = 0

    def begin(self):
        """Another stream: the destination says again what it wants. What lanes have goes on."""
        if self._source.terms.parts:
            self._source.partitions.clear()
        self._read.clear()
        self._demanded.clear()
        self._last.clear()

    def want(self, message):
        source = self._source
        file, extents = self._extents(message)
        queued = {extent for number, first, count in source.partitions if number == message.object
                  for extent in range(first, first + count)}  # fmt: skip
        if message.withdrawn:
            queued -= extents
        else:
            for extent in extents & file.told:  # the destination has lost it
                file.told.discard(extent)
                file.held.discard(extent)
                file.sent.pop(extent, None)
            begun = {extent for lane in source.lanes for number, extent in self._under_way(lane)
                     if number == message.object}  # fmt: skip
            self._read |= {(message.object, extent) for extent in extents & file.sent.keys()}
            queued |= extents - file.sent.keys() - begun
        others = [each for each in source.partitions if each[0] != message.object]
        source.partitions.clear()
        source.partitions.extend(sorted(others + [(message.object, extent, 1) for extent in queued]))

    def want_digests(self, message):
        file, extents = self._extents(message)
        self._demanded |= {(message.object, extent) for extent in extents}
        if len(self._demanded) > self._source.terms.digests_unanswered:
            self._source.stream.fail(INCOMPATIBLE, "the digests of too many extents at a time")
        if message.last:
            self._last |= {(message.object, extent) for extent in extents}
            return
        for extent in extents:
            self._source.read_extent(file, extent)
            self._read.add((message.object, extent))

    def was_read(self, number, extent):
        if self._source.terms.parts:
            self._read.add((number, extent))

    def tick(self, now):
        """Digests are said after a look at the file that begins when all of these extents were read."""
        last = {each for each in self._last if self._all_read(each[0])}
        self._last -= last
        for number, extent in last:
            self._source.read_extent(self._source.files[number], extent)
        self._read |= last
        if not self._read or (not last and now < self._due_ns and len(self._read) < GATHER):
            return
        self._due_ns = now + GATHER_NS
        read, self._read = sorted(self._read), set()
        for number in {number for number, _ in read}:
            if not self._source.files[number].unchanged():
                self._source.stream.fail(INTEGRITY, f"{self._source.files[number].path}: changed while it was sent")
        self._demanded -= set(read)
        runs = []
        for number, extent in read:
            joins = runs and runs[-1][0] == number and runs[-1][1] + len(runs[-1][2]) == extent
            if not joins or len(runs[-1][2]) == MAX_RANGES:
                runs.append((number, extent, []))
            runs[-1][2].append(self._source.files[number].crcs[extent])
        for number, first, digests in runs:
            self._source.stream.send("extent_digests", object=number,
                                     offset=first * self._source.terms.extent_bytes, digests=digests,
                                     last=any((number, first + at) in last for at in range(len(digests))))  # fmt: skip

    def _all_read(self, number):
        """All of this file that the destination wants has left on a lane."""
        source = self._source
        return not any(each[0] == number for each in source.partitions) and not any(
            each == number for lane in source.lanes for each, _ in self._under_way(lane))

    def _under_way(self, lane):
        """(object, extent) that a lane was given, and has not sent whole."""
        return [*lane.extents, *((number, offset // self._source.terms.extent_bytes) for number, offset in lane.chunks)]

    def _extents(self, message):
        """The whole extents of its ranges; none of a file that is done."""
        source = self._source
        if not source.terms.parts:
            source.stream.fail(INCOMPATIBLE, "parts of files were not agreed upon")
        if message.object >= len(source.files) or len(message.ranges) > MAX_RANGES:
            source.stream.fail(INCOMPATIBLE, "no such object, or too many ranges")
        file, extent_bytes, extents = source.files[message.object], source.terms.extent_bytes, set()
        for each in [] if file.done else message.ranges:
            end = min(each.offset + each.length, file.size)
            last = source.extents_of(file) if end == file.size else end // extent_bytes
            extents.update(range(-(-each.offset // extent_bytes), last))
        return file, extents
