# Wrong paths, existing files and full disks: one line, the right exit status, nothing half done, and both
# nodes go on serving.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import struct
import subprocess

import pytest
from harness import is_root, wait_until
from harness.system import run, same_bytes
from transfers import (EXISTS, MIB, NO_SPACE, OUTSIDE, PARTIAL, RESOURCES, SOURCE, UNREACHABLE, USAGE, STORAGE, finish,
                       forget, make_file, names, refused, start_slow, unharmed)  # fmt: skip

SMALL_MIB = 8


def _small_exports(pair):
    if is_root():
        pair.b.add_export("small", pair.mount_tmpfs("small", SMALL_MIB))
        pair.a.add_export("sparse", pair.mount_tmpfs("sparse", SMALL_MIB))
    pair.a.add_export("kernel", "/proc/sys/kernel", "r")
    pair.b.add_export("readonly", pair.base / "readonly", "r")
    for node in pair.nodes:
        node.write_configuration()


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(prepare=_small_exports, bytes_needed=1 << 30)


@pytest.fixture(autouse=True)
def nothing_left_and_still_serving(pair):
    with unharmed(pair):
        yield


@pytest.fixture
def source(pair):
    path = make_file(pair.a, 3 * MIB)
    yield path
    forget(path)


def test_missing_source(pair):
    missing = pair.a.export() / "no-such-file"
    refused(pair.a.sluice("send", missing, "b:data/"), SOURCE, missing)


def test_missing_source_at_the_peer(pair):
    missing = pair.b.export() / "no-such-file"
    refused(pair.a.sluice("get", f"b:{missing}", pair.a.export() / "x"), SOURCE, "no-such-file")


def test_two_sources_of_one_name(pair, source):
    folder = pair.a.export() / "folder"
    folder.mkdir()
    other = folder / source.name
    other.write_bytes(b"x")
    refused(pair.a.sluice("send", source, other, "b:data/"), USAGE, source, other)
    refused(pair.a.sluice("send", source, source, "b:data/"), USAGE, source)
    shutil.rmtree(folder)


def test_what_is_no_file_is_not_verified(pair):
    done = pair.a.must("send", "memory:1M", "b:null:", "--json")
    refused(pair.a.sluice("verify", json.loads(done.stdout)["id"]), USAGE, "no file")


def test_device_and_fifo_as_source(pair):
    fifo = pair.a.export() / "fifo"
    os.mkfifo(fifo)
    refused(pair.a.sluice("send", fifo, "b:data/", timeout_s=20), SOURCE, fifo)
    fifo.unlink()


@pytest.mark.skipif(is_root(), reason="root may read everything")
def test_unreadable_source(pair, source):
    source.chmod(0)
    refused(pair.a.sluice("send", source, "b:data/"), SOURCE, source)


def test_source_outside_by_a_symbolic_link(pair):
    link = pair.a.export() / "link"
    link.symlink_to("/etc/hostname")
    refused(pair.a.sluice("send", link, "b:data/"), OUTSIDE, link)
    link.unlink()


@pytest.mark.parametrize("path", ["/etc/hostname", "data/../../etc/hostname", "nowhere/file"])
def test_pull_from_outside_every_export(pair, path):
    refused(pair.a.sluice("get", f"b:{path}", pair.a.export() / "x"), OUTSIDE, path.split("/")[-1])


@pytest.mark.parametrize("path", ["/etc/sluice-test", "data/../escaped", "nowhere/file", "readonly/file"])
def test_destination_outside_every_writable_export(pair, source, path):
    refused(pair.a.sluice("send", source, f"b:{path}"), OUTSIDE, path.split("/")[-1])
    assert not (pair.b.directory.parent / "escaped").exists() and not os.path.exists("/etc/sluice-test")
    assert not names(pair.b, "readonly")


def test_destination_behind_a_symbolic_link(pair, source):
    outside = pair.base / "outside"
    outside.mkdir()
    link = pair.b.export() / "way-out"
    link.symlink_to(outside)
    refused(pair.a.sluice("send", source, "b:data/way-out/file"), OUTSIDE, "way-out")
    assert not list(outside.iterdir())
    link.unlink()
    outside.rmdir()


def test_existing_destination_is_kept(pair, source):
    target = pair.b.export() / source.name
    target.write_bytes(b"precious")
    refused(pair.a.sluice("send", source, "b:data/"), EXISTS, source.name, "--overwrite")
    assert target.read_bytes() == b"precious"
    target.unlink()


def test_existing_destination_is_replaced_when_asked(pair, source):
    target = pair.b.export() / source.name
    target.write_bytes(b"old" * 5_000_000)
    result = pair.a.sluice("send", source, "b:data/", "--overwrite")
    assert result.returncode == 0, result.stderr
    assert same_bytes(source, target)
    target.unlink()


