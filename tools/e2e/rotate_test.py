# A node's key changes while transfers run. The last test leaves a pair with other keys than it began with.
# SPDX-License-Identifier: Apache-2.0
import pytest
from harness import wait_until
from harness.system import same_bytes
from transfers import MIB, UNTRUSTED, finish, forget, make_file, push, refused, start_slow


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair()


def peer_of(node):
    return node.json("node", "show")[1]["peers"][0]


def logged(node, words):
    wait_until(lambda: words in node.control.log_file.read_text(), 30, f"the log of {node.name} says {words!r}")


def test_nothing_to_take_and_nothing_to_end(pair):
    refused(pair.a.sluice("node", "trust", "b", "--successor"), 2, "offered no new key")
    refused(pair.b.sluice("node", "rotate", "--finish"), 3, "sluice node rotate")
    refused(pair.b.sluice("node", "show", "--certificate", "--next"), 2, "--next")


def test_the_called_node_changes_its_key_and_what_runs_is_renewed(pair):
    before = push(pair, make_file(pair.a, MIB))
    receipt = pair.b.must("receipt", pair.b.sessions()[-1]["id"]).stdout
    source = make_file(pair.a, 24 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/")
    begun = pair.b.json("node", "rotate")[1]
    assert begun["state"] == "begun"
    wait_until(lambda: pair.a.must("ls", "b:") and peer_of(pair.a)["offered_fingerprint"], 30, "a hears of the key")
    assert peer_of(pair.a)["offered_fingerprint"] == begun["next_fingerprint"]
    taken = pair.a.json("node", "trust", "b", "--successor")[1]
    assert (taken["fingerprint"], taken["former_fingerprint"]) == (begun["next_fingerprint"], begun["fingerprint"])
    pair.a.must("ls", "b:")  # both count
    assert pair.b.json("node", "rotate", "--finish")[1]["fingerprint"] == begun["next_fingerprint"]
    logged(pair.b, f"session {session[:8]}: its control connection is renewed under the new key")
    assert finish(process).returncode == 0
    assert same_bytes(source, pair.b.export() / source.name)
    assert pair.b.json("node", "show")[1]["live"] and peer_of(pair.a)["offered_fingerprint"] == ""
    # What the former key signed can still be checked, and what ran under it can be signed for.
    checked = pair.a.sluice("receipt", "--check", "-", "--json", stdin=receipt)
    assert checked.returncode == 0 and "peer b, by a key that it has no more" in checked.stdout, checked.stderr
    pair.b.must("receipt", session)
    forget(source, pair.b.export() / source.name, before, pair.a.export() / before.name)


def test_a_peer_that_asks_its_operator_holds_up_nothing_that_runs(pair):
    source = make_file(pair.a, 24 * MIB)
    process, _ = start_slow(pair.a, "send", source, "b:data/")
    next_key = pair.a.json("node", "rotate", "--now", "--days", "20")[1]["fingerprint"]
    logged(pair.a, "what runs with b goes on under the former key")
    refused(pair.a.sluice("ls", "b:"), UNTRUSTED, next_key)
    assert finish(process).returncode == 0
    assert peer_of(pair.b)["offered_fingerprint"] == next_key
    pair.b.must("node", "trust", "a", "--successor")
    pair.a.must("ls", "b:")
    assert [one["kind"] for one in pair.a.json("node", "show")[1]["certificates"]] == ["own"]
    found = [one for one in pair.a.json("doctor")[1]["checks"] if one["check"] == "certificates"]
    assert [one["level"] for one in found] == ["warn"] and "this node is out of date in 19 days" in found[0]["text"]
    forget(source, pair.b.export() / source.name)


def test_a_restarted_node_has_its_new_key(pair):
    before = pair.a.json("node", "show")[1]["fingerprint"]
    pair.a.control.stop()
    pair.a.start_control()
    assert pair.a.json("node", "show")[1]["fingerprint"] == before
    source = make_file(pair.a, MIB)
    forget(push(pair, source), source)
