# What other programs print, and what the lab makes of it.
# SPDX-License-Identifier: Apache-2.0
import json
import stat

import pytest
from lab import probe
from lab.bench import Bench, Budget, bytes_for
from lab.errors import LabError
from lab.experiments import NAMES, crc, disk, load, pacing, peers, scaling
from lab.experiments.shapes import size_name
from lab.kept import Kept
from lab.nodes import wire_bytes
from lab.peers.ceilings import received
from lab.stopwatch import Finished, timed


def finished(stdout="", status=0, stderr=""):
    return Finished(status=status, wall_s=1.0, cpu_s=0.5, rss_bytes=1000, stdout=stdout, stderr=stderr)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A folder of programs in which probes print what they are told."""

    def make(name, text):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    for name in ("sluice", "sluice-control", "sluice-dataplane"):
        make(name, "exit 0")
    monkeypatch.setenv("SLUICE_BIN", str(tmp_path))
    return make


PLACE = probe.Place(["net_memif0", "net_memif1"], (0, 1), "no-huge")


def test_raw_takes_the_receivers_figures(programs):
    programs("sluice-raw", 'case "$*" in *"--role rx"*) echo noise; '
             'echo \'{"frames": 10, "bytes": 83000, "seconds": 1.0, "gbps": 99.5}\';; '
             '*) echo \'{"frames": 12, "bytes": 99600, "seconds": 1.0, "gbps": 120.0}\';; esac')  # fmt: skip
    figures = probe.raw(PLACE, 8300, 0.1)
    assert (figures["gbps"], figures["frames"]) == (99.5, 10)
    assert figures["cpu_s"] >= 0 and figures["rss_mb"] > 0


def test_the_highest_rate_held_is_below_the_first_that_was_not():
    rows = [{"target_gbps": rate, "rate_error": error} for rate, error in ((25, 0.02), (1, 0.001), (40, 0.001), (10, 0.005))]
    assert pacing.held_gbps(rows) == 10
    assert pacing.held_gbps(rows[:1]) is None


def test_pace_becomes_a_sample(programs):
    line = {"policy": "bucket", "rate_bps": 1e10, "achieved_bps": 9.99e9, "rate_error": -0.001, "gap_error_p50_ns": 1,
            "gap_error_p99_ns": 2, "gap_error_p999_ns": 3, "burst_p50": 1, "burst_max": 2, "frames": 1000,
            "first_pass": 0.999}  # fmt: skip
    programs("sluice-pace", f"echo '{json.dumps(line)}'")
    sample = pacing.pace_run(PLACE, {"policy": "bucket", "target_gbps": 10}, 0.1)
    assert sample["rate_error"] == 0.001 and sample["achieved_gbps"] == pytest.approx(9.99)
    assert sample["loss"] == pytest.approx(0.001) and sample["burst_max"] == 2


def test_a_probe_that_fails_is_named_with_its_reason(programs):
    programs("sluice-pace", "echo 'sluice-pace: no device' >&2; exit 13")
    with pytest.raises(LabError, match="exit 13: sluice-pace: no device"):
        probe.pace(PLACE, "bucket", 1e9, 8300, 0.1, 256)


def test_a_probe_that_is_not_built_is_named(programs):
    with pytest.raises(LabError, match="sluice-raw: not built"):
        probe.raw(PLACE, 8300, 0.1)


def test_fio_gives_both_directions_by_their_own_time():
    jobs = [{"jobname": "read", "error": 0, "read": {"io_bytes": 10**9, "runtime": 1000}},
            {"jobname": "write", "error": 0, "write": {"io_bytes": 10**9, "runtime": 2000}}]  # fmt: skip
    assert disk.fio_rates("a warning\n" + json.dumps({"jobs": jobs})) == (8.0, 4.0)
    jobs[1]["error"] = 28
    with pytest.raises(LabError, match="write: error 28"):
        disk.fio_rates(json.dumps({"jobs": jobs}))


def test_iperf3_tells_what_arrived():
    tcp = {"end": {"sum_received": {"bits_per_second": 2e10, "bytes": 5}, "sum_sent": {"retransmits": 7}}}
    got = received(finished(json.dumps(tcp)))
    assert (got["goodput_gbps"], got["retransmits"], got["loss"]) == (20.0, 7, None)
    udp = {"end": {"sum": {"bits_per_second": 3e10, "bytes": 5, "lost_percent": 2.0}}}
    assert received(finished(json.dumps(udp)))["loss"] == pytest.approx(0.02)
    for broken in (finished(json.dumps({"error": "refused"})), finished("", 1, "killed")):
        with pytest.raises(LabError):
            received(broken)


def test_wire_bytes_count_what_the_pacer_counts():
    # 14 Ethernet, 4 FCS, 20 preamble and gap, 20 IPv4, 8 UDP, 64 Sluice beside the payload.
    session = {"chunks": 2, "retransmits": 1, "bytes_sent": 1000, "chunk_bytes": 512, "parity": 0}
    assert wire_bytes(session) == 1000 + 512 + 3 * 138


def test_the_stopwatch_measures_a_command_and_ends_one_that_hangs():
    done = timed(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.status, done.stdout, done.stderr, done.timed_out) == (3, "out\n", "err\n", False)
    assert done.reason() == "out" and done.rss_bytes > 0
    hung = timed(["sleep", "1000"], timeout_s=0.01)
    assert hung.timed_out and hung.status == -9


def test_what_belongs_to_the_time_runs_within_it():
    called = []
    timed(["true"], after=lambda: called.append(1))
    assert called == [1]


def test_settings_take_turns_and_turn_round():
    order = []
    bench = Bench(repeats=2, say=lambda _text: None)
    settings = [{"x": 1}, {"x": 2}, {"x": 3}]

    def measure(setting):
        order.append(setting["x"])
        return {"goodput_gbps": float(setting["x"])}

    samples = bench.interleave(settings, measure)
    assert order == [1, 2, 3, 1, 2, 3, 3, 2, 1]
    assert [len(runs) for runs in samples] == [2, 2, 2]


def test_a_setting_that_fails_at_first_is_not_tried_again():
    calls = []

    def measure(setting):
        calls.append(setting["x"])
        if setting["x"] == 2:
            raise LabError("refused\nmore")
        return {"goodput_gbps": 1.0}

    bench = Bench(repeats=2, say=lambda _text: None)
    settings = [{"x": 1}, {"x": 2}]
    rows = bench.rows(settings, bench.interleave(settings, measure))
    assert calls.count(2) == 1 and rows[1]["error"] == "refused"
    with pytest.raises(LabError, match="refused"):
        bench.must_have_rows(rows[1:])


class _Clock:
    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


def _timed_bench(seconds, **more):
    """A bench whose time passes only while something is measured; the measuring; what it was asked for."""
    clock, asked = _Clock(), []

    def measure(setting):
        asked.append(setting["x"])
        clock.now_s += setting["s"]
        return {"goodput_gbps": 1.0}

    return Bench(say=lambda _text: None, budget=Budget(seconds, 0.1, clock), **more), measure, asked


_TWO = [{"x": 1, "s": 10}, {"x": 2, "s": 20}]


def test_rounds_go_on_until_there_are_enough():
    bench, measure, asked = _timed_bench(10_000)
    samples = bench.interleave(_TWO, measure, lambda _each: None, enough=lambda samples: len(samples[1]) == 7)
    assert [len(each) for each in samples] == [7, 7] and asked[:4] == [1, 2, 2, 1]


def test_rounds_end_before_the_time_does():
    bench, measure, asked = _timed_bench(75)
    samples = bench.interleave(_TWO, measure, lambda _each: None, enough=lambda _samples: False)
    assert [len(each) for each in samples] == [3, 2] and asked == [1, 2, 2, 1, 1]


def test_what_had_no_time_is_an_error_and_what_was_kept_is_a_result(tmp_path):
    bench, measure, asked = _timed_bench(5)
    samples = bench.interleave(_TWO, measure, lambda _each: None, enough=lambda _samples: False)
    assert asked == [1] and "--budget" in samples[1][0]["error"]
    kept = Kept(tmp_path / "x.kept", {}, False)
    for name in map(Bench.name_of, _TWO):
        kept.add(0, name, {"goodput_gbps": 2.0})
    bench, measure, asked = _timed_bench(0, kept=Kept(tmp_path / "x.kept", {}, True))
    samples = bench.interleave(_TWO, measure, enough=lambda _samples: False)
    assert samples == [[{"goodput_gbps": 2.0}]] * 2 and not asked


def test_a_run_with_a_budget_that_was_cut_off_goes_on_within_its_round(tmp_path):
    kept = Kept(tmp_path / "x.kept", {}, False)
    for number in (0, 1, 1):
        kept.add(0, Bench.name_of(_TWO[number]), {"goodput_gbps": 2.0})
    bench, measure, asked = _timed_bench(10_000, kept=Kept(tmp_path / "x.kept", {}, True))
    samples = bench.interleave(_TWO, measure, lambda _each: None, enough=lambda samples: len(samples[0]) >= 3)
    assert [len(each) for each in samples] == [3, 3] and asked == [1, 1, 2]


def test_only_takes_names_with_commas():
    bench = Bench(only=["rsync,scp storage=disk"])
    wanted = [cell for cell in ({"peer": "rsync", "storage": "disk"}, {"peer": "rsync", "storage": "tmpfs"},
                                {"peer": "socat", "storage": "disk"}, {"peer": "scp", "storage": "disk"})
              if not bench.left_out(cell)]  # fmt: skip
    assert [cell["peer"] for cell in wanted] == ["rsync", "scp"]


def test_only_settings_with_all_the_words_run():
    bench = Bench(repeats=2, only=["mode=a size=1", "size=3"], say=lambda _text: None)
    settings = [{"mode": "a", "size": 1}, {"mode": "b", "size": 1}, {"mode": "a", "size": 12}, {"mode": "b", "size": 3}]
    rows = bench.rows(settings, bench.interleave(settings, lambda _setting: {"goodput_gbps": 1.0}))
    assert ["error" in row for row in rows] == [False, True, True, False]
    assert "--only" in rows[1]["error"]


def test_bytes_for_a_time():
    assert bytes_for({"goodput_gbps": 8.0}, 1.0) == 953 << 20
    assert bytes_for({"goodput_gbps": 0.001}, 0.001) == 1 << 20


def test_sizes_in_words():
    assert [size_name(size) for size in (1, 10**7, 1 << 20, 64 << 30)] == ["1 B", "10 MB", "1 MiB", "64 GiB"]


def test_the_slope_leaves_out_what_is_noise():
    rows = [{"size_bytes": 1, "wall_s": 0.1, "runs": [{"wall_s": 0.1}, {"wall_s": 0.11}]}]
    rows += [{"size_bytes": size, "wall_s": 0.1 + size * 1e-9, "runs": [{"rss_mb": 5.0}]} for size in
             (10**6, 10**9, 2 * 10**9, 4 * 10**9)]  # fmt: skip
    rows[0]["runs"][0]["rss_mb"] = 4.0
    scaling._beyond_start(rows)
    assert [row["in_slope"] for row in rows] == [False, False, True, True, True]
    out = scaling.summary(rows)
    assert out["slope"] == pytest.approx(1.0, rel=1e-4) and out["rss_growth_mb"] == 1.0


def test_a_checksum_is_held_against_its_own_size_and_rate():
    """A machine that gets slower from round to round changes no tax."""
    costs = {"crc64": 0.8, "crc32c": 0.9, "read": 1.0, "none": 1.0, "nobody reads": 2.0}

    def runs(setting):
        speed = setting["chunk_size"] * setting.get("offered_gbps", 1) * costs[setting["crc"]]
        return [{"goodput_gbps": speed / slower} for slower in (1, 2, 4)]

    settings = crc.settings_of()
    taxes = crc.taxes_of(settings, [runs(setting) for setting in settings])
    for setting, tax in zip(settings, taxes):
        assert tax == pytest.approx([1 - costs[setting["crc"]]] * 3)
    out = crc.summary(settings, taxes)
    assert (out["tax_900_at_10g"], out["tax_2400_at_40g"], out["tax_8192_read_high"]) == pytest.approx((0.2, 0.2, 0.2))


def test_the_summary_of_peers_takes_the_best_of_each():
    def peer(name, place, speed, control=None):
        return {"peer": name, "storage": place, "congestion_control": control, "goodput_gbps": speed,
                "cpu_s_per_gb": 1 / speed if speed else None, "session_gbps": speed,
                "runs": [{"goodput_gbps": speed * share} for share in (1.0, 0.5, 2.0)] if speed else []}  # fmt: skip

    rows = [peer("sluice-memif", "tmpfs", 30.0), peer("sluice-af-packet", "tmpfs", 6.0), peer("scp", "tmpfs", None),
            peer("sluice-memif-clear", "tmpfs", 50.0),
            peer("gridftp", "tmpfs", 10.0, "bbr"), peer("gridftp", "tmpfs", 20.0, "cubic"),
            peer("sluice-memif", "disk", 8.0), peer("rsync", "disk", 4.0, "cubic"),
            peer("sluice-memif", "tmpfs-new", 9.0), peer("socat", "tmpfs-new", 10.0, "cubic"),
            peer("iperf3-tcp", "none", 19.0, "bbr"), peer("iperf3-tcp", "none", 25.0, "cubic")]  # fmt: skip
    out = peers.summary(rows, disk=True)
    assert (out["sluice_gbps"], out["best_file_peer"], out["ratio"]) == (30.0, "gridftp", 1.5)
    assert (out["ratio_low"], out["ratio_high"], out["sluice_session_gbps"]) == (1.5, 1.5, 30.0)
    assert (out["iperf3_tcp_gbps"], out["best_file_peer_cpu_s_per_gb"]) == (25.0, 0.05)
    assert (out["disk_best_file_peer"], out["disk_ratio"]) == ("rsync", 2.0)
    assert (out["new_best_file_peer"], out["new_ratio"]) == ("socat", 0.9)
    assert "disk_ratio" not in peers.summary(rows, disk=False)


def test_every_experiment_has_what_the_lab_asks_of_it():
    for name in NAMES:
        experiment = load(name)
        assert experiment.HELP and isinstance(experiment.REAL, bool)
        assert callable(experiment.run) and callable(experiment.plots)
