# A node and a stranger: directories, which travel in packs. docs/WIRE.md, 2.7.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib

import pytest
from harness import veth_missing
from harness.system import is_root
from stranger import called, met
from transfers import last_session
from trees import acl, forget_tree, kept, make_tree, names_beneath, same, state_of

import peer
from peer import packs, source
from peer.control import pb

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

INCOMPATIBLE, PARTIAL = 15, 21


@pytest.fixture(scope="module")
def meeting():
    with met(chooses=True) as one:
        yield one


@pytest.fixture
def theirs(meeting):
    root = meeting.folder / "tree"
    make_tree(root, files=200)
    yield root
    for place in (root, meeting.node.export() / "tree"):
        forget_tree(place)


@pytest.fixture
def ours(meeting):
    root = meeting.node.export() / "tree"
    make_tree(root, files=200)
    yield root
    for place in (root, meeting.folder / "tree"):
        forget_tree(place)


def test_peer_sends_a_tree(meeting, theirs):
    meeting.peer().send(meeting.address, [theirs], "data/", is_directory=True)
    same(theirs, meeting.node.export() / "tree")


def test_peer_fetches_a_tree(meeting, ours):
    meeting.peer().get(meeting.address, ["data/tree"])
    same(ours, meeting.folder / "tree")


def test_peer_is_sent_a_tree(meeting, ours):
    with called(meeting, meeting.peer()) as session:
        meeting.node.must("send", ours, "peer:data/")
        assert session.result().ended
    same(ours, meeting.folder / "tree")
    names = last_session(meeting.node)["names"]
    assert names["done"] == names["total"] == names_beneath(ours) + 1


def test_peer_is_asked_for_a_tree(meeting, theirs):
    with called(meeting, meeting.peer()) as session:
        meeting.node.must("get", "peer:data/tree", meeting.node.export())
        assert session.result().ended
    same(theirs, meeting.node.export() / "tree")


def _dress(root):
    """Owners, extended attributes and ACLs, which a peer that was written from WIRE 2.12 keeps as a node does."""
    for number, path in enumerate(sorted(root.rglob("*"))):
        os.chown(path, 4000 + number, 5000 + number, follow_symlinks=False)
        if not path.is_symlink() and number % 3 == 0:
            os.setxattr(path, "user.number", str(number).encode())
            os.setxattr(path, "system.posix_acl_access", acl(6000 + number))
        if path.is_dir() and not path.is_symlink():
            os.setxattr(path, "system.posix_acl_default", acl(7000))
    with open(root / "by itself", "wb") as file:
        file.write(b"x" * (2 << 20))
    os.setxattr(root / "by itself", "user.a", b"1")


@pytest.mark.skipif(not is_root(), reason="only root gives files away")
@pytest.mark.parametrize("by_number", [False, True])
def test_peer_keeps_what_it_is_asked_to_keep(meeting, ours, by_number):
    _dress(ours)
    keep = 1 | 2 | 8 | 16 | (4 if by_number else 0)
    flags = ["--owner", "--group", "--xattrs", "--acls", *(["--numeric-ids"] if by_number else [])]
    there = meeting.folder / "tree"
    with called(meeting, meeting.peer()) as session:
        meeting.node.must("send", ours, "peer:data/", *flags)
        assert session.result().ended
    assert kept(there, owners=True) == kept(ours, owners=True)
    forget_tree(ours)
    meeting.peer().send(meeting.address, [there], "data/", is_directory=True, keep=keep)
    assert kept(there, owners=True) == kept(ours, owners=True)
    forget_tree(there)
    meeting.peer().get(meeting.address, ["data/tree"], keep=keep)
    assert kept(there, owners=True) == kept(ours, owners=True)


@pytest.mark.parametrize("name", [b"trusted.a", b"security.capability", b"system.posix_acl_access", b"user."])
def test_a_pack_with_attributes_of_the_system_is_refused_whole(meeting, theirs, monkeypatch, name):
    entry = pb.PackEntry(path=b"tree/one", mode=0o644, attributes=pb.Attributes(xattrs=[pb.Xattr(name=name)]))
    monkeypatch.setattr(packs, "tree", lambda _, keep=0: [(packs.LAST_PACK, 1, packs.pack([(entry, b"x")]))])
    with pytest.raises(peer.Failed, match="extended attribute that cannot be") as refused:
        meeting.peer().send(meeting.address, [theirs], "data/", is_directory=True, keep=8)
    assert refused.value.code == INCOMPATIBLE
    assert not (meeting.node.export() / "tree").exists()


