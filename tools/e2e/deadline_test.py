# Deadlines: kept, refused for the cap, for what is queued, and once the path was measured; late; over restarts.
# SPDX-License-Identifier: Apache-2.0
import re

import pytest
from harness import EmulatedWire, wait_until
from transfers import (DEADLINE, LATE, MIB, USAGE, begin, cancel_all, ended_session, forget, make_file, refused,
                       wait_state)  # fmt: skip

SESSIONS_MAX = 2
PATH_MBIT = 40
QUEUE_BYTES = 1 << 18


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(wire=EmulatedWire(rate="1G"), bytes_needed=1 << 29,
                     settings={"control": {"sessions_max": SESSIONS_MAX}})  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_left(pair):
    """What a node measured is gone with its control: each test begins with nodes that know nothing."""
    yield
    pair.wire.clear()
    cancel_all(pair)
    pair.a.control.stop()
    pair.a.start_control()


def narrow(pair, mbit):
    pair.wire.set("both", rate={"bits_per_s": mbit * 1_000_000, "queue_bytes": QUEUE_BYTES if mbit else 0})


def shown(node, session):
    status, reply, error = node.json("session", "show", session)
    assert status == 0, error
    return reply


def wait_deadline(node, session, *states):
    return wait_until(lambda: (one := shown(node, session))["deadline_state"] in states and one, 60,
                      f"the deadline of {session} is {states}")  # fmt: skip


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


def test_an_admitted_deadline_survives_a_restart_and_says_when_it_is_late(pair):
    narrow(pair, PATH_MBIT)
    session = begin(pair.a, "send", f"memory:{100 * MIB}", "b:null:", "--deadline", "35s")
    admitted = wait_deadline(pair.a, session, "admitted")
    assert "chance" in pair.a.must("session", "list").stdout
    narrow(pair, 5)
    pair.a.control.kill()
    pair.a.start_control()
    again = wait_deadline(pair.a, session, "admitted", "late")
    assert again["deadline_unix_ns"] == admitted["deadline_unix_ns"]
    late = wait_deadline(pair.a, session, "late")
    assert late["late_s"] > 0 and late["deadline_chance_percent"] in (0, None)
    assert "late by" in pair.a.must("session", "show", session).stdout
    narrow(pair, 0)
    result = pair.a.sluice("session", "wait", session, "--quiet")
    assert result.returncode == LATE, result.stderr
    assert "after the deadline" in result.stderr and "1 file" in result.stdout


def test_with_stop_a_session_ends_at_its_deadline(pair):
    narrow(pair, 5)
    end = pair.a.sluice("send", f"memory:{60 * MIB}", "b:null:", "--deadline", "6s", "--deadline-policy", "stop")
    assert end.returncode == DEADLINE, end.stderr
    assert "is over" in end.stderr


def test_what_is_no_time_is_an_error_of_the_command(pair):
    refused(pair.a.sluice("send", "memory:1M", "b:null:", "--deadline", "soon"), USAGE, "--deadline", "soon", "2h30m")
