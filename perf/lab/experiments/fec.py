# Forward error correction: off, rs, raptorq and auto over round trips of 1 to 600 ms and losses of 0 to 30 %.
#
# Two nodes over memif with the path emulator between them: a link of 1 Gbit/s with a queue of one BDP, 10 ms at least.
# A file of random bytes goes from an export to a file that is compared with it. Losses are single, or come eight
# in a row on the average (Gilbert's model); only data are lost. wall_s: of the whole client, so the time to the last
# byte and its digest. sent_overhead: bytes on the wire over those of a transfer that loses nothing, less one.
# of_best: the least wall_s of the other choices in the same cell over this one's. Quick runs have 100 MB where the RTT is 1 ms, since
# 10 MB take no longer there than the client's start differs.
# SPDX-License-Identifier: Apache-2.0
from harness.system import random_file, same_bytes

from ..bench import REPEATS
from ..emulated import EmulatedNodes, queue_for
from ..errors import LabError
from ..figures import ratio, rounded
from ..nodes import FRAME_OVERHEAD_BYTES
from . import shapes

HELP = "forward error correction: off, rs, raptorq and auto over RTT and loss"
REAL = False
PACKAGES = ()
CODES = ("off", "rs", "raptorq", "auto")
RTTS_MS = (1, 100, 200, 600)
LOSSES = (0.0, 0.01, 0.1, 1.0, 5.0, 10.0, 30.0)  # percent
_RUNS = (1, 8)
_SIZES_MB = (10, 1000)
_QUICK_SHORT_RTT_MB = 100
_QUICK_REPEATS = 5
_RATE_BPS = 1e9
# RTT, loss, lost in a row
_QUICK_CELLS = ((1, 0.0, 1), (1, 1.0, 1), (1, 10.0, 1), (100, 0.0, 1), (100, 1.0, 1), (100, 5.0, 8), (200, 0.0, 1), (200, 0.1, 1),
                (200, 1.0, 1), (200, 1.0, 8), (200, 10.0, 1), (600, 1.0, 1))  # fmt: skip
_ASKED = {"rtt_ms": 200, "loss_percent": 1.0, "in_a_row": 1, "size_mb": 10}
_MEMORY_MIB = 1024


def cells(quick):
    full = [(rtt, loss, run) for rtt in RTTS_MS for loss in LOSSES for run in _RUNS if loss or run == 1]
    if quick:
        return [{"rtt_ms": rtt, "loss_percent": loss, "in_a_row": run, "size_mb": _QUICK_SHORT_RTT_MB if rtt == 1 else _SIZES_MB[0]}
                for rtt, loss, run in _QUICK_CELLS]  # fmt: skip
    return [{"rtt_ms": rtt, "loss_percent": loss, "in_a_row": run, "size_mb": size}
            for size in _SIZES_MB for rtt, loss, run in full]  # fmt: skip


def run(bench):
    sizes = {cell["size_mb"] for cell in cells(bench.quick)}
    with EmulatedNodes(memory_mib=_MEMORY_MIB, bytes_needed=3_000_000 * max(sizes)) as nodes:
        nodes.start()
        bench.describe(nodes)
        files = {size: random_file(nodes.a.export() / f"{size}.bin", size * 1_000_000) for size in sizes}
        settings = [{**cell, "fec": code} for cell in cells(bench.quick) for code in CODES]
        samples = bench.interleave(settings, lambda each: measure(nodes, files, each, bench.pick(60, 900)), lambda _each: None,
                                   repeats=bench.repeats_or(_QUICK_REPEATS, REPEATS))
    rows = bench.must_have_rows(bench.rows(settings, samples))
    compare(rows)
    return {"rows": rows, "summary": summary(rows)}


def measure(nodes, files, setting, timeout_s):
    source = files[setting["size_mb"]]
    target = nodes.b.export() / source.name
    target.unlink(missing_ok=True)
    nodes.shape(_RATE_BPS, setting["rtt_ms"], loss=setting["loss_percent"] / 100, loss_run_mean=setting["in_a_row"],
                queue_bytes=queue_for(_RATE_BPS, setting["rtt_ms"]))  # fmt: skip
    sample = nodes.transfer(source, "data/", "--fec", setting["fec"], by_wall=True, timeout_s=timeout_s)
    if not same_bytes(source, target):
        raise LabError(f"{setting['fec']}: what arrived differs from the source")
    size, chunk = sample["bytes"], sample["chunk_bytes"]
    least = size + -(-size // chunk) * (FRAME_OVERHEAD_BYTES + 24)
    return {**sample, "sent_overhead": sample["wire_bytes"] / least - 1}


def compare(rows):
    """Each row with the best of its cell that is not its own."""
    for row in rows:
        others = [each["wall_s"] for each in rows
                  if same_cell(each, row) and each["fec"] != row["fec"] and each.get("wall_s")]  # fmt: skip
        row["of_best"] = rounded(min(others) / row["wall_s"]) if others and row.get("wall_s") else None


def same_cell(row, other):
    return all(row[key] == other[key] for key in ("rtt_ms", "loss_percent", "in_a_row", "size_mb"))


def summary(rows):
    def wall_s(code, cell):
        return next((row.get("wall_s") for row in rows if row["fec"] == code and same_cell(row, cell)), None)

    clean = [row for row in rows if not row["loss_percent"] and row["fec"] in ("auto", "raptorq") and row.get("wall_s")]
    no_loss = [ratio(wall_s("off", row), row["wall_s"]) for row in clean if wall_s("off", row)]
    auto = [row["of_best"] for row in rows if row["fec"] == "auto" and row["of_best"] is not None]
    best = min((each for code in CODES[1:] if (each := wall_s(code, _ASKED)) is not None), default=None)
    return {
        "no_loss": rounded(min(no_loss, default=None)),
        "auto_worst": rounded(min(auto, default=None)),
        "last_byte_200ms_1pct": rounded(ratio(wall_s("auto", _ASKED), wall_s("off", _ASKED))),
        "last_byte_200ms_1pct_best": rounded(ratio(best, wall_s("off", _ASKED))),
    }


def plots(result):
    def panel(rtt_ms, size_mb):
        def draw(axes):
            for code in CODES:
                shapes.line(axes, [row for row in result["rows"] if row.get("in_a_row") == 1 and row["fec"] == code
                                   and (row["rtt_ms"], row["size_mb"]) == (rtt_ms, size_mb)],
                            "loss_percent", "wall_s", code)  # fmt: skip
            axes.set_xscale("symlog", linthresh=0.01)
            axes.set_xlabel("random loss, %")
            axes.set_ylabel("s to the last byte")
            shapes.legend(axes)

        return draw

    drawn = dict.fromkeys((row["rtt_ms"], row["size_mb"]) for row in result["rows"] if "rtt_ms" in row)
    return [(f"{size_mb}mb-{rtt_ms}ms", panel(rtt_ms, size_mb)) for rtt_ms, size_mb in drawn]
