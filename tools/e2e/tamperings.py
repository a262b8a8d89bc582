# Somebody in the path alters, cuts, doubles, holds back, reorders and loses datagrams.
# SPDX-License-Identifier: Apache-2.0
import collections
import dataclasses
import itertools
import typing

from attacks import A, B
from harness import wait_until
from harness.middle import DATA, PROBE, STATUS, kind_of, sluice_header_at


@dataclasses.dataclass
class Tampering:
    """What becomes of `count` datagrams of this kind: make() gives the function that is called with each frame, and
    returns what goes on in its place. At the node that gets them each raises one of `counters`, if there are any.
    Datagrams of the kinds in `lost` get lost meanwhile. `side`: who sends them."""

    name: str
    kind: str
    make: typing.Callable
    counters: str = ""
    rises: typing.Optional[int] = None  # all of them together, where that is not once each
    count: int = 20
    lost: tuple = ()
    group: int = 0  # of eight times so many frames, so many are meant: where more is lost, much is sent unasked

    def __post_init__(self):
        self.side = B if self.kind == STATUS else A


def in_path(siege, tampering):
    """Does it, and returns once it is done and counted."""
    change, done, passed = tampering.make(), [], itertools.count()

    def meant(side, kind):
        if side != tampering.side or kind != tampering.kind or len(done) == tampering.count:
            return False
        return not tampering.group or next(passed) % (8 * tampering.group) < tampering.group

    def tamper(side, frame):
        kind = kind_of(frame)
        if meant(side, kind):
            done.append(kind)
            return change(frame)
        return [] if kind in tampering.lost else [frame]

    counters = tampering.counters.split()
    rises = (tampering.count if tampering.rises is None else tampering.rises) if counters else 0
    with siege.counted(1 - tampering.side, counters, rises):
        siege.tamper = tamper
        try:
            wait_until(lambda: len(done) == tampering.count, 20, f"{tampering.count} {tampering.kind} datagrams have passed")
        finally:
            siege.tamper = None


def without_sum(frame, at):
    """UDP's checksum does not betray it: there is none."""
    return frame[: at - 2] + b"\0\0" + frame[at:]


def turned(where, bit=1):
    """Turns a bit of this byte of the datagram; where < 0: from its end."""

    def change(frame):
        at = sluice_header_at(frame)
        here = at + where if where >= 0 else len(frame) + where
        frame = without_sum(frame, at)
        return [frame[:here] + bytes([frame[here] ^ bit]) + frame[here + 1 :]]

    return lambda: change


def shortened(count, lengths_right):
    """Without its last bytes, of which the lengths of IPv4 and UDP know or do not know."""

    def change(frame):
        at = sluice_header_at(frame)
        if not lengths_right:
            return [frame[:-count]]
        udp = int.from_bytes(frame[at - 4 : at - 2], "big") - count
        frame = frame[: at - 4] + udp.to_bytes(2, "big") + b"\0\0" + frame[at:-count]
        return [ip4(frame, 16, (udp + 20).to_bytes(2, "big"))]

    return lambda: change


def ip4(frame, at, value):
    """With other bytes in its IPv4 header, whose checksum is right."""
    header = bytearray(frame[14:34])
    header[at - 14 : at - 14 + len(value)] = value
    header[10:12] = b"\0\0"
    words = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, 20, 2))
    while words >> 16:
        words = (words & 0xFFFF) + (words >> 16)
    header[10:12] = (~words & 0xFFFF).to_bytes(2, "big")
    return frame[:14] + bytes(header) + frame[34:]


def from_elsewhere(frame):
    return [without_sum(ip4(frame, 26, bytes([10, 77, 0, 9])), sluice_header_at(frame))]


def to_another_port(frame):
    port = int.from_bytes(frame[36:38], "big") ^ 1
    return [without_sum(frame[:36] + port.to_bytes(2, "big") + frame[38:], 42)]


