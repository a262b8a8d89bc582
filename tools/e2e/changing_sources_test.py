# Sources that somebody writes while they are sent: no mixed file is made, however the change is hidden, and a
# file that was only touched arrives.
# SPDX-License-Identifier: Apache-2.0
import mmap
import os

import pytest
from harness import is_root
from harness.system import same_bytes
from transfers import INTEGRITY, MIB, finish, forget, make_file, start_slow, unharmed

SIZE = 10 * MIB


def _memory_export(pair):
    if is_root():
        pair.a.add_export("memory", pair.mount_tmpfs("memory", 64))
    pair.a.write_configuration()


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(prepare=_memory_export)


@pytest.fixture(autouse=True)
def nothing_left_and_still_serving(pair):
    with unharmed(pair):
        yield


@pytest.fixture(params=["data", "memory"])
def source(pair, request):
    if request.param == "memory" and not is_root():
        pytest.skip("mounting a tmpfs needs root")
    path = make_file(pair.a, SIZE, export=request.param)
    yield path
    forget(path)


def fails_and_leaves_nothing(pair, process, source):
    ended = finish(process)
    assert ended.returncode == INTEGRITY, ended.stderr
    assert source.name in ended.stderr and "changed while it was sent" in ended.stderr
    assert not (pair.b.export() / source.name).exists()


def arrives(pair, process, source):
    ended = finish(process)
    assert ended.returncode == 0, ended.stderr
    target = pair.b.export() / source.name
    assert same_bytes(source, target)
    forget(target)


def test_a_write_whose_mtime_is_put_back_is_noticed(pair, source):
    process, _ = start_slow(pair.a, "send", source, "b:data/")
    before = source.stat()
    with open(source, "r+b") as file:
        file.write(b"changed")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert source.stat().st_mtime_ns == before.st_mtime_ns
    fails_and_leaves_nothing(pair, process, source)


def test_a_write_through_an_older_mapping_is_noticed(pair, source):
    with open(source, "r+b") as file:
        mapping = mmap.mmap(file.fileno(), 0)
    with mapping:
        mapping[0:5] = b"first"  # the page is dirty: of what follows, times say nothing
        process, _ = start_slow(pair.a, "send", source, "b:data/")
        mapping[0:5] = b"later"
        fails_and_leaves_nothing(pair, process, source)


def test_a_mapping_that_is_not_written_holds_nothing_up(pair, source):
    with open(source, "r+b") as file, mmap.mmap(file.fileno(), 0):
        process, _ = start_slow(pair.a, "send", source, "b:data/")
        arrives(pair, process, source)
    assert f"{source}: somebody has it open for writing" in pair.a.control.log_file.read_text()


def test_other_rights_and_another_link_are_no_change(pair, source):
    process, _ = start_slow(pair.a, "send", source, "b:data/")
    source.chmod(0o640)
    link = source.with_name("backup")
    link.hardlink_to(source)
    arrives(pair, process, source)
    link.unlink()
    log = pair.a.control.log_file.read_text()
    assert f"{source}: something happened to it" in log and f"{source}: holds what was sent" in log


def test_a_source_that_is_replaced_by_another_arrives_as_it_was(pair, source):
    process, _ = start_slow(pair.a, "send", source, "b:data/")
    kept = source.with_name("kept")
    kept.hardlink_to(source)
    other = source.with_name("other")
    other.write_bytes(b"another file")
    other.rename(source)
    ended = finish(process)
    assert ended.returncode == 0, ended.stderr
    target = pair.b.export() / source.name
    assert same_bytes(kept, target)
    forget(kept, target)
