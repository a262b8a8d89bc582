# A node and a stranger about names: what docs/WIRE.md says in 2.6, honest and not.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import shutil
import threading
import time

import pytest
from harness import veth_missing
from stranger import met
from transfers import EXISTS, INCOMPATIBLE, OUTSIDE, RESOURCES, SOURCE, USAGE, refused

import peer
from peer import names
from peer.session import VERSION

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))


@pytest.fixture(scope="module")
def meeting():
    with met(mode="rwm") as one:
        yield one


def fill(top):
    for folder in ("a", "a/deep", "b"):
        (top / folder).mkdir(parents=True)
    for file in ("a/x.h5", "a/deep/y", "b/z.h5", "w.h5", ".v.sluice-part"):
        (top / file).write_text(file)
    os.symlink("../none", top / "link")
    with open(os.fsencode(top) + b"/\xff\n", "w"):
        pass


@pytest.fixture
def of_node(meeting):
    top = meeting.node.export() / "tree"
    fill(top)
    yield top
    shutil.rmtree(top)


@pytest.fixture
def of_peer(meeting):
    fill(meeting.folder / "tree")
    yield meeting.folder / "tree"
    shutil.rmtree(meeting.folder / "tree")


@contextlib.contextmanager
def answering(meeting, owner):
    """The peer answers every call meanwhile."""
    node, over = meeting.peer(owner=owner), threading.Event()

    def answer():
        while not over.is_set():
            with contextlib.suppress(peer.Failed, peer.Gone, TimeoutError):
                node.take_one(meeting.listener, timeout_s=0.2)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def refusal(meeting, code, kind, **fields):
    with pytest.raises(peer.Failed) as failed:
        meeting.peer().ask(meeting.address, kind, **fields)
    assert failed.value.code == code, failed.value


# ---- the peer asks ------------------------------------------------------------------------------------


def test_peer_lists(meeting, of_node):
    node = meeting.peer()

    def paths(path, **fields):
        return [each.path for each in node.ask(meeting.address, "list", path=path, **fields)[0]]

    assert paths(b"data/tree") == [b"a", b"b", b"link", b"w.h5", b"\xff\n"]
    assert paths(b"data/tree", recursive=True) == [b"a", b"a/deep", b"a/deep/y", b"a/x.h5", b"b", b"b/z.h5", b"link",
                                                   b"w.h5", b"\xff\n"]  # fmt: skip
    assert paths(b"data/tree/*/*.h5", glob=True) == [b"a/x.h5", b"b/z.h5"]
    assert paths(b"data/tree/w.h5") == [b""] == paths(b"data/tree", itself=True)
    assert paths(b"") == [b"data"]
    assert b".v.sluice-part" in paths(b"data/tree", unfinished=True)
    link = node.ask(meeting.address, "list", path=b"data/tree/link")[0][0]
    assert (link.type, link.target, link.size) == (3, b"../none", 7)


def test_digests_are_of_the_kind_that_is_asked_for(meeting, of_node):
    for kind, digest in names.DIGESTS.items():
        [entry], _ = meeting.peer().ask(meeting.address, "list", path=b"data/tree/w.h5", digests=True, digest_kind=kind)
        assert (entry.digest_kind, entry.digest) == (kind, digest(b"w.h5"))
    [entry], _ = meeting.peer().ask(meeting.address, "list", path=b"data/tree/w.h5", digests=True, digest_kind=99)
    assert (entry.digest_kind, entry.digest) == (0, names.DIGESTS[0](b"w.h5"))


def test_pages_come_as_they_are_let_come(meeting, of_node):
    for number in range(5000):
        (of_node / f"a/{number:04}").touch()
    stream = names.call(meeting.address, meeting.identity, VERSION)
    stream.send("names_request", list={"path": b"data/tree/a", "pages": 2})
    pages, end = 0, time.monotonic() + 3
    while time.monotonic() < end:
        pages += len(stream.poll(0.1))
    assert pages == 2, "and no more, for as long as nobody says so"
    stream.send("names_more", pages=100)
    entries = 0
    while (word := stream.expect("names_page", "names_done"))[0] == "names_page":
        entries += len(word[1].entries)
    assert word[1].entries == 5002 and entries > 2000
    stream.close()


