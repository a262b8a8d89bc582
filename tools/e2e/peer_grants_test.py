# Grants, and a node that is shown them: the golden words of docs/WIRE.md, 2.13, and a small peer of tools/peer as the
# source. What is wrong with a grant gets its own error and a line in the audit log, and nothing is stored.
# SPDX-License-Identifier: Apache-2.0
import base64
import contextlib
import os
import ssl
import time

import pytest
from harness import wait_until
from harness.system import same_bytes
from ordered import SLOW, failing, id_of, present, running, with_a_node
from peer_alone_test import documented
from transfers import EXISTS, INCOMPATIBLE, INTEGRITY, MIB, UNTRUSTED

import peer
from peer import grants, orders
from peer.control import pb, pin_of


# ---- golden words -----------------------------------------------------------------------------------


def words(name, body):
    message = pb.PeerMessage.FromString(documented(f"orders, {name}"))
    assert message.SerializeToString() == documented(f"orders, {name}")
    return getattr(message, body)


def test_golden_words():
    short = pb.SignedGrant(grant=b"grant", signature="signature", certificate="certificate")
    hello = words("hello", "hello")
    assert (hello.session_id, hello.grant, hello.orders) == (bytes(range(16)), short, False)
    order = words("order", "order")
    assert (order.grant, list(order.source_paths), order.destination) == (short, ["data/run 7"], "data/in/")
    assert order.options.overwrite and order.options.rate_bps == 10**9
    state = words("state", "order_state")
    assert (state.state, state.bytes_total, state.bytes_done, state.names_total) == (orders.TRANSFERRING, 3 * MIB, MIB, 1)
    assert [(each.source, each.size) for each in state.files] == [("/srv/data/run 7", 3 * MIB)]
    assert (words("limit", "order_wish").kind, words("limit", "order_wish").rate_bps) == (pb.OrderWish.LIMIT, 10**8)
    assert (words("renew", "order_wish").kind, words("renew", "order_wish").grant) == (pb.OrderWish.RENEW, short)


def test_golden_grant(tmp_path):
    """Signed by the key whose secret is the bytes 00 to 1f."""
    secret = bytes.fromhex("302e020100300506032b657004220420") + bytes(range(32))
    pem = "-----BEGIN PRIVATE KEY-----\n" + base64.b64encode(secret).decode() + "\n-----END PRIVATE KEY-----\n"
    (tmp_path / "key.pem").write_text(pem)
    peer.certify(tmp_path)
    grant = pb.Grant.FromString(documented("orders, grant"))
    issuer = pin_of(ssl.PEM_cert_to_DER_cert((tmp_path / "cert.pem").read_text()))
    made = pb.Grant(id=bytes(range(16)), issuer=issuer, holder="ab" * 32, destination="node beta",
                    sources_sha256=grants.digest_of(["data/run 7"]), path="data/in/", overwrite=True, bytes_max=MIB,
                    not_before_unix_ns=10**18, start_by_unix_ns=10**18 + grants.START_WITHIN_NS,
                    end_by_unix_ns=10**18 + 86400 * grants.SECOND_NS)  # fmt: skip
    assert made == grant and made.SerializeToString() == documented("orders, grant")
    shown = grants.signed(tmp_path, documented("orders, grant"))
    assert base64.b64decode(shown.signature) == documented("orders, signature")
    assert grants.read(shown) == grant


# ---- the node is the destination --------------------------------------------------------------------


@with_a_node
def test_a_destination_takes_what_was_ordered(company):
    path, shown = company.meeting.file(MIB + 1), company.grant()
    assert company.peer().send(company.address, [path], "data/arrived", grant=shown).ended
    target = company.node.export() / "arrived"
    assert same_bytes(path, target)
    assert company.show(id_of(shown))["ordered_by"] == "home"
    assert company.audited("session_begun", id_of(shown))[0]["ordered_by"] == "home"
    # It is shown again, after the end: it counts no more, and what has ended is told again.
    target.unlink()
    _, hello = present(company, company.alpha, shown, id_of(shown))
    assert hello.ended
    assert not target.exists() and len(company.audited("session_begun", id_of(shown))) == 1


def forged(company):
    shown = company.grant(by="gamma")
    shown.certificate = (company.base / "home/cert.pem").read_text()
    return shown


