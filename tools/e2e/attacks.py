# Attacks on two nodes and a transfer that is under way: how they are made (scapy) and what they must come to. Whoever
# attacks knows what the wire shows (harness.MiddleWire), and nothing of the nodes.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import dataclasses
import typing

import pytest
from harness import HarnessError, wait_until
from harness.middle import DATA, PROBE, STATUS
from harness.system import same_bytes
from scapy.fields import ByteField, IntField, LongField, StrFixedLenField, X3BytesField, XLongField
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from transfers import MIB, ended_session, finish, forget, make_file, start_slow, still_serving

A, B = 0, 1  # sides; B gets data and probes, A statuses
AHEAD = 5000  # numbers that no datagram of the transfer has while an attack lasts
SLOW_MBPS, RATE = 16, "400M"  # while attacks last, and for what is left then
LEFT_S = 30  # for the next attack, at any time
SIZE = 160 * MIB  # more than is sent while the attacks of a group last
# Where an attack is a few datagrams that the test sends itself: then three minutes are left for a group.
FEW = {"slow_mbps": 2, "size": 48 * MIB}


class Sluice(Packet):
    """docs/WIRE.md, 1.1."""

    fields_desc = [
        ByteField("version", 2), ByteField("type", 0), ByteField("flags", 0), ByteField("header_bytes", 72),
        ByteField("key_epoch", 0), X3BytesField("credit_wanted", 0), XLongField("flow_id", 0), LongField("tx_seq", 0),
        LongField("send_time", 0), LongField("offset", 0), IntField("object", 0), IntField("length", 0),
        IntField("done_seen", 0), IntField("statuses_heard", 0), StrFixedLenField("seal", bytes(16), 16),
    ]  # fmt: skip


def parsed(frame):
    packet = Ether(frame)
    datagram = bytes(packet[UDP].payload)
    packet[UDP].remove_payload()
    return packet / Sluice(datagram)


def righted(packet):
    """Lengths and checksums below the Sluice header are computed anew when the packet is built."""
    for layer, fields in ((IP, ("len", "chksum", "ihl")), (IPv6, ("plen",)), (UDP, ("len", "chksum"))):
        if layer in packet:
            for field in fields:
                packet[layer].delfieldval(field)
    return packet


def altered(packet, payload=None, **fields):
    """The datagram with other fields of its Sluice header; all below is right."""
    packet = righted(packet.copy())
    for name, value in fields.items():
        setattr(packet[Sluice], name, value)
    if payload is not None:
        packet[Sluice].remove_payload()
        packet = packet / payload
    return packet


def with_datagram(packet, datagram):
    """The same addresses and ports, and these bytes for a UDP payload."""
    packet = righted(packet.copy())
    packet[UDP].remove_payload()
    return packet / bytes(datagram)


def below(packet, layer, **fields):
    """The datagram with other fields of a lower layer, given after all others were computed."""
    packet = Ether(bytes(righted(packet.copy())))
    for name, value in fields.items():
        setattr(packet[layer], name, value)
    return packet


@dataclasses.dataclass
class Attack:
    """`make(siege)`: the frames, of scapy or bytes. At the node of side `to` each of them raises one of `counters`,
    and none raises a counter of drops that is not among them. `rises`: how often all of them do together, at least,
    where that is not once each. With 0, what follows them is waited for: of fragments the kernel below a node
    decides what the node sees."""

    name: str
    counters: typing.Any
    make: typing.Callable
    to: int = B
    copies: int = 4
    rises: typing.Optional[int] = None


def named(attacks):
    """For pytest.mark.parametrize."""
    names = [attack.name for attack in attacks]
    assert len(set(names)) == len(names), "each attack has a name of its own"
    return {"argnames": "attack", "argvalues": attacks, "ids": names}


def over(kind):
    """For a test of the fixture `siege`, which lasts for all tests of one kind and ends before the next one begins."""
    return pytest.mark.parametrize("siege", [kind], indirect=True, scope="module")


def is_suspicious(counter):
    """No honest datagram raises it on a path that loses nothing. (An echo seems false as well to a worker that lost
    its core between its look at the clock and that at the frames.)"""
    if counter == "rx_false_echo":
        return False
    return counter.startswith(("rx_drop_", "rx_false_", "rx_far_", "rx_window_", "neighbour_", "bad_", "disk_err"))