def test_peer_changes_names(meeting, of_node):
    node = meeting.peer()

    def change(kind, **fields):
        return node.ask(meeting.address, kind, **fields)[1].entries

    assert change("make_directory", path=b"data/tree/new/\xfe", parents=True) == 2
    assert change("move", **{"from": b"data/tree/w.h5", "to": b"data/tree/new/\xfe"}) == 1
    refusal(meeting, USAGE, "remove", path=b"data/tree/new", empty=True)
    assert change("remove", path=b"data/tree/new", recursive=True) == 3
    assert change("make_directory", path=b"data/tree/new") == change("remove", path=b"data/tree/new", empty=True) == 1
    refusal(meeting, SOURCE, "remove", path=b"data/tree/w.h5", empty=True)
    refusal(meeting, EXISTS, "move", **{"from": b"data/tree/a/x.h5", "to": b"data/tree/b/z.h5"})
    refusal(meeting, EXISTS, "make_directory", path=b"data/tree/a")
    refusal(meeting, USAGE, "remove", path=b"data/tree/a")
    refusal(meeting, OUTSIDE, "remove", path=b"data", recursive=True)
    refusal(meeting, OUTSIDE, "remove", path=b"/etc/passwd")
    refusal(meeting, OUTSIDE, "list", path=b"data/../..")
    refusal(meeting, OUTSIDE, "list", path=b"data/a\0b")
    refusal(meeting, SOURCE, "list", path=b"data/tree/none")


def test_questions_that_are_none(meeting, of_node):
    refusal(meeting, INCOMPATIBLE, "list", path=b"x" * 4097)
    for words in ([("names_request", {})], [("names_done", {})], [("heartbeat", {}), ("pause", {})],
                  [("names_request", {"list": {"path": b"data", "pages": 0}}), ("names_done", {})]):  # fmt: skip
        stream = names.call(meeting.address, meeting.identity, VERSION)
        for name, fields in words:
            stream.send(name, **fields)
        with pytest.raises((peer.Failed, peer.Gone)) as failed:
            stream.expect("names_page", "names_done", timeout_s=15)
        assert getattr(failed.value, "code", None) in (INCOMPATIBLE, 14), words


def test_only_so_many_are_answered_at_a_time(meeting, of_node):
    waiting = []
    for _ in range(4):
        stream = names.call(meeting.address, meeting.identity, VERSION)
        stream.send("names_request", list={"path": b"data/tree", "pages": 0})
        waiting.append(stream)
    refusal(meeting, RESOURCES, "list", path=b"data/tree")
    for stream in waiting:
        stream.close()
    end = time.monotonic() + 10
    while time.monotonic() < end:
        with contextlib.suppress(peer.Failed):
            meeting.peer().ask(meeting.address, "list", path=b"data/tree")
            return
    raise AssertionError("whoever has left still counts")


# ---- the peer is asked --------------------------------------------------------------------------------


def test_peer_is_asked(meeting, of_peer):
    node = meeting.node
    with answering(meeting, peer.Owner):
        assert node.must("ls", "peer:data/tree").stdout.split("\n")[:-1] == ["a", "b", "link", "w.h5", "\\xff\\n"]
        assert node.must("ls", "-R", "peer:data/tree/a").stdout.split() == ["deep", "deep/y", "x.h5"]
        assert node.must("ls", "peer:data/tree/*/*.h5").stdout.split() == ["data/tree/a/x.h5", "data/tree/b/z.h5"]
        assert "-> ../none" in node.must("ls", "-l", "peer:data/tree/link").stdout
        refused(node.sluice("ls", "peer:data/tree/none"), SOURCE, "peer")
        node.must("mkdir", "-p", "peer:data/tree/new/er")
        node.must("mv", "peer:data/tree/w.h5", "peer:data/tree/new/er")
        refused(node.sluice("mv", "peer:data/tree/a", "peer:data/tree/b/z.h5"), EXISTS, "peer")
        assert (of_peer / "new/er/w.h5").exists()
        node.must("rm", "-r", "peer:data/tree/new")
        assert not (of_peer / "new").exists()
        for number in range(2000):
            (of_peer / f"b/{number:04}").touch()
        assert len(node.must("ls", "peer:data/tree/b").stdout.split()) == 2001


def looked_at(node):
    _, reply, _ = node.json("doctor", "peer")
    return {finding["check"]: finding for finding in reply["checks"] if "peer" in finding["check"]}


