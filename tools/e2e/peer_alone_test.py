# The small peer of tools/peer by itself: its arithmetic, the golden datagrams of docs/WIRE.md, and whole sessions
# with another one of its kind over loopback.
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import contextlib
import os
import dataclasses
import re
import subprocess
import threading

import pytest
from harness.system import REPOSITORY, free_ports
from transfers import Lossy

import peer
from peer import compression, keys, names, wire
from peer.control import pb
from peer.session import VERSION


def documented(name):
    """The block of hex digits behind <!-- golden: NAME -->."""
    text = (REPOSITORY / "docs/WIRE.md").read_text()
    return bytes.fromhex(re.search(rf"<!-- golden: {name} -->\n+```\n(.*?)```", text, re.DOTALL).group(1))


FLOW = 0x8000112233440007
STATUS = wire.Status(0x0102030405060708, 1000, 7, 4, 0, 1, 20, 1_000_000_000, 36009, -5, 300, 6, 3,
                     [(2, 300, 2), (2, 298, 1)], [(2, 1), (4, 2)])  # fmt: skip
WITH_HOLES = dataclasses.replace(STATUS, holes=[(2, 302, 64, [(0, 1), (5, 3), (63, 1)]), (2, 304, 20, [(18, 2)])])
DATA = wire.Datagram(wire.DATA, FLOW, 6, 0x0102030405060708, b"123456789", wire.RETRANSMISSION, 300 * 65536, 2, 3, 40,
                     36)  # fmt: skip
SECRET = bytes(range(32))
OF_STATUS = wire.Datagram(wire.STATUS, FLOW, 41, 0x1112131415161718, STATUS.pack())
OF_HOLES = wire.Datagram(wire.STATUS, FLOW, 42, 0x1112131415161719, WITH_HOLES.pack())
PARITY = wire.Datagram(wire.PARITY, FLOW, 7, 0x0102030405060709, bytes(range(64)), wire.RAPTORQ, 300 * 65536, 2, block=3,
                       repair_id=258, block_digest=0x995DC9BBDF1939FA)  # fmt: skip
COMPRESSED = wire.Datagram(wire.DATA, FLOW, 8, 0x0102030405060708, documented("compressed, payload"), compression.COMPRESSED,
                           301 * 65536, 2, 3, 40, 36)  # fmt: skip
ECHO = wire.Datagram(wire.ECHO, FLOW, 9, 0x0102030405060C0D, bytes.fromhex("deadbeef001122"), done_seen=4, statuses_heard=42)
REFLECTED = wire.Datagram(wire.ECHO, FLOW, 9, 0x1112131415161718, ECHO.payload, wire.REFLECTED)
PROBE = wire.Datagram(wire.PROBE, FLOW, 7, 0x0102030405060A0B, offset=3, done_seen=4, statuses_heard=42, credit_wanted=36)


@pytest.mark.parametrize("name, datagram, crc, protection", [
    ("data", DATA, wire.CRC64, keys.CRC),
    ("data, CRC-32C", DATA, wire.CRC32C, keys.CRC),
    ("data, aes-128-gcm", DATA, wire.CRC64, keys.AES_128_GCM),
    ("data, aes-256-gcm", DATA, wire.CRC64, keys.AES_256_GCM),
    ("data, next epoch", dataclasses.replace(DATA, tx_seq=8388614), wire.CRC64, keys.AES_128_GCM),
    ("compressed", COMPRESSED, wire.CRC64, keys.CRC),
    ("compressed, aes-128-gcm", COMPRESSED, wire.CRC64, keys.AES_128_GCM),
    ("parity", PARITY, wire.CRC64, keys.CRC),
    ("parity, aes-128-gcm", PARITY, wire.CRC64, keys.AES_128_GCM),
    ("status", OF_STATUS, wire.CRC64, keys.CRC),
    ("status", OF_STATUS, wire.CRC64, keys.AES_128_GCM),
    ("status, aes-256-gcm", OF_STATUS, wire.CRC64, keys.AES_256_GCM),
    ("status, holes", OF_HOLES, wire.CRC64, keys.AES_128_GCM),
    ("probe", PROBE, wire.CRC64, keys.AES_128_GCM),
    ("probe, aes-256-gcm", PROBE, wire.CRC64, keys.AES_256_GCM),
])  # fmt: skip
def test_golden_datagrams(name, datagram, crc, protection):
    frame = documented(name)
    assert wire.seal(datagram, crc, keys.Keys(protection, SECRET)) == frame
    peers = keys.Keys(protection, SECRET)
    for at in range(len(frame)):
        damaged = frame[:at] + bytes([frame[at] ^ 0x10]) + frame[at + 1 :]
        with pytest.raises(wire.Invalid):
            wire.open_sealed(damaged, crc, peers)
    assert wire.open_sealed(frame, crc, peers) == datagram


