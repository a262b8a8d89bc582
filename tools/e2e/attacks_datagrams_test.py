# Attacks by datagrams that are made up, altered or repeated, while a transfer runs: each is counted under its name,
# and the file arrives identical. Over frames, and over the sockets of the kernel.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import os

import pytest
from attacks import AHEAD, FEW, A, Attack, B, Sluice, altered, below, besieged, named, over, with_datagram
from harness import MiddleWire, veth_missing
from harness.middle import DATA, PROBE, STATUS
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether
from transfers import forget, make_file, push

import peer

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

EPOCH = 1 << 23
LATER_PROBE = EPOCH // 2  # of the first epoch, and after any that the transfer sends, however long a busy machine takes
MANY = 1000  # of ten thousand at once: the ring before a node that has not its core may be too small for all


# The same code refuses a datagram under each protection and behind each port, but for its seal and for what the kernel
# drops. So each attack runs where it differs; with this, everywhere.
EVERY_WAY = "SLUICE_EVERY_WAY" in os.environ


def each_field(packet, field, *values):
    return [altered(packet, **{field: value}) for value in values]


def cut(packet, *sizes):
    datagram = bytes(packet[Sluice])
    return [with_datagram(packet, datagram[:size]) for size in sizes]


def swapped(packet):
    """Sent back to where it came from."""
    packet = packet.copy()
    packet.src, packet.dst = packet.dst, packet.src
    ip, udp = packet.payload, packet[UDP]
    ip.src, ip.dst = ip.dst, ip.src
    udp.sport, udp.dport = udp.dport, udp.sport
    return packet


def an_echo(siege):
    """Of the form of one, on a flow of files, which has none."""
    return altered(siege.data(), type=4, flags=0, object=0, offset=0, credit_wanted=0)


# Whatever a datagram is under, it is refused by its form, or by the flow that it names.
FORM = [
    Attack("no header at all", "rx_drop_too_short", lambda s: cut(s.data(), 0, 1)),
    Attack("cut at each field of the header", "rx_drop_too_short",
           lambda s: cut(s.data(), 4, 5, 8, 16, 24, 32, 40, 44, 48, 52, 56, 71)),
    Attack("another version", "rx_drop_bad_version", lambda s: each_field(s.data(), "version", 0, 1, 3, 255)),
    Attack("a type that is none", "rx_drop_bad_type", lambda s: each_field(s.data(), "type", 5, 6, 255)),
    Attack("flags that are none", "rx_drop_bad_type", lambda s: each_field(s.data(), "flags", 4, 8, 0x80, 255)),
    Attack("header length lies", "rx_drop_bad_header_length",
           lambda s: each_field(s.data(), "header_bytes", 0, 56, 71, 73, 255)),
    Attack("length is more than there is", "rx_drop_bad_length",
           lambda s: each_field(s.data(), "length", s.data()[Sluice].length + 1, 0xFFFF, (1 << 32) - 1)),
    Attack("length is less than there is", "rx_drop_bad_length",
           lambda s: each_field(s.data(), "length", 0, 1, s.data()[Sluice].length - 1)),
    Attack("payload is cut", "rx_drop_bad_length", lambda s: cut(s.data(), 72, 73, 1000)),
    Attack("bytes follow the payload", "rx_drop_bad_length", lambda s: [with_datagram(s.data(), bytes(s.data()[Sluice])[:1000] + bytes(400)),
                      altered(s.data(), os.urandom(500), length=499)]),
    Attack("a status has what only data have", "rx_drop_reserved_not_zero",
           lambda s: [altered(s.status(), **{field: 1}) for field in
                      ("flags", "object", "offset", "credit_wanted", "done_seen", "statuses_heard")], to=A),
    Attack("a probe has what only data have", "rx_drop_reserved_not_zero",
           lambda s: [altered(s.probe(), **{field: 1}) for field in ("flags", "object")]),
    Attack("an echo has what only data have", "rx_drop_reserved_not_zero",
           lambda s: [altered(an_echo(s), **{field: 1}) for field in ("object", "offset", "credit_wanted")]),
    Attack("an echo that nobody agreed upon", "rx_drop_echo", lambda s: [an_echo(s)]),
    Attack("a flow that nobody named", "rx_drop_unknown_flow",
           lambda s: each_field(s.data(), "flow_id", 0, 1, (1 << 64) - 1, 0xFFFF)),
    Attack("a flow that differs by one bit", "rx_drop_unknown_flow",
           lambda s: each_field(s.data(), "flow_id", *(s.data()[Sluice].flow_id ^ 1 << bit for bit in range(0, 64, 7)))),
    Attack("the flow of a session that ended", "rx_drop_unknown_flow", lambda s: [s.pair.of_ended_session]),
    Attack("the flow from another port", "rx_drop_unknown_flow",
           lambda s: [altered(below(s.data(), UDP, sport=port)) for port in (0, 1, 53, s.data()[UDP].sport ^ 1)]),
    Attack("the flow from another address", "rx_drop_unknown_flow",
           lambda s: [moved(s.data(), src=address) for address in ("10.77.0.9", "10.99.0.1", "192.0.2.1")]),
    Attack("the flow to another port", "rx_drop_unknown_flow",
           lambda s: [altered(below(s.data(), UDP, dport=port)) for port in (s.data()[UDP].dport ^ 1, 65535)]),
    Attack("to a port below those of lanes", "rx_drop_not_ours",
           lambda s: [altered(below(s.data(), UDP, dport=port)) for port in (0, 1, 53, 4789)]),
    Attack("data sent back to their source", "rx_drop_unknown_flow", lambda s: [swapped(s.data())], to=A),
    Attack("a status sent back to its source", "rx_drop_unknown_flow", lambda s: [swapped(s.status())]),
    Attack("data that say they were a status", "rx_drop_bad_status",
           lambda s: [altered(swapped(s.data()), type=1, flags=0, object=0, offset=0, credit_wanted=0, done_seen=0,
                              statuses_heard=0)], to=A),
    Attack("a status of another flow", "rx_drop_unknown_flow",
           lambda s: [altered(s.status(), flow_id=s.status()[Sluice].flow_id ^ 1 << 40)], to=A),
    Attack("ten thousand datagrams of flows that nobody named", "rx_drop_unknown_flow",
           lambda s: each_field(altered(s.data(), b"", length=0), "flow_id", *range(500)), copies=20, rises=MANY),
]  # fmt: skip


