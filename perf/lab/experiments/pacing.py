# How exactly a rate is kept, by nodes and by the bare pacer; and the ladder that FMFT climbed.
#
# `node`: sessions into null: with --rate, of ten seconds and more. A rate counts frames with FCS, preamble and gap
# (dataplane/core/pacer.h), so bytes are counted so. achieved = (bytes of a long run - bytes of a short one) /
# (difference of their times): start, ramp and end are the same in both and fall out. rate_error =
# |achieved / target - 1|, the median of the rounds; first_pass is the part of all chunks that arrived as they were
# sent first. steal_s tells what the hypervisor took meanwhile. Control and client may use both cores, each dataplane keeps its own. `pace`: sluice-pace with our pacer,
# frames of the same length, at each rate; gap errors, burst lengths, rate error by its own clock. Ladder:
# sluice-pace with each policy, into a receiver with a queue of 256 frames that drains at the target rate;
# first_pass is the fraction of frames that found room. `whole`: whole transfers of 100 MB in chunks of 1400 bytes in virtual time
# (`sluice-ladder`), where what a queue of `queue_frames` does not hold is sent again; the link and the target are 1 Gbit/s, and the
# sender could send 1.2 times that, as FMFT's 83.3 % of an unpaced one says; sent_for_each: frames sent for each that is needed.
#
# summary: rate_error_max is the largest of node and pace with chunks of 8192 bytes, rate_error_2400_at_25g that of nodes
# with shorter ones; first_pass_X the worst of policy X over all rates run. held_gbps is the highest rate that nodes held to 0.5 %, as
# they did all lower ones.
# SPDX-License-Identifier: Apache-2.0
import json

from ..nodes import FRAME_OVERHEAD_BYTES
from ..probe import PACE, pace, program
from ..stopwatch import timed
from . import shapes

HELP = "1 to 40 Gbit/s: achieved against target, gaps, bursts; and FMFT's ladder of policies"
REAL = False
PACKAGES = ()
RATES_GBPS = (1, 5, 10, 25, 40)
POLICIES = {"unpaced": "unpaced", "slot-1s": "1s", "slot-1ms": "1ms", "history": "history", "bucket": "bucket"}
_CHUNK_BYTES = 8192
_SHORT = {"what": "node", "policy": "bucket", "target_gbps": 25, "chunk_size": 2400}
_FRAME_BYTES = _CHUNK_BYTES + FRAME_OVERHEAD_BYTES
_QUEUE_FRAMES = 256
_HELD_ERROR = 0.005
_LADDER_QUICK_GBPS = (10,)
_WHOLE_BYTES, _WHOLE_CHUNK_BYTES, _WHOLE_QUEUES = 100_000_000, 1400, (256, 8192)
_WHOLE_BPS, _WHOLE_SENDER = 1_000_000_000, 1.2
_IP_UDP_WIRE_BYTES = 28 + 14 + 24  # with Ethernet's header, FCS, preamble and gap


def run(bench):
    rates = bench.pick(_LADDER_QUICK_GBPS, RATES_GBPS)
    node_settings = [{"what": "node", "policy": "bucket", "target_gbps": rate, "chunk_size": _CHUNK_BYTES}
                     for rate in RATES_GBPS] + [_SHORT]  # fmt: skip
    # The highest rung has a row for every rate, the ladder below it where it is run.
    pace_settings = [{"what": "pace", "policy": policy, "target_gbps": rate}
                     for policy in POLICIES for rate in RATES_GBPS if policy == "bucket" or rate in rates]  # fmt: skip
    with bench.nodes() as nodes:
        nodes.start()
        nodes.free_control()
        bench.describe(nodes)
        samples = bench.interleave(node_settings, lambda each: node_run(nodes, each, *bench.pick((0.2, 1.2), (0.5, 10.5))),
                                   lambda each: node_run(nodes, each, 0.1, 0.2))  # fmt: skip
        # The probe has both cores and the memory to itself.
        nodes.freeze()
        with shapes.probe_place(nodes) as place:
            # Each run is a new process: there is nothing to warm up.
            samples += bench.interleave(pace_settings,
                                        lambda each: pace_run(place, each, seconds_of(each["policy"], bench)),
                                        lambda _each: program(PACE))  # fmt: skip
    settings = node_settings + pace_settings
    rows = bench.rows(settings, samples)
    return {"rows": bench.must_have_rows(rows + list(whole_rows())), "summary": summary(rows)}


