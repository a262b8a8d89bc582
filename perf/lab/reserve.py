# Memory that was touched, for whoever is measured: what it takes new, it gets from here.
#
# In a virtual machine the first touch of a page costs microseconds at the host, and Linux gives free blocks of
# 2 MiB back to the host (free page reporting), at once when there is much of them: so touching memory and freeing
# it before a run helps little. This holds what was touched, and frees it as fast as free memory is taken, a little
# ahead. Linux takes first what was freed last, so this works also where other memory, never touched, is free.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import mmap
import threading

from .machine import memory_bytes

_AHEAD_BYTES = 768 << 20  # at 25 Gbit/s what is taken in 240 ms
_SLICE_BYTES = 32 << 20
_LOOK_EVERY_S = 0.005


class Reserve:
    """`with Reserve() as reserve:`, and before each run `top_up()`. Holds at most `size` bytes, or all that is free.
    A run may take `size` bytes."""

    def __init__(self, size=None, ahead_bytes=_AHEAD_BYTES, free_bytes=lambda: memory_bytes("MemFree")):
        self._ahead_bytes = ahead_bytes
        self._free_bytes = free_bytes
        self._level_bytes = 0  # what is kept free; nothing before the first run
        self._size = (size or memory_bytes("MemTotal")) // _SLICE_BYTES * _SLICE_BYTES
        self._held = 0  # bytes from the beginning of the mapping
        self._memory = None
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)

    def __enter__(self):
        self._memory = mmap.mmap(-1, self._size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with contextlib.suppress(OSError):  # a kernel without them
            self._memory.madvise(mmap.MADV_HUGEPAGE)  # those blocks, not the pages that are left over
        self._thread.start()
        return self

    def __exit__(self, *_error):
        self._done.set()
        self._thread.join()
        self._memory.close()

    def top_up(self):
        """Touches what was given away and is free again. Seconds per GiB where the host has to find it. From now on
        memory is given."""
        self._level_bytes = 0
        while self._held < self._size and self._free_bytes() > self._ahead_bytes + _SLICE_BYTES:
            with self._lock:
                end = self._held + _SLICE_BYTES
                self._memory[self._held : end : mmap.PAGESIZE] = bytes(_SLICE_BYTES // mmap.PAGESIZE)
                self._held = end
        # Other free memory was perhaps never touched. It stays free: the feeder keeps this much beside it.
        untouched = self._free_bytes() if self._held == self._size else 0
        self._level_bytes = untouched + self._ahead_bytes

    def _feed(self):
        while not self._done.wait(_LOOK_EVERY_S):
            with self._lock:
                missing = self._level_bytes - self._free_bytes()
                if missing > 0 and self._held > 0:
                    self._give(missing)

    def _give(self, missing):
        slices = min(-(-missing // _SLICE_BYTES), self._held // _SLICE_BYTES)
        self._held -= slices * _SLICE_BYTES
        self._memory.madvise(mmap.MADV_DONTNEED, self._held, slices * _SLICE_BYTES)
