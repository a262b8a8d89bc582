# Medians, worst runs, taxes by round, slopes.
# SPDX-License-Identifier: Apache-2.0
import pytest
from lab.figures import (
    ALWAYS,
    by_round,
    gbps,
    interval,
    interval_of_median,
    median,
    narrow,
    percentile,
    ratio,
    rounded,
    row,
    slope,
    spread,
    taxes,
)


def runs(*speeds, **more):
    return [{"goodput_gbps": speed, **more} for speed in speeds]


def test_a_row_has_the_setting_the_median_and_the_extremes():
    out = row({"lanes": 2}, runs(10.0, 30.0, 20.0))
    assert (out["lanes"], out["n"], out["goodput_gbps"]) == (2, 3, 20.0)
    assert (out["goodput_gbps_min"], out["goodput_gbps_max"]) == (10.0, 30.0)
    assert [each["goodput_gbps"] for each in out["runs"]] == [10.0, 30.0, 20.0]


def test_every_row_has_the_keys_that_readers_count_on():
    assert set(ALWAYS) <= set(row({}, runs(1.0)))
    assert set(ALWAYS) <= set(row({}, [{"error": "no"}]))


def test_of_loss_and_memory_the_worst_run_counts():
    samples = [{"goodput_gbps": 1.0, "loss": loss, "rss_mb": rss, "cpu_s_per_gb": cpu}
               for loss, rss, cpu in ((0.0, 5.0, 3.0), (0.0, 9.0, 1.0), (0.25, 4.0, 2.0))]  # fmt: skip
    out = row({}, samples)
    assert (out["loss"], out["rss_mb"], out["cpu_s_per_gb"]) == (0.25, 9.0, 2.0)


def test_a_failed_run_is_told_and_does_not_count():
    out = row({}, [*runs(4.0), {"error": "broke"}, *runs(6.0)])
    assert (out["n"], out["goodput_gbps"], out["errors"]) == (2, 5.0, ["broke"])
    assert "error" not in out


def test_a_row_of_which_every_run_failed_is_an_error():
    out = row({"peer": "x"}, [{"error": "not installed"}])
    assert (out["peer"], out["n"], out["error"], out["goodput_gbps"]) == ("x", 0, "not installed", None)


def test_what_was_not_measured_is_null():
    assert row({}, runs(1.0, cpu_s_per_gb=None))["cpu_s_per_gb"] is None


def test_tax_compares_runs_of_one_round():
    # The machine halves its speed in the second round; the tax does not notice.
    assert taxes(runs(9.0, 4.5, 9.0), runs(10.0, 5.0, 10.0)) == pytest.approx([0.1, 0.1, 0.1])


def test_rounds_without_both_runs_are_left_out():
    assert by_round([{"error": "x"}, *runs(8.0)], runs(5.0, 10.0), "goodput_gbps") == [0.8]
    assert by_round([{"error": "x"}], runs(5.0), "goodput_gbps") == []


def test_a_spread_has_the_median_and_both_extremes():
    assert spread("ratio", [0.5, None, 0.9, 0.6]) == {"ratio": 0.6, "ratio_low": 0.5, "ratio_high": 0.9}
    assert spread("ratio", []) == {"ratio": None, "ratio_low": None, "ratio_high": None}


@pytest.mark.parametrize("power", [0.5, 1.0, 1.02])
def test_slope_is_the_exponent(power):
    assert slope([(size, 3e-9 * size**power) for size in (1e6, 1e8, 1e10)]) == pytest.approx(power)


def test_slope_needs_two_sizes():
    assert slope([(1e6, 1.0)]) is None
    assert slope([(1e6, 1.0), (1e6, 2.0)]) is None


def test_numbers():
    assert median([]) is None and median([None, 3, 1]) == 2
    assert gbps(1_250_000_000, 1) == 10 and gbps(1, 0) is None
    assert ratio(None, 1) is None and ratio(1, None) is None and ratio(1, 4) == 0.25
    assert rounded(0.000123456789) == 0.000123457 and rounded(7) == 7 and rounded(None) is None


def test_a_percentile_lies_between_two_values_in_proportion():
    assert percentile([30.0, 10.0, 20.0], 0.5) == 20.0
    assert percentile([10.0, 20.0], 0.25) == 12.5
    assert [percentile([4.0], share) for share in (0, 0.9, 1)] == [4.0] * 3
    assert percentile([], 0.5) is None


def test_the_interval_of_a_median_is_that_of_order_statistics():
    # Of n values the k-th from either end, where 2 P(Binomial(n, 1/2) < k) <= 0.05: any table of the sign test has them.
    for n, k in ((6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (25, 8)):
        assert interval_of_median([float(value) for value in range(n, 0, -1)]) == (k, n + 1 - k), n
    assert interval_of_median([1.0] * 5) is None and interval_of_median([]) is None


def test_an_interval_of_few_runs_has_their_extremes_and_is_never_narrow():
    few = interval("r", [1.0, None, 1.01, 0.99])
    assert few == {"r": 1.0, "r_low": 0.99, "r_high": 1.01, "r_n": 3}
    assert not narrow(few, "r", 0.5)
    many = interval("r", [0.9, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0])
    assert (many["r_low"], many["r_high"], many["r_n"]) == (1.0, 1.0, 9)
    assert narrow(many, "r", 0.01)
    assert not narrow(interval("r", [0.8, 1.0, 1.0, 1.0, 1.0, 1.2]), "r", 0.1)
    assert interval("r", [])["r"] is None
