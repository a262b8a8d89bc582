# --sync and --delete: what differs is sent, what the source lacks is removed, and nothing else is touched.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import random
import shutil
import signal
import subprocess

import pytest
from harness import is_root, wait_until
from harness.system import same_bytes
from syncs import Way, exports, top_of
from transfers import EXISTS, MIB, OUTSIDE, SOURCE, USAGE, last_session, refused, temporary_files
from trees import forget_tree, make_tree, same, state_of

PARTIAL = 21


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(prepare=exports, bytes_needed=1 << 30)


@pytest.fixture(params=["push", "pull"])
def way(request, pair):
    way = Way(pair, request.param)
    way.destination.parent.mkdir()
    make_tree(way.source, files=120)
    yield way
    for node in pair.nodes:
        for place in node.export().iterdir():
            forget_tree(place)
    for node in pair.nodes:
        assert not list(temporary_files(node))


def test_the_first_time_all_is_sent_and_the_second_nothing(way):
    assert way.sync().returncode == 0
    way.same()
    report = way.settled()
    assert report["same"] == len(state_of(way.source))
    assert way.sync("--delete").stdout == f"nothing to do: {report['same']} names are the same\n"


def test_what_changed_is_sent_and_nothing_else(way):
    way.report()
    kept = os.stat(way.destination / "d2" / "e2" / "f2").st_ino
    (way.source / "d1" / "e1" / "f1").write_bytes(b"another size, another time")
    os.chmod(way.source / "d3" / "e3" / "f3", 0o711)
    os.utime(way.source / "d4" / "e4" / "f4", ns=(1, 77))
    (way.source / "new").mkdir()
    (way.source / "new" / "file").write_bytes(b"new")
    (way.source / "new" / "empty").mkdir()
    os.unlink(way.source / "within")
    os.symlink("elsewhere", way.source / "within")
    (way.source / "d1" / "large0").write_bytes(os.urandom(2 * MIB))
    os.rename(way.source / "d5" / "e5" / "f5", way.source / "d5" / "e5" / "renamed")
    os.utime(way.source / "d6", ns=(1, 88))
    before = state_of(way.destination)
    foreseen = way.report("-n")
    report = way.report()
    assert len(report["sessions"]) == 1 and report["removed"] == 0
    assert report["sent"] == len(foreseen["would_send"])
    after = state_of(way.destination)
    assert after.pop(b"d5/e5/f5") == before[b"d5/e5/f5"], "what the source lacks stays"
    wanted = state_of(way.source)
    assert after == wanted
    assert os.stat(way.destination / "d2" / "e2" / "f2").st_ino == kept
    changed = [path for path in wanted if wanted[path] != before.get(path)]
    assert report["same"] == len(wanted) - len(changed)
    way.settled()


def test_checksum_looks_at_what_files_hold(way):
    """What was changed behind its time is found, and what has another time alone is spared."""
    way.report()
    damaged, touched = way.destination / "d1" / "e1" / "f1", way.destination / "d2" / "e2" / "f2"
    at = os.stat(damaged).st_mtime_ns
    content = bytearray(damaged.read_bytes())
    content[0] ^= 1
    damaged.write_bytes(content)
    os.utime(damaged, ns=(at, at))
    os.utime(touched, ns=(1, 1))
    assert way.report("-n")["would_send"] == ["d2/e2/f2"], "by time the damage is not seen"
    assert way.report("-n", "--checksum")["would_send"] == ["d1/e1/f1"]
    way.report("--checksum")
    assert same_bytes(damaged, way.source / "d1" / "e1" / "f1")
    assert os.stat(touched).st_mtime_ns == 1, "it holds the same"
    way.settled("--checksum")
    os.utime(touched, ns=(os.stat(way.source / "d2" / "e2" / "f2").st_mtime_ns,) * 2)


