# Rates, queues, settling, fairness: of samples of a bottleneck that were made up.
# SPDX-License-Identifier: Apache-2.0
import pytest
from lab import trace
from lab.trace import Point

LINK_BPS = 8e6  # a byte a microsecond


def steady(begin_s, end_s, bps, waiting=0, out_bytes=0, step_s=0.01):
    """What a link does that carries this rate, a point each 10 ms."""
    points = []
    for number in range(round((end_s - begin_s) / step_s) + 1):
        sent = out_bytes + bps / 8 * number * step_s
        points.append(Point(begin_s + number * step_s, sent, sent, sent / 1000, waiting, 0, 0))
    return points


def test_a_point_is_what_the_emulator_counts():
    counted = {"in_bytes": 5, "out_bytes": 4, "in": 3, "queue_bytes": 2,
               "drops": {"queue": 7, "loss_probability": 10, "blackhole": 1}}  # fmt: skip
    got = trace.point({"now_ns": 2_000_000_000, "counters": {"a_to_b": counted}})
    assert got == Point(2.0, 5, 4, 3, 2, 11, 7)


def test_data_begins_after_what_finds_neighbours():
    points = [Point(0, 100, 0, 0, 0, 0, 0), Point(1, 300, 0, 0, 0, 0, 0), Point(2, 90_000, 0, 0, 0, 0, 0)]
    assert trace.began_s(points) == 2
    assert trace.began_s(points[:2]) is None


def test_rates_are_of_windows_side_by_side():
    got = trace.rates(steady(0, 1, 4e6), 0.25)
    assert [round(end_s, 2) for end_s, _, _ in got] == pytest.approx([0.25, 0.5, 0.75, 1.0], abs=0.02)
    assert all(left == pytest.approx(4e6) and entered == pytest.approx(4e6) for _, left, entered in got)


def test_time_to_a_rate_ends_with_the_window_that_has_it():
    points = steady(0, 1, 1e6)
    points += steady(1.01, 2, 8e6, out_bytes=points[-1].out_bytes)
    assert trace.time_to(points, 0, 7.9e6, 0.1) == pytest.approx(1.1, abs=0.03)
    assert trace.time_to(points, 0, 9e6, 0.1) is None
    assert trace.time_to([], 0, 1, 0.1) is None


def test_the_queue_is_a_median_over_the_rate():
    assert trace.queue_ms(steady(0, 1, 8e6, waiting=5000), LINK_BPS) == pytest.approx(5.0)
    assert trace.queue_ms([], LINK_BPS) is None


def test_settled_is_what_leaves_and_waits_as_it_should_twice_in_a_row():
    long_queue = steady(0, 1, 8e6, waiting=50_000)
    short = steady(1.01, 2, 8e6, waiting=1000, out_bytes=long_queue[-1].out_bytes)
    points = long_queue + short
    took = trace.settle_s(points, 0, 2, 7e6, LINK_BPS, 0.010, 0.1)
    assert took == pytest.approx(1.0, abs=0.15)
    assert trace.settle_s(long_queue, 0, 1, 7e6, LINK_BPS, 0.010, 0.1) is None
    assert trace.settle_s(steady(0, 1, 1e6), 0, 1, 7e6, LINK_BPS, 0.010, 0.1) is None


def test_overdrive_counts_what_the_queue_did_not_take():
    points = [Point(0, 0, 0, 100, 0, 0, 10), Point(1, 0, 0, 1100, 0, 500, 110)]
    assert trace.overdrive(points) == pytest.approx(1000 / 900)
    assert trace.overdrive([points[0], points[0]]) is None


def test_jain():
    assert trace.jain([5, 5, 5, 5]) == pytest.approx(1)
    assert trace.jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert trace.jain([0, 0]) is None


def test_goodput_is_of_the_samples_within():
    samples = [(0.0, 0), (1.0, 1_000_000), (2.0, 3_000_000), (3.0, 3_000_000)]
    assert trace.goodput_bps(samples, 1.0, 2.0) == 16e6
    assert trace.goodput_bps(samples, 1.5, 2.5) is None


def test_a_series_is_for_plots():
    got = trace.series(steady(5, 5.5, 8e6, waiting=2000), 0.1, LINK_BPS)
    assert got[0][0] == pytest.approx(0.1, abs=0.02) and got[0][1:] == [8.0, 8.0, 2.0]
    assert trace.series([], 0.1, LINK_BPS) == []
