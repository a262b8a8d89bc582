# A destination whose disk is slower than the wire, and one whose disk stops: nothing may be dropped for want of room.
#
# Two nodes over the path emulator: 1 Gbit/s, 20 ms, no loss, generated memory into a file on a file system of its own
# (perf/lab/slow_disk.py). `slow`: the disk writes a tenth of what the wire carries. `stop`: it writes nothing for 10 s,
# once a third of the file is there, and then as before. no_buffer_drops: datagrams that the receiver dropped since it
# had no buffer for them, the worst run. disk_share: goodput over what the disk can write.
# SPDX-License-Identifier: Apache-2.0
import json

from harness import wait_until

from .. import watch
from ..emulated import EmulatedNodes, Looker, queue_for, running_session
from ..errors import LabError
from ..figures import gbps, rounded
from ..slow_disk import SlowDisk
from ..trace import between, queue_ms
from . import shapes

HELP = "a disk at a tenth of the wire, and one that stops for 10 s: what the receiver drops"
REAL = False
PACKAGES = watch.PACKAGES
_WIRE_BPS, _RTT_MS = 1e9, 20
_DISK_BYTES_PER_S = int(_WIRE_BPS / 8 / 10)
_STOP_S = 10
_FILE = "stalled.bin"
_DROP_COUNTERS = ("rx_drop_no_buffer",)


def run(bench):
    settings = [{"case": "slow", "size_bytes": bench.pick(64 << 20, 512 << 20)},
                {"case": "stop", "size_bytes": bench.pick(128 << 20, 1 << 30)}]  # fmt: skip
    room = 2 * max(each["size_bytes"] for each in settings)
    with EmulatedNodes(bytes_needed=room) as nodes, SlowDisk(nodes.pair.base, room) as disk:
        nodes.b.add_export("slow", disk.folder)
        nodes.b.write_configuration()
        nodes.start()
        bench.describe(nodes)
        disk.hold(nodes.b.dataplane.pid)
        samples = bench.interleave(settings, lambda each: measure(nodes, disk, each), lambda _each: None)
        # The nodes go before the file system that they have open.
        nodes.stop()
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": rows, "summary": summary(rows)}


def measure(nodes, disk, setting):
    size = setting["size_bytes"]
    target = disk.folder / _FILE
    nodes.shape(_WIRE_BPS, _RTT_MS, queue_bytes=queue_for(_WIRE_BPS, _RTT_MS))
    target.unlink(missing_ok=True)
    disk.limit(_DISK_BYTES_PER_S if setting["case"] == "slow" else None)
    before = nodes.b.counters()
    seconds = 60 + 4 * size / _DISK_BYTES_PER_S
    with Looker(nodes.wire) as looker, \
            running_session(nodes.a, nodes.peer, f"memory:{size}", f"slow/{_FILE}") as session:  # fmt: skip
        if setting["case"] == "stop":
            wait_until(lambda: session.last and session.last.bytes_done > size / 3, 60, "a third of the file is there")
            disk.stop_for(_STOP_S)
        if not session.wait(seconds):
            raise LabError(f"not ended after {seconds:g} s: {session.state()}, waiting for {session.last.waiting_for!r}")
    disk.limit(None)
    if session.state() != "SUCCEEDED":
        raise LabError(f"{session.state()}: {session.last.error}")
    if target.stat().st_size != size:
        raise LabError(f"{target}: {target.stat().st_size} bytes arrived of {size}")
    after = nodes.b.counters()
    return figures(looker.points, session, setting, {name: after[name] - before[name] for name in after})


def figures(points, session, setting, counted):
    last = session.last
    busy = between(points, points[0].t_s, points[0].t_s + last.elapsed_s)
    goodput = gbps(last.bytes_done, last.data_elapsed_s)
    return {
        "goodput_gbps": goodput,
        "disk_share": goodput * 1e9 / 8 / _DISK_BYTES_PER_S if setting["case"] == "slow" else None,
        "no_buffer_drops": sum(counted[name] for name in _DROP_COUNTERS),
        "loss": last.lost / max(1, last.chunks + last.retransmits),
        "retransmits": last.retransmits,
        "duplicates": last.duplicates,
        "overrun": points[-1].overrun - points[0].overrun,  # frames that the link's queue did not hold
        "queue_ms": queue_ms(busy, _WIRE_BPS),
        "rate_states": session.states(),
        "done_mb": [[round(t_s - session.samples[0][0], 2), round(done / 1e6, 2)] for t_s, done, _ in session.samples],
        "drops": json.dumps({name: value for name, value in counted.items() if "drop" in name and value}),
    }


def summary(rows):
    # Drops are judged by the worst run, whatever the median says.
    drops = [run["no_buffer_drops"] for row in rows for run in row["runs"] if run.get("no_buffer_drops") is not None]
    shares = [row["disk_share"] for row in rows if row.get("disk_share") is not None]
    return {"no_buffer_drops": max(drops, default=None), "disk_share": rounded(min(shares)) if shares else None,
            "failed": sum("error" in run for row in rows for run in row["runs"])}  # fmt: skip


def plots(result):
    def done(axes):
        for row in result["rows"]:
            done_mb = row.get("done_mb") or []
            axes.plot([each[0] for each in done_mb], [each[1] for each in done_mb], label=row.get("case"))
        axes.set_xlabel("s")
        axes.set_ylabel("MB written at the destination")
        shapes.legend(axes)

    return [("done", done)]
