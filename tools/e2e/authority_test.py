# Two nodes that have pinned nobody: an authority names them to each other.
# SPDX-License-Identifier: Apache-2.0
import pytest
from authorities import Authority
from harness import wait_until
from harness.system import same_bytes
from transfers import MIB, UNTRUSTED, ended_session, finish, forget, make_file, push, refused, start_slow, wait_state

import peer

_DOMAIN = "dtn.example.org"


@pytest.fixture(scope="module")
def given():
    return {}


@pytest.fixture(scope="module")
def pair(make_pair, given):
    def prepare(pair):
        authority = given["authority"] = Authority(pair.base / "authority", _DOMAIN)
        for node, other in ((pair.a, pair.b), (pair.b, pair.a)):
            node.settings["control"].update(
                ca_file=str(authority.ca_file), crl_file=str(authority.crl_file), ca_domain=_DOMAIN)  # fmt: skip
            certificate, key, given[node.name] = authority.give(node.name)
            node.must("node", "rotate", "--certificate", certificate, "--key", key)
            (node.directory / "trusted" / f"{other.name}.pem").unlink()
        pair.b.add_export("ours", pair.base / "ours", "rw", peers=["a"])
        pair.b.add_export("closed", pair.base / "closed", "rw", peers=["c"])
        for node, other in ((pair.a, pair.b), (pair.b, pair.a)):
            node.write_configuration()
            node.must("node", "trust", other.name, "--address", other.address)

    return make_pair(prepare=prepare)


def fingerprint(node):
    return node.json("node", "show")[1]["fingerprint"]


def test_whom_it_names_is_a_peer_with_the_rights_of_its_name(pair):
    source = make_file(pair.a, MIB)
    push(pair, source, to="ours/")
    assert pair.a.must("ls", "b:").stdout.split() == ["data", "ours"]
    shown = pair.a.json("node", "show")[1]
    assert shown["peers"] == [] and {one["kind"] for one in shown["certificates"]} == {"own", "ca", "crl"}
    assert "certificates" in {one["check"] for one in pair.a.json("doctor")[1]["checks"]}
    forget(source, pair.b.export("ours") / source.name)


def test_a_name_without_an_address_is_found_in_the_domain(pair):
    refused(pair.a.sluice("ls", "c:"), 6, f"c.{_DOMAIN}:7400")


def test_what_runs_with_a_key_that_is_distrusted_is_paused(pair):
    source = make_file(pair.a, 24 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/")
    pair.b.must("node", "distrust", fingerprint(pair.a))
    wait_state(pair.b, session, "paused")
    refused(pair.a.sluice("ls", "b:"), UNTRUSTED)
    assert finish(process).returncode == UNTRUSTED  # it called once more
    pair.b.must("node", "allow", fingerprint(pair.a))
    for node in pair.nodes:
        node.must("session", "continue", session)
    assert ended_session(pair.a, session)["state"] == "succeeded"
    assert same_bytes(source, pair.b.export() / source.name)
    forget(source, pair.b.export() / source.name)


def test_a_name_that_is_distrusted_is_nobody_whatever_the_authority_says(pair):
    pair.b.must("node", "distrust", "a")
    refused(pair.a.sluice("ls", "b:"), UNTRUSTED)
    pair.b.must("node", "allow", "a")
    pair.a.must("ls", "b:")


def test_what_the_authority_revokes_counts_at_once(pair, given):
    given["authority"].revoke(given["a"])
    refused(pair.a.sluice("ls", "b:"), UNTRUSTED)
    given["authority"].revoke()
    pair.a.must("ls", "b:")


def test_a_peer_in_another_language_with_a_certificate_of_it(pair, given, tmp_path):
    certificate, key, _ = given["authority"].give("python")
    for file, name in ((certificate, "cert.pem"), (key, "key.pem")):
        (tmp_path / name).write_bytes(file.read_bytes())
    own = peer.Identity(tmp_path, [pair.b.certificate])
    host, port = pair.b.address.rsplit(":", 1)
    peer.control.connect((host, int(port)), own).close()


def test_the_log_warns_before_they_end(pair):
    log = pair.b.control.log_file
    wait_until(lambda: "the certificate of this node is out of date in 29 days" in log.read_text(), 20, "a warning")
    assert "what the authority has revoked, crl.pem, is out of date" in log.read_text()
