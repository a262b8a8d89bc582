# The small peer of tools/peer meets a node: what its tests say over and over.
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import contextlib
import os
import threading

import pytest
from harness import Pair, VethWire, wait_until
from harness.system import same_bytes
from transfers import MIB, Lossy, fresh_name, make_file, nothing_temporary, refused, temporary_files

import peer


class Meeting:
    """The node `a`, and what is needed to be its peer: an identity, addresses, a folder, somebody who listens."""

    def __init__(self, half):
        self.node, self.wire = half.a, half.wire
        self.folder = half.base / "peer-data"
        self.folder.mkdir()
        peer.make_identity(half.base / "peer")
        self.identity = peer.Identity(half.base / "peer", [half.a.certificate])
        self.listener = peer.Listener(("127.0.0.1", 0), self.identity)
        self.trust("peer", half.base / "peer/cert.pem")
        host, port = half.a.address.split(":")
        self.address = (host, int(port))

    def trust(self, name, certificate):
        host, port = self.listener.address
        self.node.must("node", "trust", name, certificate, "--address", f"{host}:{port}")

    def peer(self, lose_one_in=0, source=peer.Source, destination=peer.Destination, owner=peer.Owner, **abilities):
        def open_socket(address, port):
            own = self.wire.inside(1, lambda: peer.udp_socket(address, port))
            return Lossy(own, lose_one_in, port) if lose_one_in else own

        abilities = {"address4": "10.77.0.9", "address6": "fd77::9", "mtu": self.wire.mtu, **abilities}
        return peer.Node(self.identity, peer.Abilities(**abilities), self.folder, open_socket, source, destination,
                         owner)  # fmt: skip

    def file(self, size):
        """One that the peer has."""
        return self._random(self.folder / fresh_name(), size)

    def _random(self, path, size):
        path.write_bytes(os.urandom(size))
        return path


@contextlib.contextmanager
def met(mode="rw", chooses=False, **options):
    """mode: of the node's export; chooses: the peer may, owners and ACLs."""
    with Pair(wire=VethWire(mtu=9000, kernel_addresses=["10.77.0.9/24", "fd77::9/64"]), **options) as half:
        half.a.add_export("data", half.a.export(), mode)
        if chooses:
            half.a.export_owners["data"] = half.a.export_acls["data"] = "yes"
        half.a.write_configuration()
        half.a.start()
        meeting = Meeting(half)
        yield meeting
        meeting.listener.close()
        nothing_temporary(half.a)
        assert half.a.stop() == (0, 0), half.a.control.log_tail()
        assert not temporary_files(half.a)


@contextlib.contextmanager
def called(meeting, node):
    """The peer takes calls meanwhile. Yields a future: the session, once it has ended."""
    given_up = threading.Event()  # calls about former sessions would go on for minutes
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        try:
            yield thread.submit(node.serve, meeting.listener, given_up.is_set)
        except BaseException:
            given_up.set()
            raise


def send(meeting, node, paths):
    """The peer calls and is the source."""
    session = node.send(meeting.address, paths, "data/", is_directory=True)
    for path in paths:
        assert same_bytes(path, meeting.node.export() / path.name)
    return session


def receive(meeting, node, paths):
    """The peer calls and is the destination."""
    session = node.get(meeting.address, [str(path) for path in paths])
    for path in paths:
        assert same_bytes(path, meeting.folder / path.name)
    return session


def be_sent(meeting, node, paths, *options):
    """The node calls and is the source."""
    with called(meeting, node) as session:
        meeting.node.must("send", *paths, "peer:data/", *options)
        assert session.result().ended
    for path in paths:
        assert same_bytes(path, meeting.folder / path.name)
    return session.result()


def be_asked(meeting, node, path, *options):
    """The node calls and is the destination."""
    target = meeting.node.export() / path.name
    with called(meeting, node) as session:
        meeting.node.must("get", f"peer:data/{path.name}", target, *options)
        assert session.result().ended
    assert same_bytes(path, target)
    return session.result()


def failure_of(meeting, node, code):
    """The peer sends a file, and the node ends the session with this code: nothing of it is left."""
    path = meeting.file(MIB)
    with pytest.raises(peer.Failed) as failed:
        node.send(meeting.address, [path], "data/")
    assert failed.value.code == code, failed.value
    wait_until(lambda: not list(meeting.node.export().glob(f"*{path.name}*")), 10, f"nothing is left of {path.name}")


def refusal_of(meeting, node, code, *naming, command=None):
    """The node sends a file to the peer, or does what `command` says, and ends the session with this code."""
    command = command or ("send", make_file(meeting.node, MIB), "peer:data/")
    over = threading.Event()

    def answer():
        # The last call may be of a session that parts: it is told that we know.
        while not over.is_set():
            with contextlib.suppress(peer.Failed, peer.Gone, TimeoutError):
                node.take_one(meeting.listener, timeout_s=0.2)

    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        answering = thread.submit(answer)
        try:
            refused(meeting.node.sluice(*command), code, *naming)
        finally:
            over.set()
        answering.result()
