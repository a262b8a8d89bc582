# What a checksum costs. Memory to discard, two questions:
#
# `offered`: goodput lost on a link of 10, 25, 40 or 100 Gbit/s, by the same rate without a checksum. This is what FMFT
# asked (docs/SOURCES.md; Figure 2: 37 % at 900 bytes, 5 % above 2400). Where a core cannot keep the rate with either,
# what is lost is the processor's; a row says which part of the rate was kept (`kept`).
# `unlimited`: as fast as a core goes, against `read`: both ends read every byte and sum nothing, which whoever wants
# the bytes has to do anyway. `none`, where nobody reads what is generated and thrown away, is the row `nobody reads`.
#
# A tax is taken within a round; the summary has the median over the rounds and the extremes, for crc64. busy_ns_* are
# a worker's busy time for each chunk. Chunks come in steps of 8 bytes from a least size: a size between two steps is
# rounded down, one below the least is a row with an error.
# SPDX-License-Identifier: Apache-2.0
from ..bench import bytes_for
from ..figures import median, ratio, rounded, spread, taxes
from ..nodes import CHUNK_STEP_BYTES
from . import shapes

HELP = "chunks of 256 to 8192 bytes: what crc64 and crc32c cost on a link, and beside bytes that are only read"
REAL = True
PACKAGES = ()
SIZES = (256, 512, 900, 1400, 2400, 4000, 8192)
OFFERED_SIZES = (900, 2400, 8192)
OFFERED_GBPS = (10, 25, 40, 100)
# By the name that a row has: what `--crc` says, and against whom it is held.
UNLIMITED = {"crc64": "crc64", "crc32c": "crc32c", "read": "read", "nobody reads": "none"}
OFFERED = {"crc64": "crc64", "none": "none"}
_AGAINST = {"unlimited": "read", "offered": "none"}
# (key, chunk size, offered Gbit/s or None)
_SUMMARY = (("tax_900_at_10g", 900, 10), ("tax_2400_at_10g", 2400, 10), ("tax_2400_at_25g", 2400, 25),
            ("tax_2400_at_40g", 2400, 40), ("tax_8192_at_40g", 8192, 40), ("tax_8192_read", 8192, None))  # fmt: skip


def settings_of():
    unlimited = [{"question": "unlimited", "chunk_size": size, "crc": kind} for size in SIZES for kind in UNLIMITED]
    offered = [{"question": "offered", "chunk_size": size, "offered_gbps": rate, "crc": kind}
               for size in OFFERED_SIZES for rate in OFFERED_GBPS for kind in OFFERED]  # fmt: skip
    return offered + unlimited


def run(bench):
    settings = settings_of()
    seconds = bench.pick(0.35, 1.5)
    bytes_by_size = {}
    # A cipher beside it would be the larger part.
    with bench.nodes(settings={"transfer": {"protection": "crc"}}) as nodes:
        nodes.start()
        bench.describe(nodes)

        def transfer(setting, size):
            rate = f"{setting['offered_gbps']}G" if "offered_gbps" in setting else shapes.RATE
            chunk_bytes = setting["chunk_size"] // CHUNK_STEP_BYTES * CHUNK_STEP_BYTES
            kind = UNLIMITED.get(setting["crc"]) or OFFERED[setting["crc"]]
            return nodes.transfer(f"memory:{size}", "null:", "--rate", rate, "--crc", kind,
                                  "--chunk-bytes", chunk_bytes, busy=True)  # fmt: skip

        def warm_up(setting):
            # The same bytes for every kind of one chunk size and rate, by what the first kind takes.
            first = transfer(setting, 32 * 1024 * setting["chunk_size"])
            bytes_by_size.setdefault(_cell(setting), bytes_for(first, seconds))

        def measure(setting):
            sample = transfer(setting, bytes_by_size[_cell(setting)])
            if "offered_gbps" in setting:
                sent_gbps = sample["wire_bytes"] * 8 / sample["session_s"] / 1e9
                sample["kept"] = ratio(sent_gbps, setting["offered_gbps"])
            return sample

        samples = bench.interleave(settings, measure, warm_up)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    found = taxes_of(settings, samples)
    for each, tax in zip(rows, found):
        each["tax"] = rounded(median(tax))
    return {"rows": rows, "summary": {**summary(settings, found), "crc_variant": bench.described.get("crc_variant")}}


def _cell(setting):
    return setting["question"], setting["chunk_size"], setting.get("offered_gbps")


def taxes_of(settings, samples):
    """Of each setting the taxes of its rounds."""
    plain = {_cell(setting): runs for setting, runs in zip(settings, samples)
             if setting["crc"] == _AGAINST[setting["question"]]}  # fmt: skip
    return [taxes(runs, plain[_cell(setting)]) for setting, runs in zip(settings, samples)]


def summary(settings, found):
    of_crc64 = {(setting["chunk_size"], setting.get("offered_gbps")): tax
                for setting, tax in zip(settings, found) if setting["crc"] == "crc64"}  # fmt: skip
    out = {}
    for key, size, rate in _SUMMARY:
        out.update(spread(key, of_crc64[size, rate]))
    return out


def plots(result):
    def unlimited(kind):
        return [row for row in result["rows"] if row.get("question") == "unlimited" and row["crc"] == kind]

    def goodput(axes):
        for kind in UNLIMITED:
            shapes.line(axes, unlimited(kind), "chunk_size", "goodput_gbps", kind)
        axes.set_xlabel("payload of a chunk, bytes")
        axes.set_ylabel("goodput, Gbit/s")
        shapes.legend(axes)

    def on_a_link(axes):
        for size in OFFERED_SIZES:
            shapes.line(axes, [row for row in shapes.good(result["rows"]) if row.get("question") == "offered"
                               and (row["chunk_size"], row["crc"]) == (size, "crc64")],
                        "offered_gbps", "tax", f"{size} bytes")  # fmt: skip
        axes.axhline(0, color="#888888", linewidth=0.8)
        axes.set_xlabel("offered, Gbit/s")
        axes.set_ylabel("fraction of goodput lost to crc64")
        shapes.legend(axes)

    def busy(axes):
        for kind in UNLIMITED:
            shapes.line(axes, unlimited(kind), "chunk_size", "busy_ns_receiver", kind)
        axes.set_xlabel("payload of a chunk, bytes")
        axes.set_ylabel("receiver, busy ns for each chunk")
        shapes.legend(axes)

    return [("goodput", goodput), ("on-a-link", on_a_link), ("busy", busy)]
