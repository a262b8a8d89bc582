# A tree moves while its list is still read: what is in it arrives before the list has ended, and whatever falls over
# meanwhile, it goes on. The list is held up at a directory by the test (held.py), so each of these moments is met.
# SPDX-License-Identifier: Apache-2.0
import os
import shutil

import pytest
from harness import wait_until
from harness.system import is_root
from held import held
from transfers import MIB, begin, ended_session, nothing_temporary, wait_state
from trees import forget_tree, make_tree, names_beneath, same

pytestmark = pytest.mark.skipif(not is_root(), reason="holding up a directory needs root")

UNREADABLE = 7
PACK_NAMES = 60  # at least, of one pack: it is offered when it has 4 MiB, before the list has ended
FIRST = 160
FILE_BYTES = 60_000
RATE = "40M"
RESENT_MAX = 18 * MIB  # what may have left and was not durable: resume_test.py has the same


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30, in_memory=True,
                     settings={"control": {"stall_timeout_s": 30, "sync_lag_ms": 100}})  # fmt: skip


class Moving:
    """A tree of which a pack is offered before directory `last` is read."""

    def __init__(self, pair, push):
        self.pair, self.push = pair, push
        self.giver, self.taker = (pair.a, pair.b) if push else (pair.b, pair.a)
        self.root = self.giver.export() / "tree"
        self.target = self.taker.export() / "in"
        self.target.mkdir()
        make_tree(self.root, files=60, large=1)
        self.first, self.last = self.root / "a", self.root / "zz"
        self.first.mkdir()
        for i in range(FIRST):
            (self.first / f"f{i:05}").write_bytes(os.urandom(FILE_BYTES))
        self.last.mkdir()
        for i in range(300):
            (self.last / f"g{i}").write_bytes(os.urandom(5000))
        os.link(self.first / "f00000", self.last / "link")
        (self.last / "large").write_bytes(os.urandom(2 * MIB + 5))

    def begin(self, *options):
        arguments = ("send", self.root, "b:data/in/") if self.push else ("get", f"b:{self.root}", self.target)
        self.session = begin(self.pair.a, *arguments, *options)

    def views(self):
        """As both nodes show it; nothing while one does not answer."""
        shown = [node.json("session", "show", self.session) for node in (self.giver, self.taker)]
        return all(status == 0 for status, _, _ in shown) and [reply for _, reply, _ in shown]

    def wait_for_the_first(self):
        """All that was offered so far has arrived, and both know that it is not all."""

        def there():
            views = self.views()
            arrived = [v["listing"] and v["names"]["done"] >= PACK_NAMES and v["bytes_done"] == v["bytes_total"] for v in views or ()]
            return views and all(arrived) and views

        return wait_until(there, 60, "what is in the first pack has arrived while the list is read")

    def succeeded(self):
        names = names_beneath(self.root) + 1
        for node in self.pair.nodes:
            end = ended_session(node, self.session)
            assert end["state"] == "succeeded" and end["error_code"] == 0, end
            assert not end["listing"]
            assert end["names"]["done"] == end["names"]["total"] == names, end["names"]
        same(self.root, self.target / "tree")
        nothing_temporary(*self.pair.nodes)
        return ended_session(self.giver, self.session)


@pytest.fixture(params=[True, False], ids=["push", "pull"])
def moving(pair, request):
    yield Moving(pair, request.param)
    for node in pair.nodes:
        if not node.dataplane.running():
            node.start_dataplane()
        if not node.control.running():
            node.start_control()
        wait_until(node.attached, 30, "control is attached")
        for place in list(node.export().iterdir()):
            forget_tree(place)


def restart(node, *daemons):
    for daemon in daemons:
        getattr(node, daemon).kill()
    for daemon in reversed(daemons):  # the dataplane first
        node.start_control() if daemon == "control" else node.start_dataplane()


def test_what_was_found_arrives_while_more_is_looked_for(moving):
    with held(moving.last) as hold:
        moving.begin()
        hold.wait_for(moving.giver.control.pid)
        views = moving.wait_for_the_first()
        assert (moving.target / "tree" / "a" / "f00000").exists()
        assert not (moving.target / "tree" / "zz").exists()
        for node, view in zip((moving.giver, moving.taker), views):
            assert view["bytes_done"] == view["bytes_total"] > 0
            waits = "the list of files" if node is moving.giver else "the peer's list of files"
            wait_until(lambda node=node, waits=waits: node.json("session", "show", moving.session)[1]["waiting_for"] == waits,
                       10, f"node {node.name} waits for {waits}")  # fmt: skip
            text = node.must("session", "show", moving.session).stdout
            assert "so far" in text, text
            assert "so far" in node.must("session", "list").stdout
    assert moving.succeeded()["attempts"] == 1


