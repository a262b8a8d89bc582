# What holds a session is named, at both ends, live and at the end: each cause is provoked, and nothing is said of times.
# SPDX-License-Identifier: Apache-2.0
import ctypes
import os
import pathlib
import socket
import sys

import pytest
from harness import EmulatedWire, MemifWire, Pair, VethWire, veth_missing, wait_until
from harness.system import allowed_cores, is_root
from transfers import MIB, begin, finish, forget, fresh_name, last_session, make_file, start_slow, wait_state

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "perf"))
from lab import slow_disk  # noqa: E402
from lab.cgroup import little_of_a_core  # noqa: E402

_DISK_FILE = 64 * MIB
_SMALL_BUFFER = 4 << 10  # of a socket: one burst at a time
_PIDFD_GETFD = 438  # Python 3.11 has no name for it


@pytest.fixture(scope="module")
def emulated(make_pair):
    return make_pair(wire=EmulatedWire(rate="1G"), bytes_needed=1 << 29, memory_mib=256)


@pytest.fixture
def pair(emulated):
    emulated.wire.clear()
    yield emulated
    emulated.wire.clear()


def sent(pair, source, to, *options):
    """Both ends' verdicts on what a sends."""
    result = pair.a.sluice("send", source, to, *options)
    assert result.returncode == 0, result.stderr
    return [shown(node) for node in pair.nodes]


def moved(pair, *options, size=24 * MIB):
    """Once the workers had their cores: a machine that takes them away is what holds a transfer up, and they say so."""
    for _ in range(5):
        source = make_file(pair.a, size)
        sessions = sent(pair, source, "b:data/", *options)
        forget(source, pair.b.export() / source.name)
        if not any(each["bottleneck"]["cause"].endswith(" CPU") for each in sessions):
            break
    return sessions


def shown(node):
    status, session, error = node.json("session", "show", last_session(node)["id"])
    assert status == 0, error
    return session


def assert_both_name(sessions, cause):
    for session in sessions:
        verdict = session["bottleneck"]
        print(session["direction"], verdict, [(each["cause"], round(each["share"], 2)) for each in session["causes"]])
        assert verdict["cause"] == cause
        assert 0 < verdict["share"] <= 1
        assert verdict["evidence"]


def test_a_rate_that_was_asked_for_is_a_limit(pair):
    sessions = moved(pair, "--mode", "fixed", "--rate", "100M")
    assert_both_name(sessions, "limit")
    assert any("100.0 Mbit/s" in line for line in sessions[0]["bottleneck"]["evidence"])


def test_a_narrow_link_is_the_network(pair):
    pair.wire.set(rate={"bits_per_s": "100M", "queue_bytes": 250_000}, delay={"fixed_us": 2000})
    assert_both_name(moved(pair), "network")


def test_loss_that_a_fixed_rate_yields_to_is_the_network(pair):
    pair.wire.set("a_to_b", loss={"probability": 0.3})
    # Before it yields the rate is the limit, for a second or two.
    sessions = moved(pair, "--mode", "fixed", "--rate", "200M", size=56 * MIB)
    assert_both_name(sessions, "network")
    assert any("lost" in line for line in sessions[0]["bottleneck"]["evidence"])


def test_the_caller_of_a_get_hears_the_verdict_of_its_source(pair):
    remote = make_file(pair.b, 24 * MIB)
    target = pair.a.export() / fresh_name()
    result = pair.a.sluice("get", f"b:{remote}", target, "--mode", "fixed", "--rate", "100M")
    assert result.returncode == 0, result.stderr
    assert_both_name([shown(node) for node in pair.nodes], "limit")
    forget(remote, target)


