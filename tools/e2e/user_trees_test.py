# Directories of users: sent, fetched, kept the same, as whom the kernel says at one node and the map of users at the other.
# sluice-control of neither may read or write them.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import pwd
import shutil
import stat

import pytest
from harness import is_root, wait_until
from harness.system import random_file
from mapped import ADA, CONTROL, HERE, USUAL, mapped_pair, uid
from transfers import CONFIGURATION, EXISTS, MIB, OUTSIDE, PARTIAL, QUOTA, SOURCE, STORAGE, USAGE, ended_session, forget, names, refused
from trees import forget_tree, make_tree, state_of

pytestmark = pytest.mark.skipif(not is_root(), reason="needs root, to be other users")


def _add_exports(mapped):
    for node in mapped.pair.nodes:
        path = node.add_export("open", mapped.pair.base / f"{node.name}-open", mode="rwm")
        path.chmod(0o1777)
    quotas = [{"user": HERE, "session_files": 20}, {"user": "*", "sessions_max": 1}]
    for node in mapped.pair.nodes:  # b writes its configuration again
        node.add_export("few", mapped.pair.base / f"{node.name}-few", quotas=quotas).chmod(0o1777)
        node.write_configuration()


@pytest.fixture(scope="module")
def nodes(make_pair):
    yield from mapped_pair(make_pair, _add_exports)


@pytest.fixture(autouse=True)
def usual(nodes):
    nodes.write(USUAL)
    yield
    for node in nodes.pair.nodes:
        for export in ("data", "open", "few"):
            for path in node.export(export).iterdir():
                forget_tree(path)


def _give(root, user):
    """All of it is theirs, and nobody else sees what is in it."""
    entry = pwd.getpwnam(user)
    for directory, directories, files in os.walk(os.fsencode(root)):
        for name in directories + files:
            os.lchown(os.path.join(directory, name), entry.pw_uid, entry.pw_gid)
    os.chown(root, entry.pw_uid, entry.pw_gid)
    when = root.stat().st_mtime_ns
    root.chmod(0o700)
    os.utime(root, ns=(when, when))


def _tree(node, user, name="tree", export="data", **how):
    root = node.export(export) / name
    make_tree(root, **how)
    _give(root, user)
    return root


def _same(source, target):
    """But for what others may write, which nobody gets."""
    left, right = state_of(source), state_of(target)
    assert left.keys() == right.keys(), sorted(set(left) ^ set(right))[:10]
    for path, (kind, mode, *rest) in left.items():
        assert (kind, None if mode is None else mode & 0o755, *rest) == right[path], path


def _owners(root):
    paths = [root, *(pathlib.Path(directory) / name for directory, inner, files in os.walk(root) for name in inner + files)]
    return {(os.lstat(path).st_uid, os.lstat(path).st_gid) for path in paths}


def _of(user):
    return {(uid(user), pwd.getpwnam(user).pw_gid)}


def _nothing_left(*folders):
    for folder in folders:
        assert not [path for path in pathlib.Path(folder).rglob(".*sluice*")]


def test_a_tree_that_only_they_can_read_arrives_as_theirs_there(nodes):
    tree = _tree(nodes.a, ADA)
    os.chmod(tree / "d1", 0o777)
    result = nodes.send(ADA, tree, "b:data/")
    assert result.returncode == 0, result.stderr
    target = nodes.b.export() / "tree"
    _same(tree, target)
    assert _owners(target) == _of(HERE)
    assert stat.S_IMODE((target / "d1").stat().st_mode) == 0o755
    _nothing_left(nodes.b.export())
    # All of it is there already: nothing is to be done.
    again = nodes.send(ADA, tree, "b:data/")
    assert again.returncode == 0, again.stderr


def test_they_fetch_a_tree_that_only_they_can_read_there(nodes):
    tree = _tree(nodes.b, HERE, large=2)
    result = nodes.get(ADA, f"b:{tree}", f"{nodes.a.export()}/")
    assert result.returncode == 0, result.stderr
    target = nodes.a.export() / "tree"
    _same(tree, target)
    assert _owners(target) == _of(ADA)
    _nothing_left(nodes.a.export())
    # Whoever may not read it gets nothing: neither another user, nor the node itself.
    refused(nodes.a.sluice("get", f"b:{tree}", f"{nodes.a.export()}/other/"), SOURCE, "permission denied")