@pytest.mark.parametrize("daemon", ["control", "dataplane"])
@pytest.mark.parametrize("victim", ["source", "destination"])
def test_a_daemon_killed_while_the_list_is_read(moving, victim, daemon):
    node = moving.giver if victim == "source" else moving.taker
    with held(moving.last) as hold:
        moving.begin()
        hold.wait_for(moving.giver.control.pid)
        moving.wait_for_the_first()
        restart(node, daemon)
        hold.wait_for(moving.giver.control.pid)  # another one, if it was killed: it lists anew
        moving.wait_for_the_first()
    # All that had been offered was durable: none of it leaves again.
    assert moving.succeeded()["bytes_resent"] == 0


@pytest.mark.parametrize("victims", [("source",), ("destination",), ("source", "destination")],
                         ids=["source", "destination", "both"])  # fmt: skip
def test_a_node_killed_while_the_list_is_read_and_data_move(moving, victims):
    for i in range(4):  # some seconds of what is offered early
        (moving.first / f"f{i:05}").write_bytes(os.urandom(MIB - i))
    for i in range(64):
        (moving.first / f"large{i:02}").write_bytes(os.urandom(MIB + 1 + i))
    with held(moving.last) as hold:
        moving.begin("--rate", "200M")
        hold.wait_for(moving.giver.control.pid)
        wait_until(lambda: (views := moving.views()) and views[1]["bytes_done"] > 8 * MIB, 60, "data move")
        for victim in victims:
            restart(moving.giver if victim == "source" else moving.taker, "control", "dataplane")
        hold.wait_for(moving.giver.control.pid)
    assert moving.succeeded()["bytes_resent"] <= RESENT_MAX


def test_a_session_that_was_paused_while_the_list_was_read_goes_on(moving):
    with held(moving.last) as hold:
        moving.begin()
        hold.wait_for(moving.giver.control.pid)
        moving.wait_for_the_first()
        moving.pair.a.must("session", "pause", moving.session)
        wait_state(moving.pair.a, moving.session, "paused")
    moving.pair.a.must("session", "continue", moving.session)
    assert moving.succeeded()["bytes_resent"] == 0


def test_a_session_that_is_cancelled_while_the_list_is_read_leaves_nothing_unfinished(moving):
    with held(moving.last) as hold:
        moving.begin()
        hold.wait_for(moving.giver.control.pid)
        moving.wait_for_the_first()
        moving.pair.a.must("session", "cancel", moving.session)
        for node in moving.pair.nodes:
            end = ended_session(node, moving.session)
            assert end["state"] == "cancelled" and end["listing"], end
        nothing_temporary(*moving.pair.nodes)


def test_what_changed_while_nobody_listed_is_sent_as_it_is_or_told(moving):
    """The source's control is away; a name that was offered goes, another comes that is listed before it."""
    with held(moving.last) as hold:
        moving.begin("--rate", RATE)
        hold.wait_for(moving.giver.control.pid)
        moving.wait_for_the_first()
        moving.giver.control.kill()
        (moving.first / "f00007").unlink()  # has arrived
        (moving.first / "a comes late").write_bytes(b"late")
        shutil.rmtree(moving.last)
        moving.last.mkdir()
        (moving.last / "other").write_bytes(b"other")
        moving.giver.start_control()
    for node in moving.pair.nodes:
        end = ended_session(node, moving.session)
        assert end["state"] == "succeeded", end
    arrived = moving.target / "tree"
    assert (arrived / "a" / "a comes late").read_bytes() == b"late"
    assert sorted(path.name for path in (arrived / "zz").iterdir()) == ["other"]
    assert (arrived / "a" / "f00007").exists()
    nothing_temporary(*moving.pair.nodes)


def test_a_source_that_is_not_there_is_an_error_of_the_command(moving):
    result = moving.pair.a.sluice("send", moving.pair.a.export(), moving.pair.a.export() / "nothing", "b:data/in/")
    assert result.returncode == UNREADABLE and "nothing" in result.stderr, result.stderr