def test_what_the_peer_could_not_store_is_told(meeting, ours):
    (meeting.folder / "tree").mkdir()
    (meeting.folder / "tree" / "d2").write_bytes(b"in the way")
    with called(meeting, meeting.peer()) as session:
        sent = meeting.node.sluice("send", f"{ours}/d2", f"{ours}/d3", "peer:data/tree/")
        assert session.result().ended
    assert sent.returncode == PARTIAL, sent.stderr
    assert "missing: d2/" in sent.stdout and "missing: d3" not in sent.stdout


# ---- a peer that lies --------------------------------------------------------------------------------


def entry(path, content=b"x", **fields):
    return pb.PackEntry(path=path, mode=0o644, mtime_ns=5, **fields), content


def peak_of(daemon):
    """The most resident bytes that it ever had."""
    status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def lying(monkeypatch, kind, *entries, content=None):
    content = content or packs.pack(list(entries))
    monkeypatch.setattr(packs, "tree", lambda _path, _keep=0: [(kind, max(1, len(entries)), content)])


LIES = {
    "above": [entry(b"../escaped")],
    "within": [entry(b"a/../../escaped")],
    "absolute": [entry(b"/tmp/escaped")],
    "empty": [entry(b"a//b")],
    "nothing": [entry(b"")],
    "nul": [entry(b"a\0b")],
    "long": [entry(b"n" * 256)],
    "link": [entry(b"a", b"", kind=packs.HARD_LINK, target=b"../../etc/passwd")],
    "directory": [entry(b"a", b"bytes", kind=packs.DIRECTORY)],
}


@pytest.mark.parametrize("entries", LIES.values(), ids=LIES.keys())
def test_a_pack_that_leads_elsewhere_is_refused_whole(meeting, theirs, monkeypatch, entries):
    lying(monkeypatch, packs.PACK, entry(b"honest"), *entries)
    with pytest.raises(peer.Failed) as failed:
        meeting.peer().send(meeting.address, [theirs], "data/", is_directory=True)
    assert failed.value.code == INCOMPATIBLE, failed.value
    assert not (meeting.node.export() / "honest").exists()


def test_a_pack_that_says_it_had_a_billion_names_takes_no_memory_for_them(meeting, theirs, monkeypatch):
    monkeypatch.setattr(packs, "tree", lambda _path, _keep=0: [(packs.LAST_PACK, 10**9, packs.pack([entry(b"only")]))])
    before = peak_of(meeting.node.control)
    meeting.peer().send(meeting.address, [theirs], "data/", is_directory=True)
    (meeting.node.export() / "only").unlink()
    assert peak_of(meeting.node.control) - before < 16 << 20


def test_a_pack_with_another_digest_fails_with_all_its_names(meeting, theirs):
    class Liar(peer.Source):
        def _say_digest(self, number, file):
            if number != 0:
                return super()._say_digest(number, file)
            file.digest_told = True
            self.stream.send("file_digest", object=number, size=file.size, digest=1)

    session = meeting.peer(source=Liar).send(meeting.address, [theirs], "data/", is_directory=True)
    assert session.ended and session.failed == {0: []}, "nobody knows what was in it"
    names = last_session(meeting.node)["names"]
    assert names["failed"] >= session.files[0].members > 200 and names["done"] == names["total"] - names["failed"]
    assert not [path for path in (meeting.node.export() / "tree").rglob("*") if not path.is_dir()]


@pytest.mark.parametrize("content", [b"", b"SLUICEP1", b"SLUICEP1" + b"\xff" * 16, packs.HEAD.pack(packs.MAGIC, 40, 64) + b"\xff" * 40])
def test_what_is_no_pack_is_refused(meeting, theirs, monkeypatch, content):
    lying(monkeypatch, packs.PACK, content=content or b"x")
    with pytest.raises(peer.Failed) as failed:
        meeting.peer().send(meeting.address, [theirs], "data/", is_directory=True)
    assert failed.value.code == INCOMPATIBLE, failed.value


