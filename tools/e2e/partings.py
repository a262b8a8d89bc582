# A slow transfer between two nodes, one of which stands still, is killed or stopped, or forgets: what tests of that share.
# SPDX-License-Identifier: Apache-2.0
import contextlib

from harness import wait_until
from harness.system import same_bytes
from transfers import ENDED, MIB, ended_session, forget, make_file, names, start_slow, still_serving

STALLS_SOON = {"stall_timeout_s": 5, "sync_lag_ms": 100}
SETTINGS = {"control": {**STALLS_SOON, "resume_timeout_s": 60}}
SIZE, RATE = 16 * MIB + 321, "60M"
LONG_SIZE, LONG_RATE = 32 * MIB + 12345, "100M"


@contextlib.contextmanager
def nothing_left(pair):
    """Daemons that a test ended run again afterwards, nothing of it is left, and both nodes serve."""
    before = [names(node) for node in pair.nodes]
    yield
    for node in pair.nodes:
        if not node.dataplane.running():
            node.start_dataplane()
        if not node.control.running():
            node.start_control()
        wait_until(node.attached, 30, "control is attached")
    wait_until(lambda: [names(node) for node in pair.nodes] == before, 10, f"exports are as before: {before}")
    still_serving(pair)


def going_on(node):
    return [session for session in node.sessions() if session["state"] not in ENDED]


def bytes_done(node, session):
    status, reply, _ = node.json("session", "show", session)
    return reply.get("bytes_done", 0) if status == 0 else 0


def begin(pair, push_it, *options, size=SIZE, rate=RATE):
    """(process, session id, source, target) of a slow transfer that a asked for, once bytes have arrived."""
    giver, taker = (pair.a, pair.b) if push_it else (pair.b, pair.a)
    source = make_file(giver, size)
    target = taker.export() / source.name
    arguments = ("send", source, "b:data/") if push_it else ("get", f"b:{source}", target)
    process, session = start_slow(pair.a, *arguments, *options, rate=rate)
    return process, session, source, target


def begin_long(pair, push_it, *options, size=LONG_SIZE):
    return begin(pair, push_it, *options, size=size, rate=LONG_RATE)


def succeeded(pair, session, source, target):
    end = ended_session(pair.a, session)
    assert end["state"] == "succeeded", end["error"]
    assert same_bytes(source, target)
    for node in pair.nodes:
        pair_end = ended_session(node, session)
        assert pair_end["state"] == "succeeded", pair_end["error"]
        node.must("verify", session)
    forget(source, target)
    return end


def wait_done(node, session, size):
    wait_until(lambda: node.json("session", "show", session)[1]["bytes_done"] > size, 60, f"{size} bytes are there")


def ended_or(node, session):
    status, reply, _ = node.json("session", "show", session)
    return status == 0 and reply["state"] in ENDED
