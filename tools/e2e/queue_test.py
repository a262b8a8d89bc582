# More sessions than may run at a time: they wait for their turn, at both nodes, and over restarts.
# SPDX-License-Identifier: Apache-2.0
import pytest
from harness import wait_until
from harness.system import same_bytes
from transfers import (ENDED, MIB, RESOURCES, USAGE, begin, cancel_all, ended_session, forget, make_file, names, refused,
                       still_serving, wait_state)  # fmt: skip

SESSIONS_MAX = 2
QUEUE_MAX = 8
RUNNING = ("connecting", "negotiating", "transferring", "finishing")
SLOW = ("--rate", "2M")  # nothing of it ends within a test


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 28,
                     settings={"control": {"sessions_max": SESSIONS_MAX, "queue_max": QUEUE_MAX}})  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_left(pair):
    before = [names(node) for node in pair.nodes]
    yield
    for node in pair.nodes:
        if not node.control.running():
            node.start_control()
    cancel_all(pair)
    wait_until(lambda: [names(node) for node in pair.nodes] == before, 10, f"exports are as before: {before}")
    still_serving(pair)


def fill(node, peer, count):
    return [begin(node, "send", f"memory:{64 * MIB}", f"{peer.name}:null:", *SLOW) for _ in range(count)]


def states(node, *ids):
    found = {session["id"]: session for session in node.sessions()}
    return [found[each] for each in ids]


def queue_of(node):
    """Ids of those that wait for their turn at this node, in order."""
    waiting = [session for session in node.sessions() if session["queue_place"] > 0]
    assert all(session["state"] == "queued" for session in waiting)
    assert sorted(session["queue_place"] for session in waiting) == list(range(1, len(waiting) + 1))
    return [session["id"] for session in sorted(waiting, key=lambda session: session["queue_place"])]


def running_at(node):
    """Those that hold a place. Whose end only the journal has yet to be told holds none."""
    return [session["id"] for session in node.sessions() if session["state"] in RUNNING
            and (session["state"], session["waiting_for"]) != ("finishing", "journal")]  # fmt: skip


def test_what_is_too_much_waits_in_its_order_and_is_shown(pair):
    sessions = fill(pair.a, pair.b, 4)
    wait_state(pair.a, sessions[0], "transferring")
    wait_until(lambda: queue_of(pair.a) == sessions[1:], 30, "the others wait")
    shown = pair.a.json("session", "show", sessions[2])[1]
    assert (shown["queue_place"], shown["queue_length"]) == (2, 3)
    assert shown["waiting_for"] == "its turn: 2nd of 3"
    assert "its turn: 3rd of 3" in pair.a.must("session", "list").stdout
    assert "waiting for   its turn: 1st of 3" in pair.a.must("session", "show", sessions[1]).stdout
    pair.a.must("session", "cancel", sessions[0])
    wait_state(pair.a, sessions[1], "transferring")
    wait_until(lambda: queue_of(pair.a) == sessions[2:], 30, "the others have moved up")


def test_a_higher_priority_goes_first_may_be_changed_and_survives_a_restart(pair):
    first = fill(pair.a, pair.b, 3)
    wait_state(pair.a, first[0], "transferring")
    wait_until(lambda: queue_of(pair.a) == first[1:], 30, "two wait")
    urgent = begin(pair.a, "send", f"memory:{64 * MIB}", f"{pair.b.name}:null:", *SLOW, "--priority", "10")
    wait_until(lambda: queue_of(pair.a) == [urgent, *first[1:]], 30, "it goes first")
    assert states(pair.a, first[0])[0]["state"] == "transferring", "who runs is not put out"
    assert pair.a.must("session", "priority", first[2], "20").stdout == f"session {first[2]} has priority 20\n"
    wait_until(lambda: queue_of(pair.a) == [first[2], urgent, first[1]], 30, "another goes first")
    pair.a.control.kill()
    pair.a.start_control()
    wait_until(lambda: queue_of(pair.a) == [first[2], urgent, first[1]], 30, "the order is as before")
    assert states(pair.a, first[2])[0]["priority"] == 20
    refused(pair.b.sluice("session", "priority", first[0], "1"), USAGE, "node a")
    refused(pair.a.sluice("session", "priority", first[1], "101"), USAGE, "101")
    pair.a.must("session", "cancel", first[0])
    wait_state(pair.a, first[2], "transferring")