def moved(packet, **addresses):
    packet = packet.copy()
    for name, value in addresses.items():
        setattr(packet.payload, name, value)
    return altered(packet)


# Statuses and probes are enciphered in either mode: whoever has no key can repeat them, and nothing else.
SEALED = [
    Attack("a status again", "rx_drop_replayed", lambda s: [s.status()], to=A),
    Attack("a status of long ago", "rx_drop_replayed",
           lambda s: [s.wire.first(1, STATUS), s.wire.earlier(1, STATUS)], to=A),
    Attack("a status again under the next numbers", "rx_drop_forged",
           lambda s: [s.status(ahead=AHEAD + step) for step in range(5)], to=A),
    Attack("a status under a number without end", "rx_drop_bad_key_epoch",
           lambda s: each_field(s.status(), "tx_seq", 1 << 40, (1 << 64) - 1), to=A),
    Attack("a status of the next epoch", "rx_drop_forged",
           lambda s: [altered(s.status(), tx_seq=EPOCH + 5, key_epoch=1)], to=A),
    Attack("a status whose epoch is not that of its number", "rx_drop_bad_key_epoch",
           lambda s: [altered(s.status(ahead=AHEAD), key_epoch=epoch) for epoch in (1, 255)], to=A),
    Attack("a status with one bit turned", "rx_drop_forged", lambda s: list(turned_bits(s.status(ahead=AHEAD))), to=A),
    Attack("a status in the clear that grants all credit", "rx_drop_forged", lambda s: [clear_status(s, credit_extents=1 << 40)], to=A),
    Attack("a status in the clear that takes credit back", "rx_drop_forged", lambda s: [clear_status(s, credit_extents=0)], to=A),
    Attack("a status in the clear of what was never sent", "rx_drop_forged",
           lambda s: [clear_status(s, received_end=1 << 50, gaps=[(0, 1 << 49)])], to=A),
    Attack("a status in the clear that all has come", "rx_drop_forged",
           lambda s: [clear_status(s, done_end=500, done_back=500, runs=[(0, 0, 500)])], to=A),
    Attack("a status in the clear that asks for everything", "rx_drop_forged",
           lambda s: [clear_status(s, holes=[(0, extent, 100, [(0, 100)]) for extent in range(20)])], to=A),
    Attack("a status that is too long", "rx_drop_bad_status",
           lambda s: [altered(s.status(ahead=AHEAD), bytes(size), length=size) for size in (1025, 1400, 8192)], to=A),
    Attack("a status of nothing", "rx_drop_forged", lambda s: [altered(s.status(ahead=AHEAD), b"", length=0)], to=A),
    Attack("ten thousand forged statuses", "rx_drop_forged",
           lambda s: [s.status(ahead=AHEAD + step) for step in range(100)], to=A, copies=100, rises=MANY),
    Attack("a probe without a key", "rx_drop_forged", lambda s: [s.probe(LATER_PROBE), s.probe(0x7FFFFF)]),
    Attack("a probe that says that all was sent", "rx_drop_forged",
           lambda s: [altered(s.probe(LATER_PROBE), tx_seq=number) for number in (0, 1 << 40, (1 << 64) - 1)]),
    Attack("a probe of an epoch that nobody has", "rx_drop_bad_key_epoch",
           lambda s: [s.probe(5 * EPOCH), s.probe((1 << 64) - 1), altered(s.probe(LATER_PROBE), key_epoch=7)]),
    Attack("a padded probe without a key", "rx_drop_forged",
           lambda s: [altered(s.probe(LATER_PROBE), bytes(size), length=size) for size in (1, 1000, 8192)]),
]  # fmt: skip


