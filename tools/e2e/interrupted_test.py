# An interrupted transfer keeps what is durable and says what it waits for. Operators pause it, cancel it, verify it, stop
# its daemons and change its source.
# SPDX-License-Identifier: Apache-2.0
import os
import re

import pytest
from partings import STALLS_SOON, begin_long, nothing_left, succeeded, wait_done
from transfers import (CANCELLED, EXISTS, INTEGRITY, MIB, UNREACHABLE, ended_session, finish, forget, make_file, push,
                       refused, wait_state)  # fmt: skip


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30, settings={"control": STALLS_SOON})


@pytest.fixture(autouse=True)
def as_before(pair):
    with nothing_left(pair):
        yield


@pytest.mark.parametrize("victim", ["a", "b"])
def test_a_control_that_is_stopped_leaves_the_data_moving(pair, victim):
    process, session, source, target = begin_long(pair, True)
    node = getattr(pair, victim)
    assert node.control.stop() == 0
    node.start_control()
    assert succeeded(pair, session, source, target)["attempts"] <= 1
    finish(process)


def test_what_was_durable_is_not_sent_again(pair):
    process, session, source, target = begin_long(pair, True, size=48 * MIB)
    wait_done(pair.a, session, 24 * MIB)
    pair.b.control.kill()
    pair.b.dataplane.kill()
    pair.b.start()
    end = succeeded(pair, session, source, target)
    assert end["attempts"] >= 2
    # Credit of a flow is at most 16 extents of 1 MiB; the lag is 100 ms of 100 Mbit/s, and as much for the
    # sync itself. Half of the file would be 24 MiB.
    assert end["bytes_resent"] <= 18 * MIB, end["bytes_resent"]
    finish(process)


def test_a_peer_that_is_away_is_waited_for_by_name(pair):
    process, session, source, target = begin_long(pair, True)
    pair.b.control.kill()
    pair.b.dataplane.kill()
    waiting = wait_state(pair.a, session, "waiting")
    # Whichever is noticed first: the control stream that is gone, or the data that stand still.
    assert re.search(r"\bb\b", waiting["waiting_for"]), waiting["waiting_for"]
    pair.b.start()
    succeeded(pair, session, source, target)
    assert finish(process).returncode == 0


def test_cancelled_while_the_peer_is_away_is_cancelled_at_both(pair):
    process, session, source, target = begin_long(pair, True)
    pair.b.control.kill()
    wait_state(pair.a, session, "waiting")
    pair.a.must("session", "cancel", session)
    refused(finish(process), CANCELLED, "cancel")
    pair.b.start_control()
    assert ended_session(pair.b, session)["state"] == "cancelled"
    assert not target.exists()
    forget(source)


@pytest.mark.parametrize("at", ["a", "b"])
@pytest.mark.parametrize("push_it", [True, False], ids=["push", "pull"])
def test_a_cancel_that_was_answered_survives_the_death_of_control(pair, push_it, at):
    process, session, source, target = begin_long(pair, push_it)
    node = getattr(pair, at)
    node.must("session", "cancel", session)
    node.control.kill()
    node.start_control()
    for each in pair.nodes:
        assert ended_session(each, session)["state"] == "cancelled"
    finish(process)
    assert not target.exists()
    forget(source)


@pytest.mark.parametrize("at", ["a", "b"])
def test_paused_and_continued(pair, at):
    process, session, source, target = begin_long(pair, True)
    node, other = (pair.a, pair.b) if at == "a" else (pair.b, pair.a)
    wait_done(pair.a, session, 6 * MIB)
    node.must("session", "pause", session)
    paused = wait_state(node, session, "paused")
    waiting = wait_state(other, session, "waiting")
    assert node.name in waiting["waiting_for"]
    refused(node.sluice("session", "pause", session), 2, "paused already")
    # It stays so over a restart, and the receiving node keeps all that had arrived.
    node.control.kill()
    node.start_control()
    assert wait_state(node, session, "paused")["bytes_done"] == paused["bytes_done"]
    assert at == "a" or paused["bytes_done"] > 6 * MIB
    node.must("session", "continue", session)
    succeeded(pair, session, source, target)
    finish(process)


def test_a_source_that_changes_meanwhile_fails_and_leaves_nothing(pair):
    process, session, source, target = begin_long(pair, True)
    pair.a.control.kill()
    pair.a.dataplane.kill()
    finish(process)
    with open(source, "r+b") as file:
        file.write(b"changed")
    pair.a.start()
    for node in pair.nodes:
        end = ended_session(node, session)
        assert (end["state"], end["error_code"]) == ("failed", INTEGRITY), end
        assert source.name in end["error"]
    assert not target.exists()
    forget(source)


def test_an_interrupted_destination_is_taken(pair):
    process, session, source, target = begin_long(pair, True)
    pair.a.control.kill()
    pair.a.dataplane.kill()
    pair.b.control.kill()
    finish(process)
    pair.b.start_control()
    # b knows of the unfinished file; another session may not have its name.
    pair.a.start_dataplane()
    pair.a.start_control()
    again = pair.a.sluice("send", source, "b:data/")
    assert again.returncode == EXISTS, again.stderr
    succeeded(pair, session, source, target)


def test_no_peer_at_the_beginning_is_an_error_at_once(pair):
    source = make_file(pair.a, MIB)
    pair.b.control.kill()
    refused(pair.a.sluice("send", source, "b:data/"), UNREACHABLE, "b")
    pair.b.start_control()
    forget(source)


def test_verify_sees_a_byte_that_changed_on_the_disk(pair):
    source = make_file(pair.a, 3 * MIB + 5)
    target = push(pair, source)
    session = pair.b.sessions()[-1]["id"]
    assert "good" in pair.b.must("verify", session).stdout
    os.chmod(target, 0o644)
    with open(target, "r+b") as file:
        file.seek(2 * MIB)
        byte = file.read(1)
        file.seek(2 * MIB)
        file.write(bytes([byte[0] ^ 1]))
    bad = pair.b.sluice("verify", session)
    assert bad.returncode == INTEGRITY and "BAD" in bad.stdout, bad
    assert "good" in pair.a.must("verify", session).stdout
    forget(source, target)


def test_verify_checks_what_an_unfinished_session_has(pair):
    process, session, source, target = begin_long(pair, True)
    wait_done(pair.a, session, 8 * MIB)
    pair.b.must("session", "pause", session)
    wait_state(pair.b, session, "paused")
    assert "good" in pair.b.must("verify", session).stdout
    part = target.with_name(f".{target.name}.sluice-part")
    with open(part, "r+b") as file:
        file.seek(1000)
        byte = file.read(1)
        file.seek(1000)
        file.write(bytes([byte[0] ^ 1]))
    bad = pair.b.sluice("verify", session)
    assert bad.returncode == INTEGRITY and "BAD" in bad.stdout, bad
    with open(part, "r+b") as file:
        file.seek(1000)
        file.write(byte)
    pair.b.must("session", "continue", session)
    succeeded(pair, session, source, target)
    finish(process)
