# Memory that was touched, for whoever is measured: what it takes new, it gets from here.
#
# In a virtual machine the first touch of a page costs microseconds at the host, and Linux gives free blocks of
# 2 MiB back to the host (free page reporting), at once when there is much of them: so touching memory and freeing
# it before a run helps little. This holds what is free, and frees it as fast as free memory is taken, a little ahead.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import mmap
import threading

from .machine import memory_bytes

_KEEP_FREE_BYTES = 768 << 20  # at 25 Gbit/s what is taken in 240 ms
_SLICE_BYTES = 32 << 20
_LOOK_EVERY_S = 0.005


class Reserve:
    """`with Reserve() as reserve:`, and before each run `top_up()`. Holds at most `size` bytes, or all that is free."""

    def __init__(self, size=None, keep_free_bytes=_KEEP_FREE_BYTES):
        self.keep_free_bytes = keep_free_bytes
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
        """Touches what was given away and is free again. Seconds per GiB where the host has to find it."""
        while self._held < self._size and memory_bytes("MemFree") > self.keep_free_bytes + _SLICE_BYTES:
            with self._lock:
                end = self._held + _SLICE_BYTES
                self._memory[self._held : end : mmap.PAGESIZE] = bytes(_SLICE_BYTES // mmap.PAGESIZE)
                self._held = end

    def _feed(self):
        while not self._done.wait(_LOOK_EVERY_S):
            missing = self.keep_free_bytes - memory_bytes("MemFree")
            if missing > 0 and self._held > 0:
                with self._lock:
                    self._give(missing)

    def _give(self, missing):
        slices = min(-(-missing // _SLICE_BYTES), self._held // _SLICE_BYTES)
        self._held -= slices * _SLICE_BYTES
        self._memory.madvise(mmap.MADV_DONTNEED, self._held, slices * _SLICE_BYTES)
