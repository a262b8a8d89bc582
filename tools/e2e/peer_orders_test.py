# A node and strangers, where a third one orders: the node is the source, and the one that orders. The other two are small
# peers of tools/peer. What is wrong with an order gets its own error and a line in the audit log, and nothing is stored.
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import contextlib
import os
import time

import pytest
from harness import wait_until
from harness.system import free_ports, same_bytes
from ordered import SLOW, failing, running, with_a_node
from stranger import called
from transfers import CANCELLED, INCOMPATIBLE, MIB, RESOURCES, SOURCE, UNTRUSTED, refused

import peer
from peer import orders
from peer.control import pb


# ---- the node is the source -------------------------------------------------------------------------


class Given:
    """What home orders of the node: that it sends `file` to alpha, which takes the place of beta."""

    def __init__(self, company, size=MIB + 1, **wrong):
        self.company, self.session = company, os.urandom(16)
        self.path = company.node.export() / "given"
        self.path.write_bytes(os.urandom(size))
        fields = {"session_id": self.session, "holder": company.pin, "destination": company.alpha.pin,
                  "paths": ["data/given"], "path": "data/", **wrong}  # fmt: skip
        self.grant = company.grant(**fields)
        self.said = {"grant": self.grant, "source_paths": ["data/given"], "destination": "data/"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.path.unlink(missing_ok=True)
        (self.company.meeting.folder / "given").unlink(missing_ok=True)

    def order(self, by="home", **other):
        node = self.company.peer(getattr(self.company, by))
        return node.order(self.company.address, self.session, **{**self.said, **other})


@with_a_node
def test_a_source_sends_what_was_ordered_and_tells_of_it(company):
    with Given(company) as given, called(company.meeting, company.peer()) as taken:
        call = given.order()
        assert call.state().bytes_total in (0, MIB + 1)
        end = call.end()
        assert (end.state, end.error_code, end.bytes_done) == (orders.SUCCEEDED, 0, MIB + 1)
        assert [(each.done, each.digest_source) for each in end.files] == [(True, end.files[0].digest_destination)]
        assert taken.result().grant == given.grant
        assert same_bytes(given.path, company.meeting.folder / "given")
        # It is told of again, though nobody could begin by that grant any more.
        assert given.order().end().bytes_done == MIB + 1
        with failing(INCOMPATIBLE):
            given.order(by="gamma").end()
        assert company.audited("session_begun", given.session)[0]["ordered_by"] == "home"


NOT_OF_ITS_GRANT = {
    "sources": {"source_paths": ["data/another"]},
    "more_sources": {"source_paths": ["data/given", "data/given"]},
    "path": {"destination": "data/elsewhere"},
    "overwrite": {"options": {"overwrite": True}},
}


@with_a_node
@pytest.mark.parametrize("other", NOT_OF_ITS_GRANT.values(), ids=NOT_OF_ITS_GRANT.keys())
def test_an_order_is_the_one_of_its_grant(company, other):
    with Given(company) as given:
        with failing(UNTRUSTED, "its grant"):
            given.order(**other).end()
        assert "state" not in company.show(given.session)


@with_a_node
def test_an_order_that_its_grant_is_not_for_is_audited(company):
    with Given(company) as given:
        with failing(UNTRUSTED):
            given.order(destination="data/elsewhere").end()
        with Given(company, holder="ab" * 32) as later:
            with failing(UNTRUSTED):
                later.order().end()
            company.was_refused(later.session, UNTRUSTED, by="home")
        assert company.audited("grant_refused", given.session)  # lines are in the order of the calls


WRONG_ORDERS = {
    "for_another_issuer": ({}, "gamma", UNTRUSTED, "of whom they are for"),
    "another_source": ({"holder": "ab" * 32}, "home", UNTRUSTED, "another node"),
    "another_session": ({"session_id": bytes(16)}, "home", UNTRUSTED, "another session"),
}


@with_a_node
@pytest.mark.parametrize("wrong, by, code, naming", WRONG_ORDERS.values(), ids=WRONG_ORDERS.keys())
def test_a_source_takes_orders_of_whom_they_are_for(company, wrong, by, code, naming):
    with Given(company, **wrong) as given:
        with failing(code, naming):
            given.order(by=by).end()
        company.was_refused(given.session, code, by=by)
        assert "state" not in company.show(given.session)


@with_a_node
def test_what_cannot_be_sent_is_told(company):
    with Given(company, destination="ab" * 32) as given, failing(UNTRUSTED, "does not know the destination"):
        given.order().end()
    with Given(company, paths=["data/none"]) as given, failing(SOURCE, "none"):
        given.order(source_paths=["data/none"]).end()
    with Given(company) as given, failing(2, "priority"):
        given.order(options={"priority": 1}).end()


@with_a_node
def test_the_id_of_another_session_cannot_be_ordered(company):
    with running(company, None, MIB // 2, company.gamma) as (future, session):
        with Given(company, session_id=session) as given, failing(INCOMPATIBLE, "cannot be used"):
            given.session = session
            given.order().end()
        assert future.result().ended
    (company.node.export() / "arrived").unlink()


@with_a_node
def test_the_destination_of_a_session_takes_no_order_of_it(company):
    shown = company.grant()
    with running(company, shown, MIB // 2) as (future, session):
        try:
            with Given(company, session_id=session) as given, failing(INCOMPATIBLE, "cannot be used"):
                given.session = session
                given.order().state()
        finally:
            assert future.result().ended
            (company.node.export() / "arrived").unlink()


@with_a_node
def test_who_ordered_it_may_limit_renew_and_cancel_it(company):
    with Given(company, 8 * MIB) as given, called(company.meeting, company.peer(**SLOW)) as taken:
        call = given.order()
        call.state(lambda state: state.bytes_done)
        call.wish("LIMIT", rate_bps=10**6)
        call.state(lambda state: state.rate_limit_bps == 10**6)
        # One that is wrong changes nothing, and is told of in the audit log.
        call.wish("RENEW", grant=company.grant(by="gamma", session_id=given.session))
        company.was_refused(given.session, UNTRUSTED, by="home")
        call.wish("CANCEL")
        end = call.end()
        assert (end.state, end.error_code) == (orders.CANCELLED, CANCELLED) and "home" in end.error
        with failing(CANCELLED):
            taken.result()


GARBAGE = {
    "no_order": [("need", {})],
    "an_order_without_a_grant": [("order", {"source_paths": ["data/given"], "destination": "data/"})],
    "a_state": [("order_state", {"state": 5})],
    "a_wish_first": [("order_wish", {"kind": 1})],
    "of_names": [("names_request", {"list": {}})],
}


@with_a_node
@pytest.mark.parametrize("said", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_in_a_call_about_orders_ends_it(company, said):
    with contextlib.closing(peer.connect(company.address, company.home)) as stream:
        orders.hello(stream, os.urandom(16), 5, inquires=True)
        stream.expect("hello", timeout_s=10)
        for name, fields in said:
            stream.send(name, **fields)
        with failing(INCOMPATIBLE):
            stream.expect("order_state", timeout_s=20)


@with_a_node
def test_a_second_order_in_one_call_ends_the_call_and_not_the_session(company):
    with Given(company) as given, called(company.meeting, company.peer()) as taken:
        call = given.order()
        call.state()
        call.stream.send("order", **given.said)
        with failing(INCOMPATIBLE):
            call.end()
        assert taken.result().ended
        assert given.order().end().state == orders.SUCCEEDED


@with_a_node
def test_too_many_calls_of_one_peer(company):
    with contextlib.ExitStack() as open_ones:
        for _ in range(64):
            stream = peer.connect(company.address, company.home)
            open_ones.callback(stream.close)
            orders.hello(stream, os.urandom(16), 5, inquires=True)
            stream.expect("hello", timeout_s=10)
        with Given(company) as given, failing(RESOURCES, "at most"):
            given.order()
        with Given(company, issuer=company.gamma.pin, by="gamma", paths=["data/none"]) as given, failing(SOURCE):
            given.order(by="gamma", source_paths=["data/none"]).end()  # another one still may


# ---- the node orders --------------------------------------------------------------------------------


@pytest.fixture
def far(company, tmp_path):
    """Alpha, and beta to which it sends, neither of them a node. They are `peer` and `beta` for the node."""
    peer.make_identity(tmp_path / "beta")
    (tmp_path / "beta-data").mkdir()
    (tmp_path / "alpha-data").mkdir()
    own, theirs = company.base / "peer/cert.pem", tmp_path / "beta/cert.pem"
    beta = peer.Node(peer.Identity(tmp_path / "beta", [own, company.node.certificate]),
                     peer.Abilities(address4="127.0.0.2", ports=free_ports(1)), tmp_path / "beta-data")  # fmt: skip
    alpha = peer.Node(peer.Identity(company.base / "peer", [theirs, company.node.certificate]),
                      peer.Abilities(address4="127.0.0.1", ports=free_ports(1)), tmp_path / "alpha-data")  # fmt: skip
    listener = peer.Listener(("127.0.0.1", 0), beta.identity)
    alpha.addresses[beta.identity.pin] = listener.address
    company.meeting.trust("beta", theirs)
    yield alpha, beta, listener
    listener.close()
    company.node.must("node", "distrust", "beta")


@with_a_node
def test_a_node_orders_of_strangers(company, far):
    alpha, beta, listener = far
    (alpha.folder / "file").write_bytes(os.urandom(MIB))
    with called(company.meeting, alpha) as sent, concurrent.futures.ThreadPoolExecutor(1) as thread:
        received = thread.submit(beta.serve, listener)
        company.node.must("send", "peer:data/file", "beta:data/")
        assert sent.result().ended and received.result().ended
    assert same_bytes(alpha.folder / "file", beta.folder / "file")
    last = company.node.sessions()[-1]
    assert (last["direction"], last["from"], last["peer"], last["bytes_done"]) == ("order", "peer", "beta", MIB)
    assert sent.result().id.hex() == last["id"] and received.result().grant == sent.result().grant


@contextlib.contextmanager
def answering(company, alpha, desk):
    """Alpha takes calls, one after another, until the block ends."""
    alpha.desk, over = desk, []

    def answer():
        while not over:
            with contextlib.suppress(peer.Failed, peer.Gone, TimeoutError):
                alpha.take_one(company.meeting.listener, timeout_s=0.2)

    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        done = thread.submit(answer)
        try:
            yield
        finally:
            over.append(True)
            done.result()


ORDER = ("send", "peer:data/file", "beta:data/")


@with_a_node
def test_a_source_that_is_too_old_is_named(company, far):
    with answering(company, far[0], None):
        refused(company.node.sluice(*ORDER), INCOMPATIBLE, "peer", "too old")


class Saying(peer.Desk):
    """Takes any order, and says no more than a test wants."""

    said = {"state": orders.FAILED}

    def serve(self):
        self.stream.expect("order", timeout_s=10)
        self.stream.send("order_state", **self.said)
        with contextlib.suppress(peer.Gone):
            self.stream.expect("order_wish", timeout_s=20)


@with_a_node
def test_a_source_that_fails_without_a_reason_has_failed(company, far):
    with answering(company, far[0], Saying):
        assert company.node.sluice(*ORDER).returncode != 0


@with_a_node
def test_a_source_that_says_too_much_is_cut_off(company, far):
    class Crowd(Saying):
        said = {"state": orders.SUCCEEDED, "files": [{"source": "x"}] * 101}

    with answering(company, far[0], Crowd):
        refused(company.node.sluice(*ORDER), INCOMPATIBLE, "files")


@with_a_node
def test_a_cancel_is_said_until_the_source_has_heard_it(company, far):
    heard = []

    class Breaking(peer.Desk):
        """Its stream breaks when it is to cancel; on the next one it is to hear that again."""

        def serve(self):
            self.stream.expect("order", timeout_s=10)
            self.stream.send("order_state", state=orders.TRANSFERRING)
            end = time.monotonic() + (3 if heard else 30)
            wishes = []
            while not wishes and time.monotonic() < end:
                wishes = [wish.kind for _, wish in self.stream.poll(0.1)]
            heard.append(wishes)
            if len(heard) > 1:
                self.stream.send("order_state", state=orders.CANCELLED, error_code=CANCELLED, error="cancelled")

    with answering(company, far[0], Breaking):
        session = company.node.must(*ORDER, "--detach").stdout.split()[-1]
        wait_until(lambda: company.node.json("session", "show", session)[1]["state"] == "transferring", 20, "it is taken")
        company.node.must("session", "cancel", session)
        wait_until(lambda: company.node.json("session", "show", session)[1]["state"] == "cancelled", 30, "it has ended")
    assert heard == [[pb.OrderWish.CANCEL], [pb.OrderWish.CANCEL]]
