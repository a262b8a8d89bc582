# Moves, and a node that is shown them: the golden words of docs/WIRE.md, 2.15, and a small peer of tools/peer as the two nodes
# between which a session goes. Whatever is wrong with a move, the session stays whose it was.
# SPDX-License-Identifier: Apache-2.0
import base64
import contextlib
import hashlib
import os
import ssl
import time

import pytest
from harness import wait_until
from harness.system import same_bytes
from ordered import SLOW, failing, with_a_node
from peer_alone_test import documented
from transfers import INCOMPATIBLE, INTEGRITY, MIB, MOVED, UNTRUSTED

import peer
from peer import moves
from peer.control import pb, pin_of


def test_golden_move(tmp_path):
    """Signed by the key whose secret is the bytes 00 to 1f."""
    secret = bytes.fromhex("302e020100300506032b657004220420") + bytes(range(32))
    pem = "-----BEGIN PRIVATE KEY-----\n" + base64.b64encode(secret).decode() + "\n-----END PRIVATE KEY-----\n"
    (tmp_path / "key.pem").write_text(pem)
    peer.certify(tmp_path)
    signer = pin_of(ssl.PEM_cert_to_DER_cert((tmp_path / "cert.pem").read_text()))
    made = moves.move_of(bytes(range(16)), signer, "ab" * 32, "node beta", 2, not_before_unix_ns=10**18,
                         end_by_unix_ns=10**18 + 86400 * moves.SECOND_NS,
                         content_sha256=hashlib.sha256(b"rows").digest())  # fmt: skip
    assert made.SerializeToString() == documented("moves, move")
    shown = moves.signed(tmp_path, documented("moves, move"))
    assert base64.b64decode(shown.signature) == documented("moves, signature")
    assert moves.read(shown) == made
    hello = pb.PeerMessage.FromString(documented("moves, hello")).hello
    assert hello.known and hello.move == pb.SignedMove(move=b"move", signature="signature", certificate="certificate")


class Enough(Exception):
    pass


class Begun(peer.Source):
    """Stops where it stands once the node has something for good."""

    def on_partition_done(self, message):
        super().on_partition_done(message)
        if self.stops:
            raise Enough

    stops = True


@contextlib.contextmanager
def half_done(company):
    """A session of home that home does not go on with: the file, and the session."""
    path, node = company.meeting.file(2 * MIB), company.peer(company.home, source=Begun, **SLOW)
    session = node.source(node, os.urandom(16), True, [path], "data/arrived")
    with pytest.raises(Enough):
        node.run(session, company.address)
    session.drop_lanes()
    session.stops = False
    yield path, session
    arrived = company.node.export() / "arrived"
    if not session.ended:
        go_on(company, session, company.home if session.move is None else company.gamma)
    assert same_bytes(path, arrived)
    arrived.unlink()


def go_on(company, session, identity):
    node = company.peer(identity)
    session.node = node
    node.run(session, company.address)


def move(company, session, by="home", **wrong):
    """From home to gamma."""
    fields = {"session_id": session.id, "of": company.home.pin, "to": company.gamma.pin, "peer": company.pin, "epoch": 1,
              **wrong}  # fmt: skip
    return moves.signed(company.base / by, moves.move_of(**fields))


def present(company, identity, session, shown=None):
    """One Hello, until it is answered with more than Pause."""
    for _ in range(400):
        with contextlib.closing(peer.connect(company.address, identity)) as stream:
            with contextlib.suppress(peer.Held):
                stream.send("hello", protocol_version_min=5, protocol_version_max=5, session_id=session.id, known=True,
                            move=shown)  # fmt: skip
                return stream.expect("hello", timeout_s=10)[1]
        time.sleep(0.05)
    raise AssertionError("it was never taken")


def damaged(company, session):
    shown = move(company, session)
    shown.move = shown.move[:-1] + bytes([shown.move[-1] ^ 1])
    return shown


def forged(company, session):
    shown = move(company, session, by="gamma")
    shown.certificate = (company.base / "home/cert.pem").read_text()
    return shown


def times(not_before, end_by):
    return lambda c, s: move(c, s, not_before_unix_ns=time.time_ns() + not_before * moves.SECOND_NS,
                             end_by_unix_ns=time.time_ns() + end_by * moves.SECOND_NS)  # fmt: skip


