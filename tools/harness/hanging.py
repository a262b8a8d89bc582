# A file system that answers, or does not: FUSE, spoken to the kernel by this very process.
#
# It has an empty directory that takes nothing (EIO). While it hangs, whoever asks it for anything waits, and can be
# killed meanwhile, since nobody has heard the question.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import ctypes
import errno
import os
import pathlib
import select
import struct
import threading

from .system import HarnessError, is_root

_LOOKUP, _FORGET, _GETATTR, _STATFS, _INIT, _INTERRUPT, _BATCH_FORGET = 1, 2, 3, 17, 26, 36, 42
_OPENDIR, _READDIR, _RELEASEDIR = 27, 28, 29
_DIRECTORY = 0o40777
_MNT_FORCE, _MNT_DETACH = 1, 2


def hanging_missing():
    """Why there can be none here, or None."""
    if not is_root():
        return "mounting needs root"
    return None if os.path.exists("/dev/fuse") else "no /dev/fuse here"


class HangingFileSystem:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._answers = threading.Event()
        self._answers.set()
        self._over = threading.Event()
        self._device = -1

    def __enter__(self):
        self.path.mkdir(parents=True, exist_ok=True)
        self._device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self._device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if self._libc.mount(b"sluice-test", str(self.path).encode(), b"fuse", 0, options) != 0:
            reason = os.strerror(ctypes.get_errno())
            os.close(self._device)
            raise HarnessError(f"mounting FUSE at {self.path}: {reason}")
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_error):
        # All that wait hear that it is gone.
        self._libc.umount2(str(self.path).encode(), _MNT_FORCE)
        self._libc.umount2(str(self.path).encode(), _MNT_DETACH)
        self._over.set()
        self._thread.join(10)
        os.close(self._device)

    def hang(self):
        self._answers.clear()

    def answer(self):
        self._answers.set()

    def _serve(self):
        while not self._over.is_set():
            if not self._answers.wait(0.05) or not select.select([self._device], [], [], 0.05)[0]:
                continue
            try:
                request = os.read(self._device, 1 << 17)
            except OSError:
                return  # unmounted
            self._reply(request)

    def _reply(self, request):
        _, code, unique = struct.unpack_from("<IIQ", request)
        if code in (_FORGET, _BATCH_FORGET, _INTERRUPT):
            return
        answers = {
            _INIT: struct.pack("<IIIIHHIIHHI28x", 7, 31, 4096, 0, 12, 9, 4096, 1, 1, 0, 0),
            # Never kept by the kernel: each look at it is a question.
            _GETATTR: struct.pack("<QII6Q10I", 0, 0, 0, 1, 4096, 8, 0, 0, 0, 0, 0, 0, _DIRECTORY, 2, 0, 0, 0, 4096, 0),
            _STATFS: struct.pack("<5Q4I24x", 1 << 20, 1 << 19, 1 << 19, 1000, 500, 4096, 255, 4096, 0),
            _OPENDIR: struct.pack("<QII", 0, 0, 0),
            _READDIR: b"",
            _RELEASEDIR: b"",
        }
        body = answers.get(code)
        error = 0 if body is not None else -errno.ENOENT if code == _LOOKUP else -errno.EIO
        body = body or b""
        with contextlib.suppress(OSError):  # who asked has gone
            os.write(self._device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
