# CPU and memory of processes, and what else the machine did meanwhile, from /proc.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def process_cpu_s(pid):
    """User and system time of all its threads, also of those that ended."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def _status_mb(pid, key):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def peak_mb(pid):
    """The most that it has had of memory of its own and of hugepages."""
    return _status_mb(pid, "VmHWM") + _status_mb(pid, "HugetlbPages")


def forget_peak(pid):
    """VmHWM counts from now on. Without the right to, it counts from the start of the process."""
    try:
        pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:
        pass


def host_cpu_s():
    """(all CPUs' busy time, stolen time) since boot; guests' time is within user time."""
    user, nice, system, _idle, _wait, irq, softirq, steal = map(
        int, pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq) * _TICK_S, steal * _TICK_S


def drop_caches():
    """What is read next comes from the disk. Needs root."""
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")


class Meter:
    """Between start() and stop(): CPU of these processes, their peak memory, and what others used."""

    def __init__(self, pids):
        self._pids = list(pids)

    def start(self):
        for pid in self._pids:
            forget_peak(pid)
        self._own = self._own_s()
        self._host = host_cpu_s()
        self._before = {pid: process_cpu_s(pid) for pid in self._pids}
        return self

    @staticmethod
    def _own_s():
        return os.times().user + os.times().system

    def stop(self, client=None):
        """client: a Finished whose CPU belongs to the run as well."""
        cpu_s = sum(process_cpu_s(pid) - self._before[pid] for pid in self._pids)
        busy, steal = host_cpu_s()
        cpu_s += client.cpu_s if client else 0.0
        foreign = busy - self._host[0] - cpu_s - (self._own_s() - self._own)
        return {
            "cpu_s": cpu_s if self._pids else None,
            "rss_mb": sum(map(peak_mb, self._pids)) if self._pids else None,
            "hugepages_mb": sum(_status_mb(pid, "HugetlbPages") for pid in self._pids) if self._pids else None,
            "steal_s": steal - self._host[1],
            # Ticks are coarse: what looks like less than nothing is nothing.
            "foreign_cpu_s": max(0.0, foreign),
        }