def test_missing_directories_are_named_or_made(pair, source):
    """Of a file's path, of a directory's, of a tree's; at either node; and no more than may be written."""
    refused(pair.a.sluice("send", source, "b:data/made/one/"), STORAGE, "data/made/one", "--mkdir")
    assert not names(pair.b)
    for destination, arrives in (("made/one/", f"made/one/{source.name}"), ("made/two/file", "made/two/file")):
        pair.a.must("send", source, f"b:data/{destination}", "--mkdir")
        assert same_bytes(source, pair.b.export() / arrives)
    pair.a.must("send", source, "b:data/made/one/", "--mkdir", "--overwrite")  # they are there
    folder = pair.a.export() / "folder"
    folder.mkdir()
    (folder / "name").write_bytes(b"x")
    pair.a.must("send", folder, "b:data/made/three/four", "--mkdir")
    assert (pair.b.export() / "made/three/four/folder/name").read_bytes() == b"x"
    here = pair.a.export() / "back/here"
    refused(pair.a.sluice("get", "b:data/made/two/file", f"{here}/"), STORAGE, here, "--mkdir")
    pair.a.must("get", "b:data/made/two/file", f"{here}/", "--mkdir")
    assert same_bytes(source, here / "file")
    refused(pair.a.sluice("send", source, "b:readonly/new/", "--mkdir"), OUTSIDE, "readonly")
    refused(pair.a.sluice("send", source, "b:data/made/two/file/new/", "--mkdir"), EXISTS, "made/two/file")
    # As mkdir -p makes them, whatever the daemons' own umask is.
    for made in (here.parent, here, pair.b.export() / "made", pair.b.export() / "made/three/four"):
        assert made.stat().st_mode & 0o777 == 0o755, made
    for made in (folder, here.parent, pair.b.export() / "made"):
        shutil.rmtree(made)


def test_a_made_directory_takes_after_the_one_above(pair, source):
    """Of its group, with setgid; and of its default ACL, which counts instead of a umask."""
    top = pair.b.export() / "shared"
    top.mkdir()
    top.chmod(0o2775)
    pair.a.must("send", source, "b:data/shared/one/two/", "--mkdir")
    assert (top / "one/two").stat().st_mode & 0o7777 == 0o2755
    acl = struct.pack("<I" + "HHI" * 3, 2, 1, 7, 0xFFFFFFFF, 4, 7, 0xFFFFFFFF, 32, 0, 0xFFFFFFFF)
    try:
        os.setxattr(top, "system.posix_acl_default", acl)
    except OSError:
        shutil.rmtree(top)
        pytest.skip("this file system has no ACLs")
    pair.a.must("send", source, "b:data/shared/three/", "--mkdir")
    assert (top / "three").stat().st_mode & 0o7777 == 0o2770
    shutil.rmtree(top)


def test_a_file_that_does_not_say_its_size_is_refused_by_name(pair):
    """Files of /proc say that they are empty: so they would arrive."""
    name = "/proc/sys/kernel/ostype"
    refused(pair.a.sluice("send", name, "b:data/"), SOURCE, name)
    result = pair.a.sluice("send", "/proc/sys/kernel/random", "b:data/")
    assert result.returncode == PARTIAL, result
    assert "random/uuid: does not say how long it is" in result.stdout + result.stderr, result
    assert not (pair.b.export() / "random/uuid").exists()
    shutil.rmtree(pair.b.export() / "random")


@pytest.mark.skipif(not is_root(), reason="a tmpfs needs root")
def test_what_a_sparse_file_says_of_its_size_costs_nothing(pair):
    """More than a session takes is refused at once, by its name."""
    huge = pair.a.export("sparse") / "huge"
    huge.touch()
    os.truncate(huge, 1 << 50)
    refused(pair.a.sluice("send", huge, "b:small/"), RESOURCES, huge, "256 TiB")
    pages = os.sysconf("SC_PAGE_SIZE")
    for node in pair.nodes:
        resident = int(open(f"/proc/{node.control.pid}/statm").read().split()[1]) * pages
        assert resident < 500 * MIB, f"{node.name}: {resident >> 20} MiB"
    # The most that a session takes: also reading it again and back takes no time that grows with the hole.
    os.truncate(huge, 255 << 40)
    with huge.open("r+b"):  # somebody may write it, so it is read again
        pair.a.must("send", "--verify", huge, "b:small/", timeout_s=100)
    assert (pair.b.export("small") / "huge").stat().st_size == 255 << 40
    forget(huge, pair.b.export("small") / "huge")


def test_existing_local_destination_of_a_pull(pair):
    remote = make_file(pair.b, 1000)
    target = pair.a.export() / "kept"
    target.write_bytes(b"precious")
    refused(pair.a.sluice("get", f"b:{remote}", target), EXISTS, target, "--overwrite")
    assert target.read_bytes() == b"precious"
    forget(remote, target)


def test_second_writer_of_one_destination(pair):
    big = make_file(pair.a, 64 * MIB)
    process, session = start_slow(pair.a, "send", big, "b:data/one-target")
    other = make_file(pair.a, MIB)
    refused(pair.a.sluice("send", other, "b:data/one-target"), EXISTS, "one-target")
    pair.a.must("session", "cancel", session)
    assert finish(process).returncode != 0
    forget(big, other)


