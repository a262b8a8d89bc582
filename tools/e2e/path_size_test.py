# A path that carries less than both ports: found, survived, named, remembered.
# SPDX-License-Identifier: Apache-2.0
import subprocess

import pytest
from harness import EmulatedWire, MemifWire, VethWire, veth_missing, wait_until
from transfers import MIB, finish, forget, last_session, make_file, pull, push, start_slow, wait_state

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))
HEADERS = 20 + 8 + 72  # IPv4, UDP, Sluice


def largest(session):
    return session["chunk_bytes"] + HEADERS


def carried(node, mtu):
    """The last session went on with datagrams that the path carries, and hardly shorter ones."""
    session = last_session(node)
    assert session["chunk_reason"] == "path", session
    assert mtu - mtu // 14 <= largest(session) <= mtu, session
    return session


# The nodes on sockets, and a DPDK node that sends or receives.
@pytest.fixture(scope="module", params=[(0, 1), (0,), (1,)], ids=["sockets", "from-socket", "to-socket"])
def narrow(request, make_pair):
    return make_pair(wire=VethWire(sockets=request.param, middle_mtu=1500), bytes_needed=1 << 30)


def test_a_pushed_file_goes_on_over_a_narrow_path(narrow):
    source = make_file(narrow.a, 20 * MIB + 1)
    target = push(narrow, source, "-4")
    for node in narrow.nodes:
        carried(node, 1500)
    assert last_session(narrow.a)["attempts"] == 2
    assert "carries datagrams of at most 1500 bytes" in narrow.a.control.log_tail(200)
    forget(source, target)
    # The next one does not stumble again.
    source = make_file(narrow.a, 5 * MIB + 1)
    target = push(narrow, source, "-4")
    assert carried(narrow.a, 1500)["attempts"] == 1
    shown = narrow.a.must("session", "show", last_session(narrow.a)["id"]).stdout
    assert "(all that the path carries)" in shown, shown
    forget(source, target)


def test_a_pulled_file_goes_on_over_a_narrow_path(narrow):
    source = make_file(narrow.b, 20 * MIB + 1)
    target = pull(narrow, source, "-4")
    for node in narrow.nodes:
        carried(node, 1500)
    assert last_session(narrow.a)["attempts"] == 2
    forget(source, target)


def test_ip6_has_a_size_of_its_own(narrow):
    source = make_file(narrow.a, 5 * MIB + 1)
    target = push(narrow, source, "-6")
    session = last_session(narrow.a)
    assert session["chunk_reason"] == "path" and session["chunk_bytes"] + HEADERS + 20 <= 1500, session
    forget(source, target)


@pytest.fixture
def shrinking(make_pair):
    return make_pair(wire=VethWire(sockets=(0, 1), middle_mtu=9000), bytes_needed=1 << 30)


def test_a_path_that_shrinks_in_mid_transfer(shrinking):
    """Once in the middle, then again at the sender's own interface."""
    source = make_file(shrinking.a, 40 * MIB + 3)
    process, session = start_slow(shrinking.a, "send", source, "b:data/", "-4", rate="80M")
    assert last_session(shrinking.a)["chunk_reason"] == "agreed"
    shrinking.wire.narrow(4000)
    wait_until(lambda: shrinking.a.json("session", "show", session)[1]["chunk_reason"] == "path", 30, "it is found")
    assert 3700 < largest(last_session(shrinking.a)) <= 4000
    subprocess.run(["ip", "-n", shrinking.wire.namespace(0), "link", "set", "data0", "mtu", "1500"], check=True)
    wait_until(lambda: largest(shrinking.a.json("session", "show", session)[1]) <= 1500, 30, "it is found again")
    result = finish(process)
    assert result.returncode == 0, result.stderr
    target = shrinking.b.export() / source.name
    assert target.read_bytes() == source.read_bytes()
    assert wait_state(shrinking.a, session, "succeeded")["attempts"] == 3
    forget(source, target)


def test_a_source_that_was_called_finds_it_as_well(shrinking):
    source = make_file(shrinking.b, 30 * MIB + 3)
    target = shrinking.a.export() / ("got-" + source.name)
    process, _ = start_slow(shrinking.a, "get", f"b:{source}", target, "-4", rate="80M")
    shrinking.wire.narrow(1400)
    result = finish(process)
    assert result.returncode == 0, result.stderr
    assert target.read_bytes() == source.read_bytes()
    for node in shrinking.nodes:
        carried(node, 1400)
    forget(source, target)


# ---- the size that brings most under loss by length -----------------------------------------------------------


def test_auto_takes_the_longest_where_nothing_is_lost(make_pair):
    clean = make_pair(wire=MemifWire())
    source = make_file(clean.a, 20 * MIB + 1)
    target = push(clean, source, "--chunk-bytes", "auto", "--rate", "1G")
    session = last_session(clean.a)
    assert (session["chunk_bytes"], session["chunk_reason"], session["attempts"]) == (8900, "agreed", 1), session
    assert len(session["sizes"]) == 8 and session["loss_length_bytes"] == 0, session
    assert all(size["arrived"] == size["sent"] == 64 for size in session["sizes"]), session
    forget(source, target)


@pytest.fixture(scope="module")
def lossy(make_pair):
    return make_pair(wire=EmulatedWire({"loss": {"length_l0_bytes": 2000}}))


@pytest.mark.parametrize("move", [push, pull])
def test_auto_takes_the_size_that_brings_most(lossy, move):
    source = make_file(lossy.a if move is push else lossy.b, 2 * MIB + 1)
    target = move(lossy, source, "--chunk-bytes", "auto", "--mode", "fixed", "--rate", "100M", "--expect-loss", 90)
    # c^2 + Hc = H L0 at best, with H = 130 bytes: 449.
    for node in lossy.nodes:
        session = last_session(node)
        assert session["chunk_reason"] == "loss" and 300 < session["chunk_bytes"] < 700, session
    sender = lossy.a if move is push else lossy.b
    session = last_session(sender)
    assert 1400 < session["loss_length_bytes"] < 2900, session
    assert "loss length" in sender.must("session", "show", session["id"]).stdout
    forget(source, target)
