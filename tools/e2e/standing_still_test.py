# A node that stands still near the end of a transfer, and goes on: the session ends well at both. Beside parting_test.py,
# since it mostly waits.
# SPDX-License-Identifier: Apache-2.0
import os
import signal
import time

import pytest
from harness import wait_until
from harness.system import same_bytes
from partings import SETTINGS, SIZE, begin, bytes_done, ended_or, going_on, nothing_left
from transfers import MIB, ended_session, finish, forget


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30, settings=SETTINGS)


@pytest.fixture(autouse=True)
def as_before(pair):
    with nothing_left(pair):
        yield


# The moments near the end: the last bytes are on their way, or everything is there and only words are missing.
@pytest.mark.parametrize("left", [2 * MIB, 1])
@pytest.mark.parametrize("push_it", [True, False], ids=["push", "pull"])
def test_an_initiator_that_stands_still_near_the_end(pair, push_it, left):
    process, session, source, target = begin(pair, push_it)
    wait_until(lambda: bytes_done(pair.b, session) > SIZE - left or ended_or(pair.b, session), 60, "it is near its end")
    os.kill(pair.a.control.pid, signal.SIGSTOP)
    try:
        time.sleep(13)  # how long it stands still is the fault
    finally:
        os.kill(pair.a.control.pid, signal.SIGCONT)
    for node in pair.nodes:
        end = ended_session(node, session)
        assert end["state"] == "succeeded", end["error"]
        assert not going_on(node)
    assert same_bytes(source, target)
    finish(process)
    forget(source, target)