def test_extended_attributes_come_along_and_owners_do_not(nodes):
    tree = nodes.a.export() / "attributes"
    tree.mkdir()
    for i in range(30):
        (tree / f"f{i}").write_bytes(b"x" * i)
        os.setxattr(tree / f"f{i}", "user.number", str(i).encode())
    random_file(tree / "large", 3 * MIB, seed=3)
    os.setxattr(tree / "large", "user.number", b"large")
    os.setxattr(tree, "user.number", b"top")
    _give(tree, ADA)
    result = nodes.send(ADA, tree, "b:data/", "--xattrs")
    assert result.returncode == 0, result.stderr
    target = nodes.b.export() / "attributes"
    assert [os.getxattr(target / f"f{i}", "user.number") for i in range(30)] == [str(i).encode() for i in range(30)]
    assert os.getxattr(target / "large", "user.number") == b"large" and os.getxattr(target, "user.number") == b"top"
    assert _owners(target) == _of(HERE)
    for flag in ("--owner", "--group", "--acls"):
        refused(nodes.send(ADA, tree, "b:data/other/", flag), USAGE, "users_group", "belongs to them")


def test_what_they_cannot_read_is_told_and_the_rest_arrives(nodes):
    tree = _tree(nodes.a, ADA, files=60)
    for path in (tree / "d0" / "e0" / "f0", tree / "d1" / "large0", tree / "d2"):
        os.chown(path, 0, 0)
        path.chmod(0o700)
    result = nodes.send(ADA, tree, "b:data/")
    assert result.returncode == PARTIAL, result.stderr
    assert "did not arrive, all others did" in result.stderr
    target = nodes.b.export() / "tree"
    assert (target / "d1" / "e1" / "f1").exists()
    assert not (target / "d1" / "large0").exists() and not (target / "d2" / "e2").exists()


def test_where_they_may_not_write_it_ends_as_one_file_does(nodes):
    tree = _tree(nodes.a, ADA, files=30)
    one = random_file(nodes.a.export() / "one.bin", 10, seed=4)
    one.chmod(0o644)
    closed = nodes.b.export() / "closed"
    closed.mkdir(mode=0o755)
    os.chown(closed, uid(CONTROL), pwd.getpwnam(CONTROL).pw_gid)
    for source in (one, tree):
        refused(nodes.send(ADA, source, "b:data/closed/"), STORAGE, "permission denied", f"{ADA} of node a is user {HERE}")
    assert not list(closed.iterdir())
    mine = nodes.a.export() / "closed"
    mine.mkdir(mode=0o755)
    there = _tree(nodes.b, HERE, name="there", files=30)
    refused(nodes.get(ADA, f"b:{there}", f"{mine}/"), STORAGE, "permission denied")
    assert not list(mine.iterdir())


def test_a_link_that_stands_in_the_way_leads_nowhere(nodes):
    """Neither beneath the tree nor to its top: nothing is written where it leads, not even where they could write."""
    tree = _tree(nodes.a, ADA, files=100)
    outside = nodes.pair.base / "outside"
    outside.mkdir(exist_ok=True)
    outside.chmod(0o777)
    top = nodes.b.export() / "into"
    (top / "tree").mkdir(parents=True)
    os.symlink(outside, top / "tree" / "d0")
    os.symlink(outside, nodes.b.export() / "led")
    _give(top, HERE)
    result = nodes.send(ADA, tree, "b:data/into/")
    assert result.returncode == PARTIAL, result.stderr
    assert (top / "tree" / "d1" / "e1" / "f1").exists() and not list(outside.iterdir())
    result = nodes.send(ADA, tree, "b:data/led/")
    assert result.returncode in (STORAGE, OUTSIDE) and not list(outside.iterdir()), result.stderr


def test_what_is_anothers_is_not_replaced(nodes):
    tree = _tree(nodes.a, ADA, files=40)
    top = nodes.b.export() / "tree"
    (top / "d0" / "e0").mkdir(parents=True)
    _give(top, HERE)
    anothers = top / "d0" / "e0" / "f0"
    anothers.write_bytes(b"of another")
    result = nodes.send(ADA, tree, "b:data/")
    assert result.returncode in (PARTIAL, EXISTS), result.stderr
    assert anothers.read_bytes() == b"of another" and anothers.stat().st_uid == 0


@pytest.mark.parametrize("who", ["control", "sluice-users", "children"])
def test_it_goes_on_after_either_was_killed(nodes, who):
    """Each of them, at both nodes, in the middle of a tree: it resumes, and nothing is lost."""
    tree = nodes.a.export() / "many"
    make_tree(tree, files=3000, large=6)
    _give(tree, ADA)
    result = nodes.sluice(ADA, "send", tree, "b:data/", "--rate", "60M", "--detach")
    assert result.returncode == 0, result.stderr
    session = result.stdout.split()[-1]
    moving = lambda: [one for one in nodes.b.sessions() if one["id"] == session and one["bytes_done"] > MIB]  # noqa: E731
    wait_until(moving, 60, "some of it has arrived")
    for node in nodes.pair.nodes:
        if who == "control":
            node.control.kill()
            node.start_control()
        elif who == "sluice-users":
            nodes.helpers[node.name].kill()
            nodes.start_helper(node)
        else:
            pid = nodes.helpers[node.name].pid
            for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                os.kill(int(child), 9)
    assert ended_session(nodes.a, session, deadline_s=180)["state"] == "succeeded"
    target = nodes.b.export() / "many"
    _same(tree, target)
    assert _owners(target) == _of(HERE)
    _nothing_left(nodes.b.export())


