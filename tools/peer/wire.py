# Datagrams of a lane: header, seal, status. docs/WIRE.md, section 1. The keys of a flow are in keys.py.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import functools
import struct

try:
    import crcmod
except ImportError:
    crcmod = None
from cryptography.exceptions import InvalidTag

DATA, STATUS, PROBE, PARITY, ECHO = range(5)
RETRANSMISSION, REPAIR = 1, 2
RAPTORQ = 1  # of parity
REFLECTED = 1  # of an echo
HEADER_BYTES, COVERED_BYTES = 72, 56

# ---- 1.1 Header -------------------------------------------------------------------------------------

# version, type, flags, header_bytes, key_epoch and credit_wanted; flow_id, tx_seq, send_time, offset;
# object, length, done_seen, statuses_heard; of parity (1.12) block and repair_id are where credit_wanted is, and
# block_digest where the last two are
_HEADER = struct.Struct(">BBBBIQQQQIIII")
_CRC = struct.Struct(">QQ")  # and eight zero bytes


@dataclasses.dataclass
class Datagram:
    type: int
    flow_id: int
    tx_seq: int
    send_time: int
    payload: bytes = b""
    flags: int = 0
    offset: int = 0
    object: int = 0
    done_seen: int = 0
    statuses_heard: int = 0
    credit_wanted: int = 0  # 0: not known
    block: int = 0
    repair_id: int = 0
    block_digest: int = 0
    chunk_crc: int = 0  # of the payload alone: known once it was sealed or opened


class Invalid(Exception):
    """This datagram is dropped; the text says why."""


def number_of(datagram):
    """Of a probe its own count: several may have one tx_seq."""
    return datagram.offset if datagram.type == PROBE else datagram.tx_seq


def seal(datagram, crc, keys):
    """The bytes that travel. crc: the kind that the session agreed on; keys: those of the flow."""
    enciphered = keys.encipher(datagram.type)
    epoch = keys.epoch(datagram) if enciphered else 0
    wish, echoes = datagram.credit_wanted, (datagram.done_seen, datagram.statuses_heard)
    if datagram.type == PARITY:
        wish = datagram.block << 16 | datagram.repair_id
        echoes = (datagram.block_digest >> 32, datagram.block_digest & 0xFFFFFFFF)
    header = _HEADER.pack(2, datagram.type, datagram.flags, HEADER_BYTES, (epoch & 0xFF) << 24 | wish,
                          datagram.flow_id, datagram.tx_seq, datagram.send_time, datagram.offset, datagram.object,
                          len(datagram.payload), *echoes)  # fmt: skip
    datagram.chunk_crc = crc.of(datagram.payload) if datagram.type in (DATA, PARITY) else 0
    if not enciphered:
        return header + _CRC.pack(crc.of(header, datagram.chunk_crc), 0) + datagram.payload
    cipher, nonce = keys.to_send(datagram)
    if datagram.type == ECHO:  # only the header is protected
        return header + cipher.encrypt(nonce, b"", header) + datagram.payload
    sealed = cipher.encrypt(nonce, datagram.payload, header)
    return header + sealed[-16:] + sealed[:-16]


def open_sealed(frame, crc, keys):
    """The datagram in these bytes."""
    if len(frame) < HEADER_BYTES:
        raise Invalid("too short")
    version, kind, flags, header_bytes, epoch_and_wish, *rest = _HEADER.unpack_from(frame)
    flow_id, tx_seq, send_time, offset, number, length, done_seen, statuses_heard = rest
    epoch, wish = epoch_and_wish >> 24, epoch_and_wish & 0xFFFFFF
    known_flags = {DATA: 7, PARITY: 4 | RAPTORQ, ECHO: REFLECTED}.get(kind, 0)
    if version != 2 or kind > ECHO or header_bytes != HEADER_BYTES or flags & ~known_flags:
        raise Invalid("not of this version")
    if (kind == STATUS and (wish or offset or done_seen or statuses_heard)) or (kind in (STATUS, PROBE, ECHO) and number):
        raise Invalid("a field that this type does not use")
    if kind == ECHO and (wish or offset or (flags and (done_seen or statuses_heard))):
        raise Invalid("a field that an echo does not use")
    payload = frame[HEADER_BYTES:]
    if len(payload) != length:
        raise Invalid("length is not what follows the header")
    datagram = Datagram(kind, flow_id, tx_seq, send_time, payload, flags, offset, number)
    if kind == PARITY:
        datagram.block, datagram.repair_id = wish >> 16, wish & 0xFFFF
        datagram.block_digest = done_seen << 32 | statuses_heard
    else:
        datagram.done_seen, datagram.statuses_heard, datagram.credit_wanted = done_seen, statuses_heard, wish
    header, field = frame[:COVERED_BYTES], frame[COVERED_BYTES:HEADER_BYTES]
    if not keys.encipher(kind):
        datagram.chunk_crc = crc.of(payload)
        if epoch or (crc.of(header, datagram.chunk_crc), 0) != _CRC.unpack(field):
            raise Invalid("wrong CRC")
        return datagram
    cipher, nonce = keys.to_open(datagram)
    if cipher is None or epoch != keys.epoch(datagram) & 0xFF:
        raise Invalid("of an epoch whose key is not held")
    try:
        opened = cipher.decrypt(nonce, (b"" if kind == ECHO else payload) + field, header)
    except InvalidTag:
        raise Invalid("a wrong tag") from None
    keys.reached(datagram)
    datagram.payload = payload if kind == ECHO else opened
    if kind in (DATA, PARITY):
        datagram.chunk_crc = crc.of(datagram.payload)
    return datagram


