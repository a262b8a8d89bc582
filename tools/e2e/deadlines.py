# Two nodes on a wire whose rate changes, and what they say of the deadline of a session.
# SPDX-License-Identifier: Apache-2.0
import contextlib

from harness import EmulatedWire, wait_until
from transfers import cancel_all

PATH_MBIT = 40
QUEUE_BYTES = 1 << 18


def narrow_pair(make_pair):
    return make_pair(wire=EmulatedWire(rate="1G"), bytes_needed=1 << 29, settings={"control": {"sessions_max": 2}})


@contextlib.contextmanager
def nothing_known(pair):
    """What a node measured is gone with its control: each test begins with nodes that know nothing."""
    yield
    pair.wire.clear()
    cancel_all(pair)
    pair.a.control.stop()
    pair.a.start_control()


def narrow(pair, mbit):
    pair.wire.set("both", rate={"bits_per_s": mbit * 1_000_000, "queue_bytes": QUEUE_BYTES if mbit else 0})


def shown(node, session):
    status, reply, error = node.json("session", "show", session)
    assert status == 0, error
    return reply


def wait_deadline(node, session, *states):
    return wait_until(lambda: (one := shown(node, session))["deadline_state"] in states and one, 60,
                      f"the deadline of {session} is {states}")  # fmt: skip