def in_groups(size, become):
    """So many are held until all are there: what goes on is become(them). Where much is lost, a chunk is sent twice
    unasked: the second passes."""

    def make():
        held = []

        def change(frame):
            payload = sluice_header_at(frame) + 72
            if held and held[-1][payload:] == frame[payload:]:
                return [frame]
            held.append(frame)
            if len(held) < size:
                return []
            together, held[:] = list(held), []
            return become(together)

        return change

    return make


def swapped_payloads(frames):
    (one, other), at = frames, sluice_header_at(frames[0])
    return [without_sum(each[: at + 72] + payload[at + 72 :], at) for each, payload in ((one, other), (other, one))]


def swapped_seals(frames):
    (one, other), at = frames, sluice_header_at(frames[0])
    return [without_sum(each[: at + 56] + seal[at + 56 : at + 72] + each[at + 72 :], at)
            for each, seal in ((one, other), (other, one))]  # fmt: skip


def late(distance):
    """Each goes on when so many others have come behind it."""

    def make():
        waiting = collections.deque()

        def change(frame):
            waiting.append(frame)
            return [waiting.popleft()] if len(waiting) > distance else []

        return change

    return make


def again_later(distance):
    """And a second time, so many later."""

    def make():
        past = collections.deque()

        def change(frame):
            past.append(frame)
            return [frame, past.popleft()] if len(past) > distance else [frame]

        return change

    return make


def only(keep):
    """keep(n): whether the n-th goes on."""

    def make():
        numbers = iter(range(1 << 30))
        return lambda frame: [frame] if keep(next(numbers)) else []

    return make


def always(change):
    return lambda: change


# where each field of the header begins or ends (docs/WIRE.md, 1.1), and what a changed one is taken for
FIELDS = [
    ("version", 0, 4, "rx_drop_bad_version"), ("type", 1, 0x80, "rx_drop_bad_type"),
    ("flag of a retransmission", 2, 1, "rx_drop_forged"), ("flag of a repair", 2, 2, "rx_drop_forged"),
    ("header length", 3, 1, "rx_drop_bad_header_length"), ("key epoch", 4, 1, "rx_drop_bad_key_epoch"),
    ("wanted credit", 7, 1, "rx_drop_forged"), ("flow, first bit", 8, 0x80, "rx_drop_unknown_flow"),
    ("flow, last bit", 15, 1, "rx_drop_unknown_flow"), ("number", 21, 0x20, "rx_drop_forged"),
    ("number, far", 17, 1, "rx_drop_bad_key_epoch"), ("send time", 31, 1, "rx_drop_forged"),
    ("offset", 37, 0x10, "rx_drop_forged"), ("offset, first bit", 32, 0x80, "rx_drop_forged"),
    ("object", 43, 1, "rx_drop_forged"), ("length", 47, 1, "rx_drop_bad_length"),
    ("extents seen", 51, 1, "rx_drop_forged"), ("statuses heard", 55, 1, "rx_drop_forged"),
    ("seal, first bit", 56, 0x80, "rx_drop_forged"), ("seal, last bit", 71, 1, "rx_drop_forged"),
    ("payload, first bit", 72, 0x80, "rx_drop_forged"), ("payload, last bit", -1, 1, "rx_drop_forged"),
]  # fmt: skip

def altered(name, make, counters, group=1):
    return Tampering(f"data: {name}", DATA, make, counters, count=10, group=group)


ALTERED_DATA = [altered(f"{name} turned", turned(at, bit), counter) for name, at, bit, counter in FIELDS] + [
    altered("cut", shortened(5, False), "rx_drop_malformed_ip"),
    altered("cut, with lengths that fit", shortened(5, True), "rx_drop_bad_length"),
    altered("cut to nothing", always(lambda frame: [frame[:14]]), "rx_drop_malformed_ip"),
    altered("payloads swapped", in_groups(2, swapped_payloads), "rx_drop_forged", group=2),
    altered("seals swapped", in_groups(2, swapped_seals), "rx_drop_forged", group=2),
    altered("from elsewhere", always(from_elsewhere), "rx_drop_unknown_flow"),
    altered("to another port", always(to_another_port), "rx_drop_unknown_flow"),
]  # fmt: skip

