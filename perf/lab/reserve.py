# Memory that was touched, for whoever is measured: what it takes new, it gets from here.
#
# In a virtual machine the first touch of a page costs microseconds at the host, and Linux gives free blocks of
# 2 MiB back to the host (free page reporting), at once when there is much of them: so touching memory and freeing
# it before a run helps little. This frees it during the run, as fast as free memory is taken, and only a little ahead.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import mmap
import pathlib
import threading

_AHEAD_BYTES = 512 << 20  # at 25 Gbit/s what is taken in 160 ms
_SLICE_BYTES = 32 << 20
_LOOK_EVERY_S = 0.005
_SPARE_BYTES = 1 << 30


def _meminfo_bytes(key):
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0]) * 1024
    return 0


class Reserve:
    """`with Reserve(size) as reserve:`, and before each run `top_up()`; `with reserve.open():` around the run.
    Holds less where less is available."""

    def __init__(self, size):
        self._size = min(size, _meminfo_bytes("MemAvailable") - _SPARE_BYTES) // _SLICE_BYTES * _SLICE_BYTES
        self._held = 0  # bytes from the beginning of the mapping
        self._memory = None

    def __enter__(self):
        if self._size > 0:
            self._memory = mmap.mmap(-1, self._size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            with contextlib.suppress(OSError):  # a kernel without them
                self._memory.madvise(mmap.MADV_HUGEPAGE)  # those blocks, not the pages that are left over
        return self

    def __exit__(self, *_error):
        if self._memory is not None:
            self._memory.close()
            self._memory = None

    def top_up(self):
        """Touches what was given away. Seconds per GiB where the host has to find it."""
        while self._memory is not None and self._held < self._size:
            if _meminfo_bytes("MemAvailable") < _SPARE_BYTES:
                return
            end = self._held + _SLICE_BYTES
            self._memory[self._held : end : mmap.PAGESIZE] = bytes(_SLICE_BYTES // mmap.PAGESIZE)
            self._held = end

    @contextlib.contextmanager
    def open(self):
        """While this is open, free memory stays what it was at the beginning and a little more."""
        level_bytes = _meminfo_bytes("MemFree") + _AHEAD_BYTES
        self._give(level_bytes)
        done = threading.Event()
        thread = threading.Thread(target=self._feed, args=(done, level_bytes), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _feed(self, done, level_bytes):
        while self._held > 0 and not done.wait(_LOOK_EVERY_S):
            self._give(level_bytes)

    def _give(self, level_bytes):
        missing = level_bytes - _meminfo_bytes("MemFree")
        for _ in range(max(0, missing) // _SLICE_BYTES):
            if self._held > 0:
                self._held -= _SLICE_BYTES
                self._memory.madvise(mmap.MADV_DONTNEED, self._held, _SLICE_BYTES)
