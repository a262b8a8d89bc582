# Strangers in crowds, and a trusted node that says and does what no honest one would: others are served, logs
# and lists stay readable, and whoever is refused hears why.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import pathlib
import resource
import socket
import ssl
import struct

import hostile
import pytest
from harness import Node, wait_until
from harness.system import free_ports, same_bytes
from transfers import (ENDED, INCOMPATIBLE, MIB, RESOURCES, finish, forget, make_file, refused, start_slow, still_serving,
                       wait_state)  # fmt: skip

PER_PEER = 3
QUEUE_MAX = 8  # of which a peer may have half
SESSIONS_MAX = 6


def _mallory(pair):
    """A node that both trust, of which only the identity is used."""
    node = Node(pair.a.binaries, pair.base / "mallory", "mallory", free_ports(1)[0])
    node.create()
    pair.mallory = node
    pair.b.trust(node)


@pytest.fixture(scope="module")
def pair(make_pair):
    limits = {"sessions_max": SESSIONS_MAX, "sessions_per_peer": PER_PEER, "queue_max": QUEUE_MAX, "stall_timeout_s": 5}
    return make_pair(prepare=_mallory, bytes_needed=1 << 30, settings={"control": limits})


@pytest.fixture
def call(pair):
    """call() is a connection of mallory to b."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(contextlib.closing(hostile.Stream(pair.b, pair.mallory)))


def none_of(pair, node, peer):
    """Waits until the node has no session of that peer under way."""
    wait_until(lambda: not [s for s in node.sessions() if s["peer"] == peer and s["state"] not in ENDED], 30,
               f"{node.name} has no session of {peer}")  # fmt: skip


def refusal(answer, code):
    """What is told by an answer that refuses."""
    kind, failure = answer
    assert kind == "failure" and failure.code == code, answer
    return failure.message


def log_of(node):
    return pathlib.Path(node.control.log_file).read_bytes()


def memory_of(daemon, what):
    for line in pathlib.Path(f"/proc/{daemon.pid}/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) << 10
    raise AssertionError(what)


# ---- crowds ------------------------------------------------------------------------------------


def test_a_thousand_idle_connections_of_fifty_addresses_shut_nobody_out(pair):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    host, _, port = pair.b.address.rpartition(":")
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for i in range(1000):
            source = (f"127.0.{1 + i % 50}.{1 + i // 50}" if i % 2 else f"127.0.0.{1 + i % 50}", 0)
            stack.enter_context(socket.create_connection((host, int(port)), timeout=20, source_address=source))
            if i % 250 == 249:
                still_serving(pair)
        open_files = len(os.listdir(f"/proc/{pair.b.control.pid}/fd"))
        assert open_files < 500, f"{open_files} descriptors"
    still_serving(pair)


def test_a_trusted_peer_that_connects_and_says_nothing(pair, call):
    idle = [call() for _ in range(150)]
    still_serving(pair)
    assert idle


def calling(pair, source):
    """A connection to b from this address of this host."""
    host, _, port = pair.b.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=20, source_address=(source, 0))


def test_handshakes_without_end_of_fifty_addresses_shut_nobody_out(pair):
    """Each begins one that comes to nothing: with rubbish, or with a key that nobody trusts."""
    stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
    before = len(log_of(pair.b))
    with contextlib.ExitStack() as stack:
        for i in range(600):
            one = stack.enter_context(calling(pair, f"127.0.{1 + i % 50}.{1 + i // 50}"))
            if i % 3:
                one.sendall(b"\x16\x03\x01" + os.urandom(200))
            else:
                one = stranger.wrap_socket(one, do_handshake_on_connect=False)
                stack.callback(one.close)
                one.setblocking(False)
                with contextlib.suppress(ssl.SSLWantReadError):
                    one.do_handshake()
            if i % 200 == 199:
                still_serving(pair)
    still_serving(pair)

    def told():
        """The log has a budget for such lines, which those before may have used up."""
        with calling(pair, "127.0.60.1") as one:
            one.sendall(b"\x16\x03\x01" + os.urandom(200))
        return b"handshake" in log_of(pair.b)[before:]

    wait_until(told, 30, "the log tells of them")


def test_whoever_is_slow_is_hung_up_on(pair, call):
    """A stranger that says nothing, or half of its first word; a trusted one that says nothing, or half of a Hello."""
    strangers = [calling(pair, "127.0.9.9") for _ in range(2)]
    strangers[1].sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(20))
    trusted = [call().tls for _ in range(2)]
    trusted[1].sendall(struct.pack(">I", 100) + bytes(50))
    for one in (*strangers, *trusted):
        one.settimeout(60)
        with contextlib.suppress(ConnectionResetError):
            while one.recv(4096):
                pass
        one.close()
    still_serving(pair)


# ---- quotas ------------------------------------------------------------------------------------


def full(pair, call):
    """mallory has all of its share at once, and one more that waits, whose answer is returned. On a machine that stands
    still the first sessions may be over before: they say nothing, and are given up after stall_timeout_s."""
    for _ in range(10):
        none_of(pair, pair.b, "mallory")
        streams = [call() for _ in range(PER_PEER + 1)]  # what takes long comes first
        answers = [stream.open_session() for stream in streams]
        assert [kind for kind, _ in answers[:PER_PEER]] == ["hello"] * PER_PEER
        if answers[-1][0] != "hello":
            return answers[-1]
    raise AssertionError(f"more than {PER_PEER} sessions of a peer run")


def test_a_peer_has_its_share_of_sessions_and_no_more(pair, call):
    answers = [full(pair, call)]
    while answers[-1][0] == "pause" and len(answers) < 4 * QUEUE_MAX:  # further ones wait, but not any number
        answers.append(call().open_session())
    assert len(answers) > 1, "some wait"
    told = refusal(answers[-1], RESOURCES)
    assert "control.sessions_per_peer" in told and "mallory" in told
    source = make_file(pair.a, 100_000)
    pair.a.must("send", source, "b:data/")
    assert same_bytes(source, pair.b.export() / source.name)
    forget(source, pair.b.export() / source.name)
    for session in pair.b.sessions():
        if session["peer"] == "mallory":  # whoever asks no more is forgotten after a minute
            pair.b.sluice("session", "cancel", session["id"])


def test_sessions_of_a_peer_that_vanished_hold_no_room(pair, call):
    none_of(pair, pair.b, "mallory")
    sources = [make_file(pair.a, 64 * MIB) for _ in range(PER_PEER)]
    running = [start_slow(pair.a, "send", source, "b:data/", rate="20M") for source in sources]
    pair.a.control.kill()
    pair.a.dataplane.kill()
    for _, session in running:
        wait_state(pair.b, session, "waiting")
    assert [call().open_session()[0] for _ in range(PER_PEER)] == ["hello"] * PER_PEER
    pair.a.start()
    for process, session in running:
        finish(process)
        pair.a.must("session", "cancel", session)
        wait_state(pair.a, session, "cancelled")
        wait_state(pair.b, session, "cancelled")
    forget(*sources)
    still_serving(pair)


def test_the_id_of_anothers_session_opens_nothing_and_tells_nothing(pair, call):
    source = make_file(pair.a, 64 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/")
    answers = [call().open_session(bytes.fromhex(session))]
    pair.a.must("session", "cancel", session)
    finish(process)
    wait_state(pair.b, session, "cancelled")
    answers.append(call().open_session(bytes.fromhex(session)))
    told = {refusal(answer, INCOMPATIBLE) for answer in answers}
    assert told == {"the id of this session cannot be used here: begin another session"}
    assert [s["id"] for s in pair.b.sessions()].count(session) == 1
    forget(source)


# ---- words -------------------------------------------------------------------------------------

FORGED = "x\nFORGED 2026-01-01 info all is well\x1b[31m\x9b2J"


def clean(data):
    """No line of it begins with what a stranger wrote, and nothing in it steers a terminal."""
    assert not [line for line in data.split(b"\n") if line.startswith(b"FORGED")]
    assert b"\x1b" not in data and b"\xc2\x9b" not in data
    return data


def test_what_a_peer_says_of_its_failure_forges_no_line(pair, call):
    stream = call()
    assert stream.open_session()[0] == "hello"
    stream.say(failure=hostile.pb.Failure(code=1, message=FORGED + "y" * 60_000))
    session = stream.session.hex()
    shown = wait_state(pair.b, session, "failed")
    assert 500 < len(shown["error"]) < 1200 and shown["error"].startswith("mallory: x?FORGED")
    assert b"FORGED" in clean(log_of(pair.b))
    for command in (("session", "list"), ("session", "show", session)):
        clean(pair.b.sluice(*command).stdout.encode())
        clean(pair.b.sluice(*command, "--json").stdout.encode())


def test_names_of_files_are_bytes_and_steer_nothing(pair):
    source = make_file(pair.a, 100_000, name="a\nFORGED\x1b[31m.bin")
    for result in (pair.a.must("send", source, "b:data/"), pair.a.sluice("send", source, "b:data/")):
        clean(result.stdout.encode())
        clean(result.stderr.encode())
    target = pair.b.export() / source.name
    assert same_bytes(source, target), "the name is what it is"
    for node in (pair.a, pair.b):
        clean(log_of(node))
        clean(node.sluice("session", "list").stdout.encode())
        clean(node.sluice("session", "show", node.sessions()[-1]["id"]).stdout.encode())
    forget(source, target)


@pytest.mark.parametrize("size", [256, 1_000_000])
def test_a_name_that_is_too_long_is_refused(pair, call, size):
    before = len(log_of(pair.b))
    stream = call()
    assert stream.open_session()[0] == "hello"
    stream.say(specification=hostile.specification())
    assert stream.hear()[0] == "specification_set"
    stream.say(transfer_offer=hostile.pb.TransferOffer(files=[hostile.pb.File(path=b"n" * size)], destination="data/x"))
    told = refusal(stream.hear(), INCOMPATIBLE)
    assert f"name of {size} bytes" in told and len(told) < 500
    assert len(log_of(pair.b)) - before < 5000


def test_data_goes_to_no_address_that_is_not_another_hosts(pair):
    for address, word in (((127, 0, 0, 1), "loopback"), ((0, 0, 0, 0), "no address"), ((224, 0, 0, 1), "multicast"),
                          ((255, 255, 255, 255), "broadcast"), ((10, 77, 0, 2), "own")):  # fmt: skip
        none_of(pair, pair.b, "mallory")
        with contextlib.closing(hostile.Stream(pair.b, pair.mallory)) as stream:
            assert stream.open_session()[0] == "hello"
            stream.say(specification=hostile.specification(address))
            told = refusal(stream.hear(), INCOMPATIBLE)
            assert word in told and ".".join(map(str, address)) in told


# ---- memory and descriptors --------------------------------------------------------------------


def test_big_messages_take_a_bounded_memory(pair, call):
    none_of(pair, pair.b, "mallory")
    before = memory_of(pair.b.control, "VmRSS")
    early = [call() for _ in range(60)]
    late = [call() for _ in range(PER_PEER)]
    for stream in late:
        assert stream.open_session()[0] == "hello"
    for stream in early + late:
        with contextlib.suppress(OSError):  # it was hung up on, or takes no more
            stream.tls.settimeout(0.2)
            stream.tls.sendall(struct.pack(">I", 15 * MIB) + bytes(8 * MIB))
    peak = memory_of(pair.b.control, "VmHWM")
    assert peak - before < 150 * MIB, f"{(peak - before) / MIB:.0f} MiB more"
    still_serving(pair)


def test_a_node_without_descriptors_says_so(pair):
    source = make_file(pair.a, 100_000)
    pid = pair.b.control.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    taken = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    first_free = next(number for number in range(len(taken) + 1) if number not in taken)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (first_free, limits[1]))
    try:
        for _ in range(3):
            refused(pair.a.sluice("send", source, "b:data/"), RESOURCES, "b at", "descriptors")
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    assert log_of(pair.b).count(b"cannot accept") < 50, "it does not spin"
    forget(source)
    still_serving(pair)
