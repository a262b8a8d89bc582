# A directory whose list nobody gets before a test lets him: what happens while a tree is read can be arranged.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import ctypes
import os
import struct
import threading

from harness import HarnessError, wait_until

_CLASS_CONTENT, _CLOEXEC, _NONBLOCK = 0x4, 0x1, 0x2
_MARK_ADD, _OPEN_PERM, _ONDIR = 0x1, 0x10000, 0x40000000
_AT_FDCWD = -100
_ALLOW = 1
_EVENT = struct.Struct("=IBBHQii")  # struct fanotify_event_metadata


def _checked(result, what):
    if result < 0:
        reason = ctypes.get_errno()
        raise HarnessError(f"{what}: {os.strerror(reason)}")
    return result


class Held:
    """Who opens the directory waits (fanotify, which needs root) until release(). `waiting`: process ids."""

    def __init__(self, directory):
        libc = ctypes.CDLL(None, use_errno=True)
        self._group = _checked(libc.fanotify_init(_CLASS_CONTENT | _CLOEXEC | _NONBLOCK, os.O_RDONLY), "fanotify_init")
        mask = ctypes.c_uint64(_OPEN_PERM | _ONDIR)
        _checked(libc.fanotify_mark(self._group, _MARK_ADD, mask, _AT_FDCWD, os.fsencode(directory)), "fanotify_mark")
        self.waiting = []
        self._held = []
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while not self._released.wait(0.01):
            with contextlib.suppress(BlockingIOError):
                events = os.read(self._group, 4096)
                for *_, fd, pid in _EVENT.iter_unpack(events):
                    if pid == os.getpid():  # the test itself may look
                        self._allow(fd)
                    else:
                        self._held.append(fd)
                        self.waiting.append(pid)

    def _allow(self, fd):
        with contextlib.suppress(OSError):  # whoever asked was killed
            os.write(self._group, struct.pack("=iI", fd, _ALLOW))
        os.close(fd)

    def wait_for(self, pid, deadline_s=30):
        """The process stands before the directory."""
        wait_until(lambda: pid in self.waiting, deadline_s, f"process {pid} reads the list of a held directory")

    def release(self):
        if self._group < 0:
            return
        self._released.set()
        self._thread.join()
        for fd in self._held:
            self._allow(fd)
        os.close(self._group)  # those that ask meanwhile are let through
        self._group = -1


@contextlib.contextmanager
def held(directory):
    one = Held(directory)
    try:
        yield one
    finally:
        one.release()
