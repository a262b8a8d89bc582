# What a path did over time, of samples of its bottleneck: rates, queues, how soon it settled. Pure.
# SPDX-License-Identifier: Apache-2.0
import collections
import statistics

# t_s: the emulator's clock. Bytes of whole frames, totals: that came in, that left at the other end; waiting: for
# the link, now. lost and overrun: frames that the path lost at random, and that its queue did not hold.
Point = collections.namedtuple("Point", "t_s in_bytes out_bytes in_frames waiting_bytes lost overrun")


def point(reply, direction="a_to_b"):
    """Of the emulator's reply to `counters`."""
    counted = reply["counters"][direction]
    drops = counted["drops"]
    return Point(reply["now_ns"] * 1e-9, counted["in_bytes"], counted["out_bytes"], counted["in"],
                 counted["queue_bytes"], sum(drops.values()) - drops["queue"], drops["queue"])  # fmt: skip


def began_s(points, least_bytes=20_000):
    """When data began to enter: what only finds neighbours is less. None: never."""
    for each in points:
        if each.in_bytes - points[0].in_bytes > least_bytes:
            return each.t_s
    return None


def between(points, from_s, until_s):
    return [each for each in points if from_s <= each.t_s <= until_s]


def rates(points, window_s):
    """[(end of a window, bit/s that left, bit/s that entered)], windows of at least this length, side by side."""
    out, first = [], None
    for each in points:
        if first is None:
            first = each
        elif each.t_s - first.t_s >= window_s:
            span_s = each.t_s - first.t_s
            out.append((each.t_s, (each.out_bytes - first.out_bytes) * 8 / span_s,
                        (each.in_bytes - first.in_bytes) * 8 / span_s))  # fmt: skip
            first = each
    return out


def sliding(points, window_s):
    """As rates, but a window ends at every point."""
    out, first = [], 0
    for each in points:
        while first + 1 < len(points) and each.t_s - points[first + 1].t_s >= window_s:
            first += 1
        span_s = each.t_s - points[first].t_s
        if span_s >= window_s:
            out.append((each.t_s, (each.out_bytes - points[first].out_bytes) * 8 / span_s))
    return out


def time_to(points, start_s, bps, window_s):
    """From start_s to the end of the first window in which this rate left the path. None: never."""
    for end_s, rate_bps in sliding([each for each in points if each.t_s >= start_s], window_s):
        if rate_bps >= bps:
            return end_s - start_s
    return None


def queue_ms(points, link_bps):
    """The median of what waited."""
    if not points or not link_bps:
        return None
    return statistics.median(each.waiting_bytes for each in points) * 8e3 / link_bps


def settle_s(points, step_s, until_s, low_bps, link_bps, queue_s, window_s):
    """From a step to the beginning of the first window of `window_s` that is as it should be, as is the next: what
    left is at least low_bps, and what waited, at its median, takes no longer than queue_s. None: never."""
    after = between(points, step_s, until_s)
    good_since = None
    for (begin_s, _), (end_s, rate_bps) in zip([(step_s, 0), *_ends(after, window_s)], _ends(after, window_s)):
        waits_s = queue_ms(between(after, begin_s, end_s), link_bps) / 1e3
        if rate_bps < low_bps or waits_s > queue_s:
            good_since = None
        elif good_since is None:
            good_since = begin_s
        else:
            return good_since - step_s
    return None


def _ends(points, window_s):
    return [(end_s, left_bps) for end_s, left_bps, _ in rates(points, window_s)]


def overdrive(points):
    """Frames sent for each that the queue took, which is sent / delivered times 1 - loss: 1 is best."""
    first, last = points[0], points[-1]
    sent = last.in_frames - first.in_frames
    taken = sent - (last.overrun - first.overrun)
    return sent / taken if taken > 0 else None


def jain(values):
    """Jain's index of fairness: 1 when all have the same, 1/n when one has everything."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else None


def goodput_bps(samples, from_s, until_s):
    """Of (t_s, bytes done) in time, by the ends of that span; bytes come in steps of an extent, so it should hold
    many. None: fewer than two samples."""
    inside = [each for each in samples if from_s <= each[0] <= until_s]
    if len(inside) < 2 or inside[-1][0] <= inside[0][0]:
        return None
    return (inside[-1][1] - inside[0][1]) * 8 / (inside[-1][0] - inside[0][0])


def series(points, window_s, link_bps):
    """For plots: [seconds since the first, Mbit/s that left, Mbit/s that entered, ms of queue]."""
    if not points:
        return []
    out = []
    before_s = points[0].t_s
    for end_s, left_bps, entered_bps in rates(points, window_s):
        waits_ms = queue_ms(between(points, before_s, end_s), link_bps)
        out.append([round(end_s - points[0].t_s, 3), round(left_bps / 1e6, 2), round(entered_bps / 1e6, 2),
                    round(waits_ms, 3) if waits_ms is not None else None])  # fmt: skip
        before_s = end_s
    return out
