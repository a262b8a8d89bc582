# A node that only calls is behind a NAT and a firewall that let in nothing but answers. Files arrive, even if the NAT
# forgets its ports.
# SPDX-License-Identifier: Apache-2.0
import contextlib

import pytest
from harness import nat_missing
from nats import LANES, OUTSIDE, pair_with_nat
from transfers import (CONFIGURATION, MIB, ended_session, finish, forget, last_session, make_file, pull, push, refused,
                       start_slow)  # fmt: skip

_reason = nat_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))
# Long enough for a machine that stands still for a while: an attempt that is begun anew is a failure here.
STALL_S = 20


@pytest.fixture(scope="module", params=OUTSIDE.values(), ids=OUTSIDE.keys())
def pair(request, make_pair):
    return pair_with_nat(make_pair, request.param, STALL_S)


@contextlib.contextmanager
def learns(pair, at_least=LANES):
    before = pair.b.counters()["peer_addresses"]
    yield
    assert pair.b.counters()["peer_addresses"] - before >= at_least
    assert pair.a.counters()["peer_addresses"] == 0


def test_it_listens_to_nobody(pair):
    with open(f"/proc/{pair.a.control.pid}/net/tcp") as table:
        states = [line.split()[3] for line in table.readlines()[1:]]
    assert "0A" not in states, "no socket of its network listens"
    status, reply, _ = pair.a.json("node", "show")
    assert status == 0 and reply["listen"] == "none" and reply["live"]["control_address"] == "none"
    assert "only calls" in pair.a.must("node", "show").stdout


@pytest.mark.parametrize("size", [0, 1, 20 * MIB + 1])
def test_pushed_file_arrives_identical(pair, size):
    source = make_file(pair.a, size)
    with learns(pair, LANES if size > MIB else min(size, 1)):  # nothing needs to be sent of an empty file
        target = push(pair, source, "--lanes", LANES)
    forget(source, target)


def test_pulled_file_arrives_identical(pair):
    source = make_file(pair.b, 20 * MIB + 1)
    with learns(pair):
        target = pull(pair, source, "--lanes", LANES)
    assert last_session(pair.a)["lanes"] == LANES
    forget(source, target)


@pytest.mark.parametrize("verb", ["send", "get"])
def test_the_nat_forgets_and_gives_other_ports(pair, verb):
    giver, taker = (pair.a, pair.b) if verb == "send" else (pair.b, pair.a)
    source = make_file(giver, 24 * MIB + 3)
    target = taker.export() / ("got-" + source.name)
    words = (source, f"b:{target}") if verb == "send" else (f"b:{source}", target)
    with learns(pair, 2 * LANES):
        process, session = start_slow(pair.a, verb, *words, "--lanes", LANES, rate="40M")
        pair.wire.give_ports("30000-39999")
        pair.wire.forget()
        result = finish(process)
    assert result.returncode == 0, result.stderr
    assert target.read_bytes() == source.read_bytes()
    assert ended_session(pair.a, session)["attempts"] == 1, "the flows went on"
    pair.wire.give_ports("20000-29999")
    forget(source, target)


def test_the_node_outside_cannot_begin(pair):
    source = make_file(pair.b, 1)
    refused(pair.b.sluice("send", source, "a:data/"), CONFIGURATION, "a", "does not listen", "begins transfers itself")
    forget(source)
