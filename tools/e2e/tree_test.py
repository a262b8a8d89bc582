# Directories from node to node: what arrives is what was sent, whatever fell over meanwhile.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import stat

import pytest
from harness import wait_until
from harness.system import same_bytes
from transfers import INTEGRITY, MIB, USAGE, ended_session, last_session, nothing_temporary, temporary_files
from trees import forget_tree, make_tree, names_beneath, same, state_of

PARTIAL = 21


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30, in_memory=True)


@pytest.fixture
def tree(pair):
    root = pair.a.export() / "tree"
    make_tree(root)
    yield root
    for place in (root, pair.a.export() / "back", *pair.b.export().iterdir()):
        forget_tree(place)
    for node in pair.nodes:
        assert not list(temporary_files(node))


def names_of(node):
    return last_session(node)["names"]


def test_a_tree_arrives_as_it_is_and_comes_back(pair, tree):
    pair.a.must("send", tree, "b:data/")
    same(tree, pair.b.export() / "tree")
    assert os.stat(pair.b.export() / "tree").st_mtime_ns == 123_456_789
    for node in pair.nodes:
        names = names_of(node)
        assert names["total"] == names["done"] == names_beneath(tree) + 1, names
        assert names["failed"] == names["left_out"] == 0 and names["missing"] == []
    (pair.a.export() / "back").mkdir()
    pair.a.must("get", "b:data/tree", pair.a.export() / "back")
    same(tree, pair.a.export() / "back" / "tree")


def test_sent_to_a_name_that_is_not_there_it_gets_that_name(pair, tree):
    there = pair.b.export() / "other-name"
    pair.a.must("send", tree, "b:data/other-name")
    same(tree, there)
    assert os.stat(there).st_mtime_ns == 123_456_789 and not (there / "tree").exists()
    # It is there now: the next goes into it.
    pair.a.must("send", tree, "b:data/other-name")
    same(tree, there / "tree")
    missing = pair.a.sluice("send", tree, "b:data/not/there")
    assert missing.returncode != 0 and "--mkdir" in missing.stderr, missing.stderr


def test_fetched_to_a_name_that_is_not_there_it_gets_that_name(pair, tree, tmp_path):
    source = pair.b.export() / "source"
    pair.a.must("send", tree, "b:data/source")
    there = pair.a.export() / "back"
    pair.a.must("get", "b:data/source", there)
    same(source, there)
    assert os.stat(there).st_mtime_ns == 123_456_789 and not (there / "source").exists()
    # It is there now: the next goes into it.
    pair.a.must("get", "b:data/source", there)
    same(source, there / "source")
    outside = pair.a.sluice("get", "b:data/source", tmp_path / "outside")
    assert outside.returncode == USAGE and not (tmp_path / "outside").exists(), "trees come into exports alone"
    missing = pair.a.sluice("get", "b:data/source", pair.a.export() / "not/there")
    assert missing.returncode != 0 and "--mkdir" in missing.stderr, missing.stderr


def test_a_directory_stays_sticky(pair, tree):
    spool, bits = tree / "spool", 0o1777
    spool.mkdir()
    os.chmod(spool, bits)
    pair.a.must("send", tree, "b:data/")
    assert os.stat(pair.b.export() / "tree/spool").st_mode & 0o7777 == bits
    pair.a.must("get", "b:data/tree", pair.a.export() / "back")
    assert os.stat(pair.a.export() / "back/spool").st_mode & 0o7777 == bits


def test_of_a_path_that_ends_in_a_slash_only_what_is_in_it(pair, tree):
    target = pair.b.export() / "into"
    target.mkdir()
    before = os.stat(target).st_mode
    pair.a.must("send", f"{tree}/", "b:data/into/")
    same(tree, target)
    assert os.stat(target).st_mode == before


def test_what_stands_there_is_kept_unless_it_is_to_be_replaced(pair, tree):
    there = pair.b.export() / "tree" / "d1" / "e1" / "f1"
    there.parent.mkdir(parents=True)
    there.write_bytes(b"mine")
    (pair.b.export() / "tree" / "d2").write_bytes(b"a file where a directory is to be")
    result = pair.a.sluice("send", tree, "b:data/")
    assert result.returncode == PARTIAL, result.stderr
    assert "tree/d1/e1/f1: exists" in result.stdout
    assert there.read_bytes() == b"mine"
    for node in pair.nodes:
        names = names_of(node)
        assert names["failed"] == len(names["missing"]) > 1
        assert {"path": "tree/d1/e1/f1", "reason": "exists at the destination; replace it with --overwrite"} in names["missing"]
        assert all(name["path"] == "tree/d1/e1/f1" or name["path"].startswith("tree/d2") for name in names["missing"])
    (pair.b.export() / "tree" / "d2").unlink()
    pair.a.must("send", tree, "b:data/", "--overwrite")
    same(tree, pair.b.export() / "tree")


