# A node and three strangers that it trusts, one of which orders what the others do: what the tests of grants and orders
# say over and over.
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import contextlib
import json
import os
import ssl

import pytest
from harness import veth_missing, wait_until
from stranger import met
from transfers import INCOMPATIBLE, INTEGRITY, MIB, UNTRUSTED

import peer
from peer import grants
from peer.control import pb, pin_of

NAMES = {UNTRUSTED: "peer_untrusted", INTEGRITY: "integrity", INCOMPATIBLE: "incompatible"}
SLOW = {"rate_bps": 4_000_000}  # a MiB takes two seconds

_reason = veth_missing()
with_a_node = pytest.mark.skipif(_reason is not None, reason=str(_reason))


class Company:
    """The node, and three that it trusts: home, which orders; alpha, which sends (`peer` of the meeting); and gamma."""

    def __init__(self, meeting):
        self.meeting, self.node, self.address = meeting, meeting.node, meeting.address
        self.base = meeting.folder.parent
        self.pin = pin_of(ssl.PEM_cert_to_DER_cert(self.node.certificate.read_text()))
        for name in ("home", "gamma", "nobody"):
            peer.make_identity(self.base / name, "ed25519")
        for name in ("home", "gamma"):
            meeting.trust(name, self.base / name / "cert.pem")
        everybody = [self.node.certificate, self.base / "home/cert.pem"]
        self.home, self.gamma, self.nobody, self.alpha = (peer.Identity(self.base / name, everybody)
                                                          for name in ("home", "gamma", "nobody", "peer"))  # fmt: skip

    def peer(self, identity=None, **abilities):
        node = self.meeting.peer(**abilities)
        node.identity = identity or self.alpha
        return node

    def grant(self, by="home", **wrong):
        """That lets alpha send to the node, which takes the place of beta."""
        fields = {"session_id": os.urandom(16), "issuer": getattr(self, by).pin, "holder": self.alpha.pin,
                  "destination": self.pin, "paths": ["data/x"], "path": "data/arrived", **wrong}  # fmt: skip
        return grants.signed(self.base / by, grants.grant_of(**fields))

    def audited(self, event, session):
        log = self.node.directory / "audit.ndjson"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [line for line in lines if line["event"] == event and line["session"] == session.hex()]

    def was_refused(self, session, code, by="peer"):
        def seen():
            return [line for line in self.audited("grant_refused", session) if line["peer"] == by]

        wait_until(seen, 20, "the audit log tells of it")
        assert seen()[-1]["result"] == NAMES[code]

    def show(self, session):
        return self.node.json("session", "show", session.hex())[1]


@contextlib.contextmanager
def in_company():
    with met() as one:
        yield Company(one)


@contextlib.contextmanager
def nothing_stored(company):
    """Whatever happens meanwhile: nothing was stored that is not taken away."""
    before = set(company.node.export().iterdir())
    yield company
    wait_until(lambda: set(company.node.export().iterdir()) == before, 20, "the export is as it was")


def id_of(shown):
    return pb.Grant.FromString(shown.grant).id


@contextlib.contextmanager
def failing(code, *naming):
    with pytest.raises(peer.Failed) as failed:
        yield
    assert failed.value.code == code, failed.value
    for word in naming:
        assert word in str(failed.value)


@contextlib.contextmanager
def running(company, shown, size=2 * MIB, identity=None):
    """Alpha sends, slowly: the future of its session, and its id."""
    path, node = company.meeting.file(size), company.peer(identity, **SLOW)
    session = node.source(node, id_of(shown) if shown else os.urandom(16), True, [path], "data/arrived")
    session.grant = shown
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        future = thread.submit(node.run, session, company.address)
        wait_until(lambda: future.done() or company.show(session.id).get("bytes_done"), 30, "data moves")
        yield future, session.id
        future.exception()


def present(company, identity, shown, session, **more):
    """One Hello with a grant."""
    with contextlib.closing(peer.connect(company.address, identity)) as stream:
        stream.send("hello", protocol_version_min=5, protocol_version_max=5, session_id=session, grant=shown, **more)
        return stream.expect("hello", timeout_s=10)