def test_what_is_not_complete_can_neither_be_read_nor_written_by_its_name(pair):
    big, other = make_file(pair.a, 64 * MIB), make_file(pair.a, MIB)
    process, session = start_slow(pair.a, "send", big, "b:data/unfinished")
    missing = pair.a.sluice("get", "b:data/.none.sluice-part", pair.a.export() / "x").stderr
    for name in (".unfinished.sluice-part", "./.unfinished.sluice-part", ".Unfinished.SLUICE-PART"):
        line = refused(pair.a.sluice("get", f"b:data/{name}", pair.a.export() / "x"), SOURCE, "does not exist")
        assert line.split(":")[-1].strip() == missing.split(":")[-1].strip(), "as if it were not there"
        refused(pair.a.sluice("send", other, f"b:data/{name}"), STORAGE, "kept for files under way")
    pair.a.must("session", "cancel", session)
    assert finish(process).returncode != 0
    forget(big, other)


@pytest.mark.skipif(not is_root(), reason="mounting a small file system needs root")
def test_disk_too_small_is_seen_before(pair):
    source = make_file(pair.a, (SMALL_MIB + 4) * MIB)
    refused(pair.a.sluice("send", source, "b:small/"), NO_SPACE, "small")
    assert not names(pair.b, "small")
    forget(source)


@pytest.fixture
def sparse_disk(pair):
    """ext2 cannot preallocate: room that is there at the start may be gone later."""
    if not is_root() or shutil.which("mkfs.ext2") is None:
        pytest.skip("mounting a small ext2 needs root and e2fsprogs")
    image, mount = pair.base / "ext2.img", pair.b.export() / "ext2"
    with open(image, "wb") as out:
        out.truncate(48 * MIB)
    mount.mkdir()
    made = subprocess.run(["mkfs.ext2", "-q", "-m", "0", image], capture_output=True, check=False).returncode == 0
    mounted = made and subprocess.run(["mount", "-o", "loop", image, mount], capture_output=True).returncode == 0
    if mounted:
        yield mount
        run(["umount", mount])
    forget(image)
    mount.rmdir()
    if not mounted:
        pytest.skip("no loop device for an ext2 file system here")


def test_disk_that_fills_up_meanwhile(pair, sparse_disk):
    source = make_file(pair.a, 32 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/ext2/file")
    with open(sparse_disk / "filler", "wb") as filler, pytest.raises(OSError):
        while True:
            filler.write(bytes(MIB))
            filler.flush()
    ended = finish(process)
    assert ended.returncode in (NO_SPACE, STORAGE), ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1 and "file" in ended.stderr
    assert f"session continue {session[:8]}" in ended.stderr, "what has arrived is kept"
    (sparse_disk / "filler").unlink()
    pair.a.must("session", "continue", session)
    assert pair.a.sluice("session", "wait", session, "--quiet").returncode == 0
    assert same_bytes(source, sparse_disk / "file")
    forget(source, sparse_disk / "file")


@pytest.mark.parametrize(
    "arguments",
    [
        ("send",),
        ("send", "/x"),
        ("send", "/x", "no-colon"),
        ("send", "/x", "b:data/", "--lanes", "0"),
        ("send", "/x", "b:data/", "--crc", "md5"),
        ("send", "/x", "b:data/", "--rate", "fast"),
        ("send", "/x", "b:data/", "--no-such-option"),
        ("get", "b:data/x"),
        ("fly",),
    ],
)
def test_wrong_command_line(pair, arguments):
    result = pair.a.sluice(*arguments)
    assert result.returncode == USAGE, result.stderr
    assert result.stderr.strip()


def test_unknown_session(pair):
    for verb in ("show", "wait", "cancel"):
        result = pair.a.sluice("session", verb, "0123456789abcdef")
        assert result.returncode not in (0, UNREACHABLE)
        assert "0123456789abcdef" in result.stderr


def test_names_that_look_like_lists(pair):
    """A command line that takes brackets and commas for a list would send the file `a`."""
    here, there = pair.a.export() / "odd", pair.b.export() / "odd"
    for directory in (here, there):
        directory.mkdir(exist_ok=True)
    odd = ["[a]", "[a,b]", "[]", "a,b", "-q", "--json", "++", "{}", "%%", "'a'"]
    for name in [*odd, "a", "b"]:
        (here / name).write_text(f"this is {name}")
    (here / "[2024]").mkdir()
    (here / "[2024]" / "x").write_text("in a directory")
    for name in odd:
        result = subprocess.run(pair.a.command("send", "-q", "--", name, "b:data/odd/"), cwd=here, check=False,
                                capture_output=True, text=True)  # fmt: skip
        assert result.returncode == 0, (name, result.stderr)
        assert sorted(os.listdir(there)) == sorted(odd[: odd.index(name) + 1])
        assert (there / name).read_text() == f"this is {name}"
    pair.a.must("send", here / "[2024]", "b:data/odd/")
    assert (there / "[2024]" / "x").read_text() == "in a directory"
    pair.a.must("get", "b:data/odd/[a]", here / "[got]")
    assert (here / "[got]").read_text() == "this is [a]"
    shutil.rmtree(here)
    shutil.rmtree(there)
