# Names on the other node: listed, made, moved, removed, with two real nodes.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import os
import pathlib
import pty
import select
import signal
import subprocess

import pytest
from harness import is_root
from harness.system import run
from transfers import (EXISTS, MIB, OUTSIDE, SOURCE, STORAGE, UNREACHABLE, UNTRUSTED, USAGE, finish, forget, make_file,
                       refused, start_slow, wait_state)  # fmt: skip

MANY = 1_000_000
PAUSED = "paused"


def _exports(pair):
    for node in pair.nodes:
        node.add_export("data", node.export(), "rwm")
        node.add_export("closed", pair.base / f"{node.name}-closed", "rw")
        node.add_export("dropbox", pair.base / f"{node.name}-dropbox", "w")
    if is_root():
        pair.b.add_export("many", pair.mount_tmpfs("many", 2048), "r")
    for node in pair.nodes:
        node.write_configuration()


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(prepare=_exports)


@pytest.fixture
def tree(pair):
    """A folder in b's export; gone again afterwards."""
    top = pair.b.export() / "tree"
    top.mkdir()
    for folder in ("a", "a/deep", "b"):
        (top / folder).mkdir()
    for file in ("a/x.h5", "a/deep/y.h5", "b/z.txt", "w.h5"):
        (top / file).write_text(file)
    os.symlink("/etc/passwd", top / "link")
    yield top
    subprocess.run(["rm", "-rf", top], check=True)


def listed(pair, path, *options):
    return pair.a.must("ls", f"b:{path}", *options).stdout.split("\n")[:-1]


# ---- lists --------------------------------------------------------------------------------------------


def test_lists_in_order(pair, tree):
    assert listed(pair, "data/tree") == ["a", "b", "link", "w.h5"]
    assert listed(pair, tree) == ["a", "b", "link", "w.h5"]
    assert listed(pair, "data/tree", "-R") == ["a", "a/deep", "a/deep/y.h5", "a/x.h5", "b", "b/z.txt", "link", "w.h5"]
    assert listed(pair, "data/tree/w.h5") == ["data/tree/w.h5"]
    assert listed(pair, "") == ["closed", "data", "dropbox", "many"][: 4 if is_root() else 3]
    long = listed(pair, "data/tree", "--long")
    assert long[2].startswith("lrwx") and long[2].endswith("link -> /etc/passwd")


def test_patterns(pair, tree):
    assert listed(pair, "data/tree/*.h5") == ["data/tree/w.h5"]
    assert listed(pair, f"{tree}/*/*.h5") == [f"{tree}/a/x.h5"]
    assert listed(pair, "data/tree/[!b]", "-R") == [f"data/tree/{each}" for each in ("a", "a/deep", "a/deep/y.h5", "a/x.h5")]
    refused(pair.a.sluice("ls", "b:data/tree/*.none"), SOURCE, "nothing fits")
    (tree / "a*").write_text("")
    assert listed(pair, "data/tree/a\\*") == ["data/tree/a*"]
    assert listed(pair, "data/tree/a*", "--literal") == ["data/tree/a*"]


def test_json_and_names_that_are_only_bytes(pair, tree):
    odd = os.fsencode(tree) + b"/\xff\x1b[2J"
    pathlib.Path(os.fsdecode(odd)).write_text("")
    reply = json.loads(pair.a.must("ls", "b:data/tree", "--json").stdout)
    assert reply["schema"] == "sluice.names.v1" and reply["complete"] and reply["entry_count"] == 5
    assert reply["entries"][4]["path_bytes"] == "ff1b5b324a"
    assert {each["type"] for each in reply["entries"]} == {"directory", "link", "file"}
    assert "\\xff\\x1b[2J" in listed(pair, "data/tree")
    raw = subprocess.run(pair.a.command("ls", "b:data/tree", "-0"), capture_output=True, check=True).stdout
    assert raw.split(b"\0") == [b"a", b"b", b"link", b"w.h5", b"\xff\x1b[2J", b""]
    found = subprocess.run(pair.a.command("stat", b"b:data/tree/\xff\x1b[2J".decode(errors="surrogateescape")),
                           capture_output=True, check=True).stdout  # fmt: skip
    assert b"\\xff\\x1b[2J" in found
    pair.a.must("rm", b"b:data/tree/\xff\x1b[2J".decode(errors="surrogateescape"))
    assert not os.path.exists(odd)


