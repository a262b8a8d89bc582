# A fleet (docs/FLEET.md) under a real Slurm on this host: four nodes beside one, a host that is killed, and fpsync with four workers.
#
# Each node has a network namespace, a veth to one switch, and the kernel's sockets; a fifth one gets all. The limit is that of each
# node's configuration, [port] rate. Two cores carry five nodes: the limit is chosen so that all four together stay far below what the
# machine moves, or the sum would be that of the machine.
#
#   case      one      a fleet whose shards run at one node
#             four     the same shards four times, at four nodes
#             killed   four nodes; half-way a slurmd, its task and both daemons of its node are killed, and stay away
#             fleet    20,000 small files, unlimited: four shards at a time at one node, as a shell runs them
#             fpsync   the same files: fpsync with four workers at that node, to a daemon of rsync at the fifth one
#
# of_four: bytes a second of `four` over four times that of `one`, from the first shard's beginning to the last one's end.
# killed: the same time of `killed` over the ideal: what was left is moved by three nodes at the rate of `one`, and the killed shard by one of
# them once Slurm has begun it again.
# ratio_fpsync: the time of fpsync over that of the fleet's script, planning included in both.
# balance: the largest of 1000 shards over the mean, 20 million files (1 million with --quick) of lognormal sizes.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import time

from harness import Group, Slurm, find_binaries, group_missing, slurm_missing, wait_until
from harness.fleet import ARCHIVE, FIRST, SENDERS, Fleet, kill_slurm_at, make_dataset, share
from harness.process import Daemon

from ..errors import MISSING, LabError
from ..figures import gbps, median, ratio, rounded
from ..stopwatch import Running
from . import shapes

HELP = "a dataset by four nodes under Slurm: beside one, with a host that dies, and fpsync"
REAL = False
PACKAGES = ("slurmctld", "slurmd", "munge", "slurm-client", "fpart", "rsync")
RATE_MBPS = 50
ONE, FOUR, KILLED, FLEET, FPSYNC = "one", "four", "killed", "fleet", "fpsync"
_VICTIM = "n4"
_SHARDS_A_NODE = 6
_MB = 1_000_000
_SMALL_FILES = 20_000
_RSYNC_PORT = 8730


def run(bench):
    if (reason := group_missing() or slurm_missing()) is not None:
        raise LabError(f"fleet: {reason}", MISSING)
    node_mb = bench.pick(60, 240)
    limited = [{"case": case, "rate_mbps": RATE_MBPS, "node_mb": node_mb} for case in (ONE, FOUR, KILLED)]
    small = [{"case": case, "files": _SMALL_FILES} for case in (FLEET, FPSYNC)]
    repeats = bench.repeats_or(1, 3)
    bench.described = {"kind": "own", "wire": "udp over veth, one switch", "mtu": 9000, "rate_mbps": RATE_MBPS}
    with Group([*SENDERS, ARCHIVE], settings={"port": {"rate": f"{RATE_MBPS}M"}}, of_node={ARCHIVE: {"port": {"rate": "10G"}}},
               bytes_needed=12 * node_mb * _MB) as group:  # fmt: skip
        samples = with_slurm(group, bench, limited, node_mb, repeats)
    with Group([FIRST, ARCHIVE], bytes_needed=1 << 29) as group:
        samples += without_slurm(group, bench, small, repeats)
    rows = bench.must_have_rows(bench.rows(limited + small, samples))
    return {"rows": rows, "summary": {**summary(rows), **balance(bench)}}


def nothing(_setting):
    """Each of these fills new directories: there is nothing to warm up."""


