# What the figures were measured on: enough to judge them by, and to find out later why others differ.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import platform
import subprocess
import time

from harness.system import REPOSITORY, allowed_cores


def _read(path, default=None):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return default


def _field(path, key):
    for line in (_read(path) or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None


def memory_bytes(key):
    """A figure of /proc/meminfo; 0 where it is not known."""
    return int((_field("/proc/meminfo", key) or "0 kB").split()[0]) * 1024


def busy_share(seconds=0.5):
    """Which part of all CPUs' time something used just now: asked when nothing of ours runs, what else does."""
    before = _ticks()
    time.sleep(seconds)
    after = _ticks()
    total = sum(after) - sum(before)
    idle = sum(after[3:5]) - sum(before[3:5])  # and waiting for a disk
    return round(1 - idle / total, 3) if total > 0 else None


def _ticks():
    """Of all CPUs: user, nice, system, idle, iowait, irq, softirq, steal."""
    words = (_read("/proc/stat") or "cpu 0 0 0 0 0 0 0 0").splitlines()[0].split()
    return [int(word) for word in words[1:9]]


def _said(*command):
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    except OSError:
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def describe():
    flags = (_field("/proc/cpuinfo", "flags") or "").split()
    return {
        "cpu": _field("/proc/cpuinfo", "model name"),
        "cpus": os.cpu_count(),
        "cpus_allowed": allowed_cores(),
        "cpu_flags": [flag for flag in ("aes", "avx2", "avx512f", "vaes", "vpclmulqdq", "pclmulqdq", "hypervisor") if flag in flags],
        "memory_gb": round(memory_bytes("MemTotal") / 1e9, 1),
        "kernel": platform.release(),
        "system": (_field_of_os_release("PRETTY_NAME") or platform.platform()),
        "host": platform.node(),
        "load_at_start": os.getloadavg()[0],
        "busy_share_at_start": busy_share(),
        "tcp_congestion_control": _read("/proc/sys/net/ipv4/tcp_congestion_control"),
    }


def _field_of_os_release(key):
    for line in (_read("/etc/os-release") or "").splitlines():
        name, _, value = line.partition("=")
        if name == key:
            return value.strip('"')
    return None


def version(sluice):
    """What was measured: the program's version, and the commit of the tree with a + if it was changed."""
    said = _said(str(sluice), "--version") or ""
    commit = _said("git", "rev-parse", "--short=12", "HEAD")
    if commit and _said("git", "status", "--porcelain"):
        commit += "+"
    return " ".join(part for part in (said, commit) if part)


def file_system(path):
    """{"type", "source", "options"} of the mount that holds a path, from /proc/self/mountinfo."""
    path = os.path.realpath(path)
    best, found = "", {"type": None, "source": None, "options": None}
    for line in (_read("/proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4]
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        # The later of two mounts on one point is the one that is seen.
        if inside and len(point) >= len(best):
            kind, source, options = after.split()[:3]
            best, found = point, {"type": kind, "source": source, "options": options}
    return found
