# Exports on several disks: one that is full, and one that stands still, hold up their own sessions only. One export has its
# files pass the page cache.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import shutil
import subprocess

import pytest
from harness import wait_until
from harness.stacked import Stacked
from harness.system import is_root, run, same_bytes
from transfers import ENDED, MIB, ended_session, finish, forget, make_file, nothing_temporary, push, start_slow

pytestmark = pytest.mark.skipif(not is_root() or shutil.which("fsfreeze") is None, reason="mounting file systems needs root and fsfreeze")

SIZE = 8 * MIB


class Disks(Stacked):
    """A small ext2, which cannot take space ahead, and an ext4, each on a loop device."""

    def __init__(self, base):
        super().__init__()
        self.base = base

    def _make(self):
        self.full = self._disk("full", "ext2", 24)
        self.frozen = self._disk("frozen", "ext4", 64)

    def _disk(self, name, kind, mib):
        image, mount = self.base / f"{name}.img", self.base / name
        with open(image, "wb") as out:
            out.truncate(mib * MIB)
        mount.mkdir()
        run([f"mkfs.{kind}", "-q", "-m", "0", image])
        if subprocess.run(["mount", "-o", "loop", image, mount], capture_output=True, check=False).returncode != 0:
            pytest.skip("no loop device here")
        self._stack.callback(run, ["umount", mount])
        return mount


@contextlib.contextmanager
def standing_still(mount):
    run(["fsfreeze", "-f", mount])
    try:
        yield
    finally:
        run(["fsfreeze", "-u", mount])


@pytest.fixture(scope="module")
def disks(tmp_path_factory):
    with Disks(tmp_path_factory.mktemp("disks")) as made:
        yield made


@pytest.fixture(scope="module")
def pair(disks, make_pair):  # the nodes end before what they have open
    def prepare(pair):
        pair.b.add_export("full", disks.full)
        pair.b.add_export("frozen", disks.frozen)
        pair.b.add_export("cached", pair.base / "cached")
        pair.b.export_direct["cached"] = "no"
        pair.b.write_configuration()

    return make_pair(prepare=prepare, bytes_needed=256 * MIB)


def fill(mount):
    with open(mount / "filler", "wb", buffering=0) as filler, pytest.raises(OSError):
        while True:
            filler.write(bytes(MIB))


def test_a_full_and_a_frozen_disk_hold_up_their_own_sessions_only(pair, disks):
    source = make_file(pair.a, SIZE)
    sessions = {name: start_slow(pair.a, "send", source, f"b:{name}/file", rate="10M") for name in ("full", "frozen")}
    fill(disks.full)
    with standing_still(disks.frozen):
        assert finish(sessions["full"][0]).returncode != 0
        for export in ("data", "cached"):
            forget(push(pair, source, to=f"{export}/"))
        held = pair.a.json("session", "show", sessions["frozen"][1])[1]
        assert held["state"] not in ENDED, held
    (disks.full / "filler").unlink()
    pair.a.must("session", "continue", sessions["full"][1])
    assert finish(sessions["frozen"][0]).returncode == 0
    for name, (_process, session) in sessions.items():
        assert ended_session(pair.a, session)["state"] == "succeeded", name
        target = pair.b.export(name) / "file"
        assert same_bytes(source, target)
        forget(target)
    forget(source)
    nothing_temporary(*pair.nodes)


def test_files_that_pass_the_page_cache_are_resumed_and_read_back(pair):
    source = make_file(pair.a, SIZE + 77)
    process, session = start_slow(pair.a, "send", source, "b:cached/file", "--verify", rate="20M")
    pair.b.dataplane.kill()
    pair.b.start_dataplane()
    assert finish(process).returncode == 0
    wait_until(lambda: ended_session(pair.b, session)["state"] == "succeeded", 30, "b knows")
    assert same_bytes(source, pair.b.export("cached") / "file")
    forget(source, pair.b.export("cached") / "file")
