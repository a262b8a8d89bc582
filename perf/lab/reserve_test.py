# Memory kept for whoever is measured.
# SPDX-License-Identifier: Apache-2.0
import pathlib

from lab.reserve import Reserve

_SIZE_BYTES = 64 << 20  # less than what is given ahead


def resident_bytes():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def test_it_is_touched_before_a_run_and_free_within_it():
    with Reserve(_SIZE_BYTES) as reserve:
        before = resident_bytes()
        reserve.top_up()
        held = resident_bytes()
        assert held - before > _SIZE_BYTES * 0.9
        with reserve.open():
            assert held - resident_bytes() > _SIZE_BYTES * 0.9
        reserve.top_up()
        assert resident_bytes() - before > _SIZE_BYTES * 0.9


def test_where_there_is_none_to_hold_it_holds_none():
    with Reserve(0) as reserve:
        reserve.top_up()
        with reserve.open():
            pass