def test_the_same_again_changes_nothing_but_what_is_missing(pair, tree):
    pair.a.must("send", tree, "b:data/")
    there = pair.b.export() / "tree"
    (there / "d3" / "e3" / "f3").unlink()
    large = there / "d1" / "large0"
    before = os.stat(large).st_ino
    os.chmod(large, 0o400)
    sent = pair.a.must("send", tree, "b:data/").stdout
    assert "missing" not in sent, sent
    same(tree, there)
    assert os.stat(large).st_ino == before, "the same bytes stay where they are"
    for node in pair.nodes:
        names = names_of(node)
        assert names["failed"] == 0 and names["done"] == names["total"]
    with open(large, "r+b") as other:
        other.write(b"mine")
    result = pair.a.sluice("send", tree, "b:data/")
    assert result.returncode == PARTIAL, result.stdout
    assert "tree/d1/large0: exists at the destination; replace it with --overwrite" in result.stdout
    assert large.read_bytes().startswith(b"mine")


def test_names_as_long_as_a_file_system_takes_them(pair, tree):
    """As small files, as large ones of a tree, as single files; and with what differs at the very end."""
    for number, size in enumerate((100, 2 * MIB)):
        for end in "12":
            (tree / (f"{number}" * 254 + end)).write_bytes(os.urandom(size))
            (tree / (f"{number}" * 242 + end)).write_bytes(os.urandom(size))
    pair.a.must("send", tree, "b:data/")
    same(tree, pair.b.export() / "tree")
    for end in "12":
        name = "1" * 254 + end
        pair.a.must("send", tree / name, "b:data/")
        assert same_bytes(tree / name, pair.b.export() / name)


def test_what_is_in_the_way_is_called_what_it_is(pair, tree):
    """Another kind of thing, and a session that was paused, with --overwrite and without."""
    shutil.rmtree(tree)
    (tree / "kind").mkdir(parents=True)
    for name in ("kind/small", "plain"):
        (tree / name).write_bytes(b"small")
    for name in ("held", "large"):
        (tree / name).write_bytes(os.urandom(4 * MIB))
    there = pair.b.export() / "tree"
    (there / "large").mkdir(parents=True)
    (there / "plain").mkdir()
    (there / "kind").write_bytes(b"a file where a directory is to be")
    session = pair.a.must("send", tree / "held", "b:data/tree/", "--rate", "2M", "--detach").stdout.split()[-1]
    wait_until(lambda: last_session(pair.b)["bytes_done"] > 0, 60, "the first bytes")
    for how in ((), ("--overwrite",), "paused"):
        if how == "paused":
            pair.a.must("session", "pause", session)
            how = ("--overwrite",)
        result = pair.a.sluice("send", tree, "b:data/", *how)
        assert result.returncode == PARTIAL, result.stdout
        told = {each["path"]: each["reason"] for each in names_of(pair.a)["missing"]}
        kind, taken = "something of another kind has that name", "another session writes to that name"
        assert set(told) == {"tree/kind", "tree/kind/small", "tree/large", "tree/plain", "tree/held"}, told
        for path, reason in told.items():
            assert reason.startswith(taken if path == "tree/held" else kind), told
    pair.a.must("session", "cancel", session)
    ended_session(pair.a, session)
    ended_session(pair.b, session)


def test_what_is_no_file_is_left_out_and_named(pair, tree):
    os.mkfifo(tree / "pipe")
    result = pair.a.sluice("send", tree, "b:data/")
    assert result.returncode == 0, result.stderr
    assert "missing: tree/pipe: is a device, a pipe or a socket" in result.stdout
    assert names_of(pair.b)["left_out"] == 1
    (tree / "pipe").unlink()
    os.utime(tree, ns=(1, 123_456_789))
    same(tree, pair.b.export() / "tree")


