# Trees that are not as one wishes: loops, names that the destination cannot have, files that change while they are
# found. Each name that does not arrive is told, all else arrives, and nothing outside is touched.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import shutil
import subprocess

import pytest
from harness import is_root, wait_until
from harness.system import same_bytes
from held import held
from transfers import ENDED, MIB, ended_session, last_session, make_file, temporary_files
from trees import forget_tree, names_beneath

pytestmark = pytest.mark.skipif(not is_root(), reason="mounts")
PARTIAL = 21
LETTERS = "has the name of another one there"
NTFS = ("mkntfs", "lowntfs-3g")


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30)


@pytest.fixture
def tree(pair):
    root = pair.a.export() / "tree"
    (root / "d").mkdir(parents=True)
    (root / "d" / "file").write_bytes(b"file")
    yield root
    for node in pair.nodes:
        for place in node.export().iterdir():
            forget_tree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
        assert not list(temporary_files(node))


def missing(node):
    return {each["path"]: each["reason"] for each in last_session(node)["names"]["missing"]}


def test_loops_of_links_and_of_mounts_end(pair, tree):
    (tree / "d" / "up").symlink_to("..")
    (tree / "one").symlink_to("two")
    (tree / "two").symlink_to("one")
    (tree / "bound").mkdir()
    subprocess.run(["mount", "--bind", tree, tree / "bound"], check=True)
    try:
        pair.a.must("send", tree, "b:data/")
    finally:
        subprocess.run(["umount", tree / "bound"], check=True)
    there = pair.b.export() / "tree"
    assert os.readlink(there / "d" / "up") == ".." and os.readlink(there / "one") == "two"
    assert (there / "bound" / "d" / "file").read_bytes() == b"file", "as cp -a and rsync have it"
    assert not list((there / "bound" / "bound").iterdir())
    assert names_beneath(there) == 12


