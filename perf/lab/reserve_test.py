# Memory kept for whoever is measured.
# SPDX-License-Identifier: Apache-2.0
import pathlib

from harness import wait_until
from lab.reserve import Reserve

_SIZE_BYTES = 64 << 20


def resident_bytes():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def test_it_holds_what_is_free_and_frees_it_when_that_is_taken():
    with Reserve(_SIZE_BYTES, keep_free_bytes=0) as reserve:
        before = resident_bytes()
        reserve.top_up()
        held = resident_bytes()
        assert held - before > _SIZE_BYTES * 0.9
        reserve.keep_free_bytes = 1 << 60  # as if somebody had taken everything
        wait_until(lambda: held - resident_bytes() > _SIZE_BYTES * 0.9, 30, "the memory is free")
        reserve.keep_free_bytes = 0
        reserve.top_up()
        assert resident_bytes() - before > _SIZE_BYTES * 0.9


def test_where_nothing_is_free_it_holds_nothing():
    with Reserve(_SIZE_BYTES, keep_free_bytes=1 << 60) as reserve:
        before = resident_bytes()
        reserve.top_up()
        assert resident_bytes() - before < _SIZE_BYTES * 0.1
