# ext4 file to ext4 file, cold, durable at the end; beside fio reading and writing the same device at once.
#
# Sluice: goodput is file bytes over the wall of the whole client, which ends only after fdatasync of the data,
# fsync of the file and of its directory, and the rename; sync settings are the product's defaults. fio: one
# reader of the same source and one writer of a new file of the same size, at once, io_uring, O_DIRECT, 1 MiB,
# depth 16, the writer with end_fsync; its goodput is that of the slower of the two, each by its own time. When
# the faster has ended the slower has the device to itself, which is in fio's favour. `verify` is Sluice with
# --verify: each byte is read back from the device, past the page cache, before the file gets its name. Before every run the
# destination is removed, everything is synced, and the page cache dropped. Nothing is pinned but the workers.
# SPDX-License-Identifier: Apache-2.0
import json
import shutil

from harness.system import is_root, random_file, same_bytes

from ..errors import MISSING, LabError
from ..figures import by_round, gbps, ratio, rounded, spread
from ..machine import file_system
from ..meter import drop_caches, host_cpu_s
from ..stopwatch import timed
from . import shapes

HELP = "ext4 to ext4, cold, with fsync, beside fio reading and writing at once"
REAL = False
PACKAGES = ("fio",)
_MARGIN_BYTES = 1 << 30


def run(bench):
    if not is_root():
        raise LabError("disk: dropping the page cache needs root", MISSING)
    size = bench.pick(4 << 30, 16 << 30)  # start and end are a hundredth of either
    settings = [{"setting": "sluice"}, {"setting": "verify"}, {"setting": "fio"}]
    with bench.nodes(pinned=False, bytes_needed=2 * size + _MARGIN_BYTES) as nodes:
        _check(nodes.pair.base, 2 * size + _MARGIN_BYTES)
        source = random_file(nodes.a.export() / "source.bin", size)
        runs = _Runs(nodes, source)
        nodes.start()
        bench.describe(nodes)
        nodes.freeze()
        samples = bench.interleave(settings, runs.measure)
        bench.described["file_system"] = file_system(nodes.pair.base)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    for row in rows:
        row["size_bytes"] = size
    return {"rows": rows, "summary": summary(rows, samples)}


def _check(folder, needed):
    kind = file_system(folder)
    if kind["type"] != "ext4":
        raise LabError(f"disk: {folder} is on {kind['type']}, not ext4; set TMPDIR to a folder on ext4 with "
                       f"{needed >> 20} MiB free", MISSING)  # fmt: skip
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise LabError(f"disk: {folder} has {free >> 20} MiB free, {needed >> 20} are needed; set TMPDIR", MISSING)


def summary(rows, samples):
    sluice, verify, fio = rows
    ours, verified, theirs = samples
    return {"goodput_gbps": sluice["goodput_gbps"], "session_gbps": sluice.get("session_gbps"),
            "beyond_session": rounded(1 - ratio(sluice["goodput_gbps"], sluice.get("session_gbps")))
            if sluice.get("session_gbps") else None, "fio_gbps": fio["goodput_gbps"],
            **spread("ratio", by_round(ours, theirs, "goodput_gbps")),
            **spread("cpu_s_per_gb", [each.get("cpu_s_per_gb") for each in ours]),
            "fio_cpu_s_per_gb": fio["cpu_s_per_gb"], "verify_gbps": verify["goodput_gbps"],
            **spread("verify_ratio", by_round(verified, ours, "goodput_gbps")),
            "verify_cpu_s_per_gb": verify["cpu_s_per_gb"]}  # fmt: skip


class _Runs:
    def __init__(self, nodes, source):
        self._nodes = nodes
        self._source = source
        self._target = nodes.b.export() / source.name

    def measure(self, setting):
        self._target.unlink(missing_ok=True)
        if setting["setting"] == "fio":
            return self._fio()
        return self._sluice(["--verify"] if setting["setting"] == "verify" else [])

    def _sluice(self, flags):
        # fio has the machine to itself too: idle nodes would poll.
        self._nodes.thaw()
        try:
            drop_caches()
            sample = self._nodes.transfer(self._source, "data/", "--rate", shapes.RATE, *flags, by_wall=True)
        finally:
            self._nodes.freeze()
        if not same_bytes(self._source, self._target):
            raise LabError(f"{self._target} differs from its source")
        return sample

    def _fio(self):
        size = self._source.stat().st_size
        job = ["--ioengine=io_uring", "--direct=1", "--bs=1M", "--iodepth=16", f"--size={size}"]
        drop_caches()
        busy_s, steal_s = host_cpu_s()
        finished = timed(["fio", "--output-format=json",
                          "--name=read", "--rw=read", f"--filename={self._source}", *job,
                          "--name=write", "--rw=write", "--end_fsync=1", f"--filename={self._target}", *job])  # fmt: skip
        busy_s, steal_s = (after - before for after, before in zip(host_cpu_s(), (busy_s, steal_s)))
        if finished.status != 0:
            raise LabError(f"fio: exit {finished.status}: {finished.reason()}")
        read, write = fio_rates(finished.stdout)
        return {"goodput_gbps": min(read, write), "read_gbps": read, "write_gbps": write,
                "cpu_s_per_gb": finished.cpu_s / (size / 1e9), "rss_mb": finished.rss_bytes / 1e6,
                "wall_s": finished.wall_s, "bytes": size, "steal_s": steal_s,
                "foreign_cpu_s": max(0.0, busy_s - finished.cpu_s)}  # fmt: skip


def fio_rates(text):
    """(reader's, writer's) Gbit/s of fio's JSON, each job's bytes over its own time."""
    report = json.loads(text[text.index("{") :])
    rates = {}
    for job in report["jobs"]:
        direction = job[job["jobname"]]
        if job.get("error"):
            raise LabError(f"fio: job {job['jobname']}: error {job['error']}")
        rates[job["jobname"]] = gbps(direction["io_bytes"], direction["runtime"] / 1e3)
    return rates["read"], rates["write"]


def plots(result):
    return [("goodput", lambda axes: shapes.bars(axes, result["rows"], "setting", "goodput_gbps", "Gbit/s")),
            ("cpu", lambda axes: shapes.bars(axes, result["rows"], "setting", "cpu_s_per_gb", "CPU-s/GB"))]  # fmt: skip