def damaged(company):
    shown = company.grant()
    at = shown.grant.rindex(b"arrived")
    shown.grant = shown.grant[:at] + b"arrivee" + shown.grant[at + 7 :]
    return shown


def without_certificate(company):
    shown = company.grant()
    shown.certificate = "none"
    return shown


def after_s(seconds):
    """So many seconds from now, as a grant counts time."""
    return time.time_ns() + seconds * grants.SECOND_NS


def times(not_before, start_by, end_by):
    return lambda company: company.grant(not_before_unix_ns=after_s(not_before), start_by_unix_ns=after_s(start_by),
                                         end_by_unix_ns=after_s(end_by))  # fmt: skip


WRONG = {
    "signed_by_another_key": (forged, INTEGRITY, "forged or damaged"),
    "says_another_issuer": (lambda c: c.grant(by="gamma", issuer=c.home.pin), INTEGRITY, "another node than it says"),
    "damaged": (damaged, INTEGRITY, "forged or damaged"),
    "without_certificate": (without_certificate, INCOMPATIBLE, "certificate"),
    "garbage": (lambda c: grants.signed(c.base / "home", b"\xff\xff"), INCOMPATIBLE, "none"),
    "a_part_is_missing": (lambda c: c.grant(holder=""), INCOMPATIBLE, "none"),
    "another_destination": (lambda c: c.grant(destination=c.gamma.pin), UNTRUSTED, "another destination"),
    "another_holder": (lambda c: c.grant(holder=c.gamma.pin), UNTRUSTED, "gave to another node"),
    "a_name_without_an_authority": (lambda c: c.grant(holder="node peer"), UNTRUSTED, "gave to another node"),
    "start_by_is_over": (times(-400, -100, 1000), UNTRUSTED, "to be used by"),
    "end_by_is_over": (times(-400, -390, -100), UNTRUSTED, "ended at"),
    "not_yet": (times(120, 130, 1000), UNTRUSTED, "counts from"),
    "starts_too_late": (times(0, 400, 1000), INCOMPATIBLE, "times"),
    "ends_too_late": (times(0, 100, 31 * 86400), INCOMPATIBLE, "times"),
    "times_beyond_all_numbers": (lambda c: c.grant(not_before_unix_ns=-(2**63), start_by_unix_ns=2**63 - 1,
                                                   end_by_unix_ns=2**63 - 1), INCOMPATIBLE, "times"),
    "an_issuer_that_nobody_trusts": (lambda c: c.grant(by="nobody"), UNTRUSTED, "node trust"),
}  # fmt: skip


@with_a_node
@pytest.mark.parametrize("make, code, naming", WRONG.values(), ids=WRONG.keys())
def test_a_grant_that_is_not_right_opens_nothing(company, make, code, naming):
    shown, session = make(company), os.urandom(16)
    with contextlib.suppress(Exception):  # of garbage there is no id
        session = id_of(shown) or session
    node = company.peer()
    source = node.source(node, session, True, [company.meeting.file(100)], "data/arrived")
    source.grant = shown
    with failing(code, naming):
        node.run(source, company.address)
    company.was_refused(session, code)
    assert "state" not in company.show(session)


@with_a_node
def test_a_grant_for_another_session_opens_none(company):
    node = company.peer()
    source = node.source(node, os.urandom(16), True, [company.meeting.file(100)], "data/arrived")
    source.grant = company.grant()
    with failing(UNTRUSTED, "another session"):
        node.run(source, company.address)
    company.was_refused(source.id, UNTRUSTED)


@with_a_node
def test_a_grant_that_is_too_long_ends_the_call(company):
    shown = company.grant()
    shown.certificate += "\n" * 3000
    with failing(INCOMPATIBLE, "grant of"):
        company.peer().send(company.address, [company.meeting.file(100)], "data/arrived", grant=shown)


BEYOND = {
    "another_path": ({}, {"destination": "data/elsewhere"}, "ordered to send to"),
    "overwrites": ({}, {"overwrite": True}, "replace files"),
    "more_bytes": ({"bytes_max": 99}, {}, "99 at most"),
}


