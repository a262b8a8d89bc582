# Lanes 1..N on N cores of each side, one worker per lane. Two nodes on one machine need twice the cores, so here N
# goes to half of them; with --node, to the workers that the local node has (the peer should have as many).
# SPDX-License-Identifier: Apache-2.0
from harness.system import allowed_cores

from ..bench import bytes_for
from ..errors import SKIPPED, LabError
from ..figures import ratio, rounded
from . import shapes

HELP = "lanes 1..N on N cores, where the machine has them"
REAL = True
PACKAGES = ()
_FIRST_BYTES = 1 << 30
_LANES_MAX = 16
_NODE_MIB, _WORKER_MIB = 256, 64


def run(bench):
    probe = bench.nodes() if bench.has_real else None
    most = probe.start().live["workers"] if probe else len(allowed_cores()) // 2
    if most < 2:
        raise LabError(f"cores: {most} core for each side is what `lanes` shows already; run it where two nodes have "
                       "at least four, or with --node between two machines", SKIPPED)  # fmt: skip
    settings = [{"cores": count} for count in range(1, min(most, _LANES_MAX) + 1)]
    size = {}
    seconds = bench.pick(1.0, 4.0)

    def measure(setting):
        count = setting["cores"]
        with bench.nodes(pinned=False, **({} if bench.has_real else own(count))) as nodes:
            nodes.start()
            bench.describe(nodes)
            first = nodes.transfer(f"memory:{_FIRST_BYTES}", "null:", "--rate", shapes.RATE, "--lanes", count)
            size.setdefault(count, bytes_for(first, seconds))
            return nodes.transfer(f"memory:{size[count]}", "null:", "--rate", shapes.RATE, "--lanes", count)

    samples = bench.interleave(settings, measure)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": rows, "summary": summary(rows)}


def own(count):
    """A pair with so many workers on each side, on cores of their own, and memory for each of them."""
    cores = allowed_cores()
    sides = [{"dataplane": {"workers": count, "cores": cores[side * count : (side + 1) * count]}} for side in (0, 1)]
    return {"settings_a": sides[0], "settings_b": sides[1], "memory_mib": max(_NODE_MIB, _WORKER_MIB * count)}


def summary(rows):
    first, last = rows[0], rows[-1]
    return {"cores": last["cores"], "goodput_gbps": last["goodput_gbps"],
            "ratio_to_1": rounded(ratio(last["goodput_gbps"], first["goodput_gbps"]))}  # fmt: skip


def plots(result):
    def goodput(axes):
        shapes.from_zero(axes, result["rows"], "cores", "goodput_gbps", "lanes and cores of each side", "goodput, Gbit/s")

    return [("goodput", goodput)]
