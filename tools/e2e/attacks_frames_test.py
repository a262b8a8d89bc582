# Attacks below the datagram: Ethernet, IPv4, IPv6, UDP and fragments that no honest node sends, while a transfer
# runs.
# SPDX-License-Identifier: Apache-2.0
import pytest
from attacks import AHEAD, FEW, Attack, altered, below, besieged, named, over, righted
from harness import MiddleWire, veth_missing
from scapy.layers.inet import IP, TCP, UDP, IPOption, fragment
from scapy.layers.inet6 import (
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    Jumbo,
)
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

EVERYBODY = "ff:ff:ff:ff:ff:ff"


def data(siege):
    """Right but for its seal: what lets it through shows there."""
    return siege.data(AHEAD)


def each(packet, layer, **values):
    """One frame for each value of one field, as it stands; nothing around it is made right."""
    ((field, values),) = values.items()
    return [below(packet, layer, **{field: value}) for value in values]


def summed(packet):
    """The header checksum of IPv4 is made right, and nothing else."""
    packet = packet.copy()
    packet[IP].delfieldval("chksum")
    return packet


def each_summed(packet, **values):
    return [summed(frame) for frame in each(packet, IP, **values)]


def carried(packet, *between, **fields):
    """The UDP datagram behind other headers; lengths and checksums around them are right."""
    udp = Raw(bytes(Ether(bytes(packet))[UDP]))
    ip = packet[IP] if IP in packet else packet[IPv6]
    front = Ether(src=packet.src, dst=packet.dst) / type(ip)(src=ip.src, dst=ip.dst, **fields)
    for layer in between:
        front = front / layer
    return front / udp


def pieces(packet, size, **fields):
    """Fragments of IPv4, as they would be if DF were not set."""
    return fragment(carried(packet, proto=17, id=4242, **fields), fragsize=size)


def overlapping(packet):
    first, second, *rest = pieces(packet, 1400)
    again = second.copy()
    again[IP].frag -= 8
    return [first, again, second, *rest]


def in_ethernet(packet, ethertype):
    return [Ether(src=packet.src, dst=packet.dst, type=ethertype) / Raw(bytes(packet.payload))]


ETHERNET = [
    Attack("to another link address", "rx_drop_forged", lambda s: each(data(s), Ether, dst=["02:00:00:00:00:99"])),
    Attack("to everybody", "rx_drop_forged", lambda s: each(data(s), Ether, dst=[EVERYBODY])),
    Attack("to a group", "rx_drop_forged",
           lambda s: each(data(s), Ether, dst=["01:00:5e:00:00:01", "33:33:00:00:00:01", "01:80:c2:00:00:0e"])),
    Attack("from a group", "rx_drop_forged", lambda s: each(data(s), Ether, src=[EVERYBODY, "00:00:00:00:00:00"])),
    Attack("with a VLAN tag", "rx_drop_not_ours", lambda s: tagged(data(s), 0x8100, 1)),
    Attack("with two VLAN tags", "rx_drop_not_ours", lambda s: tagged(data(s), 0x88A8, 2)),
    Attack("of an ethertype that nobody knows", "rx_drop_not_ours",
           lambda s: [frame for kind in (0, 0x05DC, 0x0801, 0x88B5, 0x88CC, 0xFFFF) for frame in in_ethernet(data(s), kind)]),
    Attack("nothing but an Ethernet header", "rx_drop_malformed_ip",
           lambda s: [bytes(data(s))[:14] + bytes(size) for size in (0, 1, 19)]),
]  # fmt: skip


def tagged(packet, ethertype, count):
    inner = Raw(bytes(packet.payload))
    kind = packet.type
    for number in range(count):
        inner = Dot1Q(vlan=7 + number, type=kind) / inner
        kind = 0x8100
    return [Ether(src=packet.src, dst=packet.dst, type=ethertype) / inner]


UDP_ALIKE = [
    Attack("UDP without a checksum", "rx_drop_forged", lambda s: each(data(s), UDP, chksum=[0])),
    Attack("UDP with a wrong checksum", "rx_drop_udp_checksum",
           lambda s: each(data(s), UDP, chksum=[1, 0xFFFE, int(below(data(s), UDP).chksum) ^ 0x100])),
    Attack("UDP length is more than there is", "rx_drop_malformed_ip", lambda s: each(data(s), UDP, len=[0xFFFF, data_len(s) + 1])),
    Attack("UDP length is less than there is", "rx_drop_malformed_ip",
           lambda s: each(data(s), UDP, len=[0, 7, 8, 80, data_len(s) - 1])),
]  # fmt: skip


def data_len(siege):
    return below(data(siege), UDP)[UDP].len