def test_who_waits_can_be_cancelled_paused_and_continued(pair):
    sessions = fill(pair.a, pair.b, 4)
    wait_until(lambda: queue_of(pair.a) == sessions[1:], 30, "the others wait")
    pair.a.must("session", "cancel", sessions[2])
    assert ended_session(pair.a, sessions[2])["state"] == "cancelled"
    pair.a.must("session", "pause", sessions[1])
    assert queue_of(pair.a) == sessions[3:]
    pair.a.must("session", "continue", sessions[1])
    wait_until(lambda: queue_of(pair.a) == [sessions[3], sessions[1]], 30, "who was paused is the last")


def test_the_queue_and_a_pause_in_it_survive_a_restart(pair):
    sessions = fill(pair.a, pair.b, 5)
    wait_until(lambda: queue_of(pair.a) == sessions[1:], 30, "the others wait")
    pair.a.must("session", "pause", sessions[2])
    pair.a.control.kill()
    pair.a.start_control()
    wait_state(pair.a, sessions[0], "transferring")
    wait_until(lambda: queue_of(pair.a) == [sessions[1], sessions[3], sessions[4]], 30, "the order is as before")
    assert states(pair.a, sessions[2])[0]["state"] == "paused"


def test_a_paused_session_holds_up_nobody(pair):
    first, second = fill(pair.a, pair.b, 2)
    wait_state(pair.a, first, "transferring")
    pair.a.must("session", "pause", first)
    wait_state(pair.a, second, "transferring")


def test_a_turn_that_comes_while_the_other_node_is_away_is_not_the_end(pair):
    first, second = fill(pair.a, pair.b, 2)
    wait_state(pair.a, first, "transferring")
    wait_until(lambda: queue_of(pair.a) == [second], 30, "the second waits")
    pair.b.control.kill()
    pair.a.must("session", "cancel", first)
    wait_state(pair.a, second, "waiting")
    pair.b.start_control()
    wait_state(pair.a, second, "transferring")


def test_a_queue_that_is_full_refuses_with_a_reason(pair):
    fill(pair.a, pair.b, SESSIONS_MAX + QUEUE_MAX)
    result = pair.a.sluice("send", "memory:1M", "b:null:")
    refused(result, RESOURCES, "node a", SESSIONS_MAX + QUEUE_MAX, "queue_max")


def test_a_caller_waits_for_its_turn_at_the_node_that_it_called(pair):
    pair.a.settings["control"]["sessions_max"] = 32
    pair.a.write_configuration()
    pair.a.control.stop()
    pair.a.start_control()
    try:
        sessions = fill(pair.a, pair.b, 4)

        def shown():
            waits = [session["waiting_for"] for session in states(pair.a, *sessions)]
            return sorted(wait for wait in waits if wait.startswith("node b: its turn, "))

        wait_until(lambda: shown() == [f"node b: its turn, {place} of 3" for place in ("1st", "2nd", "3rd")],
                   30, "three wait for node b")  # fmt: skip

        def running():
            return [session["id"] for session in states(pair.a, *sessions) if session["state"] == "transferring"]

        first, *others = wait_until(running, 30, "the first has its turn")
        assert not others
        pair.a.must("session", "cancel", first)
        wait_until(running, 30, "the next has its turn")
        assert not any(session["error"] for session in states(pair.a, *sessions) if session["id"] != first)
    finally:
        pair.a.settings["control"]["sessions_max"] = SESSIONS_MAX
        pair.a.write_configuration()
        pair.a.control.stop()
        pair.a.start_control()


@pytest.mark.parametrize("victim", ["a", "b"])
def test_both_directions_queue_for_each_other_through_a_restart(pair, victim):
    begun = []
    for giver, taker in ((pair.a, pair.b), (pair.b, pair.a)):
        for _ in range(2):
            source = make_file(giver, 3 * MIB + 1)
            session = begin(giver, "send", source, f"{taker.name}:data/", "--rate", "20M")
            begun.append((giver, session, source, taker.export() / source.name))
        source = make_file(taker, 3 * MIB + 4095)
        target = giver.export() / ("got-" + source.name)
        session = begin(giver, "get", f"{taker.name}:{source}", target, "--rate", "20M")
        begun.append((giver, session, source, target))

    ended_once = []

    def some_have_ended(count):
        for node in pair.nodes:
            running = running_at(node)
            assert len(running) <= SESSIONS_MAX, f"node {node.name} runs {running}"
        ended_once[:] = [session for node, session, _, _ in begun if states(node, session)[0]["state"] in ENDED]
        return len(ended_once) >= count

    wait_until(lambda: some_have_ended(2), 60, "two of six have ended")
    node = getattr(pair, victim)
    node.control.kill()
    node.start_control()
    wait_until(lambda: some_have_ended(6), 120, "all have ended")
    for node, session, source, target in begun:
        end = ended_session(node, session)
        assert end["state"] == "succeeded", end["error"]
        assert same_bytes(source, target)
        forget(source, target)
