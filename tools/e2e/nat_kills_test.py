# Daemons are killed behind a NAT and outside it. The session resumes. The node outside cannot call, so it waits for its
# caller.
# SPDX-License-Identifier: Apache-2.0
import pytest
from harness import nat_missing, wait_until
from nats import LANES, OUTSIDE, pair_with_nat
from transfers import MIB, ended_session, forget, make_file, start_slow

_reason = nat_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))


@pytest.fixture(scope="module", params=OUTSIDE.values(), ids=OUTSIDE.keys())
def pair(request, make_pair):
    return pair_with_nat(make_pair, request.param, 5)


@pytest.mark.parametrize(("verb", "side", "daemon"), [("send", "inside", "dataplane"), ("get", "inside", "control"),
                                                      ("send", "outside", "control"), ("get", "outside", "dataplane")])  # fmt: skip
def test_a_daemon_is_killed(pair, verb, side, daemon):
    giver, taker = (pair.a, pair.b) if verb == "send" else (pair.b, pair.a)
    source = make_file(giver, 16 * MIB + 3)
    target = taker.export() / ("got-" + source.name)
    words = (source, f"b:{target}") if verb == "send" else (f"b:{source}", target)
    process, session = start_slow(pair.a, verb, *words, "--lanes", LANES, rate="60M")
    node = pair.a if side == "inside" else pair.b
    getattr(node, daemon).kill()
    getattr(node, f"start_{daemon}")()
    node.wait_attached()
    process.communicate(timeout=60)
    assert ended_session(pair.a, session)["state"] == "succeeded"
    assert target.read_bytes() == source.read_bytes()
    forget(source, target)


def test_a_session_waits_for_its_caller(pair):
    """The node outside keeps it, and says for whom it waits; the caller comes back and it goes on."""
    source = make_file(pair.a, 16 * MIB + 3)
    process, session = start_slow(pair.a, "send", source, "b:data/", rate="60M")
    pair.a.control.kill()
    pair.a.dataplane.kill()
    process.communicate(timeout=60)

    def resting():
        status, reply, _ = pair.b.json("session", "show", session)
        return status == 0 and "waiting" in reply["state"] and reply["waiting_for"]

    shown = wait_until(resting, 90, "the node outside waits")
    assert "a" in shown
    pair.a.start()
    assert ended_session(pair.a, session)["state"] == "succeeded"
    target = pair.b.export() / source.name
    assert target.read_bytes() == source.read_bytes()
    forget(source, target)