def test_they_cancel_it_and_nothing_unfinished_stays(nodes):
    tree = nodes.a.export() / "cancelled"
    make_tree(tree, files=2000, large=4)
    _give(tree, ADA)
    result = nodes.sluice(ADA, "send", tree, "b:data/", "--rate", "30M", "--detach")
    session = result.stdout.split()[-1]
    wait_until(lambda: [one for one in nodes.b.sessions() if one["id"] == session and one["bytes_done"] > 0], 60, "bytes")
    assert nodes.sluice(ADA, "session", "cancel", session).returncode == 0
    for node in nodes.pair.nodes:
        assert ended_session(node, session)["state"] == "cancelled"
    wait_until(lambda: not list(nodes.b.export().rglob(".*sluice*")), 30, "nothing unfinished is left")


def test_a_directory_is_kept_the_same_both_ways(nodes):
    """Deletions included, by names that are theirs there."""
    tree = nodes.a.export("open") / "kept"
    make_tree(tree, files=80)
    _give(tree, ADA)
    target = nodes.b.export("open") / "kept"
    target.mkdir(mode=0o700)
    (target / "old").mkdir()
    (target / "old" / "file").write_bytes(b"old")
    _give(target, HERE)
    result = nodes.send(ADA, "--sync", "--delete", f"{tree}/", "b:open/kept/")
    assert result.returncode == 0, result.stderr
    _same(tree, target)
    assert _owners(target) == _of(HERE)
    shutil.rmtree(target / "d3")
    (target / "new").write_bytes(b"new there")
    (target / "new").chmod(0o644)
    os.chown(target / "new", uid(HERE), pwd.getpwnam(HERE).pw_gid)
    result = nodes.sluice(ADA, "get", "--sync", "--delete", f"b:{target}/", f"{tree}/", "--quiet")
    assert result.returncode == 0, result.stderr
    assert not (tree / "d3").exists() and (tree / "new").read_bytes() == b"new there"
    assert _owners(tree) == _of(ADA)


def test_names_are_theirs_there(nodes):
    private = nodes.b.export("open") / "private"
    private.mkdir()
    (private / "seen").write_bytes(b"x")
    _give(private, HERE)
    listed = nodes.sluice(ADA, "ls", "b:open/private")
    assert listed.returncode == 0 and "seen" in listed.stdout, listed.stderr
    # The node itself may not look into it.
    assert nodes.a.sluice("ls", "b:open/private").returncode != 0
    assert nodes.sluice(ADA, "mkdir", "b:open/private/made").returncode == 0
    assert (private / "made").stat().st_uid == uid(HERE)
    assert nodes.sluice(ADA, "rm", "b:open/private/seen").returncode == 0 and not (private / "seen").exists()
    roots = nodes.b.export("open") / "of-root"
    roots.write_bytes(b"x")
    assert nodes.sluice(ADA, "rm", "b:open/of-root").returncode != 0 and roots.exists()
    # Where the other node has no map, names are the node's, and not for users to change.
    nodes.write("somebody@else x\n")
    refused(nodes.sluice(ADA, "mkdir", "b:open/no"), CONFIGURATION, "users_group", "map of users")


def test_a_quota_holds_for_a_user_wherever_it_was_begun(nodes):
    tree = _tree(nodes.a, ADA, files=60)
    refused(nodes.send(ADA, tree, "b:few/"), QUOTA, f"quota of user {HERE}", "session_files = 20", "node b")
    assert not names(nodes.b, "few")
    # At their own node: another user, for whom the quota of every user counts.
    slow = random_file(nodes.a.export("few") / "slow.bin", 4 * MIB, seed=9)
    os.chown(slow, uid(ADA), -1)
    begun = nodes.sluice(ADA, "send", slow, "b:data/", "--rate", "1M", "--detach").stdout.split()[-1]
    wait_until(lambda: nodes.a.sessions()[-1]["state"] == "transferring", 30, "it runs")
    refused(nodes.send(ADA, slow, "b:data/again.bin"), QUOTA, f"quota of user {ADA}", "sessions_max = 1", "node a")
    assert nodes.a.sluice("session", "cancel", begun).returncode == 0
    ended_session(nodes.a, begun)
    forget(slow)
