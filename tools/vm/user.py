"""A guest whose kernel is a process of the host (User Mode Linux): it needs neither KVM nor an emulated processor.

Programs run at the host's speed, on one processor. System calls are slow, new processes slowest: some 30 ms each. Its kernel has file
systems, device mapper and NFS, and no devices but its disks.
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import pathlib
import subprocess

from vm import machine

PACKAGES = ("user-mode-linux", *machine.IMAGE_PACKAGES)
_END_S = 10


def modules():
    """Of its kernel, which come with it."""
    return next(iter(sorted(pathlib.Path("/usr/lib/uml/modules").iterdir())))


class UserMachine(machine.Machine):
    def __exit__(self, *_):
        # It takes the processes of its guest with it, if it is asked to end.
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_END_S)
        super().__exit__()

    def _command(self):
        return ["linux.uml", f"mem={self.memory}", f"ubd0={self.share / 'root.cow'},{self.disk}", f"ubd1={self.share / 'scratch.img'}",
                "root=/dev/ubda", "rw", "init=/init.sh", "con=null", "con0=null,fd:1", "ssl=null", "quiet", "panic=-1",
                f"host={self.share}", self.kernel]  # fmt: skip
