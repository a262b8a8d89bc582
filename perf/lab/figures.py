# Arithmetic of the lab: samples to rows, slopes, ratios. Pure.
# SPDX-License-Identifier: Apache-2.0
import math
import statistics

# Of these the worst run counts, of everything else the median.
WORST = ("loss", "retransmits", "crc_errors", "rss_mb", "hugepages_mb", "steal_s", "foreign_cpu_s")
# Every row has these; null where they were not measured.
ALWAYS = ("goodput_gbps", "loss", "retransmits", "cpu_s_per_gb", "rss_mb")


def median(values):
    """Of what was measured; None when nothing was."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def percentile(values, share):
    """The value below or at which this share of them is, between two of them in proportion; None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def gbps(size_bytes, seconds):
    return size_bytes * 8 / seconds / 1e9 if seconds > 0 else None


def ratio(part, whole):
    return part / whole if part is not None and whole else None


def rounded(value, digits=6):
    """Significant digits: what a measurement has, and a person can read."""
    if not isinstance(value, float) or value == 0 or not math.isfinite(value):
        return value
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def row(setting, samples):
    """One row of the result: the setting, then its runs put together. A run that failed is a sample with `error`;
    when all did, so is the row."""
    good = [sample for sample in samples if "error" not in sample]
    out = dict(setting)
    out.update({key: None for key in ALWAYS})
    out["n"] = len(good)
    errors = [sample["error"] for sample in samples if "error" in sample]
    if errors:
        out["error" if not good else "errors"] = errors[0] if not good else errors
    for key in dict.fromkeys(key for sample in good for key in sample):
        values = [sample.get(key) for sample in good]
        known = [value for value in values if value is not None]
        if not known:
            out[key] = None
        elif not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known):
            out[key] = known[-1]
        else:
            out[key] = rounded(max(known) if key in WORST else median(known))
    speeds = [sample["goodput_gbps"] for sample in good if sample.get("goodput_gbps") is not None]
    if speeds:
        out["goodput_gbps_min"] = rounded(min(speeds))
        out["goodput_gbps_max"] = rounded(max(speeds))
    out["runs"] = [{key: rounded(value) for key, value in sample.items()} for sample in samples]
    return out


def by_round(ours, theirs, key, combine=ratio):
    """combine(ours, theirs) of each round: its runs stand close together in time, so what slows the machine for a
    while slows both."""
    return [combine(one[key], other[key]) for one, other in zip(ours, theirs)
            if one.get(key) is not None and other.get(key)]  # fmt: skip


def taxes(checked, plain):
    """Fraction of goodput lost, by round."""
    return by_round(checked, plain, "goodput_gbps", lambda with_crc, without: 1 - with_crc / without)


def spread(name, values):
    """{name: the median, name_low and name_high: the extremes}: by them a bar can ask for more than a lucky run."""
    known = [value for value in values if value is not None]
    return {name: rounded(median(known)), f"{name}_low": rounded(min(known, default=None)),
            f"{name}_high": rounded(max(known, default=None))}  # fmt: skip


CONFIDENCE = 0.95
RUNS_OF_AN_INTERVAL = 6  # of fewer not even the extremes hold the median so surely


def interval_of_median(values, confidence=CONFIDENCE):
    """(low, high): between them lies the median of all runs that the machine could make, with this confidence or more,
    whatever their distribution: order statistics, by the binomial of n and a half. None of fewer than six values."""
    ordered, n = sorted(values), len(values)
    below, outside = 0, 0.5**n
    while 2 * (outside + math.comb(n, below + 1) * 0.5**n) <= 1 - confidence:
        below += 1
        outside += math.comb(n, below) * 0.5**n
    return (ordered[below], ordered[n - 1 - below]) if 2 * outside <= 1 - confidence else None


def interval(name, values):
    """As `spread`, but of six values and more name_low and name_high are the median's interval, and name_n says how many
    they are."""
    known = [value for value in values if value is not None]
    low, high = interval_of_median(known) or (min(known, default=None), max(known, default=None))
    return {name: rounded(median(known)), f"{name}_low": rounded(low), f"{name}_high": rounded(high), f"{name}_n": len(known)}


def narrow(summary, name, within):
    """The interval of this ratio reaches no farther than so much of the median to either side."""
    if summary.get(f"{name}_n", 0) < RUNS_OF_AN_INTERVAL:
        return False
    middle, low, high = (summary[name + end] for end in ("", "_low", "_high"))
    return max(high - middle, middle - low) <= within * middle


def slope(points):
    """Least squares of log y over log x."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    if len(logs) < 2:
        return None
    mean_x = statistics.fmean(x for x, _ in logs)
    mean_y = statistics.fmean(y for _, y in logs)
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread if spread else None
