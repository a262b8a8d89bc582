# Attacks by ARP, neighbour discovery and ICMP, and floods, while a transfer runs: nobody is led away from his peer,
# nobody's path or memory changes.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import pathlib
import re
import struct

import pytest
from attacks import FEW, A, Attack, below, besieged, named, over
from harness import MiddleWire, veth_missing, wait_until
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6ND_RA,
    ICMPv6ND_Redirect,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptPrefixInfo,
    ICMPv6NDOptSrcLLAddr,
    ICMPv6PacketTooBig,
    ICMPv6ParamProblem,
    ICMPv6TimeExceeded,
    IPv6,
    in6_chksum,
)
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

STRANGER = "02:de:ad:be:ef:01"
EVERYBODY, NOBODY = "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00"
OURS, PEERS = "10.77.0.1", "10.77.0.2"  # node a is attacked: it has the flow's next hop in its table
OURS6, PEERS6 = "fd77::1", "fd77::2"
ALL_NODES, ALL_NODES_LINK = "ff02::1", "33:33:00:00:00:01"
CONTESTED = "rx_control_frames neighbour_contested"


def link_of(siege):
    """Of node a, as its frames show it."""
    return siege.data().src


def arp(siege, to=None, link=STRANGER, **fields):
    to = to or link_of(siege)
    return Ether(src=link, dst=to) / ARP(**{"hwsrc": link, "op": 2, "hwdst": to, **fields}) / Raw(bytes(18))


def ask(siege, source, link=STRANGER, **fields):
    return arp(siege, EVERYBODY, link, op=1, psrc=source, hwdst=NOBODY, pdst=OURS, **fields)


def nd(siege, message, source=PEERS6, target=OURS6, to=None, hop_limit=255):
    return Ether(src=STRANGER, dst=to or link_of(siege)) / IPv6(src=source, dst=target, hlim=hop_limit, nh=58) / message


def advertised(siege, target=PEERS6, option=True, hop_limit=255, **flags):
    message = ICMPv6ND_NA(tgt=target, **{"R": 0, "S": 1, "O": 1, **flags})
    return nd(siege, message / ICMPv6NDOptDstLLAddr(lladdr=STRANGER) if option else message, hop_limit=hop_limit)


def solicited(siege, source=PEERS6, **options):
    return nd(siege, ICMPv6ND_NS(tgt=OURS6) / ICMPv6NDOptSrcLLAddr(lladdr=STRANGER), source, **options)


def cut_advertisement(siege, size):
    """Its checksum is right."""
    message = bytes(ICMPv6ND_NA(tgt=PEERS6, S=1, cksum=0))[:size]
    around = nd(siege, Raw())
    sum_of_it = in6_chksum(58, around[IPv6], message).to_bytes(2, "big")
    return nd(siege, Raw(message[:2] + sum_of_it + message[4:]))


ARP_ATTACKS = [
    Attack("ARP: the peer's address, as an answer", CONTESTED, lambda s: [arp(s, psrc=PEERS, pdst=OURS)], to=A),
    Attack("ARP: the peer's address, as a question", CONTESTED, lambda s: [ask(s, PEERS)], to=A),
    Attack("ARP: the peer's address, announced to all", CONTESTED,
           lambda s: [arp(s, EVERYBODY, op=operation, psrc=PEERS, pdst=PEERS) for operation in (1, 2)], to=A),
    Attack("ARP: our own address", "rx_control_frames",
           lambda s: [arp(s, psrc=OURS, pdst=OURS), ask(s, OURS), arp(s, psrc=OURS, pdst=PEERS)], to=A),
    Attack("ARP: our own link address, of another host", "rx_control_frames neighbour_own_link",
           lambda s: [arp(s, link=link_of(s), psrc=PEERS, pdst=OURS)], to=A),
    Attack("ARP: a group as the peer's link address", "rx_control_frames",
           lambda s: [arp(s, link=link, psrc=PEERS, pdst=OURS) for link in (EVERYBODY, "01:00:5e:00:00:01", NOBODY)], to=A),
    Attack("ARP: not from who says it", "rx_control_frames", lambda s: [arp(s, psrc=PEERS, pdst=OURS, hwsrc="02:00:00:00:00:01")], to=A),
    Attack("ARP of other lengths, hardware, protocols and operations", "rx_control_frames",
           lambda s: [arp(s, psrc=PEERS, pdst=OURS, **{field: value}) for field, value in
                      (("hwlen", 0), ("hwlen", 255), ("plen", 0), ("plen", 16), ("hwtype", 6), ("ptype", 0x86DD),
                       ("op", 0), ("op", 3), ("op", 65535))], to=A),
    Attack("ARP that is cut", "rx_control_frames", lambda s: [bytes(arp(s, psrc=PEERS, pdst=OURS))[:size] for size in (14, 22, 41)], to=A),
    Attack("ARP of hosts that no hop can be", "rx_control_frames",
           lambda s: [ask(s, source) for source in ("0.0.0.0", "8.8.8.8", "224.0.0.1", "255.255.255.255", "127.0.0.1")], to=A),
    Attack("a storm of ARP questions", "rx_control_frames", lambda s: [ask(s, "10.77.0.77", link="02:00:00:00:01:4d")], to=A, copies=1000),
    Attack("ARP of every host of the network", "rx_control_frames",
           lambda s: [ask(s, f"10.77.0.{host}", f"02:00:00:00:01:{host:02x}") for host in range(3, 255)], to=A, copies=4),
]  # fmt: skip


