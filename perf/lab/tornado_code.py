# Two questions of Tornado's authors, asked of this product's own code by sluice-tornado (perf/tornado).
#
# Hypothesis (their section 3.3): one encoder a file divides it into blocks by its size, and the time is irregular; parts of a
# fixed size would make it regular. Each size is encoded, with 5 % of repair symbols, and decoded, with 1 % of the symbols lost;
# cpu_s is that of both and of the plans. "confirmed": cpu_s_per_mb of fixed parts spreads by 5 % at most and no larger
# file takes less than a smaller one, while one encoder has such an inversion; "refuted" otherwise.
#
# The 14 s at no loss (their section 3.1): a file over a paced pair of sockets at 12 Mbit/s, without a mistake and then with one
# more each time (perf/tornado/paced_file.h). added_s: what the last of them adds. What theirs were is not known.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import tempfile

from harness.system import scratch_parent

from .figures import median, rounded
from .probe import last_object, program
from .stopwatch import timed

_PART_BYTES = 250 * 1400  # K of Sluice's blocks at MTU 1500
_WAYS = {"one encoder": 0, "fixed parts": _PART_BYTES}
MISTAKES = ("none", "encodes first", "one encoder", "decodes intact blocks", "whole-file buffer", "one thread", "one call a symbol")
_SPREAD_MAX = 0.05
_REPEATS = 5
_TIMEOUT_S = 120


def settings(quick):
    sizes = (10, 11, 20, 21) if quick else range(10, 51)
    return [*({"figure": "hypothesis", "size_mb": size, "way": way} for size in sizes for way in _WAYS),
            *({"figure": "mistakes", "size_mb": 2 if quick else 10, "mistakes": mistake} for mistake in MISTAKES)]  # fmt: skip


def rows(bench):
    asked = settings(bench.quick)
    samples = bench.interleave(asked, measure, lambda _each: None, repeats=bench.repeats_or(1, _REPEATS))
    found = bench.rows(asked, samples)
    before_s = None
    for row in found:
        if row["figure"] == "mistakes":
            row["added_s"] = rounded(row["wall_s"] - before_s) if before_s and row.get("wall_s") else None
            before_s = row.get("wall_s")
    return found


def measure(setting):
    size = setting["size_mb"] * 1_000_000
    if setting["figure"] == "hypothesis":
        told = _ask("cost", "--bytes", size, "--part-bytes", _WAYS[setting["way"]], "--repeats", 1)
        cpu_s = told["plan_s"] + told["encode_s"] + told["decode_s"]
        return {"blocks": told["blocks"], "k": told["k"], "cpu_s": cpu_s, "cpu_s_per_mb": cpu_s / setting["size_mb"],
                **{key: told[key] for key in ("plan_s", "encode_s", "decode_s")}}  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="sluice-", dir=scratch_parent(4 * size)) as folder:
        told = _ask("send", "--bytes", size, "--mistakes", MISTAKES.index(setting["mistakes"]), "--folder", pathlib.Path(folder))
    return {"wall_s": told["seconds"], "cpu_s": told["cpu_s"]}


def _ask(*words):
    return last_object(timed([program("sluice-tornado"), *words], _TIMEOUT_S), "sluice-tornado")


# ---- what it says -------------------------------------------------------------------------------


def spread(values):
    return (max(values) - min(values)) / median(values)


def inversions(values):
    """How many of the larger files take less than the one before."""
    return sum(1 for before, after in zip(values, values[1:]) if after < before)


def summary(found):
    of = {way: sorted((row["size_mb"], row["cpu_s"]) for row in found
                      if row["figure"] == "hypothesis" and row["way"] == way and row.get("cpu_s")) for way in _WAYS}  # fmt: skip
    out = {"hypothesis": None}
    for way, key in (("one encoder", "one"), ("fixed parts", "parts")):
        if of[way]:
            out[f"spread_{key}"] = rounded(spread([cpu_s / size for size, cpu_s in of[way]]))
            out[f"inversions_{key}"] = inversions([cpu_s for _, cpu_s in of[way]])
    if all(of.values()):
        holds = out["spread_parts"] <= _SPREAD_MAX and out["inversions_parts"] == 0 and out["inversions_one"] > 0
        out["hypothesis"] = "confirmed" if holds else "refuted"
    times = {row["mistakes"]: row["wall_s"] for row in found if row["figure"] == "mistakes" and row.get("wall_s")}
    if MISTAKES[0] in times and MISTAKES[-1] in times:
        out["mistakes_s"] = rounded(times[MISTAKES[-1]] - times[MISTAKES[0]])
    return out
