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


class Free:
    """What is free, as the test says."""

    def __init__(self, size):
        self.bytes = size

    def __call__(self):
        return self.bytes


def test_it_gives_what_it_holds_as_memory_is_taken_also_where_other_memory_is_free():
    free = Free(1 << 40)
    before = resident_bytes()
    with Reserve(_SIZE_BYTES, ahead_bytes=0, free_bytes=free) as reserve:
        reserve.top_up()
        assert resident_bytes() - before > _SIZE_BYTES * 0.9
        free.bytes -= _SIZE_BYTES // 2  # somebody takes so much, and there is plenty left
        wait_until(lambda: resident_bytes() - before < _SIZE_BYTES * 0.6, 30, "what was taken is given")
        reserve.top_up()
        assert resident_bytes() - before > _SIZE_BYTES * 0.9


def test_a_part_is_given_before_anybody_takes_it():
    before = resident_bytes()
    with Reserve(_SIZE_BYTES, ahead_bytes=_SIZE_BYTES // 2, free_bytes=Free(1 << 40)) as reserve:
        reserve.top_up()
        wait_until(lambda: resident_bytes() - before < _SIZE_BYTES * 0.6, 30, "half is free")


def test_where_nothing_is_free_it_holds_nothing():
    with Reserve(_SIZE_BYTES, ahead_bytes=1 << 60) as reserve:
        before = resident_bytes()
        reserve.top_up()
        assert resident_bytes() - before < _SIZE_BYTES * 0.1
