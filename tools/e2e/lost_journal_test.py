# A node loses its journal. If the node was the initiator, the session ends by itself at the other node. If it was the
# destination, it gets the tree again.
# SPDX-License-Identifier: Apache-2.0
import shutil

import pytest
from harness import wait_until
from harness.system import same_bytes
from partings import SETTINGS, begin, going_on, nothing_left
from transfers import UNREACHABLE, ended_session, finish, forget, start_slow, wait_state


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30, settings=SETTINGS)


@pytest.fixture(autouse=True)
def as_before(pair):
    with nothing_left(pair):
        yield


def lose_journal(node):
    for path in node.directory.glob("journal.sqlite*"):
        path.unlink()


@pytest.mark.parametrize("push_it", [True, False], ids=["push", "pull"])
def test_a_session_whose_initiator_lost_its_journal_ends(pair, push_it):
    process, session, source, target = begin(pair, push_it)
    pair.a.control.kill()
    finish(process)
    lose_journal(pair.a)
    pair.a.start_control()
    assert not pair.a.sessions()
    end = ended_session(pair.b, session, deadline_s=60)
    assert (end["state"], end["error_code"]) == ("failed", UNREACHABLE), end
    assert "a: knows nothing of this session" in end["error"]
    assert not going_on(pair.b)
    assert not target.exists()
    # What the initiator itself had not finished nobody knows: whoever writes there next replaces it.
    arguments = ("send", source, "b:data/") if push_it else ("get", f"b:{source}", target)
    again = pair.a.sluice(*arguments)
    assert again.returncode == 0, again.stderr
    assert same_bytes(source, target)
    forget(source, target)


def test_a_paused_session_whose_initiator_lost_its_journal_ends(pair):
    process, session, source, target = begin(pair, True)
    pair.b.must("session", "pause", session)
    wait_state(pair.b, session, "paused")
    pair.a.control.kill()
    finish(process)
    lose_journal(pair.a)
    pair.a.start_control()
    end = ended_session(pair.b, session, deadline_s=60)
    assert (end["state"], end["error_code"]) == ("failed", UNREACHABLE), end
    assert not target.exists()
    forget(source)


def test_a_destination_that_lost_its_journal_gets_the_tree_anew(pair):
    tree, there = pair.a.export() / "many", pair.b.export() / "many"
    tree.mkdir()
    for number in range(1500):
        (tree / f"f{number}").write_bytes(number.to_bytes(2, "big") * 4000)
    process, session = start_slow(pair.a, "send", tree, "b:data/", rate="25M")
    wait_until(lambda: there.is_dir() and any(there.iterdir()), 60, "some names were given")
    pair.b.control.kill()
    lose_journal(pair.b)
    pair.b.start_control()
    ended = finish(process, deadline_s=120)
    assert ended.returncode == 0, ended.stderr
    assert {path.name: path.read_bytes() for path in there.iterdir()} == {
        path.name: path.read_bytes() for path in tree.iterdir()}  # fmt: skip
    shutil.rmtree(tree)
    shutil.rmtree(there)


def test_a_journal_that_is_moved_while_it_is_open_is_noticed_and_one_that_comes_back_too(pair):
    node = pair.a
    journal, aside = node.directory / "journal.sqlite", node.directory / "aside.sqlite"
    was = "was removed, moved or replaced while it is open"

    def checked():
        return [(one["level"], one["remedy"]) for one in node.json("doctor")[1]["checks"] if one["check"] == "journal"]

    assert checked() == [("pass", "")]
    journal.rename(aside)
    try:
        wait_until(lambda: node.control.log_lines(was), 60, "the log has it")
        ((level, remedy),) = checked()
        assert level == "fail" and "put it back" in remedy
        journal.write_bytes(aside.read_bytes())
        assert checked()[0][0] == "fail", "another file of that name"
    finally:
        aside.rename(journal)
    wait_until(lambda: node.control.log_lines("stands in its place again"), 60, "the log has that")
    assert checked() == [("pass", "")]
    assert len(node.control.log_lines(was)) == 1, "said once"
