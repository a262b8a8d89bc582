# Several sessions at once, memory to discard: each one's goodput, their sum, and how even they are. FMFT (docs/SOURCES.md,
# section 5) wanted a thread for each session; here the workers serve all of them in turn.
# SPDX-License-Identifier: Apache-2.0
import json

from ..bench import bytes_for
from ..errors import LabError
from ..figures import by_round, gbps, rounded, spread
from ..stopwatch import Running
from . import shapes

HELP = "1, 2, 4 and 8 sessions at once: the sum of their goodput, and how even they are"
REAL = False
PACKAGES = ()
SESSIONS = (1, 2, 4, 8)
_TIMEOUT_S = 600


def run(bench):
    settings = [{"sessions": count} for count in SESSIONS]
    seconds = bench.pick(1.5, 5.0)
    size = {}
    with bench.nodes() as nodes:
        nodes.start()
        bench.describe(nodes)

        def warm_up(_setting):
            first = nodes.transfer(f"memory:{1 << 30}", "null:", "--rate", shapes.RATE)
            size.setdefault("bytes", bytes_for(first, seconds))

        samples = bench.interleave(settings, lambda each: measure(nodes, each["sessions"], size["bytes"]), warm_up)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": rows, "summary": summary(rows, samples)}


def measure(nodes, count, total_bytes):
    """`total_bytes` in all, in equal parts. The sum counts from the first start to the last end."""
    each_bytes = total_bytes // count
    command = [*nodes.client_prefix, *nodes.a.command("send", f"memory:{each_bytes}", f"{nodes.peer}:null:", "--rate",
                                                      shapes.RATE, "--json", "--quiet")]  # fmt: skip
    running = [Running(command) for _ in range(count)]
    ended = [each.end(_TIMEOUT_S) for each in running]
    told = []
    for finished in ended:
        finished.must_have_worked("sluice send")
        told.append(json.loads(finished.stdout.strip().splitlines()[-1]))
    wall_s = max(each.wall_s for each in ended)
    speeds = [gbps(each["bytes_done"], each["data_elapsed_s"]) for each in told]
    if any(speed is None for speed in speeds):
        raise LabError("a session without a time of its own; give more bytes")
    return {"goodput_gbps": gbps(each_bytes * count, wall_s), "wall_s": wall_s, "slowest_gbps": min(speeds),
            "jain": sum(speeds) ** 2 / (count * sum(speed**2 for speed in speeds)),
            "retransmits": sum(each["retransmits"] for each in told), "crc_errors": sum(each["crc_errors"] for each in told),
            "crc": told[0]["crc"], "protection": told[0]["protection"]}  # fmt: skip


def summary(rows, samples):
    return {**spread("ratio_8_to_1", by_round(samples[-1], samples[0], "goodput_gbps")),
            "jain_8": rounded(rows[-1].get("jain"))}  # fmt: skip


def plots(result):
    def draw(axes):
        shapes.from_zero(axes, result["rows"], "sessions", "goodput_gbps", "sessions at once", "goodput of all, Gbit/s")

    return [("goodput", draw)]
