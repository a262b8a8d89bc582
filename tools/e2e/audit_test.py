# The audit log: who moved what, at both nodes.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import stat

import pytest
from harness import wait_until
from transfers import EXISTS, OUTSIDE, begin, ended_session, forget, make_file, push, refused


@pytest.fixture(scope="module")
def pair(make_pair):
    def prepare(pair):
        pair.b.add_export("data", pair.b.export(), "rwm")
        pair.b.write_configuration()

    return make_pair(prepare=prepare)


def lines(node):
    path = node.directory / "audit.ndjson"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def told(node, events, wanted):
    """The lines that are wanted, once there are so many: a node writes them beside the session, and so also after
    the command has ended that asked for it."""

    def found():
        chosen = [line for line in lines(node) if wanted(line)]
        return len(chosen) >= events and chosen

    return wait_until(found, 30, f"{events} lines of node {node.name}")


def of_session(session):
    return lambda line: line.get("session") == session


def test_a_session_is_told_at_both_nodes(pair):
    source = make_file(pair.a, 1_000_000)
    session = begin(pair.a, "send", source, "b:data/")
    (begun, ended), (peers_begun, peers_ended) = (told(node, 2, of_session(session)) for node in pair.nodes)
    assert (begun["event"], begun["asked_by"], begun["role"], begun["peer"]) == ("session_begun", "operator", "source", "b")
    assert (peers_begun["asked_by"], peers_begun["peer"]) == ("peer", "a") and "role" not in peers_begun
    assert begun["session"] == ended["session"] == peers_begun["session"] == peers_ended["session"]
    for line, role in ((ended, "source"), (peers_ended, "destination")):
        assert (line["result"], line["role"], line["bytes"]) == ("ok", role, 1_000_000)
        (file,) = line["files"]
        assert file["bytes"] == 1_000_000 and file["done"] and line["files_not_told"] == 0
    assert ended["files"][0]["digest"] == peers_ended["files"][0]["digest"]
    assert peers_ended["files"][0]["destination"] == str(pair.b.export() / source.name)
    assert stat.S_IMODE((pair.b.directory / "audit.ndjson").stat().st_mode) == 0o600
    forget(source, pair.b.export() / source.name)


def test_a_session_that_failed_is_told_with_the_reason(pair):
    source = make_file(pair.a, 1000)
    target = push(pair, source)
    refused(pair.a.sluice("send", source, "b:data/"), EXISTS)
    (ended,) = told(pair.b, 1, lambda line: line.get("result", "ok") != "ok")
    assert ended["result"] == "destination_exists" and str(target) in ended["error"], ended
    forget(source, target)


def test_changes_of_names_are_told_also_when_they_are_refused(pair):
    pair.a.must("mkdir", "b:data/made")
    refused(pair.a.sluice("rm", "-r", "--yes", "b:/etc"), OUTSIDE)
    made, removed = told(pair.b, 2, lambda line: line["event"] == "names_changed")
    assert (made["peer"], made["result"], made["done"]) == ("a", "ok", 1)
    assert "data/made" in made["asked"]
    assert removed["result"] == "outside_exports" and "/etc" in removed["asked"]
    pair.a.must("rm", "-r", "--yes", "b:data/made")


def test_it_goes_on_where_it_was_rotated(pair):
    log = pair.a.directory / "audit.ndjson"
    source = make_file(pair.a, 1000)
    log.rename(log.with_suffix(".1"))
    session = begin(pair.a, "send", source, "b:data/")
    ended_session(pair.a, session)
    begun, ended = told(pair.a, 2, of_session(session))
    assert (begun["event"], ended["result"]) == ("session_begun", "ok")
    forget(source, pair.b.export() / source.name)


def test_one_that_cannot_be_written_is_found(pair):
    log = pair.a.directory / "audit.ndjson"
    log.rename(log.with_suffix(".2"))
    for put_there, reason in ((log.mkdir, "Is a directory"), (lambda: os.mkfifo(log), "")):
        put_there()
        source = make_file(pair.a, 1000)
        ended_session(pair.a, session := begin(pair.a, "send", source, "b:data/"))
        wait_until(lambda id=session: any(id in line for line in pair.a.control.log_lines("what is missing in it")), 30, "its line")
        (finding,) = (one for one in pair.a.json("doctor")[1]["checks"] if one["check"] == "audit_log")
        assert finding["level"] == "warn" and reason in finding["text"], finding
        log.rmdir() if log.is_dir() else log.unlink()
        forget(source, pair.b.export() / source.name)
    (finding,) = (one for one in pair.a.json("doctor")[1]["checks"] if one["check"] == "audit_log")
    assert finding["level"] == "pass", finding
