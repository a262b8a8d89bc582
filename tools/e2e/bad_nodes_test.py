# Unknown, untrusted, absent and cancelled: a session ends with a reason, and the nodes go on serving.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import signal

import pytest
from harness import Node, wait_until
from harness.system import free_ports
from transfers import (CANCELLED, DAEMON, MIB, UNREACHABLE, UNTRUSTED, finish, forget, make_file, names, refused,
                       start_slow, unharmed)  # fmt: skip

STALL_S = 5


def _another(pair, name, port):
    node = Node(pair.a.binaries, pair.base / name, name, port, settings={
        "port": {"device": "net_null0", "address4": "10.77.0.3/24"}})  # fmt: skip
    node.add_export("data", pair.base / f"{name}-data")
    node.create()
    return node


def _strangers(pair):
    """More names in a's address book: one where nobody listens, one whose control trusts nobody, and one
    with b's address but another key."""
    ports = free_ports(2)
    pair.stranger = _another(pair, "stranger", ports[0])
    pair.a.trust(pair.stranger)
    pair.a.trust(_another(pair, "nobody", ports[1]))
    pair.a.trust(_another(pair, "impostor", ports[1]), address=pair.b.address)


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(prepare=_strangers, bytes_needed=1 << 30, settings={"control": {"stall_timeout_s": STALL_S}})


@pytest.fixture(autouse=True)
def nothing_left_and_still_serving(pair):
    with unharmed(pair):
        yield


@pytest.fixture
def source(pair):
    path = make_file(pair.a, 64 * MIB)
    yield path
    forget(path)


def test_unknown_node(pair, source):
    refused(pair.a.sluice("send", source, "mars:data/"), UNTRUSTED, "mars", "trust")


def test_node_that_is_not_there(pair, source):
    refused(pair.a.sluice("send", source, "nobody:data/", timeout_s=60), UNREACHABLE, "nobody")


def test_node_with_another_key_than_the_pinned_one(pair, source):
    refused(pair.a.sluice("send", source, "impostor:data/"), UNTRUSTED, "impostor")


def test_node_that_does_not_trust_us(pair, source):
    with contextlib.ExitStack() as stack:
        pair.stranger.control.start()
        stack.callback(pair.stranger.control.stop)
        wait_until(lambda: pair.stranger.json("node", "show")[1].get("live"), 30, "the stranger's control answers")
        refused(pair.a.sluice("send", source, "stranger:data/"), UNTRUSTED, "stranger")
    assert not names(pair.stranger)


def test_cancelled_push(pair, source):
    process, session = start_slow(pair.a, "send", source, "b:data/")
    pair.a.must("session", "cancel", session)
    refused(finish(process), CANCELLED, "cancel")
    assert pair.a.sluice("session", "wait", session).returncode == CANCELLED


def test_pull_cancelled_by_the_node_that_gives(pair):
    remote = make_file(pair.b, 64 * MIB)
    process, _ = start_slow(pair.a, "get", f"b:{remote}", pair.a.export() / "x")
    pair.b.must("session", "cancel", pair.b.sessions()[-1]["id"])
    refused(finish(process), CANCELLED)
    forget(remote)


def test_without_control(pair, source):
    pair.a.control.stop()
    for command in (("send", source, "b:data/"), ("session", "list")):
        refused(pair.a.sluice(*command), DAEMON, "sluice-control")
    pair.a.start_control()


def test_without_dataplane(pair, source):
    pair.a.dataplane.stop()
    wait_until(lambda: not pair.a.attached(), 30, "control has noticed")
    refused(pair.a.sluice("counters"), DAEMON, "sluice-dataplane")
    refused(pair.a.sluice("send", source, "b:data/"), DAEMON, "sluice-dataplane")
    pair.a.start_dataplane()
    wait_until(pair.a.attached, 30, "control attaches to the new dataplane")


def test_control_that_stands_still(pair):
    """Stopped, as one that is swapped out: each command ends by itself and says what to look at."""
    waits = [["session", "list"], ["node", "show"], ["counters"], ["session", "wait", "x"], ["session", "events"],
             ["ls", "b:data"], ["mkdir", "b:data/d"], ["send", "memory:1M", "b:null:"], ["bench", "b"]]  # fmt: skip
    with contextlib.ExitStack() as stack:
        os.kill(pair.a.control.pid, signal.SIGSTOP)
        stack.callback(os.kill, pair.a.control.pid, signal.SIGCONT)
        processes = [pair.a.popen(*words) for words in [*waits, ["doctor", "b"]]]
        ends = [process.communicate(timeout=300) for process in processes]
    for words, process, (out, err) in zip(waits, processes, ends):
        assert process.returncode == DAEMON, (words, out, err)
        assert "stands still" in err and "swapped out" in err, (words, err)
    assert "stands still" in ends[-1][0], ends[-1]
    assert pair.a.sluice("session", "list").returncode == 0