def test_stat_tells_what_there_is(pair, tree):
    os.truncate(tree / "w.h5", 64 * MIB)
    os.utime(tree / "w.h5", ns=(0, 1_600_000_000_123_456_789))
    os.chmod(tree / "w.h5", 0o640)
    status, reply, _ = pair.a.json("stat", "b:data/tree/w.h5", "b:data/tree/link", "b:data/tree/")
    assert status == 0
    file, link, folder = reply["entries"]
    assert file["size_bytes"] == 64 * MIB > file["allocated_bytes"]
    assert (file["mtime_ns"], file["mode"], file["uid"]) == (1_600_000_000_123_456_789, "0640", os.getuid())
    assert (link["type"], link["target"]) == ("link", "/etc/passwd")
    assert folder["type"] == "directory"
    refused(pair.a.sluice("stat", "b:data/tree/none"), SOURCE, "none")


def test_what_may_not_be_listed(pair, tree):
    refused(pair.a.sluice("ls", "b:dropbox"), OUTSIDE, "dropbox")
    refused(pair.a.sluice("ls", "b:/etc"), OUTSIDE, "/etc")
    refused(pair.a.sluice("ls", "b:data/../.."), OUTSIDE, "..")
    os.symlink("/etc", tree / "out")
    refused(pair.a.sluice("ls", "b:data/tree/out/passwd"), OUTSIDE, "link")
    assert listed(pair, "data/tree/out") == ["data/tree/out"], "the link, and not what it points at"
    refused(pair.a.sluice("ls", tree), USAGE, "is not NODE:PATH")
    refused(pair.a.sluice("ls", "c:data"), UNTRUSTED, "c")


def test_what_cannot_be_read_is_told_and_the_list_goes_on(pair, tree):
    loop = tree / "b/loop"
    loop.mkdir()
    if not is_root():
        pytest.skip("needs a mount")
    run(["mount", "--bind", tree, loop])
    try:
        result = pair.a.sluice("ls", "b:data/tree", "-R")
    finally:
        run(["umount", loop])
    assert result.stdout.split()[-5:] == ["b", "b/loop", "b/z.txt", "link", "w.h5"]
    refused(result, SOURCE, "bind mount")


@pytest.fixture(scope="module")
def many(pair):
    """A directory of a million names, and one more."""
    if not is_root():
        pytest.skip("needs a tmpfs")
    folder = pair.b.export("many")
    (folder / "name").write_text("x")
    here = os.open(folder, os.O_RDONLY)
    for number in range(MANY):
        os.link("name", f"{number:07}", src_dir_fd=here, dst_dir_fd=here)
    os.close(here)
    return folder


def test_a_million_names_in_one_directory(pair, many):
    """Neither daemon grows, and the first names come long before the last; a reader who leaves ends it."""
    before = {node.name: rss_mib(node) for node in pair.nodes}
    peaks = dict.fromkeys(before, 0)
    reader = subprocess.Popen(pair.a.command("ls", "b:many", "-0"), stdout=subprocess.PIPE)
    names = 0
    while part := os.read(reader.stdout.fileno(), 1 << 20):
        names += part.count(b"\0")
        for node in pair.nodes:
            peaks[node.name] = max(peaks[node.name], rss_mib(node) - before[node.name])
    assert (reader.wait(), names) == (0, MANY + 1)
    assert max(peaks.values()) < 64, f"grew by {peaks} MiB"
    head = subprocess.run(f"{' '.join(pair.a.command('ls', 'b:many'))} | head -2", shell=True, capture_output=True, text=True)
    assert head.stdout.split() == ["0000000", "0000001"] and not head.stderr
    # Nobody reads: the peer waits, and others are answered.
    slow = subprocess.Popen(pair.a.command("ls", "b:many"), stdout=subprocess.PIPE)
    assert os.read(slow.stdout.fileno(), 8)
    assert listed(pair, "data") == []
    slow.send_signal(signal.SIGKILL)
    slow.wait()


