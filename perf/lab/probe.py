# The bare programs beside which Sluice is measured: sluice-raw and sluice-pace (perf/probe).
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json

from harness import find_binaries

from .errors import MISSING, LabError
from .stopwatch import Running, timed

RAW = "sluice-raw"
PACE = "sluice-pace"


def program(name):
    path = find_binaries() / name
    if not path.exists():
        raise LabError(f"{path}: not built; run ./dev build", MISSING)
    return path


def last_object(finished, name):
    """The JSON object that a probe prints at its end."""
    if finished.timed_out:
        raise LabError(f"{name}: not ended in time")
    if finished.status != 0:
        raise LabError(f"{name}: exit {finished.status}: {finished.reason()}")
    for line in reversed(finished.stdout.strip().splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise LabError(f"{name}: printed no JSON object")


def raw(ports, frame_bytes, seconds, cores, memory, memory_mib=256):
    """The receiver's figures of a bare tx/rx pair: {"frames","bytes","seconds","gbps"}, and what both used of CPU."""
    base = [program(RAW), "--frame-bytes", frame_bytes, "--seconds", seconds, "--memory", memory,
            "--memory-mib", memory_mib, "--json"]  # fmt: skip
    running = {}
    with contextlib.ExitStack() as stack:
        for role, port, core in (("rx", ports[0], cores[0]), ("tx", ports[1], cores[1])):
            running[role] = Running([*base, "--role", role, "--port", port, "--core", core])
            stack.callback(running[role].stop_if_running)
        ended = {role: running[role].end(seconds + 60) for role in ("tx", "rx")}
        last_object(ended["tx"], f"{RAW} tx")
        figures = last_object(ended["rx"], f"{RAW} rx")
    figures["cpu_s"] = sum(each.cpu_s for each in ended.values())
    figures["rss_mb"] = sum(each.rss_bytes for each in ended.values()) / 1e6
    return figures


def pace(policy, rate_bps, frame_bytes, seconds, ports, cores, queue_frames=256):
    command = [program(PACE), "--policy", policy, "--rate-bps", int(rate_bps), "--frame-bytes", frame_bytes,
               "--seconds", seconds, "--queue-frames", queue_frames, "--port-tx", ports[0], "--port-rx", ports[1],
               "--cores", ",".join(map(str, cores))]  # fmt: skip
    finished = timed(command, seconds + 60)
    figures = last_object(finished, PACE)
    figures["cpu_s"] = finished.cpu_s
    figures["rss_mb"] = finished.rss_bytes / 1e6
    return figures
