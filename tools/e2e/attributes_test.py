# Owners and groups: kept where they are asked for, by name or by number, and only where a peer may choose them.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import pwd

import pytest
from harness.system import is_root
from transfers import (CONFIGURATION, MIB, OUTSIDE, USAGE, ended_session, finish, make_file, nothing_temporary, refused, start_slow,
                       temporary_files)  # fmt: skip
from trees import forget_tree

pytestmark = pytest.mark.skipif(not is_root(), reason="only root gives files away")
DAEMON_UID = pwd.getpwnam("daemon").pw_uid
NO_NAME = 54321  # neither a user's nor a group's
BOTH = ("--owner", "--group")


def _exports(pair):
    for node in pair.nodes:
        node.add_export("closed", pair.base / f"{node.name}-closed")
        node.export_owners["data"] = "yes"
        node.write_configuration()


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(prepare=_exports, bytes_needed=1 << 30, settings={"control": {"stall_timeout_s": 5}})


@pytest.fixture
def tree(pair):
    """Small files, one that is an object of its own, links of both kinds, directories: each with another owner."""
    root = pair.a.export() / "tree"
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "small").write_text("small")
    (root / "other").write_text("other")
    (root / "large").write_bytes(os.urandom(3 * MIB))
    (root / "link").symlink_to("/nowhere")
    os.link(root / "d" / "small", root / "hard")
    for number, path in enumerate([root, *sorted(root.rglob("*"))]):
        os.chown(path, NO_NAME + number, NO_NAME + 100 + number, follow_symlinks=False)
    os.chown(root / "other", DAEMON_UID, 0)
    os.chmod(root / "d", 0o2750)
    yield root
    for node in pair.nodes:
        for name in node.exports:
            for place in node.export(name).iterdir():
                forget_tree(place) if place.is_dir() else place.unlink()
        assert not list(temporary_files(node))


def owners(root):
    found = {}
    for path in [root, *root.rglob("*")]:
        info = path.lstat()
        found[str(path.relative_to(root))] = (info.st_uid, info.st_gid, info.st_mode & 0o777, info.st_mtime_ns)
    return found


def test_a_tree_keeps_them_there_and_back(pair, tree):
    pair.a.must("send", tree, "b:data/", *BOTH)
    assert owners(pair.b.export() / "tree") == owners(tree)
    assert (pair.b.export() / "tree" / "d").stat().st_mode & 0o7000 == 0, "setgid is masked as ever"
    (pair.a.export() / "back").mkdir()
    pair.a.must("get", "b:data/tree", pair.a.export() / "back", *BOTH)
    assert owners(pair.a.export() / "back" / "tree") == owners(tree)


def test_without_the_flags_they_are_those_of_the_daemon(pair, tree):
    pair.a.must("send", tree, "b:data/")
    assert {each[:2] for each in owners(pair.b.export() / "tree").values()} == {(0, 0)}


def test_one_alone(pair, tree):
    pair.a.must("send", tree / "large", "b:data/", "--owner")
    info, source = (pair.b.export() / "large").stat(), (tree / "large").stat()
    assert (info.st_uid, info.st_gid) == (source.st_uid, 0)
    pair.a.must("send", tree / "large", "b:data/", "--group", "--numeric-ids", "--overwrite")
    info = (pair.b.export() / "large").stat()
    assert (info.st_uid, info.st_gid) == (0, source.st_gid)


@contextlib.contextmanager
def _another_passwd(pair):
    """At node b the user daemon has another number, until the end."""
    text = "\n".join(line if not line.startswith("daemon:") else f"daemon:x:{NO_NAME}:1:x:/:/bin/false"
                     for line in open("/etc/passwd", encoding="utf-8").read().splitlines())  # fmt: skip
    (pair.base / "passwd").write_text(text + "\n")
    command = pair.b.control.command
    assert pair.b.control.stop() == 0
    mount = f"mount --bind {pair.base / 'passwd'} /etc/passwd && exec \"$@\""
    pair.b.control.command = ["unshare", "-m", "sh", "-c", mount, "sh", *command]
    pair.b.start_control()
    yield
    assert pair.b.control.stop() == 0
    pair.b.control.command = command
    pair.b.start_control()


def test_names_count_more_than_numbers_unless_these_are_asked_for(pair, tree):
    with _another_passwd(pair):
        pair.a.must("send", tree, "b:data/", *BOTH)
        assert (pair.b.export() / "tree" / "other").stat().st_uid == NO_NAME
        pair.a.must("send", tree, "b:data/", *BOTH, "--numeric-ids", "--overwrite")
        assert (pair.b.export() / "tree" / "other").stat().st_uid == DAEMON_UID
        (pair.a.export() / "back").mkdir()
        pair.a.must("get", "b:data/tree/large", pair.a.export() / "back" / "large", *BOTH)


@pytest.mark.parametrize("what", ["tree", "tree/large"])
def test_a_peer_may_not_choose_them_unless_the_export_says_so(pair, tree, what):
    source = tree.parent / what
    refused(pair.a.sluice("send", source, "b:closed/", *BOTH), OUTSIDE, "closed", 'owners = "yes"')
    assert not list(pair.b.export("closed").iterdir())
    pair.a.must("send", source, "b:closed/")
    # What this node's own operator asked for is his to choose.
    pair.a.must("get", f"b:closed/{source.name}", f"{pair.a.export('closed')}/", *BOTH)
    got = (pair.a.export("closed") / source.name).stat()
    assert (got.st_uid, got.st_gid) == (0, 0), "as they stood in closed"


def test_numeric_ids_of_nothing(pair, tree):
    refused(pair.a.sluice("send", tree, "b:data/", "--numeric-ids"), USAGE, "--owner")


def test_who_may_not_give_files_away_says_so_before_anything_moves(pair, tree):
    command = pair.b.control.command
    assert pair.b.control.stop() == 0
    pair.b.control.command = ["setpriv", "--bounding-set", "-chown", "--inh-caps", "-chown", *command]
    pair.b.start_control()
    try:
        refused(pair.a.sluice("send", tree, "b:data/", *BOTH), CONFIGURATION, "CAP_CHOWN", "--owner")
        assert not (pair.b.export() / "tree").exists()
    finally:
        assert pair.b.control.stop() == 0
        pair.b.control.command = command
        pair.b.start_control()


@pytest.mark.parametrize("victim", ["a", "b"])
def test_they_outlive_a_kill(pair, tree, victim):
    source = make_file(pair.a, 32 * MIB, name="tree/slow")
    os.chown(source, NO_NAME, NO_NAME + 1)
    process, session = start_slow(pair.a, "send", tree, "b:data/", *BOTH, rate="100M")
    node = getattr(pair, victim)
    node.control.kill()
    node.start_control()
    finish(process, 120)
    end = ended_session(pair.a, session)
    assert end["state"] == "succeeded", end["error"]
    assert owners(pair.b.export() / "tree") == owners(tree)
    nothing_temporary(pair.b)