def test_delete_removes_what_the_source_lacks(way):
    way.report()
    shutil.rmtree(way.source / "d2")
    os.unlink(way.source / "d1" / "e1" / "f1")
    (way.destination / "extra").mkdir()
    (way.destination / "extra" / "deep").mkdir()
    (way.destination / "extra" / "deep" / "file").write_bytes(b"x")
    with open(os.fsencode(way.destination) + b"/d3/\xff\n", "wb") as odd:
        odd.write(b"x")
    neighbour = way.destination.parent / "neighbour"
    neighbour.write_bytes(b"mine")
    way.report()
    (way.source / "d1" / "e1" / "new").write_bytes(b"of nine B")
    assert (way.destination / "extra").exists() and (way.destination / "d2").exists()
    foreseen = way.report("-n", "--delete")
    report = way.report("--delete")
    assert report["removed"] > 4
    assert (report["sent"], report["bytes"]) == (len(foreseen["would_send"]), 9), "as foreseen"
    assert way.settled("--delete")["same"] == report["same"] + report["sent"]
    way.same()
    assert neighbour.read_bytes() == b"mine"
    way.settled("--delete")


def test_an_empty_source_empties_the_destination_alone(way):
    way.report()
    shutil.rmtree(way.source)
    way.source.mkdir()
    (way.destination.parent / "neighbour").write_bytes(b"mine")
    way.report("--delete")
    assert list(way.destination.iterdir()) == [] and (way.destination.parent / "neighbour").exists()
    way.settled("--delete")


def test_a_source_that_is_gone_removes_nothing(way):
    way.report()
    before = state_of(way.destination)
    shutil.rmtree(way.source)
    refused(way.sync("--delete"), SOURCE, "tree")
    assert state_of(way.destination) == before


def test_what_rules_leave_out_is_neither_sent_nor_removed(way):
    way.report("--exclude", "*.tmp")
    (way.source / "a.tmp").write_bytes(b"x")
    (way.destination / "b.tmp").write_bytes(b"x")
    (way.destination / "extra").mkdir()
    (way.destination / "extra" / "c.tmp").write_bytes(b"x")
    (way.destination / "extra" / "d").write_bytes(b"x")
    report = way.report("--delete", "--exclude", "*.tmp")
    assert report["removed"] == 1 and report["kept"] == 1
    assert (way.destination / "b.tmp").exists() and not (way.destination / "a.tmp").exists()
    assert [path.name for path in (way.destination / "extra").iterdir()] == ["c.tmp"]
    way.settled("--delete", "--exclude", "*.tmp")
    way.report("--delete", "--exclude", "/tree/b.tmp")
    assert (way.destination / "a.tmp").exists() and (way.destination / "b.tmp").exists()
    assert not (way.destination / "extra").exists()


def test_a_directory_in_place_of_a_file_fails_and_nothing_is_removed(way):
    way.report()
    (way.destination / "extra").write_bytes(b"x")
    path = way.source / "d1" / "e1" / "f1"
    path.unlink()
    path.mkdir()
    (path / "in").write_bytes(b"x")
    (way.source / "fine").write_bytes(b"x")
    result = way.sync("--delete", "-n")
    assert result.returncode == PARTIAL, result.stderr
    assert "would fail: d1/e1/f1: is of another kind there: a file" in result.stderr
    assert "would fail: d1/e1/f1/in: " in result.stderr and "nothing would be removed" in result.stderr
    assert "2 would fail" in result.stdout and "f1" not in result.stdout and "remove extra" not in result.stdout
    result = way.sync("--delete")
    assert result.returncode == PARTIAL, result.stderr
    assert "d1/e1/f1: is of another kind there" in result.stderr and "nothing was removed" in result.stderr
    assert "same again" not in result.stderr
    assert (way.destination / "extra").exists() and (way.destination / "fine").exists()
    assert (way.destination / "d1" / "e1" / "f1").is_file()


def test_a_large_file_that_fails_removes_nothing_and_the_same_command_does_the_rest(way):
    way.report()
    taken = way.destination / "d1" / "large0"
    taken.unlink()
    taken.mkdir()  # no file takes its place
    for name in ("first", "last"):
        (way.source / "d1" / name).write_bytes(os.urandom(2 * MIB))
    (way.source / "d2" / "small").write_bytes(b"x")
    (way.destination / "extra").write_bytes(b"x")
    code, report, err = way.pair.a.json(*way.arguments("--delete"))
    assert code == PARTIAL and "nothing was removed" in err, err
    assert [each["path"] for each in report["problems"]] == ["d1/large0"]
    assert report["failed"] == 1 and report["removed"] == 0 and (way.destination / "extra").exists()
    assert same_bytes(way.source / "d1" / "first", way.destination / "d1" / "first")
    assert same_bytes(way.source / "d1" / "last", way.destination / "d1" / "last")
    assert (way.destination / "d2" / "small").exists() and taken.is_dir()
    # Alone in its session it is the end of that, and still nothing is removed.
    result = way.sync("--delete")
    assert result.returncode != 0 and "d1/large0" in result.stderr, result.stderr
    assert (way.destination / "extra").exists()
    taken.rmdir()
    report = way.report("--delete")
    assert report["removed"] == 1 and report["bytes"] < 4 * MIB, "what has arrived is not sent again"
    way.same()
    way.settled("--delete")