@pytest.mark.skipif(compression.zstandard is None, reason="python3-zstandard is not installed")
def test_the_golden_extent_is_restored():
    plain = (b"sluice moves files; " * 52)[:1033]
    collected = compression.Collected()
    assert compression.fits(COMPRESSED, len(plain), 1024, 0)
    assert collected.add(COMPRESSED, 0, 1024)
    assert collected.restored(len(plain), wire.CRC64) == plain
    assert collected.restored(len(plain) + 1, wire.CRC64) is None
    assert compression.chunks_of(os.urandom(5000), 1024, wire.CRC64) is None


@pytest.mark.parametrize("name, datagram, protection", [
    ("echo", ECHO, keys.CRC), ("echo", ECHO, keys.AES_128_GCM), ("echo, aes-256-gcm", ECHO, keys.AES_256_GCM),
    ("echo, reflected", REFLECTED, keys.AES_128_GCM)])  # fmt: skip
def test_golden_echoes(name, datagram, protection):
    """Its header is protected, its payload is not."""
    frame = documented(name)
    assert wire.seal(datagram, wire.CRC64, keys.Keys(protection, SECRET)) == frame
    peers = keys.Keys(protection, SECRET)
    for at in range(wire.HEADER_BYTES):
        with pytest.raises(wire.Invalid):
            wire.open_sealed(frame[:at] + bytes([frame[at] ^ 0x10]) + frame[at + 1 :], wire.CRC64, peers)
    damaged = frame[:-1] + bytes([frame[-1] ^ 0x10])
    assert wire.open_sealed(damaged, wire.CRC64, peers).payload == datagram.payload[:-1] + bytes([datagram.payload[-1] ^ 0x10])
    assert wire.open_sealed(frame, wire.CRC64, peers) == datagram


@pytest.mark.parametrize("name, status", [("status, payload", STATUS), ("status, holes, payload", WITH_HOLES)])
def test_golden_statuses(name, status):
    assert status.pack() == documented(name)