class Siege:
    """Two nodes with somebody in their middle, and a slow transfer of theirs from a to b."""

    def __init__(self, pair, *options, slow_mbps=SLOW_MBPS, size=SIZE):
        self.pair, self.wire = pair, pair.wire
        self.source = make_file(pair.a, size)
        self._process, self.session = start_slow(pair.a, "send", self.source, "b:data/", *options, rate=RATE)
        self._rate_mbps = slow_mbps
        self.limit(f"{slow_mbps}M")
        self.wire.forget_frames()  # of earlier flows
        self._links = [bytes(self.data())[6:12], bytes(self.status())[6:12]]
        self.tamper = None  # as of MiddleWire
        self.wire.tamper = self._switch

    def _switch(self, side, frame):
        """Answers to a stranger do not get to the other node."""
        if not frame[0] & 1 and frame[:6] not in self._links:
            return []
        tamper = self.tamper
        return [frame] if tamper is None else tamper(side, frame)

    # ---- what the wire shows --------------------------------------------------------------------

    def data(self, ahead=0):
        """The last data that went by; ahead: under a number that none has had yet."""
        packet = self._wait(A, DATA)
        return altered(packet, tx_seq=packet[Sluice].tx_seq + ahead) if ahead else packet

    def status(self, ahead=0):
        packet = self._wait(B, STATUS)
        return altered(packet, tx_seq=packet[Sluice].tx_seq + ahead) if ahead else packet

    def probe(self, number=0):
        """One of the true ones is seen only where the sender waits; without it the form of one."""
        return altered(self.data(), b"", type=2, flags=0, object=0, offset=number, length=0)

    def _wait(self, side, kind):
        wait_until(lambda: self.wire.seen(side, kind), 20, f"a {kind} datagram of side {side} goes by")
        return parsed(self.wire.last(side, kind))

    # ---- attacks ------------------------------------------------------------------------------------

    def strike(self, attack):
        """Sends it, and returns once it is counted; nothing else must have happened."""
        frames = [bytes(frame) for frame in attack.make(self)] * attack.copies
        counters, rises = attack.counters.split(), attack.rises
        if rises == 0:
            frames.append(bytes(altered(self.data() if attack.to == B else self.status(), version=0)))
        with self.counted(attack.to, counters, rises or len(frames)) if rises != 0 else \
                self.counted(attack.to, ["rx_drop_bad_version"], 1, may_rise=counters):
            for frame in frames:
                self.wire.inject(attack.to, frame)

    @contextlib.contextmanager
    def counted(self, side, counters, times, may_rise=(), elsewhere=()):
        """What is sent inside raises these counters, together by so much, and no other that is of drops; `elsewhere`: nor
        any at the other node but these."""
        node = self.pair.nodes[side]
        self.stretch()
        before = [each.counters() for each in self.pair.nodes]

        def risen(*sides):
            """{(side, name): by how much} of what is suspicious, or expected."""
            now = {each: self.pair.nodes[each].counters() for each in sides}
            return {(each, name): now[each][name] - value for each in sides for name, value in before[each].items()
                    if now[each][name] > value and (is_suspicious(name) or (each == side and name in counters))}  # fmt: skip

        def expected(all_that_rose):
            return sum(all_that_rose.get((side, name), 0) for name in counters)

        yield
        with contextlib.suppress(HarnessError):
            wait_until(lambda: expected(risen(side)) >= (times() if callable(times) else times), 5, "it is counted")
        self.goes_on()
        all_that_rose = risen(A, B)
        due = times() if callable(times) else times
        others = [key for key in all_that_rose if key[1] not in ((*counters, *may_rise) if key[0] == side else elsewhere)]
        assert expected(all_that_rose) >= due and not others, (
            f"{counters} of side {side} should have risen by {due}, and nothing else: {all_that_rose}"
        )

    def limit(self, rate):
        self.pair.a.must("session", "limit", self.session, "--rate", rate)

    def stretch(self):
        """What is left outlasts the next attack, however slow this machine is."""
        left_mbit = (self.source.stat().st_size - self.bytes_done()) * 8e-6
        while self._rate_mbps > 1 and left_mbit < LEFT_S * self._rate_mbps:
            self._rate_mbps //= 2
            self.limit(f"{self._rate_mbps}M")

    def goes_on(self):
        """The transfer is under way on its first flows, at both nodes."""
        for node in self.pair.nodes:
            session = node.shown(self.session)
            assert (session.state, session.attempts) == (session.TRANSFERRING, 1), session

    def bytes_done(self):
        return self.pair.b.shown(self.session).bytes_done

    def end(self):
        """The rest goes as fast as it can: the file arrives identical, and both nodes still serve."""
        self.tamper = None
        self.goes_on()
        self.limit("none")
        session = ended_session(self.pair.a, self.session)
        assert (session["state"], session["attempts"]) == ("succeeded", 1), session
        target = self.pair.b.export() / self.source.name
        assert same_bytes(self.source, target)
        assert finish(self._process).returncode == 0
        forget(self.source, target)
        still_serving(self.pair)
        return session


@contextlib.contextmanager
def besieged(pair, *options, **pace):
    siege = Siege(pair, *options, **pace)
    yield siege
    siege.end()