IPV4 = [
    Attack("IPv4 with a wrong checksum", "rx_drop_malformed_ip",
           lambda s: each(data(s), IP, chksum=[0, 1, 0xFFFF, below(data(s), IP)[IP].chksum ^ 1])),
    Attack("IPv4 of another version", "rx_drop_malformed_ip", lambda s: each_summed(data(s), version=[0, 5, 6, 15])),
    Attack("IPv4 header length lies", "rx_drop_malformed_ip",
           lambda s: [with_bytes(data(s), 14, bytes([0x40 | words])) for words in (0, 1, 4, 6, 15)]),
    Attack("IPv4 with options", "rx_drop_malformed_ip",
           lambda s: [carried(data(s), proto=17, flags="DF", options=[IPOption(option)])
                      for option in (b"\x01", b"\x07\x07\x04\x00\x00\x00\x00", b"\x83\x07\x04\x0a\x4d\x00\x09")]),
    Attack("IPv4 total length is more than there is", "rx_drop_malformed_ip",
           lambda s: each_summed(data(s), len=[0xFFFF, below(data(s), IP)[IP].len + 1])),
    Attack("IPv4 total length is less than its header", "rx_drop_malformed_ip", lambda s: each_summed(data(s), len=[0, 1, 19])),
    Attack("IPv4 total length is less than UDP's", "rx_drop_malformed_ip", lambda s: each_summed(data(s), len=[20, 27, 28, 500])),
    Attack("TTL of nothing", "rx_drop_forged", lambda s: each_summed(data(s), ttl=[0, 1])),
    Attack("IPv4 with marks of others", "rx_drop_forged", lambda s: each_summed(data(s), tos=[1, 3, 0xB8, 255])),
    Attack("IPv4 without DF", "rx_drop_fragment", lambda s: each_summed(data(s), flags=[0])),
    Attack("IPv4 with the reserved flag", "rx_drop_fragment", lambda s: each_summed(data(s), flags=["DF+evil", "evil"])),
    Attack("another protocol over IPv4", "rx_drop_not_ours",
           lambda s: each_summed(data(s), proto=[0, 2, 4, 41, 47, 50, 51, 132, 136, 253, 255])),
    Attack("TCP for the ports of a lane", "rx_drop_not_ours",
           lambda s: [Ether(src=data(s).src, dst=data(s).dst) / IP(src=data(s)[IP].src, dst=data(s)[IP].dst)
                      / TCP(sport=data(s)[UDP].sport, dport=data(s)[UDP].dport, flags=flags) for flags in ("S", "R", "FA")]),
    Attack("from its own address", "rx_drop_unknown_flow", lambda s: [moved(data(s), IP, src="10.77.0.2")]),
    Attack("from loopback, nobody, everybody and a group", "rx_drop_unknown_flow",
           lambda s: [moved(data(s), IP, src=source) for source in
                      ("127.0.0.1", "0.0.0.0", "255.255.255.255", "10.77.0.255", "224.0.0.1", "240.0.0.1")]),
    Attack("to another host, everybody and a group", "rx_drop_not_ours",
           lambda s: [moved(data(s), IP, dst=target) for target in
                      ("10.77.0.9", "10.77.0.1", "255.255.255.255", "10.77.0.255", "224.0.0.1", "127.0.0.1")]),
    Attack("the flow of IPv4 in IPv6", "rx_drop_malformed_ip", lambda s: [in_ipv6(data(s))]),
    Attack("a datagram in fragments", "rx_drop_fragment", lambda s: pieces(data(s), 2048), rises=1, copies=1),
    Attack("fragments that overlap", "rx_drop_fragment", lambda s: overlapping(data(s)), rises=0),
    Attack("the first fragment alone", "rx_drop_fragment", lambda s: pieces(data(s), 1400)[:1], rises=0),
    Attack("fragments without the first", "rx_drop_fragment", lambda s: pieces(data(s), 1400)[1:], rises=0),
    Attack("ten thousand fragments of datagrams that never come", "rx_drop_fragment",
           lambda s: numbered(pieces(data(s), 1400)[1], 2000), copies=5, rises=0),
    Attack("a fragment of eight bytes", "rx_drop_fragment", lambda s: pieces(data(s), 8)[:1], rises=0),
    Attack("a fragment beyond the longest packet", "rx_drop_fragment",
           lambda s: [summed(below(piece, IP, frag=0x1FFF)) for piece in pieces(data(s), 1400)[1:2]], rises=0),
]  # fmt: skip


def in_ipv6(packet):
    """With the addresses of IPv4 as IPv6 maps them, which travel on no wire."""
    addresses = {"src": "::ffff:" + packet[IP].src, "dst": "::ffff:" + packet[IP].dst}
    return Ether(src=packet.src, dst=packet.dst) / IPv6(**addresses) / righted(packet.copy())[UDP]