def with_slurm(group, bench, settings, node_mb, repeats):
    share(group)
    for name, nodes in (("single", 1), ("fourfold", len(SENDERS))):
        folder = group.base / "shared" / name
        folder.mkdir(parents=True)
        for number in range(nodes * _SHARDS_A_NODE):
            # As the kernel's own: what is moved does not matter, and making it takes longer than moving it.
            (folder / f"file{number}").write_bytes(os.urandom(_MB) * (node_mb // _SHARDS_A_NODE))
    group.start()
    with Slurm(group=group, at=SENDERS, user="root", settings={"SlurmdTimeout": "10"}) as slurm:
        return bench.interleave(settings, Game(group, slurm).measure, nothing, repeats=repeats)


class Game:
    def __init__(self, group, slurm):
        self._group, self._slurm = group, slurm
        self._serial = 0

    def measure(self, setting):
        case = setting["case"]
        self._serial += 1
        senders = SENDERS[:1] if case == ONE else SENDERS
        shutil.rmtree(self._group[ARCHIVE].export() / "copy", ignore_errors=True)
        fleet = Fleet(self._group, self._slurm, self._group.base / "shared" / ("single" if case == ONE else "fourfold"), f"{case}{self._serial}")
        fleet.make("--shards", str(len(senders) * _SHARDS_A_NODE), senders=senders)
        began = time.monotonic()
        fleet.must("submit", *([f"--sbatch=--nodelist={senders[0]}"] if case == ONE else []))
        event = self._kill(fleet) if case == KILLED else {}
        try:
            code, status = fleet.json("wait", "--quiet", "--timeout", "900", timeout_s=1000)
        finally:
            if case == KILLED:
                self._mend()
        if code != 0:
            why = next((one["try"]["error"] for one in status.get("shards", []) if one.get("try", {}).get("error")), status.get("state"))
            raise LabError(f"{case}: the fleet ended with {code}: {why}")
        return {**figures(fleet, status), **event_figures(fleet, status, event), "wall_s": time.monotonic() - began}

    def _kill(self, fleet):
        victim = self._group[_VICTIM]

        def half():
            status = fleet.status()
            if status["state"] == "succeeded":
                raise LabError("killed: all had arrived before half of it was seen")
            at = [one for one in status["shards"] if one["state"] == "running" and one.get("try", {}).get("node") == _VICTIM]
            return (status, at[0]) if at and status["bytes_done"] >= status["bytes"] / 2 else None

        status, shard = wait_until(half, 300, "half of the dataset is there", interval_s=0.2)
        kill_slurm_at(self._slurm, _VICTIM)
        victim.control.kill()
        victim.dataplane.kill()
        return {"at_unix_s": time.time(), "bytes": status["bytes_done"] - shard["bytes_done"], "shard": shard["shard"],
                "shard_bytes": shard["bytes"]}  # fmt: skip

    def _mend(self):
        victim = self._group[_VICTIM]
        if not victim.dataplane.running():
            victim.start_dataplane()
        if not victim.control.running():
            victim.start_control()
        if not self._slurm.slurmds[_VICTIM].running():
            self._slurm.slurmds[_VICTIM].start()
        wait_until(self._slurm.idle, 120, "Slurm is ready again")


def tries_of(fleet):
    return [json.loads(path.read_text()) for path in fleet.plan.glob("tries/shard-0*.json")]


def began_of(fleet):
    return min(one["began_unix_ns"] for one in tries_of(fleet)) / 1e9


def figures(fleet, status):
    began = began_of(fleet)
    ended = max((one["updated_unix_ns"] / 1e9 for one in tries_of(fleet) if one["state"] == "succeeded"), default=0.0)
    return {"goodput_gbps": gbps(status["bytes"], ended - began), "shards_s": ended - began, "bytes": status["bytes"],
            "twice": status["bytes_sent"] / status["bytes"] - 1}  # fmt: skip


def event_figures(fleet, status, event):
    if not event:
        return {}
    again = [json.loads(path.read_text())["began_unix_ns"] / 1e9 for path in fleet.plan.glob(f"tries/shard-{event['shard']:04}.*.json")]
    began = began_of(fleet)
    # Spans: what is kept of a sample has six digits, and of a date no second would be left.
    return {"event_s": event["at_unix_s"] - began, "event_bytes": event["bytes"], "shard": event["shard"], "shard_bytes": event["shard_bytes"],
            "requeue_s": max(again) - event["at_unix_s"], "left_bytes": status["bytes"] - event["bytes"]}  # fmt: skip


def without_slurm(group, bench, settings, repeats):
    share(group, SENDERS[:1])
    source = group.base / "shared/data"
    make_dataset(source, _SMALL_FILES, [], seed=3)
    group.start()
    there = group.base / "rsync"
    there.mkdir()
    config = group.base / "rsyncd.conf"
    config.write_text(f"use chroot = no\nuid = root\ngid = root\nmax connections = 0\n[t]\npath = {there}\nread only = no\n")
    address = group[ARCHIVE].address.split(":")[0]
    daemon = Daemon("rsync", [*group.enter(ARCHIVE), "rsync", "--daemon", "--no-detach", f"--config={config}", f"--port={_RSYNC_PORT}",
                              f"--address={address}"], group.base / "rsyncd.log")  # fmt: skip
    serial = iter(range(1000))

    def measure(setting):
        number = next(serial)
        shutil.rmtree(group[ARCHIVE].export() / "copy", ignore_errors=True)
        began = time.monotonic()
        if setting["case"] == FLEET:
            fleet = Fleet(group, None, source, f"small{number}")
            fleet.make("--emit", "shell", "--shards", "4", node=FIRST, senders=SENDERS[:1])
            command = [*group.enter(FIRST), fleet.plan / "run.sh", "4"]
        else:
            command = [*group.enter(FIRST), "fpsync", "-n", "4", "-t", group.base / f"fpsync{number}", "-o", "-lptgoD -W",
                       f"{source}/", f"rsync://{address}:{_RSYNC_PORT}/t/{number}/"]  # fmt: skip
            (there / str(number)).mkdir()
        Running(command).end(600).must_have_worked(setting["case"])
        wall_s = time.monotonic() - began
        arrived = there / str(number) if setting["case"] == FPSYNC else group[ARCHIVE].export() / "copy"
        count = sum(len(files) for _, _, files in os.walk(arrived))
        if count < _SMALL_FILES:
            raise LabError(f"{setting['case']}: {count} of {_SMALL_FILES} files have arrived")
        return {"wall_s": wall_s, "files_a_second": count / wall_s}

    daemon.start()
    try:
        return bench.interleave(settings, measure, nothing, repeats=repeats)
    finally:
        daemon.stop()


def balance(bench):
    name = bench.pick("fleet_plan/", "fleet_plan_of_20_million/")
    done = Running([find_binaries() / "sluice-bench", f"--benchmark_filter={name}", "--benchmark_format=json"]).end(600)
    done.must_have_worked("sluice-bench")
    one = json.loads(done.stdout)["benchmarks"][0]
    return {"balance": rounded(one["worst_over_mean"]), "plan_ns_per_file": rounded(one["ns_per_file"], 3), "plan_rss_mib": rounded(one["rss_growth_mib"], 3)}


# ---- what the samples say -----------------------------------------------------------------------


def ideal_s(sample, alone_gbps):
    """From the first shard's beginning, of a fleet that loses one of four nodes."""
    rate = alone_gbps * 1e9 / 8
    event_s = sample["event_s"]
    by_three = event_s + sample["left_bytes"] / (3 * rate)
    return max(by_three, event_s + sample["requeue_s"] + sample["shard_bytes"] / rate)


def summary(rows):
    by_case = {row["case"]: row for row in rows}
    alone = by_case[ONE].get("goodput_gbps")
    killed = [each["shards_s"] / ideal_s(each, alone) for each in by_case[KILLED].get("runs", []) if alone and each.get("shards_s")]
    return {
        "rate_mbps": RATE_MBPS,
        "of_four": rounded(ratio(by_case[FOUR].get("goodput_gbps"), 4 * alone if alone else None)),
        "killed": rounded(median(killed)),
        "requeue_s": by_case[KILLED].get("requeue_s"),
        "twice_killed": by_case[KILLED].get("twice"),
        "ratio_fpsync": rounded(ratio(by_case[FPSYNC].get("wall_s"), by_case[FLEET].get("wall_s"))),
        "fleet_s": by_case[FLEET].get("wall_s"),
        "fpsync_s": by_case[FPSYNC].get("wall_s"),
    }


def plots(result):
    rows = [row for row in result["rows"] if row.get("goodput_gbps")]
    return [("rates", lambda axes: shapes.bars(axes, rows, "case", "goodput_gbps", "bytes of the dataset, Gbit/s"))]