def test_it_is_told_while_data_moves_and_in_the_summary(pair):
    source = make_file(pair.a, 24 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/", "--mode", "fixed")
    causes = set()
    while process.poll() is None and causes != {"limit"}:
        now = shown(pair.a)
        causes = {now["bottleneck"]["cause"]} if now["state"] == "transferring" else causes
    text = pair.a.must("session", "show", session).stdout
    assert "bottleneck    limit" in text
    ended = finish(process)
    assert ended.returncode == 0, ended.stderr
    assert "bottleneck: limit" in ended.stdout
    status, history, _ = pair.a.json("session", "show", session)
    assert status == 0
    assert len(history["history"]) > 1
    assert sum(point["seconds"] * point["rate_bps"] for point in history["history"]) > 0
    forget(source, pair.b.export() / source.name)


def test_a_destination_in_another_network_is_the_network():
    """Nothing can be sent, and the wait says what to do."""
    elsewhere = {"port": {"address4": "10.78.0.2/24", "address6": ""}}
    with Pair(bytes_needed=1 << 28, settings_a={"port": {"address6": ""}}, settings_b=elsewhere) as pair:
        pair.start()
        session = begin(pair.a, "send", "memory:1000000", "b:null:")
        now = wait_until(lambda: (each := shown(pair.a))["bottleneck"]["cause"] == "network" and each["waiting_for"] and each,
                         30, "the network is named")  # fmt: skip
        assert "gateway4" in now["waiting_for"]
        pair.a.must("session", "cancel", session)


# ---- disks ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def slow():
    """A pair, each with an export on a disk of which the test says how fast it is."""
    reason = slow_disk.missing()
    if reason:
        pytest.skip(reason)
    with Pair(wire=EmulatedWire(rate="1G"), bytes_needed=1 << 29) as pair, \
            slow_disk.SlowDisk(pair.base, 4 * _DISK_FILE) as disk:  # fmt: skip
        for node in pair.nodes:
            node.add_export("slow", disk.folder / node.name)
            node.write_configuration()
        try:
            pair.start()
            for node in pair.nodes:
                disk.hold(node.dataplane.pid)
            yield pair, disk
        finally:
            for node in pair.nodes:  # before the file system that they have open
                node.stop()


@pytest.mark.parametrize("what, cause", [("write", "destination disk"), ("read", "source disk")])
def test_a_slow_disk_is_named(slow, what, cause):
    pair, disk = slow
    source = make_file(pair.a, _DISK_FILE, "slow" if what == "read" else "data")
    disk.limit(10 * MIB, what)
    try:
        assert_both_name(sent(pair, source, "b:slow/" if what == "write" else "b:null:"), cause)
    finally:
        disk.limit(None, what)
        forget(source, pair.b.export("slow") / source.name)


# ---- memory and cores ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def narrow(make_pair):
    """A pair of which b has little memory, and no rate is set."""
    little = {"dataplane": {"memory_mib": 140}}
    return make_pair(wire=EmulatedWire(rate="800G"), bytes_needed=1 << 29, memory_mib=256, settings_b=little)


@pytest.fixture(scope="module")
def plain(make_pair):
    """A pair whose wire loses nothing and whose rate nothing holds but the cores."""
    return make_pair(wire=MemifWire(rate="800G"), bytes_needed=1 << 29, memory_mib=256)


@pytest.fixture
def tight(narrow):
    narrow.wire.clear()
    yield narrow
    narrow.wire.clear()


@pytest.mark.parametrize("sender, cause", [("a", "credit"), ("b", "sender memory")])
def test_too_little_memory_for_a_long_path_is_named(tight, sender, cause):
    tight.wire.set(delay={"fixed_us": 400_000, "keep_order": True})
    here, there = tight.nodes if sender == "a" else reversed(tight.nodes)
    ended = here.sluice("send", f"memory:{256 * MIB}", f"{there.name}:null:", "--mode", "fixed", "--rate", "3G")
    assert ended.returncode == 0, ended.stderr
    sessions = [shown(node) for node in (here, there)]
    assert_both_name(sessions, cause)
    assert any("raise [dataplane] memory_mib" in line for line in sessions[0]["bottleneck"]["evidence"])


@pytest.mark.skipif(len(allowed_cores()) < 2, reason="each side needs a core of its own")
@pytest.mark.skipif(not is_root(), reason="a control group needs root")
@pytest.mark.parametrize("side, cause", [(0, "sender CPU"), (1, "receiver CPU")])
def test_a_core_with_much_else_to_do_is_named(plain, side, cause):
    with little_of_a_core(plain.nodes[side].dataplane.pid, 5):
        sessions = sent(plain, f"memory:{1024 * MIB}", "b:null:", "--mode", "fixed", "--rate", "100G")
    assert_both_name(sessions, cause)


# ---- the receive ring ----------------------------------------------------------------------------


def shrink_sockets(pid, size):
    """The receive buffers of another process's UDP sockets, from outside; how many there are."""
    libc, count = ctypes.CDLL(None, use_errno=True), 0
    process = os.pidfd_open(pid)
    try:
        for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            if not os.readlink(link).startswith("socket:"):
                continue
            fd = libc.syscall(_PIDFD_GETFD, process, int(link.name), 0)
            assert fd >= 0, os.strerror(ctypes.get_errno())
            with socket.socket(fileno=fd) as each:
                if each.family in (socket.AF_INET, socket.AF_INET6) and each.type == socket.SOCK_DGRAM:
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
                    count += 1
    finally:
        os.close(process)
    return count


def test_a_receive_ring_without_room_is_named(make_pair):
    reason = veth_missing()
    if reason:
        pytest.skip(reason)
    pair = make_pair(wire=VethWire(sockets=(0, 1)), bytes_needed=1 << 29, memory_mib=256)
    session = begin(pair.a, "send", f"memory:{1 << 40}", "b:null:", "--rate", "8G")
    wait_state(pair.b, session, "transferring")
    wait_until(lambda: shown(pair.b)["bytes_done"] > 0, 30, "first bytes")
    assert shrink_sockets(pair.b.dataplane.pid, _SMALL_BUFFER) > 0
    try:
        wait_until(lambda: all(shown(node)["bottleneck"]["cause"] == "receiver ring" for node in pair.nodes), 30,
                   "both nodes name the ring")  # fmt: skip
    finally:
        pair.a.must("session", "cancel", session)
