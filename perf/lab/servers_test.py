# What `servers` makes of its samples, without any node.
# SPDX-License-Identifier: Apache-2.0
import pytest
from lab.experiments import servers
from lab.figures import row

_RATES = {"alpha": 0.030, "beta": 0.037, "gamma": 0.043}


def sample(goodput_gbps, **more):
    return {"goodput_gbps": goodput_gbps, "session_gbps": goodput_gbps * 1.1, "duplicates": 0, "twice": 0.0, **more}


def cells(path=servers.TABLE_1, size_mb=256, of_all=(0.099, 0.099), slower=1.0):
    """The rows and samples of one path and size; the second round of the single sources is `slower`."""
    settings = servers.settings_of(path, [size_mb])
    samples = [[sample(rate), sample(rate * slower)] for rate in _RATES.values()] + [[sample(each) for each in of_all]]
    return [row(setting, runs) for setting, runs in zip(settings, samples)], samples


def judged(*parts):
    rows = [each for part in parts for each in part[0]]
    samples = [each for part in parts for each in part[1]]
    return servers.judge(rows, samples)


def event(path, wall_s, event_s, event_bytes):
    setting = servers.settings_of(path, [256])
    runs = [sample(256 * 8 / wall_s / 1e3, wall_s=wall_s, event_s=event_s, event_bytes=event_bytes)]
    return [row(setting[0], runs)], [runs]


def test_each_size_has_the_sources_alone_and_all_but_events_have_all_only():
    assert [each["sources"] for each in servers.settings_of(servers.MIXED, [1])] == ["alpha", "beta", "gamma", "all"]
    assert [each["sources"] for each in servers.settings_of(servers.KILLED, [256])] == ["all"]


def test_all_are_compared_with_the_sum_and_the_best_of_the_same_round():
    # In the second round the machine halves the speed of all.
    out = judged(cells(of_all=(0.099, 0.0495), slower=0.5))[-1]
    assert (out["of_sum"], out["of_sum_low"], out["of_sum_high"]) == pytest.approx((0.9, 0.9, 0.9))
    assert out["of_best_single"] == pytest.approx(0.099 / 0.043, rel=1e-5)
    assert out["of_sum_session"] == pytest.approx(0.9)


def test_the_way_to_the_first_byte_is_told_in_round_trips():
    settings = servers.settings_of(servers.FIRST, [1])
    samples = [[{"first_byte_s": each, "first_byte_rtts": each / 0.2} for each in (0.64, 0.62, 0.7)] for _ in settings]
    rows = servers.judge([row(setting, runs) for setting, runs in zip(settings, samples)], samples)
    said = servers.summary(rows)
    assert said["first_byte_rtts_send"] == said["first_byte_rtts_order"] == pytest.approx(3.2)


def test_a_round_in_which_one_failed_is_not_compared():
    rows, samples = cells(of_all=(0.099, 0.055))
    samples[0][0] = {"error": "broke"}
    out = servers.judge(rows, samples)[-1]
    assert out["of_sum"] == out["of_sum_low"] == pytest.approx(0.5)


def test_a_source_that_never_worked_leaves_no_comparison():
    rows, samples = cells()
    samples[1] = [{"error": "broke"}] * 2
    assert servers.judge(rows, samples)[-1]["of_sum"] is None


def test_what_follows_an_event_is_compared_with_what_the_rest_would_need():
    # 146 MB are left after 9 s: of alpha and beta 17.43 s, with a tenth of gamma 16.37 s.
    dead_s, slow_s = 146 * 8 / 67, 146 * 8 / 71.3
    out = judged(cells(), event(servers.KILLED, 9 + dead_s * 1.1, 9, 110_000_000), event(servers.SLOWED, 9 + slow_s, 9, 110_000_000))
    killed, slowed = out[-2:]
    assert killed["over_rest"] == pytest.approx((9 + dead_s * 1.1) / (9 + dead_s), rel=1e-5)
    assert killed["after_over_rest"] == pytest.approx(1.1)
    assert slowed["over_rest"] == slowed["after_over_rest"] == pytest.approx(1.0)


def test_who_is_cut_off_brings_nothing_more():
    out = judged(cells(), event(servers.CUT, 9 + 146 * 8 / 67, 9, 110_000_000))
    assert out[-1]["over_rest"] == pytest.approx(1.0) and servers.summary(out)["cut"] == pytest.approx(1.0)


def test_an_event_without_the_rates_alone_has_no_figure():
    out = judged(event(servers.KILLED, 30.0, 9.0, 110_000_000))
    assert out[0]["over_rest"] is None and servers.summary(out)["killed"] is None


def test_the_summary_has_the_bars_and_names_the_worst():
    out = judged(cells(size_mb=1, of_all=(0.042, 0.042)), cells(), cells(path=servers.MIXED, size_mb=4, of_all=(0.0387, 0.0387)))
    told = servers.summary(out)
    assert told["of_sum"] == pytest.approx(0.9) and told["size_mb"] == 256
    assert told["worst_of_best_single"] == pytest.approx(0.9)
    assert told["worst_of_best_single_at"] == "mixed 4 MB"
    assert told["goodput_mbps"] == pytest.approx(99)
    assert told["killed"] is None and told["failed"] == 0


def test_what_was_left_out_has_not_failed():
    out = [row({"path": servers.TABLE_1, "sources": "all", "size_mb": 1}, [{"error": "left out: x"}]),
           row({"path": servers.TABLE_1, "sources": "all", "size_mb": 4}, [{"error": "exit 14"}])]  # fmt: skip
    assert servers.summary(servers.judge(out, [each["runs"] for each in out]))["failed"] == 1


def test_quick_runs_have_the_same_paths():
    assert set(servers.sizes(True)) == set(servers.sizes(False))