def whole_rows():
    wire_bytes = _WHOLE_CHUNK_BYTES + _IP_UDP_WIRE_BYTES
    for queue_frames in _WHOLE_QUEUES:
        finished = timed([program("sluice-ladder"), "--rate-bps", _WHOLE_BPS, "--link-bps", _WHOLE_BPS, "--wire-bytes", wire_bytes,
                          "--queue-frames", queue_frames, "--frames", -(-_WHOLE_BYTES // _WHOLE_CHUNK_BYTES),
                          "--frame-cpu-ns", int(wire_bytes * 8e9 / (_WHOLE_BPS * _WHOLE_SENDER))], 120)  # fmt: skip
        finished.must_have_worked("sluice-ladder")
        for policy, said in json.loads(finished.stdout).items():
            yield {"what": "whole", "policy": policy, "target_gbps": _WHOLE_BPS / 1e9, "queue_frames": queue_frames, **said}


def seconds_of(policy, bench):
    """Policies that look at whole seconds need some."""
    return bench.pick(1.5, 5) if policy in ("slot-1s", "history") else bench.pick(0.5, 3)


def node_run(nodes, setting, short_s, long_s):
    rate_bps = setting["target_gbps"] * 1e9
    ends = []
    for seconds in (short_s, long_s):
        size = max(1, int(rate_bps / 8 * seconds))
        ends.append(nodes.transfer(f"memory:{size}", "null:", "--rate", f"{setting['target_gbps']}G",
                                   "--chunk-bytes", setting["chunk_size"]))  # fmt: skip
    short, long = ends
    achieved = (long["wire_bytes"] - short["wire_bytes"]) * 8 / (long["session_s"] - short["session_s"]) / 1e9
    long["achieved_gbps"] = achieved
    long["rate_error"] = abs(achieved / setting["target_gbps"] - 1)
    long["first_pass"] = 1 - long["loss"]
    return long


def pace_run(place, setting, seconds):
    figures = pace(place, setting["policy"], setting["target_gbps"] * 1e9, _FRAME_BYTES, seconds, _QUEUE_FRAMES)
    achieved = figures["achieved_bps"] / 1e9
    sent_gb = figures["frames"] * _FRAME_BYTES / 1e9
    keys = ("gap_error_p50_ns", "gap_error_p99_ns", "gap_error_p999_ns", "burst_p50", "burst_max", "frames",
            "first_pass")  # fmt: skip
    return {"goodput_gbps": achieved, "achieved_gbps": achieved, "rate_error": abs(figures["rate_error"]),
            "loss": 1 - figures["first_pass"], "cpu_s_per_gb": figures["cpu_s"] / sent_gb if sent_gb else None,
            "rss_mb": figures["rss_mb"], **{key: figures[key] for key in keys}}  # fmt: skip


def summary(rows):
    ours = [row for row in rows if row["policy"] == "bucket" and row.get("rate_error") is not None]
    short = [row for row in ours if row.get("chunk_size") == _SHORT["chunk_size"]]
    out = {"rate_error_max": max((row["rate_error"] for row in ours if row not in short), default=None),
           "rate_error_2400_at_25g": short[0]["rate_error"] if short else None,
           "steal_s": max((row.get("steal_s") or 0 for row in ours), default=None)}  # fmt: skip
    out["held_gbps"] = held_gbps([row for row in ours if row["what"] == "node" and row not in short])
    for policy, name in POLICIES.items():
        passed = [row["first_pass"] for row in rows if row["policy"] == policy and row.get("first_pass") is not None]
        out[f"first_pass_{name}"] = min(passed) if passed else None
    return out


def held_gbps(rows):
    held = None
    for row in sorted(rows, key=lambda each: each["target_gbps"]):
        if row["rate_error"] > _HELD_ERROR:
            break
        held = row["target_gbps"]
    return held


def plots(result):
    def error(axes):
        for what in ("node", "pace"):
            shapes.line(axes, [row for row in result["rows"] if row["what"] == what and row["policy"] == "bucket"
                               and row.get("chunk_size", _CHUNK_BYTES) == _CHUNK_BYTES],
                        "target_gbps", "rate_error", what)  # fmt: skip
        axes.set_yscale("symlog", linthresh=1e-5)
        axes.set_xlabel("target, Gbit/s")
        axes.set_ylabel("|achieved / target - 1|")
        shapes.legend(axes)

    def ladder(axes):
        rows = [row for row in result["rows"] if row.get("first_pass") is not None and row["what"] != "whole"]
        for rate in sorted({row["target_gbps"] for row in rows}):
            by_policy = {row["policy"]: row["first_pass"] for row in rows if row["target_gbps"] == rate}
            names = [policy for policy in POLICIES if policy in by_policy]
            axes.plot(names, [by_policy[name] for name in names], marker="o", label=f"{rate} Gbit/s")
        axes.set_ylabel("first-pass success")
        axes.set_ylim(0, 1.05)
        shapes.legend(axes)

    return [("rate-error", error), ("ladder", ladder)]
