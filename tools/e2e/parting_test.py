# A restarted control finds all of its sessions. A control without a dataplane still answers. A cancel at one node ends a
# session that is paused at the other.
# SPDX-License-Identifier: Apache-2.0
import pytest
from harness import wait_until
from harness.system import same_bytes
from partings import SETTINGS, begin, going_on, nothing_left
from transfers import (CANCELLED, DAEMON, MIB, USAGE, ended_session, finish, forget, make_file, refused,
                       wait_state)  # fmt: skip


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30, settings=SETTINGS)


@pytest.fixture(autouse=True)
def as_before(pair):
    with nothing_left(pair):
        yield


SESSIONS, FILES, FILE_BYTES = 4, 6, 2 * MIB + 17


@pytest.mark.parametrize("victim", ["a", "b"])
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_control_that_is_started_again_goes_on_with_all_of_its_sessions(pair, end, victim):
    sources = [[make_file(pair.a, FILE_BYTES) for _ in range(FILES)] for _ in range(SESSIONS)]
    before = {session["id"] for session in pair.a.sessions()}
    processes = [pair.a.popen("send", *files, "b:data/", "--rate", "25M") for files in sources]

    def mine():
        return [session for session in pair.a.sessions() if session["id"] not in before]

    wait_until(lambda: sum(session["bytes_done"] > 0 for session in mine()) == SESSIONS, 30, "data of all sessions moves")
    ids = [session["id"] for session in mine()]
    control = getattr(pair, victim).control
    getattr(control, end)()
    getattr(pair, victim).start_control()
    for session in ids:
        for node in pair.nodes:
            ended = ended_session(node, session)
            assert ended["state"] == "succeeded", ended["error"]
    for process in processes:
        status = finish(process).returncode
        assert status == 0 or victim == "a"  # whose control it spoke to
    for files in sources:
        for source in files:
            target = pair.b.export() / source.name
            assert same_bytes(source, target)
            forget(source, target)


def shown(node, session):
    status, reply, error = node.json("session", "show", session)
    assert status == 0, error
    return reply


@pytest.mark.parametrize("victim", ["a", "b"])
def test_a_control_without_its_dataplane_answers_and_goes_on_with_it(pair, victim):
    process, session, source, target = begin(pair, True)
    other_process, other, other_source, other_target = begin(pair, True)
    node = getattr(pair, victim)
    node.control.kill()
    node.dataplane.kill()
    node.control.start()
    wait_until(lambda: node.json("session", "list")[0] == 0, 30, "control answers")
    assert {each["id"] for each in going_on(node)} == {session, other}
    waiting = shown(node, session)
    assert waiting["state"] == "waiting"
    assert waiting["waiting_for"] == "sluice-dataplane of this node"
    live = node.json("node", "show")[1]
    assert (live.get("live") or live)["dataplane_attached"] is False
    assert node.sluice("counters").returncode in (0, DAEMON)
    refused(node.sluice("send", source, f"{'b' if victim == 'a' else 'a'}:data/"), DAEMON, "sluice-dataplane")
    node.must("session", "pause", session)
    wait_state(node, session, "paused")
    refused(node.sluice("session", "pause", session), USAGE, "paused already")
    node.must("session", "continue", session)
    wait_state(node, session, "waiting")
    node.must("session", "cancel", other)
    end = ended_session(node, other)
    assert (end["state"], end["error_code"]) == ("cancelled", CANCELLED), end
    refused(node.sluice("session", "cancel", other), USAGE, "ended already")
    assert node.control.running()
    node.start_dataplane()
    for each in pair.nodes:
        end = ended_session(each, session)
        assert end["state"] == "succeeded", end["error"]
        assert ended_session(each, other)["state"] == "cancelled"
    assert same_bytes(source, target)
    assert not other_target.exists()
    finish(process)
    finish(other_process)
    forget(source, target, other_source)


@pytest.mark.parametrize("push_it", [True, False])
def test_what_the_other_node_cancels_ends_where_it_is_paused(pair, push_it):
    process, session, source, target = begin(pair, push_it)
    pair.a.must("session", "pause", session)
    wait_state(pair.a, session, "paused")
    pair.b.must("session", "cancel", session)
    for node in pair.nodes:
        assert ended_session(node, session)["state"] == "cancelled"
    finish(process)
    forget(source, target)
