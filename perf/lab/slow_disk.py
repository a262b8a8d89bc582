# A file system of its own whose writes can be slowed down and stopped: ext4 on a loop device, a cgroup, fsfreeze.
#
# The limit is the block layer's (blkio of cgroup v1, io of v2), for those processes that are put into the cgroup;
# it holds for direct writes. While the file system is frozen whoever writes waits.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import pathlib
import shutil
import time

from harness.stacked import Stacked
from harness.system import is_root, run

from .cgroup import Cgroup
from .errors import MISSING, LabError


def missing():
    if not is_root():
        return "a file system of its own needs root"
    for tool in ("losetup", "mkfs.ext4", "fsfreeze"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed; run ./dev deps"
    return None


class SlowDisk(Stacked):
    """`with SlowDisk(base, size) as disk:` disk.folder is its root."""

    def __init__(self, base, size_bytes):
        super().__init__()
        reason = missing()
        if reason:
            raise LabError(f"slow disk: {reason}", MISSING)
        self._image = pathlib.Path(base) / "slow.img"
        self.folder = pathlib.Path(base) / "slow"
        self._size_bytes = size_bytes
        self._frozen = False

    def _make(self):
        with open(self._image, "wb") as image:
            os.posix_fallocate(image.fileno(), 0, self._size_bytes)
        self._stack.callback(self._image.unlink)
        # Direct, so that what is written does not wait in this host's page cache.
        self._device = run(["losetup", "--find", "--show", "--direct-io=on", self._image]).strip()
        self._stack.callback(run, ["losetup", "-d", self._device])
        run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", self._device])
        self.folder.mkdir()
        self._stack.callback(self.folder.rmdir)
        run(["mount", self._device, self.folder])
        self._stack.callback(run, ["umount", self.folder])
        self._group = Cgroup(("blkio", "io"))
        self._stack.callback(self._group.close)
        self._stack.callback(self.thaw)

    def hold(self, pid):
        """This process writes within the limit, from now on."""
        self._group.hold(pid)

    def limit(self, bytes_per_s, what="write"):
        """What those who are held may read or write; None: no limit."""
        number = os.stat(self._device).st_rdev
        device = f"{os.major(number)}:{os.minor(number)}"
        if self._group.is_v1:
            self._group.write(f"blkio.throttle.{what}_bps_device", f"{device} {bytes_per_s or 0}")
        else:
            self._group.write("io.max", f"{device} {what[0]}bps={bytes_per_s or 'max'}")

    def stop_for(self, seconds):
        """Nothing is written for so long."""
        with self.frozen():
            time.sleep(seconds)  # the experiment itself, not a wait for something

    @contextlib.contextmanager
    def frozen(self):
        """Nothing is written while the block runs."""
        run(["fsfreeze", "-f", self.folder])
        self._frozen = True
        try:
            yield
        finally:
            self.thaw()

    def thaw(self):
        if self._frozen:
            self._frozen = False
            run(["fsfreeze", "-u", self.folder])
