# The bare programs beside which Sluice is measured: sluice-raw and sluice-pace (perf/probe).
# SPDX-License-Identifier: Apache-2.0
import contextlib
import dataclasses
import json

from harness import find_binaries

from .errors import MISSING, LabError
from .stopwatch import Running, timed

RAW = "sluice-raw"
PACE = "sluice-pace"
MEMORY_MIB = 96


def program(name):
    path = find_binaries() / name
    if not path.exists():
        raise LabError(f"{path}: not built; run ./dev build", MISSING)
    return path


def last_object(finished, name):
    """The JSON object that a probe prints at its end."""
    finished.must_have_worked(name)
    for line in reversed(finished.stdout.strip().splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise LabError(f"{name}: printed no JSON object")


@dataclasses.dataclass
class Place:
    """Where a probe runs: its two devices, the cores of both ends, the kind of its packet memory."""

    ports: list
    cores: tuple
    memory: str


def raw(place, frame_bytes, seconds):
    """The receiver's figures of a bare tx/rx pair: {"frames","bytes","seconds","gbps"}, and what both used of CPU."""
    base = [program(RAW), "--frame-bytes", frame_bytes, "--seconds", seconds, *_memory(place), "--json"]
    running = {}
    with contextlib.ExitStack() as stack:
        for role, port, core in zip(("rx", "tx"), place.ports, place.cores):
            running[role] = Running([*base, "--role", role, "--port", port, "--core", core])
            stack.callback(running[role].stop_if_running)
        ended = {role: running[role].end(seconds + 60) for role in ("tx", "rx")}
        last_object(ended["tx"], f"{RAW} tx")
        figures = last_object(ended["rx"], f"{RAW} rx")
    figures["cpu_s"] = sum(each.cpu_s for each in ended.values())
    figures["rss_mb"] = sum(each.rss_bytes for each in ended.values()) / 1e6
    return figures


def pace(place, policy, rate_bps, frame_bytes, seconds, queue_frames):
    command = [program(PACE), "--policy", policy, "--rate-bps", int(rate_bps), "--frame-bytes", frame_bytes,
               "--seconds", seconds, "--queue-frames", queue_frames, "--port-tx", place.ports[0],
               "--port-rx", place.ports[1], "--cores", ",".join(map(str, place.cores)), *_memory(place),
               "--json"]  # fmt: skip
    finished = timed(command, seconds + 60)
    figures = last_object(finished, PACE)
    figures["cpu_s"] = finished.cpu_s
    figures["rss_mb"] = finished.rss_bytes / 1e6
    return figures


def _memory(place):
    return ["--memory", place.memory, "--memory-mib", MEMORY_MIB]
