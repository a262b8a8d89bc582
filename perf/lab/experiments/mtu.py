# Time to download 10 MB and 1 GiB by size of the datagram: Phatpackets (docs/SOURCES.md), Figures 1 and 2.
#
# The wire takes the largest size of all, the rest are set by --chunk-bytes: an IP packet of N bytes carries
# N - 100, rounded down to a step of 8. Source is generated memory and the sink discards, so that nothing but the
# datagram differs. A size that the device or the protocol does not take is a row with an error. Times: session_s
# from the first byte allowed to leave to the end; wall_s that of the whole client.
# SPDX-License-Identifier: Apache-2.0
import contextlib

from harness import HarnessError, MemifWire

from ..errors import LabError
from ..figures import rounded
from ..nodes import CHUNK_STEP_BYTES, DATAGRAM_OVERHEAD_BYTES, RATE_UNLIMITED
from . import shapes

HELP = "datagrams of 576 to 15000 bytes, 10 MB and 1 GiB: Phatpackets' Figures 1 and 2"
REAL = True
PACKAGES = ()
DATAGRAMS = (576, 1000, 1500, 3000, 4500, 6000, 9000, 15000)
SIZES = (10_000_000, 1 << 30)


def run(bench):
    settings = [{"datagram_bytes": each, "size_bytes": size} for size in SIZES for each in DATAGRAMS]
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
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": rows, "summary": summary(rows)}


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
                  if row["size_bytes"] == size and row["goodput_gbps"]}  # fmt: skip
        both = speeds.get(9000) and speeds.get(1500)
        out[f"ratio_9000_to_1500_{name}"] = rounded(speeds[9000] / speeds[1500]) if both else None
        out[f"best_datagram_bytes_{name}"] = max(speeds, key=speeds.get) if speeds else None
    return out


def plots(result):
    def panel(key, label, log):
        def draw(axes):
            for size in SIZES:
                shapes.line(axes, [row for row in result["rows"] if row["size_bytes"] == size], "datagram_bytes", key,
                            shapes.size_name(size))  # fmt: skip
            axes.set_xlabel("datagram, bytes")
            axes.set_ylabel(label)
            if log:
                axes.set_yscale("log")
            shapes.legend(axes)

        return draw

    return [("time", panel("session_s", "time to download, s", log=True)),
            ("goodput", panel("goodput_gbps", "goodput, Gbit/s", log=False))]  # fmt: skip