UNUSED = {"flag of a retransmission", "flag of a repair", "wanted credit", "offset", "offset, first bit", "object",
          "extents seen", "statuses heard"}  # fmt: skip

ALTERED_STATUSES = [
    Tampering(f"status: {name} turned", STATUS, turned(at, bit), "rx_drop_reserved_not_zero" if name in UNUSED else counter)
    for name, at, bit, counter in FIELDS
] + [
    Tampering("status: cut", STATUS, shortened(1, True), "rx_drop_bad_length"),
    Tampering("status: from elsewhere", STATUS, always(from_elsewhere), "rx_drop_unknown_flow"),
    Tampering("status: seals swapped", STATUS, in_groups(2, swapped_seals), "rx_drop_forged"),
]  # fmt: skip

# A sender that hears nothing probes.
PROBES = [
    Tampering("probe: number turned", PROBE, turned(39), "rx_drop_forged rx_drop_replayed", count=5, lost=(STATUS,)),
    Tampering("probe: seal turned", PROBE, turned(60), "rx_drop_forged", count=5, lost=(STATUS,)),
    Tampering("probe: says that more was sent", PROBE, turned(20), "rx_drop_forged", count=5, lost=(STATUS,)),
    Tampering("probe: each twice", PROBE, always(lambda frame: [frame, frame]), "rx_drop_replayed", count=5, lost=(STATUS,)),
    Tampering("every probe and every status lost", PROBE, only(lambda _: False), count=10, lost=(STATUS,)),
]  # fmt: skip

MOVED = [
    Tampering("data: each twice", DATA, always(lambda frame: [frame, frame]), "rx_drop_replayed"),
    Tampering("data: each a hundred times", DATA, always(lambda frame: [frame] * 100), "rx_drop_replayed", 1500),
    Tampering("data: each again later", DATA, again_later(16), "rx_drop_replayed", 64, 80),
    Tampering("data: also to another port", DATA, always(lambda frame: [frame, *to_another_port(frame)]), "rx_drop_unknown_flow"),
    Tampering("data: pairs swapped", DATA, in_groups(2, lambda frames: frames[::-1]), count=60),
    Tampering("data: groups of twelve turned around", DATA, in_groups(12, lambda frames: frames[::-1]), count=120),
    Tampering("data: late", DATA, late(10), count=100),
    Tampering("data: every seventh lost", DATA, only(lambda n: n % 7), count=140),
    Tampering("data: every second lost", DATA, only(lambda n: n % 2), count=100),
    Tampering("data: a row lost", DATA, only(lambda _: False), count=40),
    Tampering("status: each twice", STATUS, always(lambda frame: [frame, frame]), "rx_drop_replayed"),
    Tampering("status: each again later", STATUS, again_later(16), "rx_drop_replayed", 64, 80),
    Tampering("status: groups of eight turned around", STATUS, in_groups(8, lambda frames: frames[::-1]), count=160),
    Tampering("status: late", STATUS, late(30), count=200),
    Tampering("status: nine of ten lost", STATUS, only(lambda n: n % 10 == 0), count=300),
    Tampering("status: a row lost", STATUS, only(lambda _: False), count=60),
]  # fmt: skip


# The same of data under a CRC, whose numbers have no epochs. A chunk that is sent twice, one behind the other, may be
# among those that change places: that changes nothing.
UNDER_CRC = [dataclasses.replace(each, counters="rx_drop_crc", rises=each.count // each.group ** 2)
             for each in ALTERED_DATA if each.counters == "rx_drop_forged" or "far" in each.name]  # fmt: skip
