# A session that misses its deadline continues and says so, across a restart. With the policy `stop` it ends.
# SPDX-License-Identifier: Apache-2.0
import pytest
from deadlines import PATH_MBIT, narrow, narrow_pair, nothing_known, wait_deadline
from transfers import DEADLINE, LATE, MIB, begin


@pytest.fixture(scope="module")
def pair(make_pair):
    return narrow_pair(make_pair)


@pytest.fixture(autouse=True)
def nothing_left(pair):
    with nothing_known(pair):
        yield


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
