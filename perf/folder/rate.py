#!/usr/bin/python3
# A watched folder under load: so many files a minute come to stand in it; does it keep up, and what does it cost?
#
#   perf/folder/rate.py [--files-a-minute 10000] [--bytes 65536] [--seconds 60]
#
# Two nodes on this machine, files in memory. Prints one JSON object: how long after its last byte was written a file
# stood at the destination, and the processor time of each process. "beyond" is what the same number of files costs more
# than one plain `sluice send` of a directory that holds them all: per end, daemons and the command together, as a share of
# one core over the time in which files came.
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from harness import Pair  # noqa: E402

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_LOOK_S = 0.05


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


class Costs:
    """Processor time of the daemons, from now on."""

    def __init__(self, pair):
        self._pids = {f"{kind} {node.name}": getattr(node, kind).pid
                      for node in pair.nodes for kind in ("control", "dataplane")}  # fmt: skip
        self._before = {name: cpu_s(pid) for name, pid in self._pids.items()}

    def so_far(self):
        return {name: cpu_s(pid) - self._before[name] for name, pid in self._pids.items()}


def write_files(folder, count, size, over_s, written):
    """Evenly over that time; each is written, then closed."""
    data, begin = os.urandom(size), time.monotonic()
    for i in range(count):
        time.sleep(max(0.0, begin + over_s * i / count - time.monotonic()))
        with open(folder / f"f{i}", "wb") as file:
            file.write(data)
        written[f"f{i}"] = time.monotonic()


def watch_arrivals(folder, count, came, over):
    while len(came) < count and not over.is_set():
        now = time.monotonic()
        for name in os.listdir(folder):
            if not name.startswith("."):  # unfinished
                came.setdefault(name, now)
        over.wait(_LOOK_S * 10)


def plain_send(pair, count, size):
    """What the transfer itself costs: (seconds, costs of the daemons)."""
    source = pair.a.export() / "plain"
    source.mkdir()
    write_files(source, count, size, 0, {})
    costs, begin = Costs(pair), time.monotonic()
    pair.a.must("send", f"{source}/", "b:data/plain", "--mkdir")
    took_s, spent = time.monotonic() - begin, costs.so_far()
    shutil.rmtree(source)
    shutil.rmtree(pair.b.export() / "plain")
    return took_s, spent


def watched(pair, count, size, over_s, state):
    source, target = pair.a.export() / "watched", pair.b.export() / "watched"
    source.mkdir()
    target.mkdir()
    command = pair.a.command("watch", source, "b:data/watched", "--then", "remove", "--state", state, "--quiet-time", "5s")
    written, came, over = {}, {}, threading.Event()
    looker = threading.Thread(target=watch_arrivals, args=(target, count, came, over))
    costs, sessions = Costs(pair), len(pair.a.sessions())
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        looker.start()
        write_files(source, count, size, over_s, written)
        deadline = time.monotonic() + over_s + 60
        while (len(came) < count or any(source.iterdir())) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        spent = {**costs.so_far(), "watch": cpu_s(process.pid)}
    finally:
        over.set()
        looker.join()
        process.terminate()
        process.wait()
    lags_s = [came[name] - written[name] for name in came if name in written]
    return {
        "arrived": len(came), "left_in_folder": len(list(source.iterdir())), "sessions": len(pair.a.sessions()) - sessions,
        "lag_s": {"median": statistics.median(lags_s), "most": max(lags_s)}, "cpu_s": spent,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files-a-minute", type=int, default=10_000)
    parser.add_argument("--bytes", type=int, default=64 << 10)
    parser.add_argument("--seconds", type=int, default=60)
    flags = parser.parse_args()
    count = flags.files_a_minute * flags.seconds // 60
    with tempfile.TemporaryDirectory() as work, Pair(bytes_needed=2 * count * flags.bytes, in_memory=True) as pair:
        pair.start()
        took_s, plain = plain_send(pair, count, flags.bytes)
        result = watched(pair, count, flags.bytes, flags.seconds, pathlib.Path(work) / "state")
    spent = result["cpu_s"]
    beyond = {name: spent[name] - plain.get(name, 0) for name in spent}
    ends = {"source": beyond["watch"] + beyond["control a"] + beyond["dataplane a"],
            "destination": beyond["control b"] + beyond["dataplane b"]}  # fmt: skip
    result["beyond_percent_of_a_core"] = {end: 100 * seconds / flags.seconds for end, seconds in ends.items()}
    result["plain_send"] = {"seconds": took_s, "cpu_s": plain}
    result["load"] = {"files": count, "bytes_each": flags.bytes, "seconds": flags.seconds}
    print(json.dumps(result, indent=1))


main()
