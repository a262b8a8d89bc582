# What holds a session is provoked, cause by cause, and both nodes must name it.
#
# Two nodes over the path emulator, 1 Gbit/s unless the case says otherwise; the destination has little memory. `limit`:
# --rate. `narrow`: a link of 100 Mbit/s with a queue of 20 ms. `loss`: 30 % at a fixed rate. `credit`: a path of 800 ms,
# which takes three times the destination's memory. `write`, `read`: a file system at 10 MB/s (perf/lab/slow_disk.py) at the
# destination, at the source. `sender`, `receiver`: the core of that dataplane has much else to do. named: the part of the
# runs in which both nodes named the cause.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import subprocess
import sys

from .. import sides, watch
from ..emulated import EmulatedNodes, queue_for, running_session
from ..errors import LabError
from ..figures import rounded
from ..slow_disk import SlowDisk

HELP = "what holds a session, provoked cause by cause: does the verdict name it?"
REAL = False
PACKAGES = watch.PACKAGES
CAUSES = {"limit": "limit", "narrow": "network", "loss": "network", "credit": "credit", "write": "destination disk",
          "read": "source disk", "sender": "sender CPU", "receiver": "receiver CPU"}  # fmt: skip
_WIRE_BPS = 1e9
_DISK_BYTES_PER_S = 10_000_000
_BURNERS = 3
_FILE = "verdict.bin"


def run(bench):
    settings = [{"case": case, "expected": cause} for case, cause in CAUSES.items()]
    size = bench.pick(48 << 20, 192 << 20)
    room = 4 * size
    small = {"dataplane": {"memory_mib": 140}}
    with EmulatedNodes(bytes_needed=2 * room, settings_b=small) as nodes, SlowDisk(nodes.pair.base, room) as disk:
        for node in (nodes.a, nodes.b):
            node.add_export("slow", disk.folder / node.name)
            node.write_configuration()
        nodes.start()
        bench.describe(nodes)
        for node in (nodes.a, nodes.b):
            disk.hold(node.dataplane.pid)
        samples = bench.interleave(settings, lambda each: measure(nodes, disk, each["case"], size), lambda _each: None)
        nodes.stop()  # before the file system that they have open
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": rows, "summary": summary(rows)}


def measure(nodes, disk, case, size):
    source, destination, options = f"memory:{size}", "null:", []
    shape = {"rate_bps": _WIRE_BPS, "rtt_ms": 2, "queue_bytes": queue_for(_WIRE_BPS, 2)}
    burnt = None
    if case == "limit":
        options = ["--rate", "100M"]
    elif case == "narrow":
        shape.update(rate_bps=1e8, queue_bytes=250_000)
    elif case == "loss":
        shape.update(loss=0.3)
        options = ["--mode", "fixed", "--rate", "200M"]
        source = f"memory:{48 << 20}"  # the rate yields down to a hundredth: more would take minutes
    elif case == "credit":
        shape.update(rtt_ms=800, queue_bytes=queue_for(_WIRE_BPS, 800))
        options = ["--mode", "fixed", "--rate", "1G"]
        source = f"memory:{4 * size}"
    elif case == "write":
        destination = f"slow/{_FILE}"
    elif case == "read":
        source = disk.folder / nodes.a.name / "source.bin"
        source.write_bytes(bytes(size))
    else:
        burnt = ("sender", "receiver").index(case)
        shape.update(rate_bps=0, queue_bytes=0)
        source = f"memory:{8 * size}"
    (disk.folder / nodes.b.name / _FILE).unlink(missing_ok=True)
    nodes.shape(**shape)
    disk.limit(_DISK_BYTES_PER_S if case == "write" else None)
    disk.limit(_DISK_BYTES_PER_S if case == "read" else None, "read")
    try:
        with burning(burnt), running_session(nodes.a, nodes.peer, source, destination, *options) as session:
            if not session.wait(120):
                raise LabError(f"{case}: not ended, {session.state()}")
    finally:
        disk.limit(None)
        disk.limit(None, "read")
    if session.state() != "SUCCEEDED":
        raise LabError(f"{case}: {session.state()}: {session.last.error}")
    return figures([node.json("session", "show", session.session)[1] for node in (nodes.a, nodes.b)], CAUSES[case])


@contextlib.contextmanager
def burning(side):
    """Others that want the core of this side's dataplane; None: nobody does."""
    burners = [] if side is None else [
        subprocess.Popen(["taskset", "-c", str(sides.cores(side)[0]), sys.executable, "-c", "while True: pass"])
        for _ in range(_BURNERS)]  # fmt: skip
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def figures(sessions, expected):
    verdicts = [session["bottleneck"] for session in sessions]
    return {
        "named": float(all(verdict["cause"] == expected for verdict in verdicts)),
        "share": verdicts[0]["share"],
        "cause": verdicts[0]["cause"],
        "evidence": "; ".join(verdicts[0]["evidence"]),
        "goodput_gbps": sessions[0]["goodput_bps"] / 1e9,
    }


def summary(rows):
    runs = [run for row in rows for run in row["runs"]]
    named = [run["named"] for run in runs if run.get("named") is not None]
    return {"named": rounded(sum(named) / len(named)) if named else None,
            "failed": sum("error" in run for run in runs)}  # fmt: skip


def plots(result):
    def named(axes):
        rows = [row for row in result["rows"] if row.get("named") is not None]
        axes.barh([row["case"] for row in rows], [row["named"] for row in rows])
        axes.set_xlabel("part of the runs in which both nodes named it")

    return [("named", named)]
