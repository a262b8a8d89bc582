# Faults of what a transfer stands on: control connections cut, disks that fill up or fail, clocks that jump. Nothing is
# lost; what cannot go on says why and waits.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import shutil
import subprocess

import pytest
from harness import EmulatedWire, Proxy, find_binaries, is_root, wait_until
from harness.system import run, same_bytes
from partings import STALLS_SOON, succeeded
from transfers import (ENDED, INTEGRITY, MIB, NO_SPACE, SANITIZED, STORAGE, ended_session, finish, forget, make_file,
                       start_slow, still_serving, wait_state)  # fmt: skip

SIZE = 40 * MIB + 4321
RATE = "100M"
TIMERFD = find_binaries() / "sluice_timerfd.so"
LIBFAKETIME = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(wire=EmulatedWire(rate="1G"), bytes_needed=1 << 30, settings={"control": STALLS_SOON})


@pytest.fixture
def proxied(pair):
    """a reaches b's control through a proxy, as node `b`."""
    port = int(pair.b.address.rpartition(":")[2])
    with Proxy(port) as proxy:
        pair.a.must("node", "trust", "b", pair.b.certificate, "--address", proxy.address, "--replace")
        yield proxy
    pair.a.must("node", "trust", "b", pair.b.certificate, "--address", pair.b.address, "--replace")


def test_a_control_connection_that_is_cut_again_and_again(pair, proxied):
    source = make_file(pair.a, SIZE)
    process, session = start_slow(pair.a, "send", source, "b:data/", rate=RATE)
    for part in range(1, 6):
        wait_until(lambda: pair.a.json("session", "show", session)[1]["bytes_done"] > SIZE * part // 8, 60,
                   f"{part} of 8 parts are there")  # fmt: skip
        proxied.cut()
    end = succeeded(pair, session, source, pair.b.export() / source.name)
    finish(process)
    assert (end["attempts"], end["bytes_resent"]) == (1, 0), end  # the flows went on


def test_a_control_connection_that_stays_away_longer_than_flows_wait(pair, proxied):
    source = make_file(pair.a, SIZE)
    process, session = start_slow(pair.a, "send", source, "b:data/", rate="40M")
    proxied.cut(refuse=True)
    waiting = wait_state(pair.a, session, "waiting")
    assert "b" in waiting["waiting_for"]
    proxied.mend()
    end = succeeded(pair, session, source, pair.b.export() / source.name)
    finish(process)
    assert end["attempts"] >= 2


# ---- disks --------------------------------------------------------------------------------------


@pytest.fixture
def thin_disk(pair):
    """ext2 in a file that has less room beneath it than it thinks: writes beyond that fail with EIO, until the
    room is made. ext2 cannot preallocate, so this is found out late. In an export of both nodes' own."""
    if not is_root() or shutil.which("mkfs.ext2") is None:
        pytest.skip("mounting file systems needs root and e2fsprogs")
    below = pair.base / "below"
    below.mkdir()
    run(["mount", "-t", "tmpfs", "-o", "size=12M", "sluice-test", below])
    image, mount = below / "ext2.img", pair.b.export() / "thin"
    with open(image, "wb") as out:
        out.truncate(128 * MIB)
    mount.mkdir()
    made = subprocess.run(["mkfs.ext2", "-q", "-m", "0", image], capture_output=True, check=False).returncode == 0
    mounted = made and subprocess.run(["mount", "-o", "loop", image, mount], capture_output=True).returncode == 0
    try:
        if not mounted:
            pytest.skip("no loop device for an ext2 file system here")
        yield mount, lambda: run(["mount", "-o", "remount,size=256M", below])
    finally:
        if mounted:
            run(["umount", mount])
        mount.rmdir()
        run(["umount", below])
        below.rmdir()


def continued_to_its_end(node, session):
    """An error of what was written before the disk was mended may only be told now: then it pauses once more."""
    for _ in range(5):
        node.must("session", "continue", session)
        reply = wait_state(node, session, *ENDED, "paused", deadline_s=90)
        if reply["state"] != "paused":
            break
    return reply


def test_a_disk_that_fails_in_the_middle_and_is_mended(pair, thin_disk):
    mount, mend = thin_disk
    source = make_file(pair.a, SIZE)
    process, session = start_slow(pair.a, "send", source, "b:data/thin/file", rate=RATE)
    ended = finish(process)
    assert ended.returncode in (STORAGE, NO_SPACE), ended.stderr
    assert "session continue" in ended.stderr, ended.stderr
    wait_state(pair.a, session, "paused")
    assert pair.a.json("session", "show", session)[1]["bytes_done"] < SIZE
    mend()
    end = continued_to_its_end(pair.a, session)
    # ext2 has no journal: it may have lost blocks of its own. Then that is seen, and nothing has the name.
    assert (end["state"], end["error_code"]) in (("succeeded", 0), ("failed", INTEGRITY)), end["error"]
    if end["state"] == "succeeded":
        assert same_bytes(source, mount / "file")
        pair.b.must("verify", session)
    else:
        assert not (mount / "file").exists()
    forget(source, mount / "file")


def test_a_disk_that_fails_and_stays_so_is_given_up_by_the_operator(pair, thin_disk):
    mount, _ = thin_disk
    source = make_file(pair.a, SIZE)
    process, session = start_slow(pair.a, "send", source, "b:data/thin/file", rate=RATE)
    assert finish(process).returncode in (STORAGE, NO_SPACE)
    wait_state(pair.a, session, "paused")
    pair.a.must("session", "cancel", session)
    for node in pair.nodes:
        assert ended_session(node, session)["state"] == "cancelled"
    wait_until(lambda: {path.name for path in mount.iterdir()} <= {"lost+found"}, 10, "nothing is left")
    still_serving(pair)
    forget(source)


# ---- clocks -------------------------------------------------------------------------------------


@pytest.mark.skipif(LIBFAKETIME is None, reason="libfaketime is not installed; run ./dev deps")
@pytest.mark.skipif(SANITIZED, reason="a sanitizer's runtime must be the first library that is loaded")
@pytest.mark.parametrize("jump", ["-3000d", "+3000d"])
def test_wall_clocks_that_jump(pair, jump, monkeypatch):
    """b's control is given another time of day in the middle, then its connections have to be made anew."""
    offset = pair.b.directory / "clock"  # where its sandbox lets the library look
    offset.write_text("+0")
    pair.b.control.stop()
    with monkeypatch.context() as patch:
        for name, value in (("LD_PRELOAD", f"{TIMERFD}:{LIBFAKETIME}"), ("FAKETIME_TIMESTAMP_FILE", offset),
                            ("FAKETIME_NO_CACHE", 1), ("FAKETIME_DONT_FAKE_MONOTONIC", 1)):  # fmt: skip
            patch.setenv(name, str(value))
        pair.b.control.start()
    wait_until(pair.b.attached, 30, "b is attached")
    try:
        source = make_file(pair.a, SIZE)
        process, session = start_slow(pair.a, "send", source, "b:data/", rate=RATE)
        offset.write_text(jump)
        pair.a.control.kill()
        finish(process)
        pair.a.start_control()
        succeeded(pair, session, source, pair.b.export() / source.name)
    finally:
        pair.b.control.stop()
        pair.b.start_control()
    still_serving(pair)
