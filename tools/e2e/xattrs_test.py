# Extended attributes and ACLs: kept where they are asked for, as rsync -aAX keeps them, and ACLs only where a peer may
# choose them.
# SPDX-License-Identifier: Apache-2.0
import os
import pwd
import shutil
import subprocess

import pytest
from harness.system import is_root
from transfers import MIB, OUTSIDE, ended_session, finish, make_file, nothing_temporary, refused, start_slow, temporary_files
from trees import acl, forget_tree, kept

pytestmark = pytest.mark.skipif(not is_root() or shutil.which("rsync") is None, reason="needs root and rsync")
PARTIAL, ATTRIBUTES = 21, 23
BOTH = ("--xattrs", "--acls")
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
NO_NAME = 54321
DAEMON_UID = pwd.getpwnam("daemon").pw_uid


def _exports(pair):
    for node in pair.nodes:
        node.add_export("closed", pair.base / f"{node.name}-closed")
        node.export_owners["data"] = "yes"
        node.export_acls["data"] = "yes"
        node.write_configuration()


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(prepare=_exports, bytes_needed=1 << 30, settings={"control": {"stall_timeout_s": 5}})


@pytest.fixture
def tree(pair):
    """Small files, one that is an object of its own, links of both kinds, directories."""
    root = pair.a.export() / "tree"
    (root / "d" / "e").mkdir(parents=True)
    (root / "plain").write_text("plain")
    (root / "d" / "small").write_text("small")
    (root / "large").write_bytes(os.urandom(3 * MIB))
    (root / "link").symlink_to("/nowhere")
    os.link(root / "d" / "small", root / "hard")
    for number, path in enumerate([root / "d" / "small", root / "large", root / "d", root]):
        os.setxattr(path, b"user.\xff\n", os.urandom(100 * number))
        os.setxattr(path, "user.empty", b"")
        os.setxattr(path, "trusted.mine", b"1")
        os.setxattr(path, ACCESS, acl(NO_NAME + number))
    os.setxattr(root / "d", DEFAULT, acl(DAEMON_UID))
    # rsync takes two times within one second for the same.
    for number, path in enumerate([*sorted(root.rglob("*"), reverse=True), root]):
        os.utime(path, ns=(1, 10**18 + number), follow_symlinks=False)
    yield root
    for node in pair.nodes:
        for name in node.exports:
            for place in node.export(name).iterdir():
                forget_tree(place) if place.is_dir() else place.unlink()
        assert not list(temporary_files(node))


def by_rsync(source, target):
    subprocess.run(["rsync", "-aHAX", source, target], check=True)


def test_a_tree_keeps_them_there_and_back_as_by_rsync(pair, tree, tmp_path):
    by_rsync(tree, tmp_path)
    pair.a.must("send", tree, "b:data/", *BOTH)
    assert kept(pair.b.export() / "tree") == kept(tmp_path / "tree") == kept(tree)
    assert b"trusted.mine" not in map(os.fsencode, os.listxattr(pair.b.export() / "tree" / "large"))
    (pair.a.export() / "back").mkdir()
    pair.a.must("get", "b:data/tree", pair.a.export() / "back", *BOTH)
    assert kept(pair.a.export() / "back" / "tree") == kept(tree)


def test_what_stands_there_loses_what_the_source_lacks(pair, tree, tmp_path):
    for place in (tmp_path, pair.b.export()):
        (place / "tree" / "d").mkdir(parents=True)
        os.setxattr(place / "tree" / "d", "user.old", b"1")
        os.setxattr(place / "tree", DEFAULT, acl(NO_NAME))
        (place / "tree" / "plain").write_text("old")
        os.setxattr(place / "tree" / "plain", "user.old", b"1")
    by_rsync(tree, tmp_path)
    pair.a.must("send", tree, "b:data/", *BOTH, "--overwrite")
    assert kept(pair.b.export() / "tree") == kept(tmp_path / "tree")


def test_each_alone_and_none(pair, tree):
    def there():
        return {name for path in (pair.b.export() / "tree").rglob("*") for name in os.listxattr(path, follow_symlinks=False)}

    pair.a.must("send", tree, "b:data/")
    assert not there()
    pair.a.must("send", tree, "b:data/", "--overwrite", "--xattrs")
    assert not any(name.startswith("system.") for name in there()) and "user.empty" in there()
    pair.a.must("send", tree, "b:data/", "--overwrite", "--acls", "--numeric-ids")
    assert ACCESS in there() and DEFAULT in there()
    os.setxattr(tree / "plain", "user.a", b"1")
    pair.a.must("send", tree / "plain", "b:data/alone", "--xattrs")
    assert os.getxattr(pair.b.export() / "alone", "user.a") == b"1"


@pytest.mark.parametrize("what", ["tree", "tree/large"])
def test_a_peer_chooses_acls_only_where_the_export_says_so(pair, tree, what):
    source = tree.parent / what
    refused(pair.a.sluice("send", source, "b:closed/", *BOTH), OUTSIDE, "closed", 'acls = "yes"')
    assert not list(pair.b.export("closed").iterdir())
    pair.a.must("send", source, "b:closed/", "--xattrs")
    pair.a.must("get", f"b:closed/{source.name}", f"{pair.a.export('closed')}/", *BOTH)


def test_more_than_is_kept_of_a_name_fails_by_name_and_all_else_arrives(pair, tree):
    """tmpfs has room for so much."""
    source = pair.base / "shm"
    source.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", source], check=True)
    try:
        (source / "tree").mkdir()
        for name in ("small", "large", "fine"):
            (source / "tree" / name).write_bytes(b"x" * (3 * MIB if name == "large" else 1))
        for name in ("small", "large"):
            for number in range(2):
                os.setxattr(source / "tree" / name, f"user.{number}", b"x" * 40_000)
        pair.a.add_export("shm", source, "r")
        pair.a.write_configuration()
        assert pair.a.control.stop() == 0
        pair.a.start_control()
        result = pair.a.sluice("send", source / "tree", "b:data/", *BOTH)
        assert result.returncode == PARTIAL, result.stderr
        for name in ("small", "large"):
            assert f"tree/{name}: has more extended attributes, or longer ACLs" in result.stdout, result.stdout
        assert [path.name for path in (pair.b.export() / "tree").iterdir()] == ["fine"]
        refused(pair.a.sluice("send", source / "tree" / "large", "b:data/one", *BOTH), ATTRIBUTES, "--xattrs")
    finally:
        del pair.a.exports["shm"]
        pair.a.write_configuration()
        assert pair.a.control.stop() == 0
        subprocess.run(["umount", source], check=True)
        pair.a.start_control()


@pytest.mark.parametrize("victim", ["a", "b"])
def test_they_outlive_a_kill(pair, tree, victim):
    source = make_file(pair.a, 32 * MIB, name="tree/slow")
    os.setxattr(source, "user.slow", b"1")
    os.setxattr(source, ACCESS, acl(NO_NAME))
    process, session = start_slow(pair.a, "send", tree, "b:data/", *BOTH, rate="100M")
    node = getattr(pair, victim)
    node.control.kill()
    node.start_control()
    finish(process, 120)
    end = ended_session(pair.a, session)
    assert end["state"] == "succeeded", end["error"]
    assert kept(pair.b.export() / "tree") == kept(tree)
    nothing_temporary(pair.b)
