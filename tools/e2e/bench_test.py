# sluice bench between two nodes: what it says it measured has arrived, and nothing of it stays.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import signal

import pytest
from harness import wait_until
from harness.system import random_file
from transfers import CANCELLED, MIB, USAGE, temporary_files


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30)


def benched(pair, *options):
    result = pair.a.sluice("bench", "b", "--json", "--rate", "400M", *options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def counted(report, suffix=""):
    """The whole, which the intervals must add up to."""
    whole = report["end"]["sum_received" + suffix]
    parts = [each["sum" + suffix] for each in report["intervals"] if "sum" + suffix in each]
    assert sum(each["bytes"] for each in parts if not each["omitted"]) == whole["bytes"] > 0
    assert [each["start"] for each in parts[1:]] == [each["end"] for each in parts[:-1]]
    assert 0 < whole["bits_per_second"] < 440e6
    return whole


@pytest.mark.parametrize("reverse", [[], ["-R"]])
def test_memory_to_memory(pair, reverse):
    report = benched(pair, "-t", "1.5", "-i", "0.5", *reverse)
    whole = counted(report)
    assert whole["seconds"] >= 1.5 and whole["sender"] == (not reverse)
    assert 1 <= len(report["intervals"]) <= whole["seconds"] / 0.5 + 1  # a command that was stopped looks less often
    session = json.loads(pair.a.sluice("session", "show", "--json", report["end"]["session"]).stdout)
    assert session["state"] == "cancelled" and session["direction"] == ("get" if reverse else "send")
    assert report["end"]["limited_by"]["cause"]
    assert ("pacing" in report["end"]) == (not reverse)  # the node that sends knows what left
    if not reverse:
        pacing = report["end"]["pacing"]
        assert pacing["asked_gbps"] == 0.4 and pacing["held_gbps"] in (0.4, None)
        assert 0 < pacing["achieved_gbps"] < 0.44


def test_both_ways_at_once(pair):
    report = benched(pair, "-t", "1", "--bidir")
    assert counted(report)["sender"] and not counted(report, "_bidir_reverse")["sender"]


def test_so_many_bytes_and_no_more(pair):
    assert counted(benched(pair, "-n", "20M"))["bytes"] == 20 * MIB


def test_the_start_does_not_count(pair):
    report = benched(pair, "-t", "0.5", "-O", "0.5", "-i", "0.25")
    assert any(each["sum"]["omitted"] for each in report["intervals"])
    assert counted(report)["start"] >= 0.5


@pytest.mark.parametrize("reverse", [[], ["-R"]])
def test_into_a_file_of_which_nothing_stays(pair, reverse):
    there = pair.a if reverse else pair.b
    (there.export() / "scratch").mkdir()
    place = there.export() / "scratch" if reverse else "data/scratch"
    assert counted(benched(pair, "--to", place, "-n", "30M", *reverse))["bytes"] >= 30 * MIB
    # A peer clears up when it has heard of the end.
    wait_until(lambda: not os.listdir(there.export() / "scratch"), 10, "nothing of it is left")
    assert not list(temporary_files(there))
    (there.export() / "scratch").rmdir()


@pytest.mark.parametrize("reverse", [[], ["-R"]])
def test_from_a_file(pair, reverse):
    source = random_file((pair.b if reverse else pair.a).export() / "bench.bin", 20 * MIB)
    path = "data/bench.bin" if reverse else source
    assert counted(benched(pair, "--from", path, *reverse))["bytes"] == 20 * MIB
    source.unlink()


def test_lines_for_people_and_an_end_by_hand(pair):
    process = pair.a.popen("bench", "b", "-t", "3600", "-i", "0.2", "--rate", "100M")
    moves = lambda each: each["state"] == "transferring" and each["bytes_done"] > 0  # noqa: E731
    wait_until(lambda: any(moves(each) for each in pair.a.sessions()), 30, "it moves")
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == CANCELLED, err
    assert "limited by" in out and "cancel" in err


def test_what_cannot_be_is_refused(pair):
    assert pair.a.sluice("bench", "b:data").returncode == USAGE
    result = pair.a.sluice("bench", "nobody", "-t", "1")
    assert result.returncode != 0 and "nobody" in result.stderr
    result = pair.a.sluice("bench", "b", "--to", "elsewhere", "-t", "1")
    assert result.returncode != 0 and "elsewhere" in result.stderr and not list(temporary_files(pair.b))