def test_a_dry_run_tells_and_does_nothing(way):
    way.report()
    (way.source / "new").write_bytes(b"x")
    (way.destination / "extra").mkdir()
    (way.destination / "extra" / "file").write_bytes(b"x")
    before = state_of(way.destination)
    result = way.sync("--delete", "--dry-run")
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[:2] == ["send new", "remove extra/"] and "1 would be removed" in lines[2]
    report = way.report("--delete", "-n")
    assert report["would_send"] == ["new"] and report["would_remove"] == ["extra"] and report["sessions"] == []
    assert state_of(way.destination) == before


def test_contents_alone(way):
    """As for any transfer: "DIR/" is what is in it."""
    pair = way.pair
    if way.pushes:
        command = ("send", "--sync", "--delete", f"{way.source}/", "b:data/copies")
    else:
        command = ("get", "--sync", "--delete", "b:data/tree/", way.destination.parent)
    (way.destination.parent / "extra").write_bytes(b"x")
    pair.a.must(*command)
    same(way.source, way.destination.parent)
    assert "nothing to do" in pair.a.must(*command).stdout


@pytest.mark.parametrize("seed", range(4))
def test_what_comes_out_is_what_rsync_makes_of_it(way, seed):
    draw = random.Random(seed)
    mirror = way.destination.parent / "mirror"
    way.report()
    subprocess.run(["cp", "-a", way.destination, mirror], check=True)
    paths = [path for path in sorted(way.source.rglob("*")) if path.is_symlink() or path.is_file()]
    for path in draw.sample(paths, 30):
        choice = draw.randrange(4)
        if path.name in ("hard", "f0"):
            continue
        if choice == 0:
            path.unlink()
        elif choice == 1:
            path.rename(path.with_name(f"moved{draw.randrange(10)}"))
        elif not path.is_symlink():
            path.chmod(0o700)
            path.write_bytes(draw.randbytes(draw.randrange(5000)))
    for name in draw.sample(["d0", "d1", "d2", "d3"], 2):
        (way.source / name / "added" / "deep").mkdir(parents=True)
        (way.source / name / "added" / "file").write_bytes(b"x")
    for name in draw.sample(["d4", "d5", "d6"], 1):
        shutil.rmtree(way.source / name)
    # rsync takes two times of directories within one second for the same.
    beneath = (path for path in way.source.rglob("*") if path.is_dir() and not path.is_symlink())
    for i, directory in enumerate([way.source, *beneath]):
        os.utime(directory, ns=(1, draw.randrange(10**18) + i))
    for root in (way.destination, mirror):
        (root / "d1" / "stale").mkdir()
        (root / "d1" / "stale" / "file").write_bytes(b"x")
    subprocess.run(["rsync", "-a", "--delete", f"{way.source}/", f"{mirror}/"], check=True)
    way.report("--delete")
    same(mirror, way.destination)
    assert top_of(mirror) == top_of(way.destination)
    way.settled("--delete")


def test_after_an_interruption_the_same_command_does_the_rest(way):
    way.report()
    for i in range(3):
        (way.source / f"large{i}").write_bytes(os.urandom(4 * MIB))
    (way.destination / "extra").write_bytes(b"x")
    before = last_session(way.pair.a)["id"]
    command = way.pair.a.popen(*way.arguments("--delete", "--rate", "20M"))
    wait_until(lambda: (last := last_session(way.pair.a))["id"] != before and last["bytes_done"] > 0, 60, "bytes are written")
    command.send_signal(signal.SIGINT)
    out, _ = command.communicate(timeout=60)
    assert command.returncode == 12, out
    assert (way.destination / "extra").exists(), "nothing is removed unless all was sent"
    way.report("--delete")
    way.same()
    way.settled("--delete")


# ---- rights and what cannot be known ------------------------------------------------------------------


@pytest.fixture
def tree(pair):
    root = pair.a.export() / "tree"
    root.mkdir()
    (root / "file").write_bytes(b"x")
    yield root
    for node in pair.nodes:
        for name in ("data", "plain", "dropbox"):
            for place in node.export(name).iterdir():
                forget_tree(place)


