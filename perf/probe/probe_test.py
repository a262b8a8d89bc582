# The two probes as the lab runs them, over memif: what they print, and how they refuse.
#
# No figure is asserted: the machine may be doing anything else meanwhile.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import subprocess

import pytest

BIN = pathlib.Path(os.environ.get("SLUICE_BIN") or pathlib.Path(__file__).parents[2] / "build/release/bin")
CORES = sorted(os.sched_getaffinity(0))
FRAME_BYTES = 9000
SECONDS = 0.5
DEADLINE_S = 60
USAGE, CONFIGURATION, PEER_UNREACHABLE, DEVICE = 2, 3, 6, 13

pytestmark = pytest.mark.skipif(
    not all(os.access(BIN / name, os.X_OK) for name in ("sluice-raw", "sluice-pace")),
    reason=f"{BIN}: sluice-raw and sluice-pace are not built; run ./dev build",
)


def memif(folder, role):
    return f"net_memif0,role={role},socket-abstract=no,socket={folder}/p.sock"


def command(program, *arguments):
    common = ["--frame-bytes", FRAME_BYTES, "--seconds", SECONDS, "--memory", "no-huge"]
    return [str(word) for word in (BIN / program, *arguments, *common)]


def raw(folder, role, core):
    end = memif(folder, "server" if role == "rx" else "client")
    return command("sluice-raw", "--role", role, "--port", end, "--core", core, "--json")


def pace(folder, policy, *more):
    return command("sluice-pace", "--policy", policy, "--rate-bps", 1_000_000_000,
                   "--port-tx", memif(folder, "client"), "--port-rx", memif(folder, "server"),
                   "--cores", f"{CORES[0]},{CORES[-1]}", *more)  # fmt: skip


def run(words):
    return subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def refused(words, code, *fragments):
    result = run(words)
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    for fragment in fragments:
        assert fragment in result.stderr


def test_raw_counts_every_frame(tmp_path):
    with subprocess.Popen(raw(tmp_path, "rx", CORES[-1]), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as receiver:  # fmt: skip
        sender = run(raw(tmp_path, "tx", CORES[0]))
        out, err = receiver.communicate(timeout=DEADLINE_S)
    assert sender.returncode == 0, sender.stderr
    assert receiver.returncode == 0, err
    sent, received = json.loads(sender.stdout), json.loads(out)
    assert set(sent) == set(received) == {"frames", "bytes", "seconds", "gbps"}
    assert 0 < received["frames"] <= sent["frames"]
    assert received["bytes"] == received["frames"] * FRAME_BYTES


@pytest.mark.parametrize("policy", ["unpaced", "slot-1s", "slot-1ms", "history", "bucket"])
def test_pace_reports_each_policy(tmp_path, policy):
    result = run(pace(tmp_path, policy, "--json"))
    assert result.returncode == 0, result.stderr
    row = json.loads(result.stdout)
    assert {"policy", "rate_bps", "achieved_bps", "rate_error", "gap_error_p50_ns", "gap_error_p99_ns",
            "gap_error_p999_ns", "burst_p50", "burst_max", "frames", "first_pass"} <= set(row)  # fmt: skip
    assert (row["policy"], row["rate_bps"]) == (policy, 1_000_000_000)
    # memif loses nothing.
    assert 0 < row["frames"] == row["received"]
    assert 0 < row["first_pass"] <= 1
    assert 1 <= row["burst_p50"] <= row["burst_max"] <= row["frames"]


def test_the_last_line_is_json_without_the_option_too(tmp_path):
    result = run(pace(tmp_path, "bucket"))
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == 2
    assert json.loads(lines[-1])["policy"] == "bucket"


@pytest.mark.parametrize("program", ["sluice-raw", "sluice-pace"])
def test_help_names_the_options(program):
    result = run([str(BIN / program), "--help"])
    assert result.returncode == 0
    for option in ("--frame-bytes", "--seconds", "--memory", "--memory-mib", "--json"):
        assert option in result.stdout


def test_wrong_use_is_refused(tmp_path):
    refused(pace(tmp_path, "hourly"), USAGE, "hourly")
    refused([str(BIN / "sluice-raw")], USAGE, "--role")
    refused(raw(tmp_path, "rx", CORES[0]) + ["--mtu", "1500"], USAGE, "--frame-bytes 9000", "raise --mtu")
    refused(raw(tmp_path, "rx", CORES[0]) + ["--memory-mib", "16"], CONFIGURATION, "needed")
    many = pace(tmp_path, "history")
    many[many.index("--rate-bps") + 1] = "400000000000"
    many[many.index("--frame-bytes") + 1] = "64"
    refused(many, USAGE, "history", "lower rate")


def test_missing_things_are_named(tmp_path):
    refused(raw(tmp_path / "none", "rx", CORES[0]), CONFIGURATION, "none")
    refused(raw(tmp_path, "rx", CORES[0]) + ["--wait-seconds", "0.2"], PEER_UNREACHABLE, "no peer within 0.2 s")
    refused(raw(tmp_path, "rx", 4095), DEVICE, "4095")


def test_a_receiver_that_cannot_start_ends_the_sender(tmp_path):
    words = pace(tmp_path, "bucket")
    words[words.index("--port-rx") + 1] = memif(tmp_path / "none", "server")
    refused(words, CONFIGURATION, "none")