@with_a_node
@pytest.mark.parametrize("allowed, offered, naming", BEYOND.values(), ids=BEYOND.keys())
def test_an_offer_goes_no_further_than_its_grant(company, allowed, offered, naming):
    shown = company.grant(**allowed)
    with failing(UNTRUSTED, naming):
        company.peer().send(company.address, [company.meeting.file(100)], grant=shown,
                            **{"destination": "data/arrived", **offered})  # fmt: skip
    wait_until(lambda: company.audited("session_ended", id_of(shown)), 20, "the audit log tells of the end")
    end = company.audited("session_ended", id_of(shown))[0]
    assert (end["result"], end["ordered_by"]) == ("peer_untrusted", "home")


@with_a_node
def test_what_may_be_replaced_is(company):
    target = company.node.export() / "arrived"
    target.write_bytes(b"before")
    path = company.meeting.file(100)
    with failing(EXISTS):
        company.peer().send(company.address, [path], "data/arrived", grant=company.grant())
    assert target.read_bytes() == b"before"
    shown = company.grant(overwrite=True, bytes_max=100)
    company.peer().send(company.address, [path], "data/arrived", grant=shown, overwrite=True)
    assert same_bytes(path, target)
    target.unlink()


@with_a_node
def test_a_grant_lets_nobody_read(company):
    secret = company.node.export() / "secret"
    secret.write_bytes(b"of home alone")
    node = company.peer()
    try:
        taker = node.destination(node, os.urandom(16), True, ["data/secret"])
        taker.grant = company.grant(session_id=taker.id)
        with failing(UNTRUSTED):
            node.run(taker, company.address)
    finally:
        secret.unlink()
        (node.folder / "secret").unlink(missing_ok=True)


@with_a_node
def test_a_second_presenter_ends_the_session_at_both(company):
    shown = company.grant()
    with running(company, shown) as (future, session):
        with failing(UNTRUSTED, "has shown the grant"):
            present(company, company.gamma, shown, session)
        with failing(UNTRUSTED, "gamma"):
            future.result()
    wait_until(lambda: company.show(session).get("state") == "failed", 30, "it has ended at the node")
    assert "gamma" in company.show(session)["error"]
    company.was_refused(session, UNTRUSTED, by="gamma")


@with_a_node
def test_whoever_knows_its_id_alone_cannot_end_a_session(company):
    with running(company, company.grant(), MIB // 2) as (future, session):
        with contextlib.suppress(peer.Failed):
            present(company, company.gamma, company.grant(by="gamma", session_id=session), session)
        try:
            assert future.result().ended
        finally:
            wait_until(lambda: company.show(session)["state"] in ("failed", "succeeded"), 30, "it has ended")
            (company.node.export() / "arrived").unlink(missing_ok=True)


@with_a_node
@pytest.mark.parametrize("first, then", [("grant", None), (None, "grant")], ids=["loses_it", "gets_one"])
def test_a_session_has_a_grant_from_its_first_call_or_never(company, first, then):
    shown = company.grant()

    class Changing(peer.Source):
        """Its stream breaks once data has left."""

        def turn(self):
            super().turn()
            if self.chunks_sent:
                self.grant = then and shown
                raise peer.Gone("a break")

    node = company.peer(**SLOW)
    session = Changing(node, id_of(shown), True, [company.meeting.file(MIB)], "data/arrived")
    session.grant = first and shown
    with failing(UNTRUSTED, "grant"):
        node.run(session, company.address)
    company.was_refused(session.id, UNTRUSTED)
    company.node.must("session", "cancel", session.id.hex())
    wait_until(lambda: company.show(session.id)["state"] in ("failed", "cancelled"), 20, "it has ended at the node")


@with_a_node
def test_a_grant_is_of_no_use_for_the_session_of_somebody_else(company):
    with running(company, None, MIB // 2, company.gamma) as (future, session):
        with pytest.raises(peer.Failed) as failed:
            present(company, company.alpha, company.grant(session_id=session), session)
        assert failed.value.code in (UNTRUSTED, INCOMPATIBLE)
        assert future.result().ended
    (company.node.export() / "arrived").unlink()


@with_a_node
def test_the_end_of_a_session_that_nobody_knows_is_heard(company):
    """Whoever was refused tells of the end (2.1.2), with the same grant: the answer is the usual one."""
    shown = company.grant(by="nobody")
    _, hello = present(company, company.alpha, shown, id_of(shown), ended=True)
    assert hello.ended
