# What arrives and is no plain chunk: repair symbols of an erasure code, and chunks of compressed extents. docs/WIRE.md,
# 1.12 and 1.14.
# SPDX-License-Identifier: Apache-2.0
import os

from . import coding, compression


class Arriving:
    """Of a destination."""

    def _is_parity(self, datagram):
        """A symbol of a block of an extent, by a code that was agreed on."""
        if not self.terms.reed_solomon or datagram.flags or datagram.object >= len(self.files):
            return False
        file = self.files[datagram.object]
        extent, within = divmod(datagram.offset, self.terms.extent_bytes)
        if extent >= self.extents_of(file) or within:
            return False
        blocks = coding.Blocks(self.terms, self.extent_length(file, extent))
        return (datagram.block < blocks.blocks and len(datagram.payload) == blocks.symbol_bytes
                and datagram.repair_id < coding.SHARDS_MAX - blocks.k)  # fmt: skip

    def _keep_parity(self, lane, datagram):
        file, extent = self.files[datagram.object], datagram.offset // self.terms.extent_bytes
        if extent in file.crcs or file.done:
            return
        lane.partial.setdefault((datagram.object, extent), {})
        kept_symbols = lane.parity.setdefault((datagram.object, extent, datagram.block), {})
        if any(each.block_digest != datagram.block_digest for each in kept_symbols.values()):
            self.false_parity += 1
            return
        kept_symbols[datagram.repair_id] = datagram
        self._decode(lane, datagram.object, extent, datagram.block)

    def _decode(self, lane, number, extent, block):
        """The chunks that a block lacks, if as many symbols of it are here."""
        symbols = lane.parity.get((number, extent, block))
        if not symbols:
            return
        file, begin, chunk_bytes = self.files[number], extent * self.terms.extent_bytes, self.terms.chunk_bytes
        length, held = self.extent_length(file, extent), lane.partial[number, extent]
        blocks = coding.Blocks(self.terms, length)
        places = [(begin + at * chunk_bytes, min(chunk_bytes, length - at * chunk_bytes)) for at in blocks.chunks_of(block)]
        sources = [os.pread(file.fd, count, offset) if offset in held else None for offset, count in places]
        decoded = blocks.decode(sources, {each: datagram.payload for each, datagram in symbols.items()})
        if decoded is None:
            return
        del lane.parity[number, extent, block]
        chunks = [symbol[:count] for symbol, (_, count) in zip(decoded, places)]
        if coding.digest(chunks) != next(iter(symbols.values())).block_digest:
            self.false_parity += 1
            return
        for chunk, (offset, _) in zip(chunks, places):
            if offset not in held:
                self.decoded += 1
                self._store(lane, number, offset, chunk, self.terms.crc.of(chunk))

    def _take_compressed(self, lane, datagram, file, extent):
        """An extent that is restored is as good as one whose chunks have all come."""
        chunk_bytes, begin = self.terms.chunk_bytes, extent * self.terms.extent_bytes
        collected = lane.compressed.setdefault((datagram.object, extent), compression.Collected())
        if not collected.add(datagram, datagram.offset - begin, chunk_bytes):
            return
        plain = collected.restored(self.extent_length(file, extent), self.terms.crc)
        del lane.compressed[datagram.object, extent]
        if plain is None:  # asked for again
            self.not_restored += 1
            return
        self.restored += 1
        held = lane.partial.setdefault((datagram.object, extent), {})
        for at in range(0, len(plain), chunk_bytes):
            if begin + at not in held:
                chunk = plain[at : at + chunk_bytes]
                self._store(lane, datagram.object, begin + at, chunk, self.terms.crc.of(chunk))