# ---- what of a tree is wanted: 2.8 ------------------------------------------------------------------------


def test_peer_fetches_what_rules_and_a_list_leave(meeting, ours):
    meeting.peer().get(meeting.address, ["data/tree"], rules=[(True, b"f1*"), (False, b"f*"), (False, b"e3")])
    got = set(state_of(meeting.folder / "tree"))
    assert b"d0/e0" in got and b"d3/e3" not in got
    assert {path.rsplit(b"/f")[-1][:1] for path in got if b"/f" in path} == {b"1"}
    meeting.peer().get(meeting.address, ["data/tree"], names=[b"d1/large0", b"dangling"])
    assert (meeting.folder / "d1" / "large0").read_bytes() == (ours / "d1" / "large0").read_bytes()
    assert not (meeting.folder / "d0").exists()
    forget_tree(meeting.folder / "d1")
    (meeting.folder / "dangling").unlink()


SELECTIONS = {
    "no pattern": {"rules": [(True, b"")]},
    "a long pattern": {"rules": [(False, b"x" * 4097)]},
    "a zero byte": {"rules": [(False, b"a\0b")]},
    "many rules": {"rules": [(False, b"x")] * 10_001},
    "long rules": {"rules": [(False, b"x" * 4096)] * 257},
    "a name that leads out": {"names": [b"../escaped"]},
    "a name that is absolute": {"names": [b"/etc"]},
    "many names": {"names": [b"x"] * 100_001},
}


@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=SELECTIONS.keys())
def test_a_selection_that_cannot_be_is_refused(meeting, ours, selection):
    with pytest.raises(peer.Failed) as failed:
        meeting.peer().get(meeting.address, ["data/tree"], **selection)
    assert failed.value.code == INCOMPATIBLE, failed.value
    assert "asks for a selection that cannot be" in str(failed.value)


def test_a_peer_that_cannot_select_says_so(meeting, theirs):
    with called(meeting, meeting.peer()) as session:
        got = meeting.node.sluice("get", "peer:data/tree", meeting.node.export(), "--exclude", "d0")
        with pytest.raises(peer.Failed):
            session.result()
    assert got.returncode == INCOMPATIBLE and "cannot select" in got.stderr, got.stderr


def test_a_peer_that_selects_nothing_is_found_out(meeting, theirs, monkeypatch):
    monkeypatch.setattr(source.Source, "check_selection", lambda *_: None)
    with called(meeting, meeting.peer()) as session:
        got = meeting.node.sluice("get", "peer:data/tree", meeting.node.export(), "--exclude", "d0")
        with pytest.raises(peer.Failed):
            session.result()
    assert got.returncode == INCOMPATIBLE and "which was not asked for" in got.stderr, got.stderr
    assert not (meeting.node.export() / "tree" / "d0").exists()


def test_names_that_were_not_asked_for_are_refused(meeting, theirs, monkeypatch):
    lying(monkeypatch, packs.PACK, entry(b"tree/honest"), entry(b"treachery"))
    with called(meeting, meeting.peer()) as session:
        got = meeting.node.sluice("get", "peer:data/tree", meeting.node.export())
        with pytest.raises(peer.Failed):
            session.result()
    assert got.returncode == INCOMPATIBLE, got.stderr
    assert "treachery, which was not asked for" in got.stderr
    assert not (meeting.node.export() / "treachery").exists()


def test_bytes_that_are_not_those_of_their_digest_get_no_name(meeting, theirs, monkeypatch):
    good, bad = entry(b"good", b"1"), entry(b"bad", b"2")
    content = packs.pack([good, bad])
    lying(monkeypatch, packs.PACK, good, bad, content=content[:-1] + b"3")
    meeting.peer().send(meeting.address, [theirs], "data/", is_directory=True)
    assert (meeting.node.export() / "good").read_bytes() == b"1"
    assert not (meeting.node.export() / "bad").exists()
    (missing,) = last_session(meeting.node)["names"]["missing"]
    assert missing["path"] == "bad" and "has other bytes than its source summed" in missing["reason"]
    (meeting.node.export() / "good").unlink()