def test_a_node_and_a_peer_say_what_they_are(meeting, of_node):
    entries, done = meeting.peer().ask(meeting.address, "about")
    assert not entries and done.node.software.startswith("sluice ")
    assert [space.name for space in done.node.spaces] == ["data"]
    assert 0 < done.node.spaces[0].free_bytes <= done.node.spaces[0].size_bytes
    assert 0 < done.node.asked_unix_ns <= done.node.answered_unix_ns
    with answering(meeting, peer.Owner):
        findings = looked_at(meeting.node)
    assert findings["peer_clock"]["level"] == findings["peer_space"]["level"] == "pass"
    assert "reference peer" in findings["peer_version"]["text"] and findings["peer_version"]["level"] == "warn"


class CrowdOfExports(peer.Owner):
    def about(self, _asked):
        self.done(node=names.pb.NodeState(spaces=[names.pb.ExportSpace(name="x")] * 65))


def test_a_peer_that_says_too_much_of_itself_is_cut_off(meeting):
    with answering(meeting, CrowdOfExports):
        found = looked_at(meeting.node)["peer_asked"]
    assert found["level"] == "fail" and "65 exports" in found["text"]


def test_a_peer_that_is_too_old(meeting):
    """It takes the call for an inquiry about a session that it does not know."""
    with answering(meeting, None):
        for words in (["ls", "peer:data"], ["rm", "peer:data/x"]):
            refused(meeting.node.sluice(*words), INCOMPATIBLE, "peer is too old")


def entry(path, **fields):
    return {"path": path, "type": 1, **fields}


@pytest.mark.parametrize("page, naming", [
    ([entry(b"../x")], "leads elsewhere"),
    ([entry(b"..")], "leads elsewhere"),
    ([entry(b"a/b")], "not asked for"),
    ([entry(b"/etc")], "an empty name"),
    ([entry(b"a\0b")], "a NUL"),
    ([entry(b"x" * 256)], "255 bytes"),
    ([entry(b"x/" * 2048 + b"x")], "4097 bytes"),
    ([entry(b"b"), entry(b"a")], "not in order"),
    ([entry(b"a"), entry(b"a")], "not in order"),
    ([entry(b"a"), entry(b"")], "without a name"),
    ([entry(b"", type=2)], "without a name"),
    ([entry(b"a", target=b"x")], "what no file can be"),
    ([entry(b"a", mode=0o10000)], "what no file can be"),
    ([entry(f"{number:05}".encode()) for number in range(1025)], "1025 entries"),
    ([], "without an entry"),
])  # fmt: skip
def test_lists_that_lie_are_cut_off(meeting, page, naming):
    class Liar(peer.Owner):
        def list(self, asked):
            self.stream.send("names_page", entries=page)
            self.done(entries=len(page))

    with answering(meeting, Liar):
        refused(meeting.node.sluice("ls", "peer:data"), INCOMPATIBLE, naming)


def test_a_list_that_does_not_wait_is_cut_off(meeting):
    class Flood(peer.Owner):
        def list(self, asked):
            for number in range(10_000):
                self.stream.send("names_page", entries=[entry(f"{number:06}".encode())])

    with answering(meeting, Flood):
        result = meeting.node.sluice("ls", "peer:data")
        assert result.returncode == INCOMPATIBLE, result.stderr


def test_a_list_that_does_not_fit_the_pattern_is_cut_off(meeting):
    class Liar(peer.Owner):
        def list(self, asked):
            self.pages([peer.control.pb.NameEntry(path=b"x.txt", type=1)], asked.pages)

    with answering(meeting, Liar):
        refused(meeting.node.sluice("ls", "peer:data/*.h5"), INCOMPATIBLE, "not asked for")


def test_a_list_that_lost_entries_is_none(meeting):
    class Liar(peer.Owner):
        def done(self, **fields):
            super().done(entries=fields["entries"] + 1)

    with answering(meeting, Liar):
        result = meeting.node.sluice("ls", "peer:data")
        assert result.returncode == INCOMPATIBLE and "entries" in result.stderr, result.stderr


def test_a_peer_that_falls_silent(meeting):
    given_up = threading.Event()

    class Silent(peer.Owner):
        def serve(self):  # no word, not even a Heartbeat
            given_up.wait(60)

    with answering(meeting, Silent):
        result = meeting.node.sluice("ls", "peer:data")
        given_up.set()
        assert result.returncode == 6 and "said nothing for 15 s" in result.stderr, result.stderr
