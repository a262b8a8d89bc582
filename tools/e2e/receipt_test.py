# Receipts of real sessions, checked by the other node, and by OpenSSL alone as docs/REFERENCE.md has it.
# SPDX-License-Identifier: Apache-2.0
import json
import subprocess

import pytest
from transfers import EXISTS, INTEGRITY, UNTRUSTED, USAGE, forget, last_session, make_file, push, refused


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair()


@pytest.fixture(scope="module")
def receipts(pair):
    """Of one session, by both nodes."""
    source = make_file(pair.a, 1_000_000)
    target = push(pair, source)
    session = last_session(pair.a)["id"]
    yield {node.name: node.must("receipt", session).stdout for node in pair.nodes}
    forget(source, target)


def checked_by_hand(folder):
    """As docs/REFERENCE.md has it, but without jq, which is not everywhere."""
    receipt = json.loads((folder / "receipt.json").read_text())
    (folder / "cert.pem").write_text(receipt["certificate"])
    (folder / "text").write_text("sluice receipt v1\n" + receipt["statement"])
    (folder / "base64").write_text(receipt["signature"])
    script = """set -e
openssl x509 -pubkey -noout -in cert.pem > key.pem
base64 -d base64 > signature
openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in text -sigfile signature >&2
openssl pkey -pubin -in key.pem -outform DER | sha256sum"""
    return subprocess.run(script, shell=True, cwd=folder, text=True, stdout=subprocess.PIPE)


def fingerprint(node):
    return node.json("node", "show")[1]["fingerprint"]


def test_both_nodes_say_the_same_of_a_session(pair, receipts, tmp_path):
    for node, other in ((pair.a, pair.b), (pair.b, pair.a)):
        path = tmp_path / f"{node.name}.json"
        path.write_text(receipts[node.name])
        _, checked, _ = other.json("receipt", "--check", path)
        said = checked["statement"]
        assert checked["known_as"] == f"peer {node.name}" and checked["signer"] == fingerprint(node)
        assert said["node"] == {"name": node.name, "fingerprint": fingerprint(node)}
        assert said["peer"] == {"name": other.name, "fingerprint": fingerprint(other)}
        (file,) = said["files"]
        assert file["bytes"] == said["bytes"] == 1_000_000 and file["digest"]
    statements = [json.loads(json.loads(receipts[name])["statement"]) for name in "ab"]
    for key in ("session", "bytes", "crc", "protection"):
        assert statements[0][key] == statements[1][key]
    assert statements[0]["files"][0]["digest"] == statements[1]["files"][0]["digest"]
    assert (statements[0]["direction"], statements[1]["direction"]) == ("send", "serve-receive")


def test_openssl_alone_can_check_it(pair, receipts, tmp_path):
    path = tmp_path / "receipt.json"
    path.write_text(receipts["a"])
    good = checked_by_hand(tmp_path)
    assert good.returncode == 0 and good.stdout.split()[0] == fingerprint(pair.a)
    receipt = json.loads(receipts["a"])
    receipt["statement"] = receipt["statement"].replace("1000000", "1000001", 1)
    path.write_text(json.dumps(receipt))
    assert checked_by_hand(tmp_path).returncode != 0
    refused(pair.b.sluice("receipt", "--check", path), INTEGRITY, "was changed")


def test_what_is_not_known_or_has_failed(pair, receipts, tmp_path):
    path = tmp_path / "receipt.json"
    path.write_text(receipts["a"])
    refused(pair.a.sluice("receipt", "--check", path, "--signer", fingerprint(pair.b)), UNTRUSTED, "and not by")
    refused(pair.a.sluice("receipt", "--check", "/dev/null"), USAGE, "no receipt")
    refused(pair.a.sluice("receipt", "nothing"), USAGE, "no session")
    source = make_file(pair.a, 1000)
    target = push(pair, source)
    refused(pair.a.sluice("send", source, "b:data/"), EXISTS)
    refused(pair.a.sluice("receipt", last_session(pair.a)["id"]), USAGE, "has succeeded")
    forget(source, target)