def test_without_the_right_to_manage_nothing_is_sent_and_nothing_removed(pair, tree):
    pair.a.must("send", "--sync", tree, "b:plain/")
    (pair.b.export("plain") / "tree" / "extra").write_bytes(b"x")
    (tree / "new").write_bytes(b"x")
    before = len(pair.a.sessions())
    refused(pair.a.sluice("send", "--sync", "--delete", tree, "b:plain/"), OUTSIDE, "lacks the right manage; add m")
    assert len(pair.a.sessions()) == before
    assert sorted(path.name for path in (pair.b.export("plain") / "tree").iterdir()) == ["extra", "file"]
    pair.a.must("send", "--sync", tree, "b:plain/")
    assert (pair.b.export("plain") / "tree" / "new").exists()


def test_own_names_are_removed_where_peers_may_write(pair, tree):
    there = pair.b.export() / "tree"
    there.mkdir()
    (there / "file").write_bytes(b"x")
    for name in ("plain", "dropbox"):
        place = pair.a.export(name) / "tree"
        place.mkdir()
        (place / "extra").write_bytes(b"x")
        pair.a.must("get", "--sync", "--delete", "b:data/tree", pair.a.export(name))
        same(there, place)


def test_the_peers_export_must_be_readable(pair, tree):
    refused(pair.a.sluice("send", "--sync", tree, "b:dropbox/"), OUTSIDE, "may not be listed; add r")
    refused(pair.a.sluice("get", "--sync", "b:dropbox/", tree), OUTSIDE, "may not be listed; add r")


def test_only_directories(pair, tree):
    refused(pair.a.sluice("send", "--sync", tree / "file", "b:data/"), USAGE, "is no directory")
    (pair.b.export() / "tree").write_bytes(b"x")
    refused(pair.a.sluice("send", "--sync", tree, "b:data/"), EXISTS, "is no directory")
    for options in (("--delete", tree), ("--sync", tree, tree), ("--sync", "memory:1K"), ("--sync", "--detach", tree),
                    ("--sync", "--delete", "--detach", tree), ("--sync", "--files-from", "/dev/null", tree)):  # fmt: skip
        refused(pair.a.sluice("send", *options, "b:data/"), USAGE, "--delete" if options[0] == "--delete" else "--sync")


@pytest.mark.skipif(not is_root(), reason="mounts")
@pytest.mark.parametrize("direction", ["push", "pull"])
def test_a_directory_that_cannot_be_read_forbids_the_removal(pair, tree, direction):
    """A bind mount of a directory in itself is not gone into: what is in it is not known."""
    way = Way(pair, direction)
    way.source.mkdir(exist_ok=True)
    (way.source / "loop").mkdir()
    way.destination.mkdir(parents=True)
    (way.destination / "loop").mkdir()
    (way.destination / "loop" / "kept").write_bytes(b"x")
    (way.destination / "extra").write_bytes(b"x")
    (way.source / "new").write_bytes(b"new")
    subprocess.run(["mount", "--bind", way.source, way.source / "loop"], check=True)
    try:
        result = way.sync("--delete")
        assert result.returncode == PARTIAL, result.stderr
        assert "loop" in result.stderr and "nothing was removed" in result.stderr
        assert (way.destination / "new").read_bytes() == b"new", "all else is sent"
        assert (way.destination / "extra").exists() and (way.destination / "loop" / "kept").exists()
    finally:
        subprocess.run(["umount", way.source / "loop"], check=True)
    assert way.sync("--delete").returncode == 0
    same(way.source, way.destination)


def test_in_a_file_of_transfers(pair, tree, tmp_path):
    (pair.b.export() / "tree").mkdir()
    (pair.b.export() / "tree" / "extra").write_bytes(b"x")
    file = tmp_path / "transfers.toml"
    file.write_text(f'[[send]]\nsources = "{tree}"\nto = "b:data/"\nsync = true\ndelete = true\n')
    code, report, err = pair.a.json("run", file)
    assert code == 0, err
    assert report["syncs"][0]["sent"] >= 1 and report["syncs"][0]["removed"] == 1
    same(tree, pair.b.export() / "tree")
    assert json.loads(pair.a.must("run", "--json", file).stdout)["syncs"][0]["sessions"] == []