def turned_bits(packet):
    """One bit in each field that is authenticated and that any flow may use, in the tag, and in the payload."""
    datagram = bytes(packet[Sluice])
    for at in (23, 24, 31, 56, 63, 71, 72, len(datagram) - 1):
        yield with_datagram(packet, datagram[:at] + bytes([datagram[at] ^ 1]) + datagram[at + 1 :])


def clear_status(siege, **says):
    payload = peer.wire.Status(**says).pack()
    return altered(siege.status(ahead=AHEAD), payload, length=len(payload))


def resized(siege, size):
    return altered(siege.data(AHEAD), os.urandom(size), length=size)


# Data under a cipher.
ENCIPHERED = [
    Attack("data again", "rx_drop_replayed", lambda s: [s.data()]),
    Attack("the first data again", "rx_drop_replayed", lambda s: [s.wire.first(0, DATA)]),
    Attack("other bytes under a number that came", "rx_drop_replayed",
           lambda s: [altered(s.data(), os.urandom(len(s.data()[Sluice].payload)))]),
    Attack("another place under a number that came", "rx_drop_replayed",
           lambda s: each_field(s.data(), "offset", 0, 1 << 63)),
    Attack("number zero with a place of its own", "rx_drop_replayed", lambda s: [altered(s.data(), tx_seq=0)]),
    Attack("data again under the next numbers", "rx_drop_forged", lambda s: [s.data(AHEAD + step) for step in range(5)]),
    Attack("data under a number far ahead", "rx_drop_forged", lambda s: [s.data(100_000), s.data(4_000_000)]),
    Attack("data of the next epoch", "rx_drop_forged", lambda s: [altered(s.data(), tx_seq=EPOCH, key_epoch=1)]),
    Attack("data of an epoch that nobody has", "rx_drop_bad_key_epoch",
           lambda s: [altered(s.data(), tx_seq=number, key_epoch=number >> 23 & 0xFF)
                      for number in (2 * EPOCH, 256 * EPOCH, 1 << 60)]),
    Attack("data under a number that is none", "rx_drop_old_tx_seq",
           lambda s: [altered(s.data(), tx_seq=(1 << 64) - 1, key_epoch=255)]),
    Attack("data whose epoch is not that of their number", "rx_drop_bad_key_epoch",
           lambda s: each_field(s.data(AHEAD), "key_epoch", 1, 2, 255)),
    Attack("data with one bit turned", "rx_drop_forged", lambda s: list(turned_bits(s.data(AHEAD)))),
    Attack("data at another place", "rx_drop_forged", lambda s: each_field(s.data(AHEAD), "offset", 0, 1, 1 << 20, (1 << 64) - 1)),
    Attack("data of another file", "rx_drop_forged", lambda s: each_field(s.data(AHEAD), "object", 1, (1 << 32) - 1)),
    Attack("data that say they were a repair", "rx_drop_forged", lambda s: each_field(s.data(AHEAD), "flags", 1, 2, 3)),
    Attack("data with a false echo", "rx_drop_forged",
           lambda s: each_field(s.data(AHEAD), "done_seen", 0, (1 << 32) - 1)
           + each_field(s.data(AHEAD), "statuses_heard", 0, (1 << 32) - 1)),
    Attack("data that want all credit", "rx_drop_forged", lambda s: each_field(s.data(AHEAD), "credit_wanted", 0, (1 << 24) - 1)),
    Attack("data from another time", "rx_drop_forged", lambda s: each_field(s.data(AHEAD), "send_time", 0, (1 << 64) - 1)),
    Attack("chunks of sizes that were not agreed", "rx_drop_forged", lambda s: [resized(s, size) for size in (0, 1, 100, 8900)]),
    Attack("the seal of another chunk", "rx_drop_forged",
           lambda s: [altered(s.data(AHEAD), seal=Sluice(s.wire.first(0, DATA)[42:]).seal)]),
    Attack("no seal", "rx_drop_forged", lambda s: each_field(s.data(AHEAD), "seal", bytes(16), b"\xff" * 16)),
    Attack("data under a CRC alone", "rx_drop_forged", lambda s: [under_crc(s.data(AHEAD))]),
]  # fmt: skip