def icmp(siege, message, quoted=None):
    """As a router on the path would send it."""
    packet = Ether(src=STRANGER, dst=link_of(siege)) / IP(src="10.77.0.254", dst=OURS) / message
    return packet / Raw(bytes(quoted)) if quoted is not None else packet


def of_flow(siege):
    return bytes(siege.data()[IP])[:28]


def made_up():
    return bytes(IP(src=OURS, dst="10.77.0.99") / UDP(sport=1, dport=2))


ICMP_ATTACKS = [
    Attack("ICMP: unreachable, quoting the flow", "rx_drop_not_ours",
           lambda s: [icmp(s, ICMP(type=3, code=code), of_flow(s)) for code in (0, 1, 2, 3, 9, 13)], to=A),
    Attack("ICMP: fragmentation needed, of any size", "rx_drop_not_ours",
           lambda s: [icmp(s, ICMP(type=3, code=4, nexthopmtu=mtu), of_flow(s)) for mtu in (0, 68, 576, 1280, 65535)], to=A),
    Attack("ICMP: of a flow that nobody has", "rx_drop_not_ours",
           lambda s: [icmp(s, ICMP(type=3, code=code, nexthopmtu=68), made_up()) for code in (3, 4)], to=A),
    Attack("ICMP: quoting nothing", "rx_drop_not_ours", lambda s: [icmp(s, ICMP(type=3, code=3)), icmp(s, ICMP(type=3, code=4))], to=A),
    Attack("ICMP: redirect", "rx_drop_not_ours",
           lambda s: [icmp(s, ICMP(type=5, code=code, gw="10.77.0.66"), of_flow(s)) for code in (0, 1, 2, 3)], to=A),
    Attack("ICMP: quench, time exceeded, parameter problem", "rx_drop_not_ours",
           lambda s: [icmp(s, ICMP(type=kind), of_flow(s)) for kind in (4, 11, 12)], to=A),
    Attack("ICMP: answers that nobody asked for", "rx_drop_not_ours",
           lambda s: [icmp(s, ICMP(type=kind)) for kind in (0, 9, 10, 14, 16, 18, 40, 255)], to=A),
    Attack("a flood of echo requests", "rx_control_frames", lambda s: [icmp(s, ICMP(), bytes(56))], to=A, copies=2000),
    Attack("echo requests as long as the wire takes", "rx_control_frames", lambda s: [icmp(s, ICMP(), bytes(8972))], to=A, copies=50),
    Attack("echo requests that lie of their length", "rx_drop_not_ours rx_drop_malformed_ip",
           lambda s: [below(icmp(s, ICMP(), bytes(56)), IP, len=size) for size in (0, 20, 27, 1500)]
           + [with_length(icmp(s, ICMP(), bytes(56)), size) for size in (20, 27, 1500)], to=A),
    Attack("echo requests from nobody and everybody", "rx_control_frames",
           lambda s: [echo_from(s, source) for source in ("0.0.0.0", "255.255.255.255", "224.0.0.1", OURS, "127.0.0.1")], to=A),
    Attack("echo requests with a wrong checksum", "rx_control_frames", lambda s: [icmp(s, ICMP(chksum=1), bytes(56))], to=A),
    Attack("IGMP, and an echo request to all", "rx_drop_not_ours",
           lambda s: [Ether(src=STRANGER, dst="01:00:5e:00:00:01") / IP(src=PEERS, dst="224.0.0.1", proto=2) / Raw(b"\x11\0\xee\xff" + bytes(4)),
                      Ether(src=STRANGER, dst=EVERYBODY) / IP(src=PEERS, dst="10.77.0.255") / ICMP()], to=A),
]  # fmt: skip


def with_length(packet, size):
    packet = below(packet, IP, len=size)
    packet[IP].delfieldval("chksum")
    return packet


def echo_from(siege, source):
    packet = icmp(siege, ICMP(), bytes(56))
    packet[IP].src = source
    return packet


