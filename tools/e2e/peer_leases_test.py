# Leases, and a node that is shown them: the golden words of docs/WIRE.md, 2.14, and a small peer of tools/peer at either end.
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import contextlib
import itertools
import os

import pytest
from harness import wait_until
from harness.system import same_bytes
from ordered import SLOW, failing, with_a_node
from peer_alone_test import documented
from stranger import called
from transfers import INCOMPATIBLE, MIB, SUPERSEDED

import peer
from peer.control import pb

_serial = itertools.count(1)


def fresh_name():
    return f"{next(_serial)}.{os.urandom(16).hex()}"


def test_golden_words():
    hello = pb.PeerMessage.FromString(documented("lease, hello")).hello
    assert (hello.lease.name, hello.lease.epoch) == ("0123456789abcdef", 7)
    assert pb.PeerMessage.FromString(documented("lease, answer")).hello.leased


def say_hello(company, identity, lease, session=None, **more):
    with contextlib.closing(peer.connect(company.address, identity)) as stream:
        stream.send("hello", protocol_version_min=5, protocol_version_max=5, session_id=session or os.urandom(16),
                    lease=pb.Lease(name=lease[0], epoch=lease[1]), **more)  # fmt: skip
        return stream.expect("hello", timeout_s=10)[1]


@contextlib.contextmanager
def running(company, lease, size=2 * MIB):
    """Alpha sends, slowly, under a lease."""
    path, node = company.meeting.file(size), company.peer(None, **SLOW)
    session = node.source(node, os.urandom(16), True, [path], "data/arrived")
    session.lease = lease
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        future = thread.submit(node.run, session, company.address)
        wait_until(lambda: future.done() or company.show(session.id).get("bytes_done"), 30, "data moves")
        yield future, session.id
        future.exception()


@with_a_node
def test_a_node_keeps_the_highest_epoch(company):
    path, name = company.meeting.file(MIB + 1), fresh_name()
    assert company.peer().send(company.address, [path], "data/arrived", lease=(name, 3)).ended
    target = company.node.export() / "arrived"
    assert same_bytes(path, target)
    target.unlink()
    for identity, epoch in ((company.alpha, 2), (company.gamma, 3), (company.gamma, 2)):
        with failing(SUPERSEDED, "lease") as _:
            say_hello(company, identity, (name, epoch))
    assert say_hello(company, company.gamma, (name, 2**63 - 1)).leased
    assert not target.exists()


@with_a_node
def test_what_runs_under_a_lower_epoch_ends_first(company):
    name = fresh_name()
    with running(company, (name, 1)) as (future, session):
        later = 0
        for _ in range(200):
            try:
                assert say_hello(company, company.gamma, (name, 2)).leased
                break
            except peer.Held:
                later += 1
        with failing(SUPERSEDED):
            future.result(60)
        assert company.show(session)["error_name"] == "superseded"


@with_a_node
def test_a_session_keeps_its_lease(company):
    name = fresh_name()
    with running(company, (name, 1)) as (future, session):
        for lease in ((name, 2), (fresh_name(), 1)):
            with failing(INCOMPATIBLE):
                say_hello(company, company.alpha, lease, session=session, known=True)
        with failing(INCOMPATIBLE):  # it is nobody else's, whatever the lease
            say_hello(company, company.gamma, (name, 2), session=session)
        future.result(60)
    (company.node.export() / "arrived").unlink()


@with_a_node
def test_a_lease_that_cannot_be_ends_the_connection(company):
    for lease in (("short", 1), (fresh_name(), 0), (fresh_name(), 2**63), ("0123456789abcdef/", 1)):
        with pytest.raises((peer.Failed, peer.Gone)):
            say_hello(company, company.alpha, lease)


@with_a_node
@pytest.mark.parametrize("keeps", [True, False])
def test_a_peer_that_keeps_none_gets_nothing(company, keeps, monkeypatch):
    """The node begins the session; the peer knows leases, or is of before."""
    if not keeps:
        says = peer.Source.say_hello
        monkeypatch.setattr(peer.Source, "say_hello", lambda self, **more: says(self, **{**more, "leased": False}))
    source = company.node.export() / "sent"
    source.write_bytes(os.urandom(MIB))
    node = company.peer()
    with called(company.meeting, node) as serving:
        result = company.node.sluice("send", source, "peer:data/sent", "--lease", f"{fresh_name()}:1", "--overwrite")
        assert result.returncode == (0 if keeps else INCOMPATIBLE), result.stderr
        if keeps:
            assert serving.result(60) and same_bytes(source, node.folder / "sent")
        else:
            assert "too old" in result.stderr
    source.unlink()