# ---- 1.2 Digests ----------------------------------------------------------------------------------------


class Crc:
    """A reflected CRC with initial value and final XOR of all ones. A byte at a time, slow and plain, where crcmod is
    not installed; it does the same."""

    def __init__(self, width, polynomial):
        self._width, self._polynomial = width, polynomial  # reflected: bit 0 is the highest power
        self._ones = (1 << width) - 1
        self._table = [self._times_x(byte, 8) for byte in range(256)]
        self.of = self.plainly
        if crcmod is not None:
            straight = 1 << width | int(f"{polynomial:0{width}b}"[::-1], 2)
            self.of = crcmod.mkCrcFun(straight, 0, True, self._ones)

    def plainly(self, data, seed=0):
        value, table = seed ^ self._ones, self._table
        for byte in data:
            value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
        return value ^ self._ones

    def joined(self, first, second, second_bytes):
        """The CRC of A and then B, of their CRCs and the length of B."""
        return self.shift(first, second_bytes) ^ second

    def shift(self, crc, count):
        """crc times x^(8 count), modulo the generator."""
        return self._times(crc, self._power(count))

    @functools.lru_cache(4096)
    def _power(self, count):
        """x^(8 count), by squaring."""
        if count == 0:
            return 1 << (self._width - 1)  # x^0
        half = self._power(count // 2)
        power = self._times(half, half)
        return self._times_x(power, 8) if count & 1 else power

    def _times_x(self, value, times):
        for _ in range(times):
            value = (value >> 1) ^ (self._polynomial if value & 1 else 0)
        return value

    def _times(self, a, b):
        product = 0
        for bit in range(self._width - 1, -1, -1):  # from x^0 upwards
            if a >> bit & 1:
                product ^= b
            b = self._times_x(b, 1)
        return product


class NoCrc:
    """Into a discard sink only: every CRC is 0."""

    def of(self, _data, _seed=0):
        return 0

    def shift(self, _crc, _count):
        return 0

    def joined(self, _first, _second, _second_bytes):
        return 0


CRC64 = Crc(64, 0xC96C5795D7870F42)
CRC32C = Crc(32, 0x82F63B78)
# By the numbers of CrcKind in peer.proto.
CRC_OF_KIND = {0: NoCrc(), 1: CRC32C, 2: CRC64}

# ---- 1.6 Status -------------------------------------------------------------------------------------

MAX_RUNS, MAX_GAPS, MAX_DONE, MAX_STATUS_BYTES = 127, 127, 1024, 1024
MAX_PADDED, MAX_PADDING = 16, 32768
MAX_HOLES, MAX_HOLE_RUNS, MAX_CHUNKS_PER_EXTENT = 32, 512, 4096


@dataclasses.dataclass
class Status:
    echo_send_time: int = 0
    echo_hold: int = 0
    received_end: int = 0
    datagrams_received: int = 0
    no_room: int = 0
    crc_errors: int = 0
    credit_extents: int = 0
    advice_bps: int = 0
    bytes_received: int = 0
    delay_min: int = 0
    delay_max: int = 0
    done_end: int = 0
    done_back: int = 0
    runs: list = dataclasses.field(default_factory=list)  # (object, first extent number, how many)
    gaps: list = dataclasses.field(default_factory=list)  # (first lost tx_seq, how many), ascending
    padded: list = dataclasses.field(default_factory=list)  # (bytes of padding, how many such probes came)
    holes: list = dataclasses.field(default_factory=list)  # (object, extent, told, [(first chunk, how many)])

    def pack(self):
        body = b"".join(map(varint, (
            self.echo_send_time, self.echo_hold, self.received_end, self.datagrams_received, self.no_room,
            self.crc_errors, self.credit_extents, self.advice_bps, self.bytes_received, folded(self.delay_min),
            self.delay_max - self.delay_min, self.done_end, self.done_back, len(self.runs), len(self.gaps))))  # fmt: skip
        before, end = None, 0
        for number, first, count in self.runs:
            end = end if number == before else 0
            body += varint(number) + varint(folded(signed(first - end))) + varint(count)
            before, end = number, first + count
        end = 0
        for first, count in self.gaps:
            body += varint(first - end) + varint(count)
            end = first + count
        if self.padded or self.holes:
            body += varint(len(self.padded)) + b"".join(varint(each) for size in self.padded for each in size)
        if self.holes:
            body += varint(len(self.holes))
        for number, extent, told, runs in self.holes:
            body += varint(number) + varint(extent) + varint(told) + varint(len(runs))
            end = 0
            for first, count in runs:
                body += varint(first - end) + varint(count)
                end = first + count
        return body

    @staticmethod
    def unpack(payload):
        if len(payload) > MAX_STATUS_BYTES:
            raise Invalid("a status of impossible length")
        rest = Varints(payload)
        status = Status(*(rest.take() for _ in range(9)))
        status.delay_min = unfolded(rest.take())
        status.delay_max = status.delay_min + rest.take()
        status.done_end, status.done_back, runs, gaps = (rest.take() for _ in range(4))
        if max(status.done_end, status.done_back) >= 1 << 32 or status.delay_max >= 1 << 63:
            raise Invalid("a number beyond its bits")
        if runs > MAX_RUNS or gaps > MAX_GAPS:
            raise Invalid("a status that lists too much")
        before, end = None, 0
        for _ in range(runs):
            number = rest.take()
            end = end if number == before else 0
            first, count = (end + unfolded(rest.take())) % (1 << 64), rest.take()
            before, end = number, first + count
            if number >= 1 << 32 or count == 0 or end >= 1 << 64:
                raise Invalid("a run of nothing, or beyond all numbers")
            status.runs.append((number, first, count))
        if sum(count for _, _, count in status.runs) > min(MAX_DONE, status.done_back):
            raise Invalid("more completed extents than there are")
        end = 0
        for _ in range(gaps):
            first = end + rest.take()
            count = rest.take()
            end = first + count
            if count == 0 or end >= 1 << 64:
                raise Invalid("a gap of nothing, or beyond all numbers")
            status.gaps.append((first, count))
        if rest.left():
            sizes = rest.take()
            if sizes > MAX_PADDED or (sizes == 0 and not rest.left()):
                raise Invalid("a status that tells of no padded probes, or of too many sizes")
            for _ in range(sizes):
                size, count = rest.take(), rest.take()
                if not (1 <= size <= MAX_PADDING and 1 <= count < 1 << 32):
                    raise Invalid("padded probes that cannot be")
                status.padded.append((size, count))
        if rest.left():
            status._unpack_holes(rest)
        if rest.left():
            raise Invalid("bytes behind a status")
        return status

    def _unpack_holes(self, rest):
        extents, runs_left = rest.take(), MAX_HOLE_RUNS
        if not 1 <= extents <= MAX_HOLES:
            raise Invalid("a status that tells of the holes of no extent, or of too many")
        for _ in range(extents):
            number, extent, told, count = (rest.take() for _ in range(4))
            runs_left -= count
            if number >= 1 << 32 or told > MAX_CHUNKS_PER_EXTENT or runs_left < 0:
                raise Invalid("an extent with impossible holes")
            runs, end = [], 0
            for _ in range(count):
                first = end + rest.take()
                end = first + rest.take()
                if end == first or end > told:
                    raise Invalid("a hole of nothing, or beyond what is told")
                runs.append((first, end - first))
            self.holes.append((number, extent, told, runs))

    def done(self):
        """The entries of the list, each with its number: (number, (object, extent))."""
        number = self.done_end - self.done_back
        for each, first, count in self.runs:
            for extent in range(first, first + count):
                yield number % (1 << 32), (each, extent)
                number += 1


def folded(value):
    """Small numbers of either sign become small ones: 0, -1, 1, -2 are 0, 1, 2, 3."""
    return 2 * value if value >= 0 else -2 * value - 1


def unfolded(value):
    return value >> 1 if value & 1 == 0 else -(value >> 1) - 1


def signed(value):
    """Modulo 2^64, with the sign of the highest bit."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


class Varints:
    def __init__(self, data):
        self._data, self._at = data, 0

    def left(self):
        return len(self._data) - self._at

    def take(self):
        value = shift = 0
        while True:
            if not self.left() or shift > 63:
                raise Invalid("a varint that does not end")
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if value >= 1 << 64:
            raise Invalid("a varint beyond 64 bits")
        return value
