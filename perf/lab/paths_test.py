# What the experiments on paths make of their rows and of what other programs print.
# SPDX-License-Identifier: Apache-2.0
import math
import random

import pytest
from lab import channels, tornado_code
from lab.emulated import goodput_limit_bps, loss_settings, path_settings, queue_for
from lab.experiments import fairness, fec, hipster, path, stall, steps, tcp, tornado, verdict
from lab.tcp_flows import intervals, mean_bps


def test_a_path_is_half_of_the_rtt_each_way_and_loses_only_data():
    there, back = path_settings(1e9, 20, loss=0.01, queue_bytes=5)
    assert there["delay"] == back["delay"] == {"fixed_us": 10_000, "keep_order": True}
    assert there["loss"]["probability"] == 0.01 and back["loss"]["probability"] == 0
    assert there["rate"] == {"bits_per_s": 10**9, "queue_bytes": 5, "overhead_bytes": 24}
    assert "rate" not in back


def test_losses_in_a_row_are_as_many_as_single_ones():
    assert loss_settings(0.01, 1) == {"probability": 0.01}
    burst = loss_settings(0.01, 8)["burst"]
    assert burst["r"] == 1 / 8 and burst["p"] / (burst["p"] + burst["r"]) == pytest.approx(0.01)


def test_a_code_is_judged_by_the_best_of_its_cell():
    def row(code, wall_s, loss=1.0):
        return {"fec": code, "wall_s": wall_s, "rtt_ms": 200, "loss_percent": loss, "in_a_row": 1, "size_mb": 10}

    rows = [row("off", 2.0), row("rs", 1.0), row("raptorq", 1.6), row("auto", 1.25), row("off", 1.0, 0.0), row("auto", 1.25, 0.0)]
    fec.compare(rows)
    assert [each["of_best"] for each in rows] == [0.5, 1.25, 0.625, 0.8, 1.25, 0.8]
    assert fec.summary(rows) == {"no_loss": 0.8, "auto_worst": 0.8, "last_byte_200ms_1pct": 0.625, "last_byte_200ms_1pct_best": 0.5}


def test_tornado_is_compared_with_the_faster_scp():
    def row(what, wall_s, loss=2.0):
        return {"figure": 1, "what": what, "wall_s": wall_s, "loss_percent": loss, "size_mb": 10}

    rows = [row("fec-auto", 8.0), row("fec-rs", 6.0), row("scp-cubic", 16.0), row("scp-bbr", 12.0), row("fec-auto", 7.0, 0.0)]
    out = tornado.summary(rows)
    assert (out["ratio_scp_2"], out["auto_of_best_2"], out["ratio_scp_0"], out["seconds_0"]) == (1.5, 0.75, None, 7.0)


def test_the_hypothesis_holds_if_parts_are_regular_and_one_encoder_is_not():
    def rows(one, parts):
        return [{"figure": "hypothesis", "way": way, "size_mb": size, "cpu_s": cpu_s} for way, all_s in
                (("one encoder", one), ("fixed parts", parts)) for size, cpu_s in zip((10, 11, 12), all_s)]  # fmt: skip

    out = tornado_code.summary(rows((2.0, 1.5, 2.6), (1.0, 1.12, 1.21)))
    assert (out["hypothesis"], out["inversions_one"], out["inversions_parts"]) == ("confirmed", 1, 0)
    assert out["spread_parts"] == pytest.approx((1.12 / 11 - 0.1) / (1.21 / 12), rel=1e-3)
    assert tornado_code.summary(rows((2.0, 2.1, 2.6), (1.0, 1.1, 1.2)))["hypothesis"] == "refuted", "one encoder is regular as well"
    assert tornado_code.summary(rows((2.0, 1.5, 2.6), (1.0, 1.3, 1.2)))["hypothesis"] == "refuted", "parts are not"
    assert tornado_code.summary([])["hypothesis"] is None


def test_mistakes_cost_what_all_of_them_add():
    times = [{"figure": "mistakes", "mistakes": mistake, "wall_s": 7.0 + 0.1 * number, "size_mb": 10}
             for number, mistake in enumerate(tornado_code.MISTAKES)]  # fmt: skip
    assert tornado_code.summary(times)["mistakes_s"] == pytest.approx(0.6)


