# The audit log: who moved what, at both nodes.
# SPDX-License-Identifier: Apache-2.0
import json
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


def told(node, before, events):
    """The new lines, once there are so many: they are written beside the session."""
    return wait_until(lambda: len(lines(node)) >= before + events and lines(node)[before:], 30,
                      f"{events} new lines of node {node.name}")  # fmt: skip


def test_a_session_is_told_at_both_nodes(pair):
    before = [len(lines(node)) for node in pair.nodes]
    source = make_file(pair.a, 1_000_000)
    push(pair, source)
    (begun, ended), (peers_begun, peers_ended) = (told(node, count, 2) for node, count in zip(pair.nodes, before))
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
    before = len(lines(pair.b))
    refused(pair.a.sluice("send", source, "b:data/"), EXISTS)
    ended = told(pair.b, before, 2)[1]
    assert ended["result"] == "destination_exists" and str(target) in ended["error"], ended
    forget(source, target)


def test_changes_of_names_are_told_also_when_they_are_refused(pair):
    before = len(lines(pair.b))
    pair.a.must("mkdir", "b:data/made")
    refused(pair.a.sluice("rm", "-r", "--yes", "b:/etc"), OUTSIDE)
    made, removed = told(pair.b, before, 2)
    assert (made["event"], made["peer"], made["result"], made["done"]) == ("names_changed", "a", "ok", 1)
    assert "data/made" in made["asked"]
    assert removed["result"] == "outside_exports" and "/etc" in removed["asked"]
    pair.a.must("rm", "-r", "--yes", "b:data/made")


def test_it_goes_on_where_it_was_rotated(pair):
    log = pair.a.directory / "audit.ndjson"
    source = make_file(pair.a, 1000)
    log.rename(log.with_suffix(".1"))
    session = begin(pair.a, "send", source, "b:data/")
    ended_session(pair.a, session)
    assert {line["session"] for line in told(pair.a, 0, 2)} == {session}
    forget(source, pair.b.export() / source.name)
