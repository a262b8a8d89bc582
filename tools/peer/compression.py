# Compressed extents: made, cut into chunks, collected and restored. docs/WIRE.md, 1.14.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import struct

try:
    import zstandard
except ImportError:  # then this peer does not offer it
    zstandard = None

from . import wire

COMPRESSED = 4  # bit 2 of flags
ZSTD = 1
_HEAD = struct.Struct(">IIQ")
HEAD_BYTES = _HEAD.size


@dataclasses.dataclass(frozen=True)
class Head:
    wire_bytes: int  # of all chunks of the extent
    frame_crc: int
    plain_digest: int

    def pack(self):
        return _HEAD.pack(ZSTD << 24 | self.wire_bytes, self.frame_crc, self.plain_digest)


def split(payload):
    """The head of a chunk, and its piece of the frame; None: it is no such chunk."""
    if len(payload) <= HEAD_BYTES or payload[0] != ZSTD:
        return None
    codec_and_bytes, frame_crc, plain_digest = _HEAD.unpack_from(payload)
    return Head(codec_and_bytes & 0xFFFFFF, frame_crc, plain_digest), payload[HEAD_BYTES:]


def chunks_of(plain, chunk_bytes, crc):
    """The payloads of an extent's chunks; None where it does not get shorter."""
    frame = zstandard.ZstdCompressor(level=3).compress(plain)
    piece_bytes = chunk_bytes - HEAD_BYTES
    pieces = [frame[at : at + piece_bytes] for at in range(0, len(frame), piece_bytes)]
    wire_bytes = len(frame) + len(pieces) * HEAD_BYTES
    if wire_bytes >= len(plain):
        return None
    head = Head(wire_bytes, wire.CRC32C.of(frame), crc.of(plain)).pack()
    return [head + piece for piece in pieces]


def fits(datagram, plain_bytes, chunk_bytes, within):
    """Whether it can be a chunk of an extent of so many bytes, `within` bytes from where its chunks begin."""
    parts = split(datagram.payload)
    if parts is None:
        return False
    total = parts[0].wire_bytes
    last = total % chunk_bytes
    return (total < plain_bytes and within < total and (last == 0 or last > HEAD_BYTES)
            and len(datagram.payload) == min(chunk_bytes, total - within))  # fmt: skip


class Collected:
    """What came of one extent. Only chunks with one head go together: another one begins it anew."""

    def __init__(self):
        self._head, self._pieces, self._newest = None, {}, -1

    def add(self, datagram, within, chunk_bytes):
        """True: all chunks are here."""
        head, piece = split(datagram.payload)
        if head != self._head:
            if datagram.tx_seq < self._newest:
                return False
            self._head, self._pieces = head, {}
        self._newest = max(self._newest, datagram.tx_seq)
        self._pieces[within // chunk_bytes] = piece
        return len(self._pieces) == -(-head.wire_bytes // chunk_bytes)

    def restored(self, plain_bytes, crc):
        """The extent; None: it is not what its chunks say."""
        frame = b"".join(self._pieces[at] for at in sorted(self._pieces))
        restorer = zstandard.ZstdDecompressor(max_window_size=1 << 20)
        try:
            # Whether a frame says its length is up to who made it. No more is ever made of it.
            if zstandard.frame_content_size(frame) not in (-1, plain_bytes):
                return None
            plain = restorer.decompress(frame, max_output_size=plain_bytes, allow_extra_data=False)
        except zstandard.ZstdError:
            return None
        return plain if len(plain) == plain_bytes and crc.of(plain) == self._head.plain_digest else None