WRONG = {
    "signed_by_another_key": (forged, INTEGRITY, "forged or damaged"),
    "damaged": (damaged, INTEGRITY, "forged or damaged"),
    "says_another_signer": (lambda c, s: move(c, s, by="gamma"), INTEGRITY, "another node than it says"),
    "signed_by_who_has_it_not": (lambda c, s: move(c, s, by="gamma", of=c.gamma.pin), MOVED, "another node since"),
    "signed_by_nobody_who_is_trusted": (lambda c, s: move(c, s, by="nobody", of=c.nobody.pin), UNTRUSTED, "node trust"),
    "garbage": (lambda c, s: moves.signed(c.base / "home", b"\xff\xff"), INCOMPATIBLE, "none"),
    "for_another_node": (lambda c, s: move(c, s, to=c.alpha.pin), UNTRUSTED, "gave to another node"),
    "for_another_peer": (lambda c, s: move(c, s, peer=c.alpha.pin), UNTRUSTED, "a session with another node"),
    "of_another_session": (lambda c, s: move(c, s, session_id=os.urandom(16)), UNTRUSTED, "another session"),
    "of_epoch_0": (lambda c, s: move(c, s, epoch=0), INCOMPATIBLE, "epoch"),
    "over": (times(-1000, -100), UNTRUSTED, "was to be used by"),
    "not_yet": (times(120, 1000), UNTRUSTED, "counts from"),
    "too_long": (times(0, 31 * 86400), INCOMPATIBLE, "times"),
}


@with_a_node
def test_a_move_that_is_not_right_moves_nothing(company):
    with half_done(company) as (_, session):
        for name, (make, code, naming) in WRONG.items():
            with failing(code, naming):
                present(company, company.gamma, session, make(company, session))
            assert company.show(session.id)["peer"] == "home", name
        wait_until(lambda: len(company.audited("move_refused", session.id)) == len(WRONG), 20, "the audit log tells of all")
        assert {line["peer"] for line in company.audited("move_refused", session.id)} == {"gamma"}
        with failing(INCOMPATIBLE):  # as for any session of somebody else
            present(company, company.gamma, session)


@with_a_node
def test_a_session_moves_once_and_its_former_node_is_refused(company):
    with half_done(company) as (_, session):
        shown = move(company, session, epoch=7)
        hello = present(company, company.gamma, session, shown)
        assert hello.known and not hello.ended
        assert company.show(session.id)["peer"] == "gamma"
        wait_until(lambda: [line["to"] for line in company.audited("session_moved", session.id)] == ["gamma"], 20,
                   "the audit log tells of it")  # fmt: skip
        present(company, company.gamma, session, shown)  # as often as gamma likes
        for old in (None, *(move(company, session, to=company.home.pin, epoch=epoch) for epoch in (6, 8))):
            with failing(MOVED, "only that one goes on"):  # home has an old journal, or withdraws too late
                present(company, company.home, session, old)
        with failing(MOVED):
            present(company, company.alpha, session, move(company, session, to=company.alpha.pin, epoch=9))
        assert len(company.audited("session_moved", session.id)) == 1
        session.move = shown
        go_on(company, session, company.gamma)


@with_a_node
def test_a_withdrawn_move_is_worth_nothing(company):
    with half_done(company) as (_, session):
        late, taken_back = move(company, session, epoch=1), move(company, session, to=company.home.pin, epoch=2)
        assert present(company, company.home, session, taken_back).known
        with failing(MOVED, "another node since"):
            present(company, company.gamma, session, late)
        assert company.show(session.id)["peer"] == "home"
        session.move = taken_back
        go_on(company, session, company.home)


@with_a_node
def test_whoever_goes_on_needs_rights_of_its_own(company):
    """The session waits for its node's operator, and nothing of it is lost."""
    with half_done(company) as (_, session):
        node = company.node
        node.export_peers["data"] = ["home"]
        node.write_configuration()
        node.control.kill()
        node.start_control()
        with failing(UNTRUSTED, "not open to gamma"):
            present(company, company.gamma, session, move(company, session))
        assert company.show(session.id)["peer"] == "home"
        del node.export_peers["data"]
        node.write_configuration()
        node.control.kill()
        node.start_control()
        wait_until(lambda: company.show(session.id).get("peer") == "home", 30, "the node knows it")