def under_crc(packet, **fields):
    """As anybody can make them."""
    packet = altered(packet, **fields)
    datagram = bytes(packet[Sluice])
    crc = peer.wire.CRC64
    value = crc.of(datagram[:56], crc.of(datagram[72:]))
    return altered(packet, seal=value.to_bytes(8, "big") + bytes(8))


def forged_chunk(siege, size=None, **fields):
    packet = siege.data(AHEAD) if size is None else resized(siege, size)
    return under_crc(packet, **fields)


# Data under a CRC alone, which are right in form: they must not hold the flow up.
UNDER_CRC = [
    Attack("a wrong byte", "rx_drop_crc", lambda s: list(turned_bits(s.data(AHEAD)))),
    Attack("a CRC of zeros", "rx_drop_crc", lambda s: each_field(s.data(AHEAD), "seal", bytes(16), b"\xff" * 16)),
    Attack("data again", "rx_chunks", lambda s: [s.data()]),
    Attack("the first data again", "rx_chunks", lambda s: [s.wire.first(0, DATA)]),
    Attack("a number far ahead", "rx_drop_far_tx_seq", lambda s: [forged_chunk(s, tx_seq=1 << 40)], copies=1),
    Attack("a number without end", "rx_drop_far_tx_seq", lambda s: [forged_chunk(s, tx_seq=(1 << 64) - 1)], copies=1),
    Attack("a number of which an epoch is said", "rx_drop_bad_key_epoch",
           lambda s: [forged_chunk(s, key_epoch=1)]),
    Attack("a place beyond the file", "rx_drop_out_of_range",
           lambda s: [under_crc(s.data(), offset=offset) for offset in (1 << 40, 1 << 63, (1 << 64) - 8192)]),
    Attack("a place that is none of a chunk", "rx_drop_out_of_range", lambda s: [under_crc(s.data(), offset=1)]),
    Attack("a chunk that is too short", "rx_drop_out_of_range", lambda s: [under_crc(resized_now(s, size)) for size in (0, 1, 256)]),
    Attack("a chunk that is too long", "rx_drop_out_of_range", lambda s: [under_crc(resized_now(s, 8900))]),
    Attack("a file that is not open", "rx_drop_unknown_object",
           lambda s: [under_crc(s.data(), object=number) for number in (1, 255, (1 << 32) - 1)]),
    Attack("echo of extents that never were", "rx_false_done_seen", lambda s: [under_crc(s.data(), done_seen=1 << 31)]),
]  # fmt: skip


def resized_now(siege, size):
    return altered(siege.data(), os.urandom(size), length=size)


def ended_before(pair):
    """A pair, and a datagram of a session of theirs that has ended."""
    source = make_file(pair.a, 1 << 20)
    forget(source, push(pair, source))
    pair.of_ended_session = Ether(pair.wire.last(0, DATA))
    return pair


# Of these a node on sockets hears nothing: its kernel has no socket for them.
KERNELS = {"the flow from another port", "the flow from another address", "the flow to another port",
           "to a port below those of lanes"}  # fmt: skip


def over_sockets(attacks):
    return [dataclasses.replace(each, counters="socket_errors", rises=0) if each.name in KERNELS else each
            for each in attacks]  # fmt: skip


@pytest.fixture(scope="module")
def siege(make_pair, request):
    protection, *sockets = request.param.split()
    wire = MiddleWire(sockets=(A, B) if sockets else ())
    settings = {"transfer": {"protection": protection}}
    with besieged(ended_before(make_pair(wire=wire, bytes_needed=1 << 30, settings=settings)), **FEW) as one:
        yield one


@pytest.mark.parametrize(**named(FORM + SEALED + ENCIPHERED))
@over("aes-128-gcm")
def test_under_a_cipher(siege, attack):
    siege.strike(attack)


@pytest.mark.parametrize(**named((FORM if EVERY_WAY else []) + SEALED + UNDER_CRC))
@over("crc")
def test_under_a_crc(siege, attack):
    siege.strike(attack)


@pytest.mark.parametrize(**named(over_sockets(FORM + (SEALED + ENCIPHERED if EVERY_WAY else []))))
@over("aes-128-gcm sockets")
def test_over_sockets_under_a_cipher(siege, attack):
    siege.strike(attack)


@pytest.mark.skipif(not EVERY_WAY, reason="SLUICE_EVERY_WAY is not set")
@pytest.mark.parametrize(**named(UNDER_CRC))
@over("crc sockets")
def test_over_sockets_under_a_crc(siege, attack):
    siege.strike(attack)


@pytest.mark.parametrize("counter", ["rx_drop_replayed", "rx_drop_bad_version"])
@over("crc")
def test_what_is_counted_under_another_name_is_noticed(siege, counter):
    with pytest.raises(AssertionError, match="rx_drop_bad_type"):
        siege.strike(Attack("", counter, lambda s: each_field(s.data(), "type", 9) + each_field(s.data(), "version", 1)))