@contextlib.contextmanager
def ntfs(pair):
    """Names that differ in the case of letters are one there; what has a : and what is no UTF-8 are none."""
    if any(shutil.which(each) is None for each in NTFS) or not os.path.exists("/dev/fuse"):
        pytest.skip("needs ntfs-3g and /dev/fuse")
    image, place = pair.base / "ntfs.img", pair.base / "ntfs"
    place.mkdir(exist_ok=True)
    with open(image, "wb") as file:
        file.truncate(128 * MIB)
    made = subprocess.run(["losetup", "-f", "--show", image], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no loop device: {made.stderr}")
    device = made.stdout.strip()
    try:
        subprocess.run(["mkntfs", "-Q", "-F", device], check=True, capture_output=True)
        options = "ignore_case,windows_names,permissions"
        subprocess.run(["lowntfs-3g", "-o", options, device, place], check=True, capture_output=True)
        pair.b.add_export("ntfs", place, "rwm")
        pair.b.write_configuration()
        assert pair.b.control.stop() == 0
        pair.b.start_control()
        yield place
    finally:
        pair.b.exports.pop("ntfs", None)
        pair.b.write_configuration()
        assert pair.b.control.stop() == 0
        subprocess.run(["umount", place], check=False)
        subprocess.run(["losetup", "-d", device], check=True)
        pair.b.start_control()


@pytest.mark.parametrize("overwrite", [(), ("--overwrite",)], ids=["new", "overwrite"])
def test_a_destination_that_has_fewer_names(pair, tree, overwrite):
    large = [os.urandom(2 * MIB), os.urandom(2 * MIB)]
    (tree / "D").mkdir()
    (tree / "D" / "other").write_bytes(b"other")
    for name, content in (("README", b"upper"), ("readme", b"lower"), ("large", large[0]), ("LARGE", large[1]),
                          ("a:b", b"colon"), ("fine", b"fine")):  # fmt: skip
        (tree / name).write_bytes(content)
    with open(os.fsencode(tree) + b"/\xff", "wb") as odd:
        odd.write(b"odd")
    (tree / "link").symlink_to("fine")
    os.link(tree / "fine", tree / "hard")
    with ntfs(pair) as place:
        result = pair.a.sluice("send", tree, "b:ntfs/", *overwrite)
        assert result.returncode == PARTIAL, result.stdout + result.stderr
        told = missing(pair.a)
        there = {path.name.lower(): path for path in (place / "tree").iterdir()}  # it lists them so
        assert there["fine"].read_bytes() == b"fine"
        # Of each pair one has arrived, as it is, and the other one is named.
        assert there["readme"].read_bytes() == b"upper" and told["tree/readme"].startswith((LETTERS, "exists")), told
        arrived = [name for name in ("large", "LARGE") if f"tree/{name}" not in told]
        assert len(arrived) == 1 and same_bytes(tree / arrived[0], there["large"]), told
        # So it is with directories, and with what is in them.
        assert (place / "tree" / "d" / "other").read_bytes() == b"other" and told["tree/d"].startswith(LETTERS)
        others = {path for path in told if "arge" not in path.lower()}
        assert others == {"tree/readme", "tree/a:b", "tree/?", "tree/d", "tree/d/file"}, told


def test_two_directories_that_are_one_at_the_destination(pair, tree):
    """Of what they hold nothing takes the place of something else without a word, however it travels."""
    shutil.rmtree(tree)
    names = {"Dir/f": b"AAA", "dir/f": b"BBB", "Dir/only": b"upper", "dir/other": b"lower", "x/README": b"1", "x/readme": b"2",
             "Dir/large": os.urandom(2 * MIB), "dir/large": os.urandom(2 * MIB), "Dir/deep/a": b"a", "dir/deep/a": b"b",
             "fine/Fine": b"fine", "dir/LARGE": os.urandom(2 * MIB)}  # fmt: skip
    for name, content in names.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(content)

    def arrived(place):
        """Each file that is there is whole, and one of the tree's; what is not there was named."""
        told = {path.removeprefix("tree/"): reason for path, reason in missing(pair.a).items()}  # --sync is beneath it
        for name, content in names.items():
            there = [path for path in (place / "tree").rglob("*") if str(path).lower() == f"{place}/tree/{name}".lower()]
            if name not in told:
                assert len(there) == 1, (name, how, sorted(told))
                # By other letters than it is listed with, the kernel may still know of what was replaced.
                assert (place / "tree" / name).read_bytes() == content, (name, how, sorted(told))
        assert all(reason.startswith((LETTERS, "another session writes")) for reason in told.values()), told
        assert "fine/Fine" not in told and len([name for name in told if name.endswith("/f")]) == 1, told

    with ntfs(pair) as place:
        for how in (("--overwrite",), (), ("--sync",), ("--sync",)):
            result = pair.a.sluice("send", tree, "b:ntfs/", *how)
            if how != ():
                assert result.returncode == PARTIAL, (how, result.stdout + result.stderr)
                arrived(place)
        # What the source seems to lack has been sent: it is listed in small letters alone.
        shutil.rmtree(tree / "dir")
        shutil.rmtree(place / "tree")
        (tree / "x" / "readme").unlink()
        (place / "tree").mkdir()
        (place / "tree" / "extra").write_bytes(b"extra")
        for _ in range(2):
            assert pair.a.sluice("send", tree, "b:ntfs/", "--sync", "--delete").returncode == PARTIAL
            # By its list: the kernel may still know of names that were removed, and of none that is new.
            assert [name.lower() for name in os.listdir(place / "tree" / "x")] == ["readme"]


@pytest.mark.parametrize("side", ["source", "destination"])
def test_a_directory_that_becomes_a_link_while_it_is_sent(pair, tree, side):
    """It leads to what is outside of the export: nothing of that is sent, and nothing is written there."""
    outside = pair.base / "outside"
    outside.mkdir()
    (outside / "large").write_bytes(b"secret")
    for name in ("large", "larger"):
        make_file(pair.a, 6 * MIB, name=f"tree/d/{name}")
    (tree / "fine").write_bytes(b"fine")
    session = pair.a.must("send", tree, "b:data/", "--rate", "20M", "--detach").stdout.split()[-1]
    wait_until(lambda: last_session(pair.a)["bytes_done"] > MIB, 30, "the first bytes")
    turned = (pair.a if side == "source" else pair.b).export() / "tree" / "d"
    turned.rename(turned.parent / "moved")
    turned.symlink_to(outside)
    try:
        pair.a.sluice("session", "wait", session, "--timeout", "60")
        assert (outside / "large").read_bytes() == b"secret" and len(list(outside.iterdir())) == 1
        for path in (pair.b.export() / "tree").rglob("*"):
            assert path.is_symlink() or not path.is_file() or path.read_bytes() != b"secret", path
        assert (pair.b.export() / "tree" / "fine").read_bytes() == b"fine"
        if last_session(pair.a)["state"] not in ENDED:
            pair.a.sluice("session", "cancel", session)
            ended_session(pair.a, session)
    finally:
        turned.unlink()
        shutil.rmtree(outside)


def test_files_that_grow_or_vanish_while_they_are_found(pair, tree):
    """The list stands still before the last directory: what it has told already is another thing when it is read."""
    (tree / "zz").mkdir()
    make_file(pair.a, 3 * MIB, name="tree/d/large")
    for name in ("fine", "gone", "growing"):
        (tree / name).write_bytes(b"small")
    with held(tree / "zz") as hold:
        command = pair.a.popen("send", tree, "b:data/")
        hold.wait_for(pair.a.control.pid)
        with open(tree / "growing", "ab") as file:
            file.write(b" no more")
        (tree / "gone").unlink()
    out, _ = command.communicate(timeout=60)
    assert command.returncode == PARTIAL, out
    gone = "was not there when it was to be read; only a directory has a slash behind its name"
    assert missing(pair.a) == {"tree/gone": gone, "tree/growing": "changed while it was read"}
    there = pair.b.export() / "tree"
    assert (there / "fine").read_bytes() == b"small" and same_bytes(tree / "d" / "large", there / "d" / "large")
    assert not (there / "gone").exists() and not (there / "growing").exists()
    pair.a.sluice("send", tree, "b:data/", "--sync").check_returncode()
    assert (there / "growing").read_bytes() == b"small no more", "the same again does the rest"