def test_a_queue_is_one_bdp_and_not_less_than_10_ms():
    assert queue_for(1e9, 100) == pytest.approx(12.5e6)
    assert queue_for(1e9, 0) == pytest.approx(1.25e6)


def test_headers_are_not_held_against_the_link():
    assert goodput_limit_bps(8322, 8192, 106) == 8192


def test_path_has_every_cell_and_the_fast_ones_as_fast_as_the_emulator():
    cells = path.cells(False, 5.0)
    assert len([each for each in cells if each["link"] == "1G"]) == 25
    assert {each["capacity_gbps"] for each in cells if each["link"] == "10G"} == {4.0}
    assert {each["capacity_gbps"] for each in path.cells(False, 50.0) if each["link"] == "10G"} == {10.0}


def test_a_cell_that_failed_leaves_no_worst_fraction():
    def row(rtt, loss, fraction, to_95=None):
        return {"link": "1G", "rtt_ms": rtt, "loss_percent": loss, "fraction": fraction, "time_to_95_s": to_95, "queue_ms": 2.0}

    rows = [row(20, 0.0, 0.97, 0.4), row(200, 0.0, 0.9, 3.0), row(20, 1.0, 0.99, 9.0)]
    out = path.summary(rows)
    assert (out["worst_fraction"], out["time_to_95_s_20ms"], out["time_to_95_s_200ms"]) == (0.9, 0.4, 3.0)
    assert path.summary([*rows, row(0, 0.0, None)])["worst_fraction"] is None


def test_the_worst_start_is_that_of_all_cells():
    cells = [{"least": 0.8, "bad": 0, "starts": 1000}, {"least": 0.4, "bad": 2, "starts": 1000}]
    assert path.summary_of_starts(cells) == {"worst_start": 0.4, "bad_starts": 2, "starts": 2000}


def test_a_step_that_was_not_settled_counts_as_the_time_given():
    def row(rtt, down, up):
        return {"case": "capacity", "rtt_ms": rtt, "n": 1, "rtts_down": down, "rtts_up": up, "rtts_given": 150}

    assert steps.summary([row(20, 3.0, 9.0), row(100, 4.0, 5.0)])["rtts_to_settle_worst"] == 9.0
    out = steps.summary([row(20, 3.0, None)])
    assert out["rtts_to_settle_worst"] == out["rtts_to_settle_20ms"] == 150


def test_what_tcp_keeps_is_compared_within_a_round():
    alone = {"case": "alone", "mode": None, "congestion_control": "cubic", "tcp_flows": 1, "buffer_ms": 20}
    other = {**alone, "buffer_ms": 1.0}
    versus = {**alone, "case": "versus", "mode": "adaptive"}
    samples = [[{"tcp_mbps": 100.0}, {"tcp_mbps": 10.0}], [{"tcp_mbps": 1.0}] * 2, [{"tcp_mbps": 80.0}, {"tcp_mbps": 8.0}]]
    rows = [dict(alone), dict(other), {**versus, "sluice_share": 0.4, "tcp_share": 1.6}]
    fairness.keep([alone, other, versus], samples, rows)
    assert rows[2]["tcp_kept"] == pytest.approx(0.8)
    assert fairness.summary(rows)["cubic_kept_1bdp"] == pytest.approx(0.8)
    assert fairness.summary(rows)["shallow_share"] is None


def test_the_shallow_share_is_that_of_whoever_gets_less():
    row = {"case": "versus", "mode": "adaptive", "congestion_control": "cubic", "tcp_flows": 1, "buffer_ms": 1.0}
    assert fairness.summary([{**row, "sluice_share": 1.9, "tcp_share": 0.1}])["shallow_share"] == 0.1


def test_fairness_runs_tcp_alone_for_whatever_it_runs_beside():
    for quick in (True, False):
        cells = fairness.cells(quick, 1e8)
        for versus in (each for each in cells if each["case"] == "versus"):
            assert any(each["case"] == "alone" and fairness._same_tcp(each, versus) for each in cells)


def test_iperf3_tells_of_its_intervals():
    report = {"intervals": [{"sum": {"start": 0, "end": 0.5, "bits_per_second": 10.0}},
                            {"sum": {"start": 0.5, "end": 1.0, "bits_per_second": 30.0}}]}  # fmt: skip
    got = intervals(report)
    assert got == [(0, 0.5, 10.0), (0.5, 1.0, 30.0)]
    assert mean_bps(got, 0, 1.0) == 20.0 and mean_bps(got, 0.4, 1.0) == 30.0 and mean_bps(got, 0.9, 1.0) is None