ND_ATTACKS = [
    Attack("ND: the peer's address, as an answer", CONTESTED, lambda s: [advertised(s)], to=A),
    Attack("ND: the peer's address, announced to all", CONTESTED,
           lambda s: [nd(s, ICMPv6ND_NA(tgt=PEERS6, R=0, S=0, O=override) / ICMPv6NDOptDstLLAddr(lladdr=STRANGER),
                         target=ALL_NODES, to=ALL_NODES_LINK) for override in (0, 1)], to=A),
    Attack("ND: the peer's address, as a question", CONTESTED, lambda s: [solicited(s)], to=A),
    Attack("ND: the peer's address, without an option", CONTESTED, lambda s: [advertised(s, option=False)], to=A),
    Attack("ND from afar", "rx_control_frames",
           lambda s: [advertised(s, hop_limit=limit) for limit in (0, 1, 64, 254)] + [solicited(s, hop_limit=254)], to=A),
    Attack("ND: our own address", "rx_control_frames", lambda s: [advertised(s, target=OURS6), solicited(s, source=OURS6)], to=A),
    Attack("ND: options that never end", "rx_control_frames",
           lambda s: [nd(s, ICMPv6ND_NA(tgt=PEERS6, S=1) / Raw(option)) for option in
                      (b"\x02\x00" + bytes(6), b"\x0e\x00" * 40, b"\x02\xff" + bytes(6), b"\x02", b"\x0e\x01" + bytes(6))], to=A),
    Attack("ND that is cut", "rx_control_frames",
           lambda s: [cut_advertisement(s, size) for size in (8, 16, 23)], to=A),
    Attack("ND: a group as the peer's link address", "rx_control_frames",
           lambda s: [nd(s, ICMPv6ND_NA(tgt=PEERS6, R=0, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=link))
                      for link in (EVERYBODY, ALL_NODES_LINK, NOBODY)], to=A),
    Attack("ND with a wrong checksum or code", "rx_control_frames",
           lambda s: [below(advertised(s), ICMPv6ND_NA, cksum=7), nd(s, ICMPv6ND_NA(tgt=PEERS6, S=1, code=1))], to=A),
    Attack("router advertisements and redirects", "rx_drop_not_ours",
           lambda s: [nd(s, ICMPv6ND_RA() / ICMPv6NDOptPrefixInfo(prefix="fd99::") / ICMPv6NDOptSrcLLAddr(lladdr=STRANGER), "fe80::66", ALL_NODES),
                      nd(s, ICMPv6ND_Redirect(tgt="fe80::66", dst=PEERS6) / ICMPv6NDOptDstLLAddr(lladdr=STRANGER), "fe80::66")], to=A),
    Attack("ICMPv6: errors that quote the flow", "rx_drop_not_ours",
           lambda s: [nd(s, message / Raw(bytes(s.data()[IPv6])[:48]), "fd77::254") for message in
                      (ICMPv6DestUnreach(code=0), ICMPv6DestUnreach(code=4), ICMPv6TimeExceeded(), ICMPv6ParamProblem(),
                       *[ICMPv6PacketTooBig(mtu=mtu) for mtu in (0, 68, 1280, 65535, (1 << 32) - 1)])], to=A),
    Attack("ICMPv6: a flood of echo requests", "rx_control_frames",
           lambda s: [nd(s, ICMPv6EchoRequest(data=bytes(56)))], to=A, copies=2000),
    Attack("ICMPv6: echo answers, and requests to all", "rx_drop_not_ours",
           lambda s: [nd(s, ICMPv6EchoReply()), nd(s, ICMPv6EchoRequest(), target=ALL_NODES, to=ALL_NODES_LINK)], to=A),
]  # fmt: skip


# Nodes on ordinary sockets, whose kernel believes some of it.
SOCKETS = [dataclasses.replace(each, counters="socket_errors", rises=0) for each in ICMP_ATTACKS]


@pytest.fixture(scope="module")
def siege(make_pair, request):
    family, *sockets = request.param.split()
    with besieged(make_pair(wire=MiddleWire(sockets=(0, 1) if sockets else ()), bytes_needed=1 << 30), family, **FEW) as one:
        yield one


@pytest.mark.parametrize(**named(SOCKETS))
@over("-4 sockets")
def test_over_sockets(siege, attack):
    siege.strike(attack)


@pytest.mark.parametrize(**named(ARP_ATTACKS + ICMP_ATTACKS))
@over("-4")
def test_over_ipv4(siege, attack):
    siege.strike(attack)


@pytest.mark.parametrize(**named(ND_ATTACKS))
@over("-6")
def test_over_ipv6(siege, attack):
    siege.strike(attack)


def neighbours(siege):
    """65,536 questions of hosts of our own network. Two words of their addresses sum up to the same, so one
    checksum is right for all."""
    frame = bytes(nd(siege, ICMPv6ND_NS(tgt=OURS6) / ICMPv6NDOptSrcLLAddr(lladdr=STRANGER), "fd77::ffff", OURS6))
    for number in range(1 << 16):
        yield frame[:34] + struct.pack("!HH", number, 0xFFFF - number) + frame[38:]


def resident_kib(daemon):
    status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])


@over("-6")
def test_more_neighbours_than_a_table_holds(siege):
    """It is bounded, and the neighbour that is in use keeps its place."""
    node = siege.pair.a
    memory_kib = resident_kib(node.dataplane)
    # The ring before the node may be too small for all; while it reads them, the other node may wait for its answer.
    with siege.counted(A, ["rx_control_frames"], 1 << 12, elsewhere=("neighbour_lost",)):
        for frame in neighbours(siege):
            siege.wire.inject(A, frame)
    assert resident_kib(node.dataplane) - memory_kib < 4096
    before = siege.bytes_done()
    wait_until(lambda: siege.bytes_done() > before, 10, "the transfer goes on")
    assert node.counters()["neighbour_lost"] == 0
