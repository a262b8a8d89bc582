# Files of every awkward size arrive byte for byte, pushed and pulled, under their final name only.
# SPDX-License-Identifier: Apache-2.0
import os

import pytest
from harness.system import same_bytes
from transfers import MIB, forget, last_session, make_file, names, pull, push

SIZES = [0, 1, 511, 512, 8191, 8192, 8193, MIB - 1, MIB, MIB + 1, 32 * MIB]


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=5 << 30)


@pytest.mark.parametrize("size", SIZES)
def test_pushed_file_arrives_identical(pair, size):
    source = make_file(pair.a, size)
    target = push(pair, source)
    session = last_session(pair.a)
    assert session["bytes_total"] == size
    assert session["files"][0]["digest_source"] == session["files"][0]["digest_destination"] != ""
    forget(source, target)
    assert not names(pair.b)


@pytest.mark.parametrize("size", SIZES)
def test_pulled_file_arrives_identical(pair, size):
    source = make_file(pair.b, size)
    target = pull(pair, source)
    assert target.stat().st_size == size
    forget(source, target)
    assert not names(pair.a)


def test_both_sides_and_cmp_agree_on_a_crc64_that_others_can_compute(pair):
    # The check value of CRC-64/XZ (ECMA-182, reflected), known from its specification.
    source = pair.a.export() / "check"
    source.write_bytes(b"123456789")
    target = push(pair, source)
    assert int(last_session(pair.a)["files"][0]["digest_destination"], 16) == 0x995DC9BBDF1939FA
    forget(source, target)


def test_mode_and_modification_time_travel(pair):
    source = make_file(pair.a, 5000)
    os.chmod(source, 0o640)
    os.utime(source, ns=(1_500_000_000_123_456_789, 1_500_000_000_123_456_789))
    target = push(pair, source)
    assert target.stat().st_mode & 0o777 == 0o640
    assert target.stat().st_mtime_ns == 1_500_000_000_123_456_789
    forget(source, target)


def test_several_files_go_into_a_directory_in_one_session(pair):
    sources = [make_file(pair.a, size) for size in (0, 10, 3 * MIB, 8192)]
    result = pair.a.sluice("send", *sources, "b:data/")
    assert result.returncode == 0, result.stderr
    targets = [pair.b.export() / source.name for source in sources]
    for source, target in zip(sources, targets):
        assert same_bytes(source, target)
    assert len(last_session(pair.a)["files"]) == 4
    forget(*sources, *targets)


def test_sparse_file_beyond_4_gib_arrives_identical(pair):
    source = pair.a.export() / "sparse"
    size = (4 << 30) + 20 * MIB
    with open(source, "wb") as out:
        for offset in (0, (1 << 32) - 5, size - 10):
            out.seek(offset)
            out.write(b"not a hole")
    assert source.stat().st_size == size
    target = push(pair, source)
    forget(source, target)
