# Daemons are killed in the middle of a transfer. The session resumes by itself, and the file is identical.
# SPDX-License-Identifier: Apache-2.0
import pytest
from harness import wait_until
from partings import LONG_SIZE, STALLS_SOON, begin_long, nothing_left, succeeded
from transfers import DAEMON, ended_session, finish, refused, start_slow


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30, settings={"control": STALLS_SOON})


@pytest.fixture(autouse=True)
def as_before(pair):
    with nothing_left(pair):
        yield


def restart(node, daemon):
    if daemon == "control":
        node.start_control()
    else:
        node.start_dataplane()


@pytest.mark.parametrize("daemon", ["control", "dataplane"])
@pytest.mark.parametrize("victim", ["a", "b"])
@pytest.mark.parametrize("push_it", [True, False], ids=["push", "pull"])
def test_a_killed_daemon_interrupts_and_nothing_more(pair, push_it, victim, daemon):
    process, session, source, target = begin_long(pair, push_it)
    node = getattr(pair, victim)
    getattr(node, daemon).kill()
    if (victim, daemon) == ("a", "control"):
        refused(finish(process), DAEMON, session)
    else:
        assert not target.exists()
    restart(node, daemon)
    end = succeeded(pair, session, source, target)
    if daemon == "control":
        # Its flows went on without it: no new ones were opened.
        assert end["attempts"] <= 1
    if process.poll() is None:
        assert finish(process).returncode == 0


def test_a_killed_control_sums_up_generated_bytes_again(pair):
    """What it had not journalled of the CRCs is made again: of the bytes that the dataplane sends."""
    _, session = start_slow(pair.a, "send", f"memory:{LONG_SIZE}", "b:null:", rate="200M")
    for _ in range(2):
        pair.a.control.kill()
        pair.a.start_control()
        wait_until(pair.a.attached, 30, "control is attached")
    end = ended_session(pair.a, session)
    assert end["state"] == "succeeded", end["error"]


@pytest.mark.parametrize("victim", ["a", "b"])
def test_a_whole_node_killed(pair, victim):
    process, session, source, target = begin_long(pair, True)
    node = getattr(pair, victim)
    node.control.kill()
    node.dataplane.kill()
    node.start()
    succeeded(pair, session, source, target)
    finish(process)


def test_everything_killed(pair):
    process, session, source, target = begin_long(pair, True, "--lanes", 2)
    for node in pair.nodes:
        node.control.kill()
        node.dataplane.kill()
    finish(process)
    pair.start()
    succeeded(pair, session, source, target)
