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

from .errors import MISSING, LabError


def missing():
    if not is_root():
        return "a file system of its own needs root"
    for tool in ("losetup", "mkfs.ext4", "fsfreeze"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed; run ./dev deps"
    return None


def _controllers():
    """(folder of cgroup v1's blkio, folder of cgroup v2): the first that is there counts."""
    one, two = None, None
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split()[:3]
        if kind == "cgroup" and "blkio" in options.split(","):
            one = pathlib.Path(before.split()[4])
        elif kind == "cgroup2":
            two = pathlib.Path(before.split()[4])
    return one, two


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
        self._group = self._cgroup()
        self._stack.callback(self._leave)
        self._stack.callback(self.thaw)

    def _cgroup(self):
        one, two = _controllers()
        parent = one or two
        if parent is None:
            raise LabError("slow disk: neither blkio (cgroup v1) nor cgroup v2 is mounted; mount one", MISSING)
        self._parent = parent
        if one is None and "io" not in (two / "cgroup.subtree_control").read_text().split():
            (two / "cgroup.subtree_control").write_text("+io")
        group = parent / f"sluice-lab-disk-{os.getpid()}"
        group.mkdir()
        self._files = {what: (f"blkio.throttle.{what}_bps_device", "{device} {bps}") if one else
                       ("io.max", "{device} " + what[0] + "bps={bps}") for what in ("read", "write")}  # fmt: skip
        self._none = "0" if one else "max"
        return group

    def _leave(self):
        for word in (self._group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (self._parent / "cgroup.procs").write_text(word)
        self._group.rmdir()

    def hold(self, pid):
        """This process writes within the limit, from now on."""
        (self._group / "cgroup.procs").write_text(str(pid))

    def limit(self, bytes_per_s, what="write"):
        """What those who are held may read or write; None: no limit."""
        number = os.stat(self._device).st_rdev
        device = f"{os.major(number)}:{os.minor(number)}"
        file, form = self._files[what]
        (self._group / file).write_text(form.format(device=device, bps=bytes_per_s or self._none))

    def stop_for(self, seconds):
        """Nothing is written for so long."""
        run(["fsfreeze", "-f", self.folder])
        self._frozen = True
        try:
            time.sleep(seconds)  # the experiment itself, not a wait for something
        finally:
            self.thaw()

    def thaw(self):
        if self._frozen:
            self._frozen = False
            run(["fsfreeze", "-u", self.folder])
