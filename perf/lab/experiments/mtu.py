# Time to download 10 MB and 1 GiB by size of the datagram: Phatpackets (docs/SOURCES.md), Figures 1 and 2.
#
# The wire takes the largest size of all, the rest are set by --chunk-bytes: an IP packet of N bytes carries
# N - 100, rounded down to a step of 8. Source is generated memory and the sink discards, so that nothing but the
# datagram differs. A size that the device or the protocol does not take is a row with an error. Times: session_s
# from the first byte allowed to leave to the end; wall_s that of the whole client.
# `what`: `sluice`, over a memif, with nothing to overrun; `sluice-queue` and `tcp`, 10 MB over one emulated link with a queue of one
# BDP (perf/lab/downloads.py; root), `adaptive` and the kernel's CUBIC. over_1500: goodput over that of 1500 bytes in the same
# round, the median.
# SPDX-License-Identifier: Apache-2.0
import contextlib

from harness import HarnessError, MemifWire

from ..downloads import Downloads
from ..errors import LabError
from ..figures import by_round, median, rounded
from ..nodes import CHUNK_STEP_BYTES, DATAGRAM_OVERHEAD_BYTES, RATE_UNLIMITED
from ..peers import ends
from . import shapes

HELP = "datagrams of 576 to 15000 bytes, 10 MB and 1 GiB: Phatpackets' Figures 1 and 2"
REAL = True
PACKAGES = ()
DATAGRAMS = (576, 1000, 1500, 3000, 4500, 6000, 9000, 15000)
SIZES = (10_000_000, 1 << 30)


def run(bench):
    settings = [{"what": "sluice", "datagram_bytes": each, "size_bytes": size} for size in SIZES for each in DATAGRAMS]
    with _nodes(bench) as nodes:
        bench.describe(nodes)

        def transfer(setting, size):
            wanted = setting["datagram_bytes"] - DATAGRAM_OVERHEAD_BYTES
            chunk_bytes = wanted // CHUNK_STEP_BYTES * CHUNK_STEP_BYTES
            sample = nodes.transfer(f"memory:{size}", "null:", "--rate", shapes.RATE, "--chunk-bytes", chunk_bytes)
            if sample["chunk_bytes"] != chunk_bytes:
                raise LabError(f"datagrams of {setting['datagram_bytes']} bytes: the wire takes no more than "
                               f"{sample['chunk_bytes'] + DATAGRAM_OVERHEAD_BYTES}")  # fmt: skip
            return sample

        samples = bench.interleave(settings, lambda each: transfer(each, each["size_bytes"]),
                                   lambda each: transfer(each, SIZES[0]))  # fmt: skip
    if not bench.has_real:
        queued = [{"what": what, "datagram_bytes": each, "size_bytes": SIZES[0]} for what in ("sluice-queue", "tcp") for each in DATAGRAMS]
        settings, samples = settings + queued, samples + _through_a_queue(bench, queued)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    _over_1500(settings, samples, rows)
    return {"rows": rows, "summary": summary(rows)}


def _through_a_queue(bench, settings):
    reason = ends.missing()
    if reason:
        return [[{"error": reason}] for _ in settings]
    try:
        with Downloads(bench.pick(100e6, 200e6), DATAGRAMS[-1]) as downloads:

            def download(setting):
                how = downloads.tcp if setting["what"] == "tcp" else downloads.sluice
                return how(setting["datagram_bytes"], setting["size_bytes"])

            return bench.interleave(settings, download, lambda _each: None)
    except HarnessError as error:
        bench.say(f"through a queue: {str(error).splitlines()[0]}")
        return [[{"error": str(error).splitlines()[0]}] for _ in settings]


def _over_1500(settings, samples, rows):
    at_1500 = {(each["what"], each["size_bytes"]): runs for each, runs in zip(settings, samples) if each["datagram_bytes"] == 1500}
    for setting, runs, row in zip(settings, samples, rows):
        row["over_1500"] = rounded(median(by_round(runs, at_1500[setting["what"], setting["size_bytes"]], "goodput_gbps")))


@contextlib.contextmanager
def _nodes(bench):
    """Started, with the largest datagram that they take."""
    with contextlib.ExitStack() as stack:
        try:
            nodes = stack.enter_context(bench.nodes(wire=MemifWire(mtu=DATAGRAMS[-1], rate=RATE_UNLIMITED)))
            nodes.start()
        except HarnessError as error:
            bench.say(f"MTU {DATAGRAMS[-1]}: {str(error).splitlines()[0]}")
            stack.close()
            nodes = stack.enter_context(bench.nodes(wire=MemifWire(mtu=DATAGRAMS[-2], rate=RATE_UNLIMITED)))
            nodes.start()
        yield nodes


def summary(rows):
    """What larger datagrams bring: goodput at 9000 against 1500, and the size that is best."""
    out = {}
    for size, name in zip(SIZES, ("10mb", "1gib")):
        speeds = {row["datagram_bytes"]: row["goodput_gbps"] for row in rows
                  if row["size_bytes"] == size and row["what"] == "sluice" and row["goodput_gbps"]}  # fmt: skip
        both = speeds.get(9000) and speeds.get(1500)
        out[f"ratio_9000_to_1500_{name}"] = rounded(speeds[9000] / speeds[1500]) if both else None
        out[f"best_datagram_bytes_{name}"] = max(speeds, key=speeds.get) if speeds else None
    return out


def plots(result):
    def panel(key, label, log):
        def draw(axes):
            for what, size in dict.fromkeys((row["what"], row["size_bytes"]) for row in result["rows"]):
                shapes.line(axes, [row for row in result["rows"] if (row["what"], row["size_bytes"]) == (what, size)],
                            "datagram_bytes", key, f"{what}, {shapes.size_name(size)}")  # fmt: skip
            axes.set_xlabel("datagram, bytes")
            axes.set_ylabel(label)
            if log:
                axes.set_yscale("log")
            shapes.legend(axes)

        return draw

    return [("time", panel("session_s", "time to download, s", log=True)),
            ("goodput", panel("goodput_gbps", "goodput, Gbit/s", log=False))]  # fmt: skip
