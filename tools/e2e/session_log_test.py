# The network log of a session: what its lanes noted, at both nodes, while it runs and afterwards.
# SPDX-License-Identifier: Apache-2.0
import json

import pytest
from harness import EmulatedWire
from transfers import MIB, USAGE, begin, ended_session, finish, forget, last_session, make_file, refused, start_slow


@pytest.fixture(scope="module")
def emulated(make_pair):
    return make_pair(wire=EmulatedWire(rate="1G"), bytes_needed=1 << 28)


@pytest.fixture
def pair(emulated):
    emulated.wire.clear()
    yield emulated
    emulated.wire.clear()


def log_of(node, session, *options):
    lines = node.must("session", "log", session, "--json", *options).stdout.splitlines()
    return [json.loads(line) for line in lines]


def kinds(records):
    return {record["kind"] for record in records}


def test_both_ends_tell_of_losses_and_completions(pair):
    pair.wire.set(loss={"probability": 0.02})
    source = make_file(pair.a, 8 * MIB)
    result = pair.a.sluice("send", source, "b:data/", "--lanes", "2", "--rate", "200M")
    assert result.returncode == 0, result.stderr
    session = last_session(pair.a)["id"]
    sent, received = (log_of(node, session) for node in pair.nodes)
    assert {"opened", "gap", "retransmission", "report", "rate", "completion", "closed"} <= kinds(sent)
    assert {"opened", "gap", "report", "completion", "closed"} <= kinds(received)
    assert not {"sent", "received", "dropped"} & (kinds(sent) | kinds(received))
    assert {record["lane"] for record in sent} == {0, 1}
    done = sum(record["length_bytes"] for record in received if record["kind"] == "completion")
    assert done == source.stat().st_size
    shown = pair.a.json("session", "show", session)[1]
    again = [record for record in sent if record["kind"] in ("retransmission", "repair")]
    assert len(again) == shown["retransmits"]
    for record in sent:
        assert record["schema"] == "sluice.log.v1" and record["session"] == session
        assert record["unix_ns"] - record["session_ns"] == shown["started_unix_ns"]
        assert 0 <= record["session_ns"] <= shown["elapsed_s"] * 1e9
    assert {record["lane"] for record in log_of(pair.a, session, "--lane", "1")} == {1}
    assert "tx_seq" in pair.a.must("session", "log", session).stdout
    forget(source, pair.b.export() / source.name)


def test_who_follows_hears_until_the_end_and_the_level_changes_meanwhile(pair):
    source = make_file(pair.a, 4 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/", "--log-level", "off", rate="10M")
    follower = pair.a.popen("session", "log", session, "--follow", "--json")
    assert log_of(pair.a, session) == []
    pair.a.must("session", "log-level", session, "packets")
    assert finish(process).returncode == 0
    records = [json.loads(line) for line in finish(follower).stdout.splitlines()]
    assert "sent" in kinds(records) and "opened" not in kinds(records)
    assert records[-1]["kind"] == "closed"
    refused(pair.a.sluice("session", "log-level", session, "off"), USAGE, session)
    forget(source, pair.b.export() / source.name)


def test_a_control_that_starts_anew_goes_on_at_the_level_that_was_set(pair):
    source = make_file(pair.a, 4 * MIB)
    session = begin(pair.a, "send", source, "b:data/", "--rate", "10M", "--log-level", "packets")
    follower = pair.a.popen("session", "log", session, "--follow", "--json")
    assert json.loads(follower.stdout.readline())["session"] == session
    pair.a.control.stop()
    finish(follower)
    pair.a.start_control()
    assert ended_session(pair.a, session)["state"] == "succeeded"
    assert "sent" in kinds(log_of(pair.a, session))
    forget(source, pair.b.export() / source.name)


def test_levels_of_the_daemons_logs_change_while_they_run_and_go_back_with_a_restart(pair):
    def levels():
        return pair.a.json("node", "show")[1]["live"]["log_levels"]

    before = levels()
    assert set(before) == {"control", "session", "peer", "board", "dataplane"}
    pair.a.must("node", "log-level", "peer=debug")
    pair.a.must("node", "log-level", "dataplane=trace")
    assert levels() == {**before, "peer": "debug", "dataplane": "trace"}
    pair.a.must("node", "log-level", "off")
    assert set(levels().values()) == {"off"}
    refused(pair.a.sluice("node", "log-level", "disk=debug"), USAGE, "disk", "dataplane")
    refused(pair.a.sluice("node", "log-level", "loud"), USAGE, "loud", "debug")
    pair.a.control.stop()
    pair.a.start_control()
    assert levels() == {**before, "dataplane": "off"}
    pair.a.settings["log"] = {"session": "debug", "dataplane": "error"}
    pair.a.write_configuration()
    pair.a.control.stop()
    pair.a.dataplane.stop()
    pair.a.start()
    assert levels() == {**before, "session": "debug", "dataplane": "error"}
