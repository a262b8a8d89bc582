# What both ends of a session share: Hello, what is agreed, the lanes, and the loop that moves data.
# docs/WIRE.md, 2.1 and 2.2.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import dataclasses
import ipaddress
import select
import socket
import time

from . import keys, wire
from .control import INCOMPATIBLE, Failed, Gone, pb

VERSION = 5
MIN_EXTENT, MAX_EXTENT = 64 << 10, 1 << 20
MAX_RANGES = 4096  # of a message
LEAST_UNANSWERED = 64  # extents of DigestsWanted, of any source (2.1.6)


def udp_socket(address, port):
    """An ordinary UDP socket; its datagrams are never fragmented."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    one = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET:
        one.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO: DF is set
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    one.bind((address, port))
    one.setblocking(False)
    return one


@dataclasses.dataclass
class Abilities:
    """What this node can do and wishes: its Specification, and its half of a SpecificationSet."""

    address4: str = ""
    address6: str = ""
    ports: list = dataclasses.field(default_factory=lambda: [46000])
    mtu: int = 9000
    extent_bytes: int = 256 << 10
    crc_kinds: list = dataclasses.field(default_factory=lambda: [2, 1])
    rate_bps: int = 80_000_000
    prefer_ip6: bool = False
    discard: bool = False
    lanes: int = 1
    protection: int = keys.AES_128_GCM  # the least
    reed_solomon: bool = False  # the source may send parity (1.12)
    parts: bool = True  # as a source: to send only what is wanted (2.1.6)
    digests_unanswered: int = 256  # likewise: it takes so many questions at a time; 0: it says nothing
    echoes: bool = True  # as a destination that was called: to reflect them (1.13)
    digests: bool = True  # likewise: to compute those that archives ask for (2.18)
    zstd: bool = False  # compressed extents may travel (1.14)
    parity_demanded: bool = False  # there is no session without; only an initiator says so
    learn_address: bool = False  # we only call, and send from other ports than we say (1.10); an R of ours cannot learn

    def addresses(self):
        """For data, as bytes: IPv4, IPv6; empty where there is none."""
        return [ipaddress.ip_address(each).packed if each else b"" for each in (self.address4, self.address6)]

    def chunk_bytes(self):
        """The largest for IPv4 and IPv6: IP, UDP and our header leave so much of a packet, in whole fours."""
        return [(self.mtu - ip - 8 - wire.HEADER_BYTES) // 4 * 4 for ip in (20, 40)]


@dataclasses.dataclass
class Terms:
    """What both use."""

    lanes: int
    chunk_bytes: int
    extent_bytes: int
    partition_bytes: int
    crc_kind: int
    rate_bps: int
    peer_ip: bytes
    peer_ports: list
    discard: bool
    protection: int = keys.CRC
    reed_solomon: bool = False
    parts: bool = False
    echoes: bool = False
    digests: bool = False
    zstd: bool = False
    digests_unanswered: int = LEAST_UNANSWERED

    @property
    def crc(self):
        return wire.CRC_OF_KIND[self.crc_kind]


class Lane:
    """One flow: our UDP socket, and where the other end of it is."""

    def __init__(self, own, peer, flow_id, crc, flow_keys):
        self.socket, self.flow_id, self._peer, self._crc, self._keys = own, flow_id, peer, crc, flow_keys
        self._copies = {kind: keys.Copies() for kind in (wire.PROBE, wire.STATUS, wire.ECHO)}
        self._probes = 0
        self.dropped = 0

    def fileno(self):
        return self.socket.fileno()

    def close(self):
        self.socket.close()

    def send(self, datagram):
        if datagram.type == wire.PROBE:
            datagram.offset, self._probes = self._probes, self._probes + 1
        with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
            self.socket.sendto(wire.seal(datagram, self._crc, self._keys), self._peer)

    def receive(self):
        """What has come from the other end of this flow and is whole. All else is dropped and counted."""
        for _ in range(64):
            try:
                frame, sender = self.socket.recvfrom(1 << 16)
            except (BlockingIOError, ConnectionRefusedError):
                return
            try:
                if sender[:2] != self._peer or frame[8:16] != self.flow_id.to_bytes(8, "big"):
                    raise wire.Invalid("not of this flow")
                datagram = wire.open_sealed(frame, self._crc, self._keys)
                if datagram.type in self._copies:
                    copies = self._copies[datagram.type]
                    if copies.is_copy(wire.number_of(datagram)):
                        raise wire.Invalid("a copy")
                    copies.mark(wire.number_of(datagram))
                yield datagram
            except wire.Invalid:
                self.dropped += 1


class Session:
    """Outlives its connections: `attempt` is called with one stream after another until `ended`. A real node
    keeps on disk what is kept here in memory. Source and Destination are the two halves."""

    role = 0
    wants_parts = False  # as a destination that begins the session

    def __init__(self, node, session_id, initiator):
        self.node, self.id, self.initiator = node, session_id, initiator
        self.stream, self.terms, self.lanes, self.sockets = None, None, [], []
        self.known = False  # step 6 was reached: files are agreed upon
        self.ended = False
        self.failure = None  # (code, text) if it ended so
        self.specification = None  # of this attempt, if we are R
        self.grant = None  # a SignedGrant, of a session that a third node has ordered (2.13)
        self.lease = None  # (name, epoch), if it runs under one (2.14)
        self.move = None  # a SignedMove, of a session that was another node's (2.15)
        self.user, self.share = b"", 0  # for whom we call, and a number that stands for them (2.19, 2.1.4)
        self.owner = self.former = None  # whoever called for it, and whoever did before that: keys
        self.epoch = 0

    # ---- one connection ---------------------------------------------------------------------------

    def attempt(self, stream, hello=None):
        """From Hello to the end of the session, or of the stream (Gone). hello: the caller's, if we are R."""
        self.stream = stream
        try:
            goes_on = self.greet() if self.initiator else self.answer(hello)
            if self.ended:
                return
            if not goes_on:
                self.drop_lanes()
                self.agree()
                self.agree_on_files()
            self.begin(goes_on)
            while not self.ended:
                self.turn()
            self.drop_lanes()
        except Failed as error:
            self.drop_lanes()
            if error.code in (4, 6, 14, 17) and self.known:
                raise Gone(str(error)) from None  # "later": a new attempt
            self.ended, self.failure = True, (error.code, str(error))
            raise

    def flow_ids(self):
        return [lane.flow_id for lane in self.lanes]

    def say_hello(self, **more):
        self.stream.send("hello", protocol_version_min=VERSION, protocol_version_max=VERSION,
                         software="reference peer", session_id=self.id, **more)  # fmt: skip

    def greet(self):
        """I: our Hello and R's. Whether the flows go on."""
        lease = pb.Lease(name=self.lease[0], epoch=self.lease[1]) if self.lease else None
        self.say_hello(known=self.known, flow_ids=self.flow_ids(), grant=self.grant, lease=lease,
                       move=self.move, user=self.user, share=self.share)  # fmt: skip
        _, hello = self.stream.expect("hello", timeout_s=10)
        if hello.session_id != self.id:
            self.stream.fail(INCOMPATIBLE, "that is not our session")
        if hello.ended:
            self.hear_the_end()
            return False
        if self.grant is not None and not hello.granted:
            self.stream.fail(INCOMPATIBLE, "the peer is too old: it knows no grants")
        if self.lease is not None and not hello.leased:
            self.stream.fail(INCOMPATIBLE, "the peer is too old: it keeps no leases")
        if self.lanes and list(hello.flow_ids) != self.flow_ids():
            self.drop_lanes()
            raise Gone("the flows do not go on; the next call names none")
        return bool(self.lanes)

    def answer(self, hello):
        """R: our Hello. Whether the flows go on. Of a new session Hello and Specification were heard already."""
        if hello is None:
            return False
        self.specification = None
        if not hello.known:
            self.forget()
        goes_on = bool(self.lanes) and list(hello.flow_ids) == self.flow_ids()
        if not goes_on:
            self.drop_lanes()
        self.say_hello(known=self.known, flow_ids=self.flow_ids(), granted=self.grant is not None,
                       leased=self.lease is not None)  # fmt: skip
        return goes_on

    # ---- 2.1.1 It has ended at the other side -----------------------------------------------------

    def hear_the_end(self):
        """After a Hello with `ended`: Failure, which is raised, or, of a success, what S or D says last."""
        while True:
            name, message = self.stream.expect("object_state", "object_failed", "session_done")
            if name == "session_done":
                break
            if self.role == 1 and name == "object_failed":
                self.on_object_failed(message)
            elif self.role == 1 and not message.end:
                self.on_object_state(message)
        self.drop_lanes()
        self.ended = True

    def say_the_end(self, stream):
        """After our Hello with `ended`, of a success."""
        for number, file in enumerate(self.files if self.role == 2 else []):
            self._say_ended(number, file, stream)
        if self.role == 2:
            stream.send("object_state", end=True)
        stream.send("session_done", files=len(self.files), bytes=sum(file.size for file in self.files))

    # ---- 2.2 What is agreed -----------------------------------------------------------------------

    def agree(self):
        own = self.node.abilities
        if self.initiator:
            self.stream.send("specification", role=self.role, lanes_max=own.lanes, data_ip4=own.addresses()[0],
                             data_ip6=own.addresses()[1], chunk_bytes_max_ip4=own.chunk_bytes()[0],
                             chunk_bytes_max_ip6=own.chunk_bytes()[1], extent_bytes_max=own.extent_bytes,
                             crc_kinds=own.crc_kinds, rate_bps_max=own.rate_bps, prefer_ip6=own.prefer_ip6,
                             udp_checksum_needed=bool(own.address6), discard=own.discard,
                             udp_ports=own.ports[: own.lanes], learn_address=own.learn_address,
                             protection=own.protection, reed_solomon=own.reed_solomon,
                             parity_demanded=own.parity_demanded, parts=self.wants_parts,
                             zstd=own.zstd)  # fmt: skip
            _, agreed = self.stream.expect("specification_set", timeout_s=None)
            self._check(agreed)
            self.terms = Terms(agreed.lanes, agreed.chunk_bytes, agreed.extent_bytes, agreed.partition_bytes,
                               agreed.crc_kind, agreed.rate_bps, agreed.data_ip, list(agreed.udp_ports),
                               own.discard, agreed.protection, agreed.reed_solomon, agreed.parts,
                               zstd=agreed.zstd,
                               digests_unanswered=max(agreed.digests_unanswered, LEAST_UNANSWERED))  # fmt: skip
        else:
            if self.specification is None:
                _, self.specification = self.stream.expect("specification")
            self._choose()
        address = own.address6 if len(self.terms.peer_ip) == 16 else own.address4
        learnt = self.initiator and own.learn_address
        self.sockets = [self.node.open_socket(address, 0 if learnt else port) for port in own.ports[: self.terms.lanes]]

    def _check(self, agreed):
        """I: an answer that goes beyond what we offered."""
        own = self.node.abilities
        family = {4: 0, 16: 1}.get(len(agreed.data_ip))
        if not (family is not None and own.addresses()[family]
                and 1 <= agreed.lanes <= own.lanes and agreed.lanes == len(agreed.udp_ports)
                and 256 <= agreed.chunk_bytes <= own.chunk_bytes()[family] and agreed.chunk_bytes % 4 == 0
                and MIN_EXTENT <= agreed.extent_bytes <= own.extent_bytes
                and agreed.extent_bytes & (agreed.extent_bytes - 1) == 0
                and agreed.partition_bytes and agreed.partition_bytes % agreed.extent_bytes == 0
                and agreed.learns_address == own.learn_address
                and own.reed_solomon >= agreed.reed_solomon >= own.parity_demanded and not agreed.raptorq
                and agreed.parts == self.wants_parts and own.zstd >= agreed.zstd
                and own.protection <= agreed.protection <= keys.AES_256_GCM
                and 0 < agreed.rate_bps <= own.rate_bps and agreed.crc_kind in own.crc_kinds):  # fmt: skip
            self.stream.fail(INCOMPATIBLE, "the SpecificationSet goes beyond the Specification")

    def _choose(self):
        """R: the smaller of each."""
        own, asked = self.node.abilities, self.specification
        theirs, mine = [asked.data_ip4, asked.data_ip6], own.addresses()
        both = [bool(theirs[i] and mine[i]) for i in (0, 1)]
        if not any(both):
            self.stream.fail(INCOMPATIBLE, "no family of addresses in common")
        family = 1 if both[1] and (asked.prefer_ip6 or not both[0]) else 0
        kinds = [kind for kind in asked.crc_kinds if kind in own.crc_kinds and (kind or asked.discard)]
        extent = min(asked.extent_bytes_max, own.extent_bytes, MAX_EXTENT)
        chunk = min([asked.chunk_bytes_max_ip4, asked.chunk_bytes_max_ip6][family], own.chunk_bytes()[family], 32768)
        lanes = min(asked.lanes_max, own.lanes, len(asked.udp_ports), 16)
        if not kinds or extent < MIN_EXTENT or chunk < 256 or lanes < 1 or not asked.rate_bps_max:
            self.stream.fail(INCOMPATIBLE, "no CRC, extent, chunk, lane or rate in common")
        if asked.protection > keys.AES_256_GCM:
            self.stream.fail(INCOMPATIBLE, "a protection that is not known here")
        protection = max(asked.protection, own.protection)
        coded = asked.reed_solomon and own.reed_solomon and not asked.discard
        if asked.parity_demanded and not coded and not asked.discard:
            self.stream.fail(INCOMPATIBLE, "an erasure code is demanded that is not known here")
        zstd = asked.zstd and own.zstd and not asked.discard
        if asked.compress_demanded and not zstd and not asked.discard:
            self.stream.fail(INCOMPATIBLE, "compression is demanded that is not known here")
        extent = 1 << (extent.bit_length() - 1)
        parts = asked.parts and own.parts and asked.role == 2
        echoes = asked.echoes and own.echoes and asked.role == 1 and asked.discard
        asks_digests = asked.digests and own.digests and asked.role == 1
        self.terms = Terms(lanes, chunk // 4 * 4, extent, 16 * extent, kinds[0], min(asked.rate_bps_max, own.rate_bps),
                           theirs[family], list(asked.udp_ports)[:lanes], asked.discard, protection, coded, parts,
                           echoes, asks_digests, zstd, max(own.digests_unanswered, LEAST_UNANSWERED))  # fmt: skip
        self.stream.send("specification_set", lanes=lanes, chunk_bytes=chunk // 4 * 4, extent_bytes=extent,
                         partition_bytes=self.terms.partition_bytes, crc_kind=kinds[0], rate_bps=self.terms.rate_bps,
                         udp_checksum=asked.udp_checksum_needed or family == 1, data_ip=mine[family],
                         udp_ports=own.ports[:lanes], protection=protection, reed_solomon=coded,
                         parity_demanded=asked.parity_demanded and coded, parts=parts, echoes=echoes, digests=asks_digests,
                         zstd=zstd, compress_demanded=asked.compress_demanded and zstd,
                         digests_unanswered=own.digests_unanswered if parts else 0)  # fmt: skip

    # ---- lanes ------------------------------------------------------------------------------------

    def make_lanes(self, flow_ids, kind):
        peer = str(ipaddress.ip_address(self.terms.peer_ip))
        lanes = zip(self.sockets, self.terms.peer_ports, flow_ids)
        self.lanes = [kind(own, (peer, port), flow_id, self.terms.crc, self._keys_of(flow_id, lane))
                      for lane, (own, port, flow_id) in enumerate(lanes)]  # fmt: skip
        self.sockets = []

    def _keys_of(self, flow_id, lane):
        secret = self.stream.secret(keys.LABEL, keys.context(self.id, flow_id, lane))
        return keys.Keys(self.terms.protection, secret)

    def drop_lanes(self):
        for each in [*self.lanes, *self.sockets]:
            each.close()
        self.lanes, self.sockets = [], []

    # ---- data moves -------------------------------------------------------------------------------

    def turn(self):
        """What has come is heard; then what is due is said."""
        select.select([self.stream, *self.lanes], [], [], 0.001)
        for name, message in self.stream.poll():
            handler = getattr(self, "on_" + name, None)
            if handler is None:
                self.stream.fail(INCOMPATIBLE, f"{name} while data moves")
            handler(message)
        for lane in self.lanes:
            for datagram in lane.receive():
                self.on_datagram(lane, datagram)
        self.tick(time.monotonic_ns())

    def extents_of(self, file):
        return -(-file.size // self.terms.extent_bytes)

    def extent_length(self, file, extent):
        return min(self.terms.extent_bytes, file.size - extent * self.terms.extent_bytes)


def ranges_of(extents, extent_bytes):
    """Extent numbers as (offset, length), neighbours joined."""
    out = []
    for extent in sorted(extents):
        if out and out[-1][0] + out[-1][1] == extent * extent_bytes:
            out[-1][1] += extent_bytes
        else:
            out.append([extent * extent_bytes, extent_bytes])
    return [{"offset": offset, "length": length} for offset, length in out]


def fold(file, crcs, extent_bytes, crc):
    """The digest of a file, of the CRCs of its extents in any order."""
    digest = 0
    for extent, value in crcs.items():
        behind = max(0, file.size - (extent + 1) * extent_bytes)
        digest ^= crc.shift(value, behind)
    return digest
