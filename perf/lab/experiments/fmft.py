# FMFT's Figure 2 (docs/SOURCES.md): goodput by size of the chunk, with a checksum and without, at 1 Gbit/s.
#
# A file of 100 MB (10^8 bytes) of random data goes from an export to `null:` over a memif, paced at 1 Gbit/s, which counts whole
# frames with FCS, preamble and gap, as a card of that rate does. The paper's least chunk is 200 bytes, ours 256. A cipher would be
# the larger part, so `protection` is `crc`. crc64 is ours; CRC-16 is what FMFT had, a baseline of the lab:
# `crc16_mbps` is what would be left if a worker's time for each chunk, as measured without a sum, grew by what a CRC-16 by
# FMFT's table takes here (`sluice-alias cost`), and the slower of that and the link counts.
# SPDX-License-Identifier: Apache-2.0
import json

from harness.system import random_file

from ..figures import median, ratio, rounded, spread, taxes
from ..nodes import CHUNK_STEP_BYTES
from ..probe import program
from ..stopwatch import timed
from . import shapes

HELP = "FMFT's Figure 2: chunks of 256 to 4000 bytes at 1 Gbit/s, with a CRC and without"
REAL = False
PACKAGES = ()
CHUNKS = (256, 400, 600, 900, 1100, 1400, 1800, 2400, 3200, 4000)
SIZES = (10_000_000, 100_000_000, 1_000_000_000)
FIGURE_BYTES = 100_000_000
CRCS = ("crc64", "none")
_RATE = "1G"
_LESS_OFTEN = (900, 2400)  # chunks of the sizes that are not the figure's


def settings_of(quick):
    sizes = SIZES[:2] if quick else SIZES
    out = [{"size_bytes": size, "chunk_size": chunk, "crc": crc} for size in sizes
           for chunk in (CHUNKS if size == FIGURE_BYTES else _LESS_OFTEN) for crc in CRCS]  # fmt: skip
    return out


def run(bench):
    settings = settings_of(bench.quick)
    with bench.nodes(settings={"transfer": {"protection": "crc"}}, bytes_needed=2 * max(SIZES)) as nodes:
        nodes.start()
        bench.describe(nodes)
        files = {size: random_file(nodes.a.export() / f"{size}.bin", size)
                 for size in dict.fromkeys(each["size_bytes"] for each in settings)}  # fmt: skip

        def measure(setting):
            chunk = setting["chunk_size"] // CHUNK_STEP_BYTES * CHUNK_STEP_BYTES
            return nodes.transfer(files[setting["size_bytes"]], "null:", "--rate", _RATE, "--crc", setting["crc"],
                                  "--chunk-bytes", chunk, busy=True)  # fmt: skip

        samples = bench.interleave(settings, measure, lambda each: None)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    _taxes(settings, samples, rows)
    for row in rows:
        _beside_crc16(row)
    return {"rows": rows, "summary": summary(rows)}


def _taxes(settings, samples, rows):
    plain = {(setting["size_bytes"], setting["chunk_size"]): runs
             for setting, runs in zip(settings, samples) if setting["crc"] == "none"}  # fmt: skip
    for setting, runs, row in zip(settings, samples, rows):
        if setting["crc"] != "none":
            row.update(spread("tax", taxes(runs, plain[setting["size_bytes"], setting["chunk_size"]])))


def _beside_crc16(row):
    """crc16_mbps of a row without a sum."""
    if row["crc"] != "none" or not row.get("goodput_gbps"):
        return
    finished = timed([program("sluice-alias"), "cost", "--bytes", row["chunk_size"]], 60)
    finished.must_have_worked("sluice-alias")
    took = json.loads(finished.stdout)
    row.update(crc16_ns=took["crc16_ns"], crc64_ns=took["crc64_ns"])
    busy_ns = max(row["busy_ns_sender"], row["busy_ns_receiver"]) + took["crc16_ns"]
    row["crc16_mbps"] = rounded(min(row["goodput_gbps"] * 1e3, row["chunk_size"] * 8e3 / busy_ns))


def summary(rows):
    def of(chunk, crc, key="goodput_gbps"):
        return median([row.get(key) for row in rows
                       if (row["size_bytes"], row["chunk_size"], row["crc"]) == (FIGURE_BYTES, chunk, crc)])  # fmt: skip

    plain = [row for row in rows if row["size_bytes"] == FIGURE_BYTES and row["crc"] == "none" and row["goodput_gbps"]]
    above = [row["chunk_size"] for row in plain if row["goodput_gbps"] * 1e3 > 800]
    return {"mbps_2400_crc": rounded((of(2400, "crc64") or 0) * 1e3), "mbps_1100_none": rounded((of(1100, "none") or 0) * 1e3),
            "above_800_from": min(above, default=None), "tax_900": of(900, "crc64", "tax"), "tax_2400": of(2400, "crc64", "tax"),
            "tax_900_crc16": rounded(1 - (ratio(of(900, "none", "crc16_mbps"), (of(900, "none") or 0) * 1e3) or 0))}  # fmt: skip


def plots(result):
    def draw(axes):
        for crc in CRCS:
            shapes.line(axes, [row for row in result["rows"] if row.get("size_bytes") == FIGURE_BYTES and row["crc"] == crc],
                        "chunk_size", "goodput_gbps", crc)  # fmt: skip
        axes.set_xlabel("chunk, bytes")
        axes.set_ylabel("goodput, Gbit/s")
        shapes.legend(axes)

    return [("goodput", draw)]
