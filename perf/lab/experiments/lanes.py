# One session over 1, 2, 4 and 8 lanes, memory to discard. In MCDTP (docs/SOURCES.md; chapter 5) eight channels
# brought nothing through; here more lanes must never make it worse.
# SPDX-License-Identifier: Apache-2.0
from ..bench import bytes_for
from ..figures import by_round, spread
from . import shapes

HELP = "1, 2, 4 and 8 lanes of one session: goodput, loss, CPU"
REAL = True
PACKAGES = ()
LANES = (1, 2, 4, 8)


def run(bench):
    settings = [{"lanes": lanes} for lanes in LANES]
    seconds = bench.pick(1.0, 4.0)
    size = {}
    with bench.nodes() as nodes:
        nodes.start()
        bench.describe(nodes)

        def transfer(setting, bytes_):
            return nodes.transfer(f"memory:{bytes_}", "null:", "--rate", shapes.RATE, "--lanes", setting["lanes"])

        def warm_up(setting):
            size.setdefault("bytes", bytes_for(transfer(setting, 1 << 30), seconds))

        samples = bench.interleave(settings, lambda each: transfer(each, size["bytes"]), warm_up)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": rows, "summary": summary(rows, samples)}


def summary(rows, samples):
    """The ratio is the median over the rounds; the loss that of the worst run."""
    return {**spread("ratio_8_to_1", by_round(samples[-1], samples[0], "goodput_gbps")), "loss_8": rows[-1]["loss"]}


def plots(result):
    def goodput(axes):
        shapes.from_zero(axes, result["rows"], "lanes", "goodput_gbps", "lanes", "goodput, Gbit/s")

    def cpu(axes):
        shapes.from_zero(axes, result["rows"], "lanes", "cpu_s_per_gb", "lanes", "CPU-s/GB, both sides together")

    return [("goodput", goodput), ("cpu", cpu)]
