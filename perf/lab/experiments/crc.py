# What the checksum costs: crc64, crc32c and none at every chunk size, memory to discard.
#
# The tax of a kind is the fraction of goodput that it loses against `none` of the same chunk size in the same
# round; the summary has the median over the rounds, for crc64. FMFT (docs/SOURCES.md; Figure 2) lost 37 % at
# 900 bytes and 5 % above 2400. Chunks come in steps of 8 bytes from a least size: a size between two steps is
# rounded down, one below the least is a row with an error.
# SPDX-License-Identifier: Apache-2.0
from ..bench import bytes_for
from ..figures import rounded, tax
from ..nodes import CHUNK_STEP_BYTES
from . import shapes

HELP = "chunk sizes 256 to 8192 with crc64, crc32c and none: what checking costs"
REAL = True
PACKAGES = ()
SIZES = (256, 512, 900, 1400, 2400, 4000, 8192)
KINDS = ("crc64", "crc32c", "none")
_SUMMARY_SIZES = (900, 2400, 8192)


def run(bench):
    settings = [{"chunk_size": size, "crc": kind} for size in SIZES for kind in KINDS]
    seconds = bench.pick(0.35, 1.5)
    bytes_by_size = {}
    # A cipher beside it would be the larger part.
    with bench.nodes(settings={"transfer": {"protection": "crc"}}) as nodes:
        nodes.start()
        bench.describe(nodes)

        def transfer(setting, size):
            chunk_bytes = setting["chunk_size"] // CHUNK_STEP_BYTES * CHUNK_STEP_BYTES
            return nodes.transfer(f"memory:{size}", "null:", "--rate", shapes.RATE, "--crc", setting["crc"],
                                  "--chunk-bytes", chunk_bytes)  # fmt: skip

        def warm_up(setting):
            # The same bytes for every kind of one chunk size, by what the first kind takes.
            size = setting["chunk_size"]
            first = transfer(setting, 32 * 1024 * size)
            bytes_by_size.setdefault(size, bytes_for(first, seconds))

        samples = bench.interleave(settings, lambda each: transfer(each, bytes_by_size[each["chunk_size"]]), warm_up)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    by_setting = {(each["chunk_size"], each["crc"]): runs for each, runs in zip(settings, samples)}
    for each in rows:
        each["tax"] = rounded(tax(by_setting[each["chunk_size"], each["crc"]], by_setting[each["chunk_size"], "none"]))
    return {"rows": rows, "summary": summary(rows)}


def summary(rows):
    taxes = {each["chunk_size"]: each["tax"] for each in rows if each["crc"] == "crc64"}
    return {f"tax_{size}": taxes.get(size) for size in _SUMMARY_SIZES}


def plots(result):
    def goodput(axes):
        for kind in KINDS:
            shapes.line(axes, [row for row in result["rows"] if row["crc"] == kind], "chunk_bytes", "goodput_gbps",
                        kind)  # fmt: skip
        axes.set_xlabel("payload of a chunk, bytes")
        axes.set_ylabel("goodput, Gbit/s")
        shapes.legend(axes)

    def taxes(axes):
        for kind in KINDS[:-1]:
            shapes.line(axes, [row for row in shapes.good(result["rows"]) if row["crc"] == kind], "chunk_bytes", "tax",
                        kind)  # fmt: skip
        axes.axhline(0, color="#888888", linewidth=0.8)
        axes.set_xlabel("payload of a chunk, bytes")
        axes.set_ylabel("fraction of goodput lost")
        shapes.legend(axes)

    return [("goodput", goodput), ("tax", taxes)]