def numbered(packet, count):
    """The same fragment of so many packets."""
    return [with_bytes(packet, 18, number.to_bytes(2, "big")) for number in range(count)]


def with_bytes(packet, at, value):
    """And a header checksum that is right for twenty bytes. Faster than scapy's."""
    frame = bytearray(bytes(packet))
    frame[at : at + len(value)] = value
    frame[24:26] = b"\0\0"
    words = sum(int.from_bytes(frame[at : at + 2], "big") for at in range(14, 34, 2))
    while words >> 16:
        words = (words & 0xFFFF) + (words >> 16)
    frame[24:26] = (~words & 0xFFFF).to_bytes(2, "big")
    return bytes(frame)


def moved(packet, layer, **addresses):
    packet = packet.copy()
    for name, value in addresses.items():
        setattr(packet[layer], name, value)
    return altered(packet)


IPV6 = [
    Attack("IPv6 of another version", "rx_drop_malformed_ip", lambda s: each(data(s), IPv6, version=[0, 4, 5, 15])),
    Attack("IPv6 payload length is more than there is", "rx_drop_malformed_ip",
           lambda s: each(data(s), IPv6, plen=[0xFFFF, below(data(s), IPv6)[IPv6].plen + 1])),
    Attack("IPv6 payload length is less than there is", "rx_drop_malformed_ip",
           lambda s: each(data(s), IPv6, plen=[0, 1, 7, 8, 500])),
    Attack("IPv6 hop limit of nothing", "rx_drop_forged", lambda s: each(data(s), IPv6, hlim=[0, 1, 255])),
    Attack("IPv6 with another flow label and class", "rx_drop_forged", lambda s: each(data(s), IPv6, fl=[1, 0xFFFFF]) + each(data(s), IPv6, tc=[3, 255])),
    Attack("behind hop-by-hop options", "rx_drop_not_ours", lambda s: [carried(data(s), IPv6ExtHdrHopByHop(nh=17))]),
    Attack("behind destination options", "rx_drop_not_ours", lambda s: [carried(data(s), IPv6ExtHdrDestOpt(nh=17))]),
    Attack("behind a routing header", "rx_drop_not_ours",
           lambda s: [carried(data(s), IPv6ExtHdrRouting(nh=17, addresses=["fd77::9"], segleft=left)) for left in (0, 1)]),
    Attack("behind a fragment header, whole", "rx_drop_not_ours", lambda s: [carried(data(s), IPv6ExtHdrFragment(nh=17, id=7))]),
    Attack("fragments of IPv6", "rx_drop_not_ours",
           lambda s: [carried(data(s), IPv6ExtHdrFragment(nh=17, id=7, m=more, offset=at)) for more, at in ((1, 0), (1, 100), (0, 8191))]),
    Attack("many headers one behind the other", "rx_drop_not_ours",
           lambda s: [carried(data(s), *[IPv6ExtHdrDestOpt(nh=60) for _ in range(20)], IPv6ExtHdrDestOpt(nh=17))]),
    Attack("a jumbogram", "rx_drop_not_ours",
           lambda s: [below(carried(data(s), IPv6ExtHdrHopByHop(nh=17, options=[Jumbo(jumboplen=100_000)])), IPv6, plen=0)]),
    Attack("another protocol over IPv6", "rx_drop_not_ours",
           lambda s: each(data(s), IPv6, nh=[1, 4, 6, 41, 50, 59, 132, 135, 136, 253, 255])),
    Attack("IPv6 from its own address", "rx_drop_unknown_flow", lambda s: [moved(data(s), IPv6, src="fd77::2")]),
    Attack("IPv6 from loopback, nobody and a group", "rx_drop_unknown_flow",
           lambda s: [moved(data(s), IPv6, src=source) for source in ("::1", "::", "ff02::1", "fe80::1")]),
    Attack("IPv6 from an address of IPv4", "rx_drop_malformed_ip", lambda s: [moved(data(s), IPv6, src="::ffff:10.77.0.1")]),
    Attack("IPv6 to another host and a group", "rx_drop_not_ours",
           lambda s: [moved(data(s), IPv6, dst=target) for target in ("fd77::9", "fd77::1", "ff02::1", "ff02::1:ff00:2", "::1")]),
]  # fmt: skip


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(wire=MiddleWire(), bytes_needed=1 << 30)


@pytest.fixture(scope="module")
def siege(pair, request):
    with besieged(pair, request.param, **FEW) as one:
        yield one


@pytest.mark.parametrize(**named(ETHERNET + UDP_ALIKE + IPV4))
@over("-4")
def test_over_ipv4(siege, attack):
    siege.strike(attack)


@pytest.mark.parametrize(**named(ETHERNET + UDP_ALIKE + IPV6))
@over("-6")
def test_over_ipv6(siege, attack):
    siege.strike(attack)