# ---- HIPSTER ------------------------------------------------------------------------------------


def test_the_laws_of_the_channel():
    assert channels.drop_law(1024) == pytest.approx(1 - math.exp(-1))
    assert channels.delay_law_ms(1012) == pytest.approx(147.98, abs=0.01)


def test_kolmogorov_knows_an_exponential_from_a_uniform():
    chance = random.Random(1)
    good = [chance.expovariate(1 / 100) for _ in range(2000)]
    bad = [chance.uniform(0, 200) for _ in range(2000)]
    assert channels.kolmogorov(good, 100) * math.sqrt(2000) < 1.63
    assert channels.kolmogorov(bad, 100) * math.sqrt(2000) > 3


def test_a_length_that_never_arrived_is_a_row():
    got = channels.law(1012, 10, [])
    assert (got["dropped"], got["delay_ms"], got["distance"]) == (1.0, None, None)


def test_halves_are_of_bytes():
    assert hipster.half_ratio([(0, 0), (1, 50), (2, 100)]) == pytest.approx(1)
    assert hipster.half_ratio([(0, 0), (1, 50), (5, 100)]) == pytest.approx(0.25)
    assert hipster.half_ratio([(0, 0)]) is None


def test_a_size_that_failed_is_the_worst_ratio():
    rows = [{"what": "sluice", "unit": "MB", "size_mb": 500, "mb_s": 40.0, "ratio": 4.9, "half_ratio": 0.8},
            {"what": "sluice", "unit": "MB", "size_mb": 1, "error": "x"},
            {"what": "sluice-fec", "unit": "MB", "size_mb": 500, "mb_s": 60.0, "channel": "sluice-wire"},
            {"what": "sluice-fec", "unit": "MB", "size_mb": 500, "mb_s": 30.0, "channel": "sluice-channel"}]  # fmt: skip
    laws = {"sluice-wire": [channels.law(1012, 10, [0.1] * 4)]}
    out = hipster.summary(rows, laws)
    assert (out["mb_s_500"], out["ratio_worst"], out["half_ratio_worst"]) == (40.0, 0.0, 0.8)
    assert out["mb_s_500_fec"] == 60.0, "of the channel that is offered 2 Gbit/s"


# ---- disks, tools -------------------------------------------------------------------------------


def test_drops_are_those_of_the_worst_run():
    rows = [{"case": "slow", "disk_share": 0.9, "runs": [{"no_buffer_drops": 0}, {"no_buffer_drops": 3}, {"error": "x"}]}]
    assert stall.summary(rows) == {"no_buffer_drops": 3, "disk_share": 0.9, "failed": 1}


def test_the_verdict_is_judged_by_all_runs_that_came_to_their_end():
    rows = [{"runs": [{"named": 1.0}, {"named": 0.0}]}, {"runs": [{"error": "no room"}, {"named": 1.0}]}]
    assert verdict.summary(rows) == {"named": 0.666667, "failed": 1}
    assert verdict.figures([{"bottleneck": {"cause": cause, "share": 0.5, "evidence": ["a", "b"]}, "goodput_bps": 1e9}
                            for cause in ("limit", "none")], "limit")["named"] == 0.0  # fmt: skip


def test_the_ratio_to_scp_is_that_with_cubic_on_the_path_asked_for():
    def row(peer, mbps, control=None, loss=1.0):
        return {"peer": peer, "congestion_control": control, "loss_percent": loss, "rtt_ms": 100,
                "goodput_gbps": mbps / 1e3 if mbps else None}  # fmt: skip

    rows = [row("sluice", 50.0), row("sluice-long", 90.0), row("scp", 2.0, "cubic"), row("scp", 25.0, "bbr"),
            row("scp", 80.0, "cubic", loss=0.0), row("rsync", None, "cubic")]  # fmt: skip
    out = tcp.summary(rows)
    assert (out["ratio_scp_1pct_100ms"], out["ratio_rsync_1pct_100ms"], out["ratio_best_1pct_100ms"]) == (25.0, None, 2.0)
    assert (out["sluice_mbps"], out["sluice_long_mbps"]) == (50.0, 90.0)
