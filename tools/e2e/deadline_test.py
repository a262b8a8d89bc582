# Deadlines: kept, refused for the cap, for what is queued, and once the path was measured.
# SPDX-License-Identifier: Apache-2.0
import re

import pytest
from deadlines import PATH_MBIT, narrow, narrow_pair, nothing_known, wait_deadline
from harness import wait_until
from transfers import DEADLINE, MIB, USAGE, begin, ended_session, forget, make_file, refused, wait_state


@pytest.fixture(scope="module")
def pair(make_pair):
    return narrow_pair(make_pair)


@pytest.fixture(autouse=True)
def nothing_left(pair):
    with nothing_known(pair):
        yield


def test_a_deadline_that_is_kept_is_a_success(pair):
    source = make_file(pair.a, 4 * MIB + 1)
    status, reply, error = pair.a.json("send", source, "b:data/", "--deadline", "1h")
    assert (status, reply["state"], reply["deadline_state"], reply["late_s"]) == (0, "succeeded", "kept", 0), error
    forget(source, pair.b.export() / source.name)


@pytest.mark.parametrize("way", ["send", "get"])
def test_a_cap_that_rules_it_out_is_told_before_a_byte_moves(pair, way):
    size = 64 * MIB
    arguments = (f"memory:{size}", "b:null:") if way == "send" else (f"b:memory:{size}", "null:")
    result = pair.a.sluice(way, *arguments, "--deadline", "30s", "--rate", "10M")
    line = refused(result, DEADLINE, "--rate", "9.8", size)
    assert re.search(r"; \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ could be: ", line), line
    if way == "get":
        assert pair.a.sessions()[-1]["bytes_done"] == 0


def test_a_path_that_is_too_slow_is_measured_and_the_session_ends_then(pair):
    narrow(pair, PATH_MBIT)
    session = begin(pair.a, "send", f"memory:{2000 * MIB}", "b:null:", "--deadline", "3m")
    assert wait_deadline(pair.a, session, "measuring", "missed")["deadline_unix_ns"] > 0
    end = ended_session(pair.a, session)
    assert (end["error_name"], end["deadline_state"]) == ("deadline", "missed"), end["error"]
    assert "the path was measured to carry" in end["error"]
    measured = float(re.search(r"to carry ([0-9.]+) Mbit/s", end["error"]).group(1))
    assert PATH_MBIT * 0.6 < measured < PATH_MBIT * 1.1, end["error"]
    assert end["bytes_done"] < 200 * MIB
    assert ended_session(pair.b, session)["error_name"] == "deadline"
    # Now the node knows the path: the same is refused at once, and what is offered is accepted.
    line = refused(pair.a.sluice("send", f"memory:{2000 * MIB}", "b:null:", "--deadline", "3m"), DEADLINE,
                   "the path was measured")  # fmt: skip
    offered = re.search(r"(\S+Z) could be", line).group(1)
    session = begin(pair.a, "send", f"memory:{2000 * MIB}", "b:null:", "--deadline", offered)
    assert wait_deadline(pair.a, session, "admitted")["deadline_chance_percent"] >= 50


def test_what_is_queued_counts(pair):
    narrow(pair, PATH_MBIT)
    session = begin(pair.a, "send", f"memory:{200 * MIB}", "b:null:", "--deadline", "10m")
    wait_deadline(pair.a, session, "admitted")
    pair.a.must("session", "cancel", session)
    ended_session(pair.a, session)
    small = ("send", f"memory:{20 * MIB}", "b:null:", "--deadline", "30s")
    first = begin(pair.a, "send", f"memory:{400 * MIB}", "b:null:")
    begin(pair.a, "send", f"memory:{400 * MIB}", "b:null:")
    wait_state(pair.a, first, "transferring")
    wait_until(lambda: pair.a.sessions()[-1]["state"] == "queued", 30, "the second waits")
    refused(pair.a.sluice(*small), DEADLINE, "sessions that run or come first")
    begin(pair.a, *small, "--deadline-policy", "warn")


def test_what_is_no_time_is_an_error_of_the_command(pair):
    refused(pair.a.sluice("send", "memory:1M", "b:null:", "--deadline", "soon"), USAGE, "--deadline", "soon", "2h30m")
