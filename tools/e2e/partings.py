# A slow transfer between two nodes, one of which stands still, is killed or forgets: what tests of that share.
# SPDX-License-Identifier: Apache-2.0
import contextlib

from harness import wait_until
from transfers import ENDED, MIB, make_file, names, start_slow, still_serving

SETTINGS = {"control": {"stall_timeout_s": 5, "sync_lag_ms": 100, "resume_timeout_s": 60}}
SIZE = 16 * MIB + 321
RATE = "60M"


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


def begin(pair, push_it, *options):
    """(process, session id, source, target) of a slow transfer that a asked for, once bytes have arrived."""
    giver, taker = (pair.a, pair.b) if push_it else (pair.b, pair.a)
    source = make_file(giver, SIZE)
    target = taker.export() / source.name
    arguments = ("send", source, "b:data/") if push_it else ("get", f"b:{source}", target)
    process, session = start_slow(pair.a, *arguments, *options, rate=RATE)
    return process, session, source, target


def ended_or(node, session):
    status, reply, _ = node.json("session", "show", session)
    return status == 0 and reply["state"] in ENDED