def test_keys_are_derived_as_documented():
    text = (REPOSITORY / "docs/WIRE.md").read_text()
    listed = dict(re.findall(r"^(\S.*?) {2,}([0-9a-f]{24,})$", text.split("<!-- vectors: keys -->")[1], re.MULTILINE))

    def expect(name, secret):
        assert listed[f"{name}, secret"] == secret.hex()
        assert listed[f"{name}, IV"] == keys.expand(secret, b"sluice iv", 12).hex()
        for bits in (128, 256):
            made = keys.expand(secret, b"sluice key", bits // 8).hex()
            assert listed.get(f"{name}, AES-{bits} key", made) == made

    data = keys.expand(SECRET, b"sluice data s2d", 32)
    expect("data, epoch 0", data)
    expect("data, epoch 1", keys.expand(data, b"sluice next", 32))
    expect("probe, epoch 0", keys.expand(SECRET, b"sluice probe s2d", 32))
    expect("status, epoch 0", keys.expand(SECRET, b"sluice status d2s", 32))
    expect("echo, epoch 0", keys.expand(SECRET, b"sluice echo s2d", 32))
    expect("echoed, epoch 0", keys.expand(SECRET, b"sluice echo d2s", 32))
    assert len(listed) == 19


def test_three_epochs_are_held():
    sender, receiver = (keys.Keys(keys.AES_128_GCM, SECRET, epoch_bits=4) for _ in range(2))
    frames = [wire.seal(dataclasses.replace(DATA, tx_seq=16 * epoch), wire.CRC64, sender) for epoch in range(1000)]

    def opens(epoch):
        try:
            return wire.open_sealed(frames[epoch], wire.CRC64, receiver).payload == DATA.payload
        except wire.Invalid:
            return False

    assert not opens(2)
    for epoch in range(1, 998):
        assert opens(epoch) and opens(epoch - 1), epoch
        assert not opens(epoch + 2) and (epoch < 2 or not opens(epoch - 2)), epoch


def test_golden_words_about_names():
    asked = pb.PeerMessage.FromString(documented("names, request")).names_request.list
    assert (asked.path, asked.glob, asked.pages, asked.recursive, asked.itself) == (b"data/*.h5", True, 8, False, False)
    page = pb.PeerMessage.FromString(documented("names, page"))
    link, other = page.names_page.entries
    assert (link.path, link.type, link.size, link.mode, link.mtime_ns) == (b"a.h5", 3, 4, 0o777, 1_000_000_000)
    assert (link.uid, link.gid, link.links, link.target) == (5, 6, 1, b"../x")
    assert (other.path, other.error_code, other.error) == (b"b\xff.h5", 7, "permission denied")
    assert page.SerializeToString() == documented("names, page")
    names.check(asked, None, link)
    names.check(asked, link.path, other)


@pytest.mark.parametrize("pattern, fits, others", [
    (b"*.h5", [b"a.h5", b".h5"], [b"a.h"]),
    (b"a?c", [b"abc", b"a\nc"], [b"ac"]),
    (b"[a-c]x", [b"bx"], [b"dx"]),
    (b"[!a-c]x", [b"dx"], [b"bx"]),
    (b"[]a]", [b"]", b"a"], [b"b"]),
    (b"[abc", [b"[abc"], [b"a"]),
    (b"a\\*", [b"a*"], [b"ab"]),
])  # fmt: skip
def test_patterns(pattern, fits, others):
    expression = names.expression(pattern)
    assert all(expression.fullmatch(each) for each in fits)
    assert not any(expression.fullmatch(each) for each in others)


@pytest.mark.parametrize("status", [STATUS, WITH_HOLES, dataclasses.replace(WITH_HOLES, padded=[(1400, 3)])],
                         ids=["plain", "holes", "padded and holes"])  # fmt: skip
def test_status_reads_what_it_says(status):
    whole = status.pack()
    assert wire.Status.unpack(whole) == status
    plain = len(dataclasses.replace(status, padded=[], holes=[]).pack())  # all else may be left out
    padded = len(dataclasses.replace(status, holes=[]).pack())
    for end in set(range(len(whole))) - {plain, padded}:
        with pytest.raises(wire.Invalid):
            wire.Status.unpack(whole[:end])
    with pytest.raises(wire.Invalid):
        wire.Status.unpack(whole + b"\0")


@pytest.mark.parametrize("crc, check", [(wire.CRC64, 0x995DC9BBDF1939FA), (wire.CRC32C, 0xE3069283)])
def test_crc(crc, check):
    assert crc.of(b"123456789") == check
    assert crc.of(b"6789", crc.of(b"12345")) == check
    assert crc.joined(crc.of(b"12345"), crc.of(b"6789"), 4) == check
    data = bytes(range(256)) * 40
    assert crc.joined(crc.of(data[:3000]), crc.of(data[3000:]), len(data) - 3000) == crc.of(data)


@pytest.fixture(params=[(False, 0, 1), (True, 1, 0), (False, 1, 2), (False, 0, 0)],
                ids=["clean", "lossy", "aes-256", "crc"])  # fmt: skip
def two(request, tmp_path):
    lossy, *protections = request.param
    for name in ("a", "b"):
        peer.make_identity(tmp_path / name)
        (tmp_path / f"{name}-data").mkdir()

    def open_socket(address, port):
        own = peer.udp_socket(address, port)
        return Lossy(own, 10, port) if lossy else own

    ports = free_ports(2)

    def node(name, other, address, protection):
        abilities = peer.Abilities(address4=address, lanes=2, ports=ports, protection=protection)
        identity = peer.Identity(tmp_path / name, [tmp_path / other / "cert.pem"])
        return peer.Node(identity, abilities, tmp_path / f"{name}-data", open_socket)

    return node("a", "b", "127.0.0.1", protections[0]), node("b", "a", "127.0.0.2", protections[1])


@pytest.mark.parametrize("gives", [True, False], ids=["send", "get"])
def test_two_of_them(two, gives):
    caller, called = two
    giver, taker = two if gives else two[::-1]
    names = []
    for size in (0, 1, 5000, 700_001):
        names.append(f"file{size}")
        (giver.folder / names[-1]).write_bytes(os.urandom(size))
    listener = peer.Listener(("127.0.0.1", 0), called.identity)
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        answered = thread.submit(called.serve, listener)
        if gives:
            caller.send(listener.address, [giver.folder / name for name in names], "data/")
        else:
            caller.get(listener.address, [f"data/{name}" for name in names])
        answered.result()
    listener.close()
    for name in names:
        assert (giver.folder / name).read_bytes() == (taker.folder / name).read_bytes()
    assert sorted(path.name for path in taker.folder.iterdir()) == sorted(names)


def test_a_name_that_is_given_and_not_certain_is_no_failure(two):
    """Its directory cannot be synced, and then its source fails: it can be called neither done nor failed."""
    giver, taker = two
    given = threading.Event()

    class Late(peer.Source):
        def tick(self, now):
            super().tick(now)
            if given.is_set():
                self.stream.send("object_failed", object=0)

    class Unsure(peer.Destination):
        def _settled(self, folder):
            given.set()
            return False

    giver.source, taker.destination = Late, Unsure
    for name in ("first", "second"):
        (giver.folder / name).write_bytes(b"x" * 5000)
    listener = peer.Listener(("127.0.0.1", 0), taker.identity)
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        answered = thread.submit(taker.serve, listener)
        with pytest.raises(peer.Failed) as failed:
            giver.send(listener.address, [giver.folder / "first", giver.folder / "second"], "data/")
        assert failed.value.code == 11
        assert answered.exception().code == 11
    listener.close()
    assert (taker.folder / "first").read_bytes() == b"x" * 5000


def test_an_inquiry_opens_nothing(two):
    asked, asks = two
    listener = peer.Listener(("127.0.0.1", 0), asked.identity)
    session = asked.sessions[b"k" * 16] = asked.source(asked, b"k" * 16, True)
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        for session_id, known in ((session.id, True), (b"u" * 16, False)):
            taken = thread.submit(asked.take_one, listener)
            with contextlib.closing(peer.connect(listener.address, asks.identity)) as stream:
                stream.send("hello", protocol_version_min=VERSION, protocol_version_max=VERSION,
                            session_id=session_id, inquires=True)  # fmt: skip
                if known:
                    _, answer = stream.expect("hello")
                    assert (answer.session_id, answer.known, answer.ended) == (session_id, True, False)
                else:
                    with pytest.raises(peer.Failed) as failure:
                        stream.expect("hello")
                        stream.expect("session_done")
                    assert failure.value.code == 6
            taken.result()
    listener.close()
    assert list(asked.sessions) == [session.id]


def test_commands(tmp_path):
    def start(*arguments):
        return subprocess.Popen([REPOSITORY / "tools/peer/main.py", *arguments], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip

    def common(name, other, address):
        return ["--identity", tmp_path / name, "--trust", tmp_path / other / "cert.pem", "--data4", address,
                "--ports", str(lane), "--folder", tmp_path / name]  # fmt: skip

    port, lane = free_ports(2)
    for name in ("a", "b"):
        assert start("identity", tmp_path / name).wait(60) == 0
    source = tmp_path / "file"
    source.write_bytes(os.urandom(5000))
    with start("serve", *common("b", "a", "127.0.0.2"), f"127.0.0.1:{port}") as server:
        with start("send", *common("a", "b", "127.0.0.1"), f"127.0.0.1:{port}", source, "data/") as sender:
            assert sender.wait(60) == 0, sender.stdout.read()
        assert server.wait(60) == 0, server.stdout.read()
    assert (tmp_path / "b/file").read_bytes() == source.read_bytes()