def rss_mib(node):
    status = pathlib.Path(f"/proc/{node.control.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) >> 10


# ---- changes ------------------------------------------------------------------------------------------


def test_mkdir_mv_and_rm(pair, tree):
    pair.a.must("mkdir", "-p", "b:data/tree/new/er/est")
    assert (tree / "new/er/est").is_dir()
    refused(pair.a.sluice("mkdir", "b:data/tree/new"), EXISTS, "tree/new")
    refused(pair.a.sluice("mkdir", "b:data/tree/none/x"), STORAGE, "--parents")
    pair.a.must("mv", "b:data/tree/w.h5", "b:data/tree/new")
    pair.a.must("mv", f"b:{tree}/new", "b:data/tree/moved")
    assert (tree / "moved/w.h5").read_text() == "w.h5"
    refused(pair.a.sluice("mv", "b:data/tree/a/x.h5", "b:data/tree/b/z.txt"), EXISTS, "--force")
    assert (tree / "b/z.txt").read_text() == "b/z.txt"
    pair.a.must("mv", "--force", "b:data/tree/a/x.h5", "b:data/tree/b/z.txt")
    assert (tree / "b/z.txt").read_text() == "a/x.h5"
    refused(pair.a.sluice("rm", "b:data/tree/moved"), USAGE, "-r")
    refused(pair.a.sluice("rm", "b:data/tree/none"), SOURCE, "none")
    status, reply, _ = pair.a.json("rm", "-r", "b:data/tree/moved", "b:data/tree/link")
    assert (status, reply["entry_count"], reply["failed"]) == (0, 5, 0)
    assert sorted(os.listdir(tree)) == ["a", "b"]
    assert pathlib.Path("/etc/passwd").exists()


def test_without_the_right_nothing_changes(pair):
    kept = pair.b.export("closed") / "kept"
    kept.write_text("x")
    for words in (["rm", "b:closed/kept"], ["mkdir", "b:closed/new"], ["mv", "b:closed/kept", "b:closed/new"]):
        refused(pair.a.sluice(*words), OUTSIDE, "manage", "closed")
    assert os.listdir(pair.b.export("closed")) == ["kept"]
    forget(kept)


def test_the_root_of_an_export_stays(pair):
    for path in ("data", "data/", "data/.", str(pair.b.export())):
        refused(pair.a.sluice("rm", "-r", f"b:{path}"), OUTSIDE, "root")
    refused(pair.a.sluice("rm", "-r", f"b:{pair.b.export().parent}"), OUTSIDE)
    assert pair.b.export().is_dir()


def test_somebody_at_a_terminal_is_asked(pair, tree):
    for answer, removed in ((b"n\n", False), (b"y\n", True)):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(pair.a.command("rm", "b:data/tree/w.h5"), stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        said = b""
        while b"[y/N]" not in said:
            assert select.select([ours], [], [], 30)[0], said
            said += os.read(ours, 1024)
        os.write(ours, answer)
        with contextlib.suppress(OSError):
            while os.read(ours, 1024):
                pass
        assert process.wait() == (0 if removed else 12)
        os.close(ours)
        assert (tree / "w.h5").exists() is not removed


def test_what_a_transfer_writes_is_left_to_it(pair, tree):
    source = make_file(pair.a, 8 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/tree/a/coming", rate="20M")
    for words in (["rm", "-r", "b:data/tree"], ["rm", "b:data/tree/a/coming"], ["mv", "b:data/tree/a", "b:data/x"],
                  ["mv", "b:data/tree/w.h5", "b:data/tree/a/coming"], ["rm", "b:data/tree/a/.coming.sluice-part"]):  # fmt: skip
        refused(pair.a.sluice(*words), EXISTS, "coming")
    assert ".coming.sluice-part" not in listed(pair, "data/tree/a")
    assert ".coming.sluice-part" in listed(pair, "data/tree/a", "--all")
    pair.a.must("session", "pause", session)
    wait_state(pair.b, session, PAUSED, "waiting")
    refused(pair.a.sluice("rm", "-r", "b:data/tree"), EXISTS, "coming")
    pair.a.must("session", "continue", session)
    pair.a.must("session", "limit", session, "--rate", "none")
    assert finish(process).returncode == 0
    assert (tree / "a/coming").read_bytes() == source.read_bytes()
    pair.a.must("rm", "-r", "b:data/tree/a")
    forget(source)


# ---- when something is away ---------------------------------------------------------------------------


def test_a_peer_that_is_away(pair):
    pair.b.control.stop()
    refused(pair.a.sluice("ls", "b:data"), UNREACHABLE, "b")
    refused(pair.a.sluice("rm", "b:data/x", "b:data/y"), UNREACHABLE, "b")
    pair.b.start_control()
    assert listed(pair, "data") == []


def test_a_peer_that_is_killed_in_mid_list(pair, many):
    slow = subprocess.Popen(pair.a.command("ls", "b:many"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert os.read(slow.stdout.fileno(), 8)
    pair.b.control.kill()
    _, said = slow.communicate(timeout=60)
    assert slow.returncode == UNREACHABLE, said
    pair.b.start_control()
    assert listed(pair, "data") == []
