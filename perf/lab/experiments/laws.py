# The laws of rate control over time: rate, queue and loss on one bottleneck with packets in virtual time.
#
# `sluice-laws` (perf/laws) runs the product's own laws over the model of their tests (control/rate/dumbbell_for_test.h);
# nothing is measured on a wire, so a run gives the same figures everywhere. docs/RATE.md shows these plots. A row has what
# the second half of a scenario came to: the flow's goodput on the wire, its loss, and the queue's median.
# SPDX-License-Identifier: Apache-2.0
import json
import statistics
import subprocess

from ..channels import program
from ..errors import LabError
from . import shapes

HELP = "the laws of rate control in virtual time, as docs/RATE.md shows them: rate, queue and loss over time"
REAL = False
PACKAGES = ()


def run(bench):
    done = subprocess.run([program("sluice-laws")], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"sluice-laws: status {done.returncode}: {done.stderr}")
    scenarios = [json.loads(line) for line in done.stdout.splitlines()]
    bench.described = {"kind": "model", "wire": "virtual time"}
    rows = [row(scenario, flow) for scenario in scenarios for flow in scenario["flows"]]
    return {"rows": rows, "scenarios": scenarios,
            "summary": {each["name"] + "_queue_ms": queue_ms(each) for each in scenarios}}  # fmt: skip


def queue_ms(scenario):
    queue = scenario["queue_ms"]
    return round(statistics.median(queue[len(queue) // 2 :]), 3)


def row(scenario, flow):
    half = len(flow["gbps"]) // 2
    return {"scenario": scenario["name"], "flow": flow["name"], "queue_ms": queue_ms(scenario),
            "goodput_gbps": round(statistics.mean(flow["gbps"][half:]), 4),
            "lost_percent": round(statistics.mean(flow["lost_percent"][half:]), 3)}  # fmt: skip


def plots(result):
    none = {"name": "none", "title": "", "t_s": [], "queue_ms": [], "flows": []}
    return [(scenario["name"], _drawer(scenario)) for scenario in result.get("scenarios") or [none]]


def _drawer(scenario):
    def draw(axes):
        right = axes.twinx()
        right.fill_between(scenario["t_s"], scenario["queue_ms"], color="#bbbbbb", linewidth=0, label="queue, ms")
        right.plot(scenario["t_s"], _lost(scenario), color="#b03030", linewidth=0.8, label="lost, %")
        right.set_ylim(0, 3 * max([1.0, *scenario["queue_ms"]]))
        right.set_ylabel("queue, ms; lost, %")
        # The rates lie above what the other axes show.
        axes.set_zorder(right.get_zorder() + 1)
        axes.patch.set_visible(False)
        for flow in scenario["flows"]:
            axes.plot(scenario["t_s"], flow["gbps"], label=flow["name"], linewidth=1.2)
        axes.set_ylim(0, 1.1 * max([0.1, *(max(flow["gbps"]) for flow in scenario["flows"])]))
        axes.set_xlabel("s")
        axes.set_ylabel("arrives, Gbit/s on the wire")
        axes.set_title(scenario["title"], fontsize=9)
        shapes.legend(axes)
        right.legend(loc="lower right", fontsize=8)

    return draw


def _lost(scenario):
    return [max(values) for values in zip(*[flow["lost_percent"] for flow in scenario["flows"]])]
