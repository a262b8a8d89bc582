# Whether cost grows in a straight line: 1 byte, then 1 MB to 64 GiB, a sparse file into the discard sink.
#
# Time is the wall of the whole client. Start-up is the median of the 1-byte run. slope: least squares of
# log(time - start-up) over log(size), of the medians of those sizes whose time beyond start-up is at least as long
# as the start-up and ten times its spread; but of the three largest at least. What is smaller is made of noise and
# of what 1 byte does not show, such as the ramp of the rate. Memory is the peak of all four daemons within the run
# (VmHWM, reset before each, and hugepages); rss_growth_mb is the median at the largest size less that at the
# smallest.
# Rows with `peer` are those of other tools over a veth pair with MTU 9000, from file to file on one file system, of fewer and smaller sizes;
# `slope` rows are what becomes of them, by the same rule (Phatpackets' Figure 3). They need root.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import pathlib
import shutil
import tempfile

from harness import HarnessError
from harness.system import random_file, scratch_parent

from ..errors import LabError
from ..figures import gbps, median, rounded, slope
from ..peers import ends, tools
from ..peers.roster import Roster
from . import shapes

HELP = "1 MB to 64 GiB, sparse source into discard: slope of the time, memory at each size"
REAL = True
PACKAGES = ()
SIZES = (10**6, 4 * 10**6, 16 << 20, 64 << 20, 256 << 20, 1 << 30, 4 << 30, 16 << 30, 64 << 30)
_QUICK_LARGEST = 4 << 30
_NOISE_FACTOR = 10
_POINTS_MIN = 3
TOOLS = (tools.GridFtp, tools.Socat, tools.Scp)
_TOOL_SIZES = (1, 16 << 20, 64 << 20, 256 << 20, 1 << 30)


def run(bench):
    sizes = [1, *(size for size in SIZES if size <= bench.pick(_QUICK_LARGEST, SIZES[-1]))]
    settings = [{"size_bytes": size} for size in sizes]
    with bench.nodes() as nodes:
        folder = _folder(nodes)
        nodes.start()
        bench.describe(nodes)

        def transfer(setting):
            size = setting["size_bytes"]
            source = f"memory:{size}"
            if folder:
                source = folder / f"sparse-{size}.bin"
                with open(source, "wb") as file:
                    file.truncate(size)
            try:
                return nodes.transfer(source, "null:", "--rate", shapes.RATE, by_wall=True)
            finally:
                if folder:
                    source.unlink()

        # One warm-up is enough: each setting would be as long as the measurement.
        transfer({"size_bytes": sizes[-2]})
        samples = bench.interleave(settings, transfer, lambda _setting: None)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    _beyond_start(rows)
    return {"rows": rows + ([] if bench.has_real else _others(bench)), "summary": summary(rows)}


def _others(bench):
    """Rows of the other tools, and a row with the slope of each; one row with the reason where there are none."""
    reason = ends.missing()
    sizes = _TOOL_SIZES[: bench.pick(-1, len(_TOOL_SIZES))]
    try:
        if reason:
            raise LabError(reason)
        with contextlib.ExitStack() as stack:
            base = pathlib.Path(tempfile.mkdtemp(prefix="sluice-", dir=scratch_parent(4 * sizes[-1])))
            stack.callback(shutil.rmtree, base, ignore_errors=True)
            base.chmod(0o755)
            files = base / "files"
            files.mkdir()
            files.chmod(0o777)  # GridFTP's server is nobody
            joined = stack.enter_context(ends.Ends(stack.enter_context(ends.Groups())))
            roster = Roster(stack)
            for kind in TOOLS:
                roster.start_kind(kind, joined, base)
            joined.use("cubic")
            sources = {size: random_file(files / f"{size}.bin", size) for size in sizes}
            settings = [{"peer": name, "size_bytes": size} for name in roster.peers for size in sizes]
            samples = bench.interleave(settings, lambda each: _copy(roster.peers[each["peer"]], sources[each["size_bytes"]], files),
                                       lambda each: roster.must_have_started(each["peer"]))  # fmt: skip
    except HarnessError as error:
        bench.say(f"other tools: {str(error).splitlines()[0]}")
        return [{"peer": "others", "what": "slope", "error": str(error).splitlines()[0]}]
    rows = bench.rows(settings, samples)
    return rows + [_slope_of(name, [row for row in rows if row["peer"] == name]) for name in roster.peers]


def _copy(tool, source, folder):
    target = folder / "target.bin"
    target.unlink(missing_ok=True)
    size = source.stat().st_size
    finished = tool.copy(source, target, 900, lambda: None)
    finished.must_have_worked(tool.name)
    if target.stat().st_size != size:
        raise LabError(f"{tool.name}: {target.stat().st_size} bytes arrived of {size}")
    return {"goodput_gbps": gbps(size, finished.wall_s), "wall_s": finished.wall_s, "bytes": size}


def _slope_of(name, rows):
    out = {"peer": name, "what": "slope"}
    try:
        _beyond_start(rows)
    except LabError as error:
        return {**out, "error": str(error)}
    return {**out, "slope": rounded(slope([(row["size_bytes"], row["beyond_start_s"]) for row in rows if row["in_slope"]]))}


def _folder(nodes):
    """Where a sparse file can lie: our own export. A real node's exports are its operator's: generated memory."""
    return None if nodes.real else nodes.a.export()


def _beyond_start(rows):
    start = rows[0]
    if start.get("wall_s") is None:
        raise LabError(f"the run of 1 byte failed: {start['error']}")
    walls = [run["wall_s"] for run in start["runs"] if "wall_s" in run]
    noise = max(walls) - min(walls)
    for row in rows:
        beyond = None if row.get("wall_s") is None else row["wall_s"] - start["wall_s"]
        row["beyond_start_s"] = rounded(beyond)
        row["in_slope"] = beyond is not None and beyond >= max(start["wall_s"], _NOISE_FACTOR * noise)
    for row in rows[-_POINTS_MIN:]:
        row["in_slope"] = (row["beyond_start_s"] or 0) > 0


def summary(rows):
    points = [(row["size_bytes"], row["beyond_start_s"]) for row in rows if row["in_slope"]]
    memory = [median([run.get("rss_mb") for run in row["runs"]]) for row in rows]
    growth = None if None in (memory[0], memory[-1]) else memory[-1] - memory[0]
    return {"slope": rounded(slope(points)), "rss_growth_mb": rounded(growth), "start_up_s": rows[0]["wall_s"],
            "sizes_in_slope": len(points), "largest_bytes": rows[-1]["size_bytes"]}  # fmt: skip


def plots(result):
    rows = [row for row in result["rows"] if "peer" not in row and (row.get("beyond_start_s") or 0) > 0]

    def time(axes):
        for used, style in ((True, "o"), (False, "x")):
            some = [row for row in rows if row["in_slope"] is used]
            axes.plot([row["size_bytes"] for row in some], [row["beyond_start_s"] for row in some], style,
                      label="in the slope" if used else "made of noise")  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("file, bytes")
        axes.set_ylabel("time beyond start-up, s")
        value = result["summary"].get("slope")
        axes.set_title(f"slope {value:.4f}" if value is not None else "no slope")
        shapes.legend(axes)

    def memory(axes):
        shapes.line(axes, [row for row in result["rows"] if "peer" not in row], "size_bytes", "rss_mb")
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("file, bytes")
        axes.set_ylabel("peak memory of both nodes, MB")

    return [("time", time), ("memory", memory)]
