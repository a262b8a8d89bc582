# Files of a tmpfs: sent from a mapping, written by the worker itself; the same guarantees as on a disk.
# SPDX-License-Identifier: Apache-2.0
import os

import pytest
from harness import wait_until
from harness.system import is_root, same_bytes
from transfers import (MIB, NO_SPACE, ended_session, finish, forget, make_file, names, pull, push, refused, start_slow,
                       unharmed)  # fmt: skip

pytestmark = pytest.mark.skipif(not is_root(), reason="mounting a tmpfs needs root")


@pytest.fixture(scope="module")
def pair(make_pair):
    def prepare(pair):
        for node, mib in ((pair.a, 400), (pair.b, 300)):
            node.add_export("data", pair.mount_tmpfs(f"{node.name}-tmpfs", mib))
            node.write_configuration()

    return make_pair(bytes_needed=64 << 20, prepare=prepare)


@pytest.mark.parametrize("size", [1, 8191, MIB + 1, 32 * MIB + 12345])
def test_a_file_arrives_identical_either_way(pair, size):
    source = make_file(pair.a, size)
    target = push(pair, source)
    back = pull(pair, target)
    assert same_bytes(source, back)
    forget(source, target, back)
    assert not names(pair.b)


def test_a_file_with_holes_stays_small_at_its_source(pair):
    source = make_file(pair.a, MIB)
    os.truncate(source, 64 * MIB)
    before = source.stat().st_blocks
    target = push(pair, source)
    assert source.stat().st_blocks == before
    forget(source, target)


def test_a_file_that_does_not_fit_is_refused_at_once(pair):
    source = make_file(pair.a, 320 * MIB)
    with unharmed(pair):
        refused(pair.a.sluice("send", source, "b:data/"), NO_SPACE, "free")
    forget(source)


def test_a_source_cut_off_meanwhile_fails_and_leaves_nothing(pair):
    source = make_file(pair.a, 40 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/", rate="100M")
    os.truncate(source, 5 * MIB)
    assert finish(process).returncode != 0
    assert ended_session(pair.b, session)["state"] == "failed"
    wait_until(lambda: not names(pair.b), 10, "nothing of it is left")
    assert pair.a.dataplane.running()
    forget(source)


def test_memory_that_fills_up_meanwhile(pair):
    source = make_file(pair.a, 100 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/", rate="200M")
    filler = pair.b.export() / "filler"
    with open(filler, "wb", buffering=0) as out, pytest.raises(OSError):
        while True:
            out.write(bytes(MIB))
    ended = finish(process)
    assert ended.returncode == NO_SPACE, ended.stderr
    assert "became full" in ended.stderr and f"session continue {session[:8]}" in ended.stderr, ended.stderr
    forget(filler)
    pair.a.must("session", "continue", session)
    end = ended_session(pair.a, session)
    assert end["state"] == "succeeded", end["error"]
    target = pair.b.export() / source.name
    assert same_bytes(source, target)
    forget(source, target)


@pytest.mark.parametrize("victim", ["a", "b"])
def test_a_node_killed_in_the_middle_goes_on(pair, victim):
    source = make_file(pair.a, 40 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/", rate="100M")
    node = getattr(pair, victim)
    node.control.kill()
    node.dataplane.kill()
    node.start()
    for each in pair.nodes:
        end = ended_session(each, session)
        assert end["state"] == "succeeded", end["error"]
    target = pair.b.export() / source.name
    assert same_bytes(source, target)
    finish(process)
    forget(source, target)
