# A control group of its own: those who are put into it have less of a disk, or of the CPU, than the others.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import pathlib

from .errors import MISSING, LabError

_CPU_PERIOD_US = 20_000


def _folders(controller):
    """(folder of the controller in cgroup v1, folder of cgroup v2): the first that is there counts."""
    one, two = None, None
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split()[:3]
        if kind == "cgroup" and controller in options.split(","):
            one = pathlib.Path(before.split()[4])
        elif kind == "cgroup2":
            two = pathlib.Path(before.split()[4])
    return one, two


class Cgroup:
    """controller: (its name in cgroup v1, in v2). Whoever is held goes back to the others at `close`."""

    def __init__(self, controller):
        one, two = _folders(controller[0])
        self.is_v1 = one is not None
        self._parent = one or two
        if self._parent is None:
            raise LabError(f"neither {controller[0]} (cgroup v1) nor cgroup v2 is mounted; mount one", MISSING)
        if not self.is_v1 and controller[1] not in (two / "cgroup.subtree_control").read_text().split():
            (two / "cgroup.subtree_control").write_text(f"+{controller[1]}")
        self._group = self._parent / f"sluice-lab-{controller[1]}-{os.getpid()}"
        self._group.mkdir()

    def hold(self, pid):
        (self._group / "cgroup.procs").write_text(str(pid))

    def write(self, file, text):
        (self._group / file).write_text(text)

    def close(self):
        for word in (self._group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (self._parent / "cgroup.procs").write_text(word)
        self._group.rmdir()


@contextlib.contextmanager
def little_of_a_core(pid, percent):
    """While the block runs this process has so much of one core, and others have the rest of it."""
    group = Cgroup(("cpu", "cpu"))
    try:
        quota_us = _CPU_PERIOD_US * percent // 100
        if group.is_v1:
            group.write("cpu.cfs_period_us", str(_CPU_PERIOD_US))
            group.write("cpu.cfs_quota_us", str(quota_us))
        else:
            group.write("cpu.max", f"{quota_us} {_CPU_PERIOD_US}")
        group.hold(pid)
        yield
    finally:
        group.close()