def test_a_link_in_place_of_a_directory_is_not_followed(pair, tree):
    outside = pair.b.directory / "outside"
    outside.mkdir()
    (pair.b.export() / "tree").mkdir()
    os.symlink(outside, pair.b.export() / "tree" / "d3")
    result = pair.a.sluice("send", tree, "b:data/")
    assert result.returncode == PARTIAL
    assert not list(outside.iterdir())
    assert all(name["path"].startswith("tree/d3") for name in names_of(pair.a)["missing"])


def test_a_destination_that_is_no_directory_is_refused(pair, tree):
    (pair.b.export() / "file").write_bytes(b"mine")
    for target in ("b:data/file", "b:data/not/there/"):
        result = pair.a.sluice("send", tree, target)
        assert result.returncode not in (0, PARTIAL), result.stdout
        assert "directory" in result.stderr
    assert (pair.b.export() / "file").read_bytes() == b"mine"


def test_into_null(pair, tree):
    pair.a.must("send", tree, "b:null:")
    assert not (pair.b.export() / "tree").exists()


def kill_control(node):
    node.control.kill()
    node.start_control()


def kill_dataplane(node):
    node.dataplane.kill()
    node.start_dataplane()


def kill_both(node):
    node.control.kill()
    kill_dataplane(node)
    node.start_control()


@pytest.mark.parametrize("kill", [kill_control, kill_dataplane, kill_both])
@pytest.mark.parametrize("side", [0, 1])
def test_whatever_ends_in_the_middle_the_tree_is_whole_at_the_end(pair, kill, side):
    root = pair.a.export() / "tree"
    make_tree(root, files=3000, seed=side, large=3)
    pair.a.must("send", root, "b:data/", "--rate", "200M", "--detach")
    target = pair.b.export() / "tree"
    for _ in range(2):
        known = names_beneath(target)
        wait_until(lambda known=known: names_beneath(target) > known, 60, "more names")
        kill(pair.nodes[side])
    wait_until(lambda: last_session(pair.a)["state"] == "succeeded", 120, "the end of the session")
    same(root, target)
    names = names_of(pair.a)
    assert names["failed"] == 0 and names["done"] == names["total"]
    nothing_temporary(*pair.nodes)
    for place in (root, target):
        shutil.rmtree(place)


def test_a_session_that_is_cancelled_leaves_whole_files_and_no_others(pair):
    root = pair.a.export() / "tree"
    make_tree(root, files=2000, large=0)
    pair.a.must("send", root, "b:data/", "--rate", "50M", "--detach")
    target = pair.b.export() / "tree"
    wait_until(target.exists, 60, "the first names")
    session = last_session(pair.a)["id"]
    pair.a.must("session", "cancel", session)
    wait_until(lambda: last_session(pair.b)["state"] in ("cancelled", "failed"), 30, "the end at the other node")
    nothing_temporary(pair.b)
    sent, arrived = state_of(root), state_of(target)
    for path, (kind, _mode, mtime_ns, what, _links) in arrived.items():
        if kind == stat.S_IFREG:
            assert (mtime_ns, what) == (sent[path][2], sent[path][3]), path
    for place in (root, target):
        shutil.rmtree(place)


def test_verify_checks_the_large_files_of_a_tree_and_counts_its_other_names(pair):
    root = pair.a.export() / "verified"
    root.mkdir()
    (root / "small").write_bytes(b"small")
    (root / "large").write_bytes(os.urandom(2 * MIB))
    pair.a.must("send", root, "b:data/")
    session = last_session(pair.a)["id"]
    for node in pair.nodes:
        verdict = json.loads(node.must("--json", "verify", session).stdout)
        assert [(file["file"].endswith("/large"), file["good"]) for file in verdict["files"]] == [(True, True)], verdict
        assert verdict["names_unchecked"] == 2, f"the small file and the directory: {verdict}"
    with open(pair.b.export() / "verified/large", "r+b") as file:
        file.write(b"other")
    assert pair.b.sluice("verify", session).returncode == INTEGRITY
    for node in pair.nodes:
        forget_tree(node.export() / "verified")


def test_a_directory_without_files_is_a_name(pair):
    empty = pair.a.export() / "empty"
    empty.mkdir()
    said = pair.a.must("send", empty, "b:data/").stdout
    assert said.startswith("1 name, "), said
    for node in pair.nodes:
        assert all(one["packed"] for one in last_session(node)["files"])
    empty.rmdir()
    (pair.b.export() / "empty").rmdir()
