# Files with holes: what is sent and stored is their data, and what arrives is byte for byte what was there.
# SPDX-License-Identifier: Apache-2.0
import os
import random
import shutil

import pytest
from harness import wait_until
from transfers import MIB, forget, fresh_name, last_session, temporary_files

TIB = 1 << 40


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30)


def sparse(folder, size, data, seed=1):
    """A file of `size` bytes with random bytes in these (offset, length)."""
    path = folder / fresh_name("sparse")
    generator = random.Random(seed)
    with open(path, "wb") as file:
        file.truncate(size)
        for offset, length in data:
            file.seek(offset)
            file.write(generator.randbytes(length))
    return path


def runs(path):
    """[(offset, bytes)] of what is no hole, without zeros at the ends of a run."""
    out = []
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        at = 0
        while at < size:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            out.append((at, os.pread(file.fileno(), end - at, at)))
            at = end
    return out


def content(path):
    """{offset: block} of all blocks that are not zeros; blocks are those of 4096 bytes."""
    found = {}
    for offset, data in runs(path):
        assert offset % 4096 == 0
        for at in range(0, len(data), 4096):
            block = data[at : at + 4096]
            if block.strip(b"\0"):
                found[offset + at] = block.rstrip(b"\0")
    return found


def same(one, other):
    assert one.stat().st_size == other.stat().st_size
    assert content(one) == content(other)


def room(path):
    return path.stat().st_blocks * 512


SPREAD = [(0, 5000), (3 * MIB + 77, 100_000), (700 * MIB, 4 * MIB), (TIB - 10, 10)]


@pytest.mark.parametrize("way", ["send", "get"])
def test_a_sparse_terabyte_costs_what_is_in_it(pair, way):
    here, there = (pair.a, pair.b) if way == "send" else (pair.b, pair.a)
    source = sparse(here.export(), TIB, SPREAD)
    target = there.export() / source.name
    paths = (source, "b:data/") if way == "send" else (f"b:{source}", target)
    pair.a.must(way, *paths, timeout_s=120)
    same(source, target)
    assert room(target) < 40 * MIB
    session = last_session(pair.a)
    assert session["bytes_total"] == session["bytes_done"] == TIB
    assert session["bytes_sent"] < 40 * MIB
    # Nobody has carried the holes.
    assert session["goodput_bps"] * session["data_elapsed_s"] / 8 <= session["bytes_sent"] * 1.01
    pair.a.must("verify", session["id"], timeout_s=120)
    forget(source, target)


def test_a_file_that_is_one_hole_and_one_in_a_tree(pair):
    root = pair.a.export() / "holes"
    root.mkdir()
    sparse(root, 10 << 30, [])
    sparse(root, (10 << 30) + 1, [(5 << 30, 1)])
    sparse(root, 100_000, [(50_000, 1)])
    pair.a.must("send", root, "b:data/", timeout_s=120)
    for each in root.iterdir():
        same(each, pair.b.export() / "holes" / each.name)
        assert room(pair.b.export() / "holes" / each.name) <= 4 * MIB
    shutil.rmtree(root)
    shutil.rmtree(pair.b.export() / "holes")


# Such files are done before their turn to be opened comes, and those with data are not.
def test_more_files_that_are_one_hole_than_can_be_open(pair):
    root = pair.a.export() / "many"
    root.mkdir()
    for number in range(600):
        sparse(root, 1_200_000, [(300_000, 700_000)] if number % 60 == 3 else [], seed=number)
    pair.a.must("send", root, "b:data/", timeout_s=120)
    arrived = pair.b.export() / "many"
    assert len(list(arrived.iterdir())) == 600
    for each in root.iterdir():
        assert each.read_bytes() == (arrived / each.name).read_bytes()
    shutil.rmtree(root)
    shutil.rmtree(arrived)


@pytest.mark.parametrize("kill", ["control", "dataplane"])
@pytest.mark.parametrize("side", [0, 1])
def test_whatever_ends_in_the_middle_holes_are_not_sent(pair, kill, side):
    data = [(i * 256 * MIB + 4096, 3 * MIB) for i in range(20)]
    source = sparse(pair.a.export(), TIB, data, seed=side)
    target = pair.b.export() / source.name
    pair.a.must("send", source, "b:data/", "--rate", "100M", "--detach")
    node = pair.nodes[side]
    held = TIB - 70 * MIB
    for step in (15, 30):
        wait_until(lambda step=step: last_session(pair.a)["bytes_done"] > held + step * MIB, 60, "more bytes")
        if kill == "control":
            node.control.kill()
            node.start_control()
        else:
            node.dataplane.kill()
            node.start_dataplane()
    wait_until(lambda: last_session(pair.a)["state"] == "succeeded", 120, "the end of the session")
    same(source, target)
    assert last_session(pair.a)["bytes_sent"] < 200 * MIB
    assert room(target) < 100 * MIB
    forget(source, target)
    for each in pair.nodes:
        assert not list(temporary_files(each))


def test_what_is_written_into_a_hole_meanwhile_is_a_change(pair):
    source = sparse(pair.a.export(), TIB, [(0, 20 * MIB)])
    pair.a.must("send", source, "b:data/", "--rate", "50M", "--detach")
    wait_until(lambda: last_session(pair.a)["state"] == "transferring", 30, "the transfer")
    with open(source, "r+b") as file:
        file.seek(TIB // 2)
        file.write(b"new")
    wait_until(lambda: last_session(pair.a)["state"] == "failed", 120, "the end of the session")
    assert last_session(pair.a)["error_name"] == "integrity"
    assert not (pair.b.export() / source.name).exists()
    forget(source)
