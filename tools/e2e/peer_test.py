# A node and a stranger: the small peer of tools/peer, which was written from docs/WIRE.md alone, in every role.
# What it would have to guess is a defect of that document.
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import contextlib
import os
import subprocess

import pytest
from harness import Pair, VethWire, veth_missing, wait_until
from harness.system import same_bytes
from transfers import INCOMPATIBLE, INTEGRITY, MIB, Lossy, fresh_name, make_file, names, refused, temporary_files

import peer

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))


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

    def peer(self, lose_one_in=0, source=peer.Source, destination=peer.Destination, **abilities):
        def open_socket(address, port):
            own = self.wire.inside(1, lambda: peer.udp_socket(address, port))
            return Lossy(own, lose_one_in, port) if lose_one_in else own

        abilities = {"address4": "10.77.0.9", "address6": "fd77::9", "mtu": self.wire.mtu, **abilities}
        return peer.Node(self.identity, peer.Abilities(**abilities), self.folder, open_socket, source, destination)

    def file(self, size):
        """One that the peer has."""
        return self._random(self.folder / fresh_name(), size)

    def _random(self, path, size):
        path.write_bytes(os.urandom(size))
        return path


@pytest.fixture(scope="module")
def meeting():
    with Pair(wire=VethWire(mtu=9000, kernel_addresses=["10.77.0.9/24", "fd77::9/64"])) as half:
        half.a.start()
        meeting = Meeting(half)
        yield meeting
        meeting.listener.close()
        assert half.a.stop() == (0, 0), half.a.control.log_tail()
        assert not temporary_files(half.a)


@contextlib.contextmanager
def called(meeting, node):
    """The peer takes calls meanwhile. Yields a future: the session, once it has ended."""
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        yield thread.submit(node.serve, meeting.listener)


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


# ---- honest, in every role --------------------------------------------------------------------------

SIZES = [0, 1, 5000, MIB + 1]
WAYS = {  # of the peer, and what the node is told where it calls
    "plain": ({}, []),
    "crc32c": ({"crc_kinds": [1]}, ["--crc", "crc32c"]),
    "two_lanes": ({"lanes": 2, "ports": [46000, 46001]}, ["--lanes", 2]),
    "ip6": ({"prefer_ip6": True}, ["-6"]),
    "lossy": ({"lose_one_in": 10, "lanes": 2, "ports": [46000, 46001]}, ["--lanes", 2]),
}


@pytest.fixture(params=WAYS.values(), ids=WAYS.keys())
def way(request, meeting):
    abilities, options = request.param
    return meeting.peer(**abilities), options


def test_peer_calls_and_sends(meeting, way):
    send(meeting, way[0], [meeting.file(size) for size in SIZES])


def test_peer_calls_and_receives(meeting, way):
    receive(meeting, way[0], [make_file(meeting.node, size) for size in SIZES])


def test_peer_is_called_and_receives(meeting, way):
    be_sent(meeting, way[0], [make_file(meeting.node, size) for size in SIZES], *way[1])


def test_peer_is_called_and_sends(meeting, way):
    for size in SIZES:
        be_asked(meeting, way[0], meeting.file(size), *way[1])


def test_small_files_of_a_quick_peer(meeting):
    """Data is on its way before the node has heard the last of its own ObjectStates go."""
    for _ in range(30):
        send(meeting, meeting.peer(), [meeting.file(5000)])


@pytest.mark.parametrize("key", ["rsa:2048", "ed25519"])
def test_any_key_in_a_certificate_that_has_expired(meeting, tmp_path, key):
    command = ["openssl", "req", "-x509", "-newkey", key, "-noenc", "-keyout", tmp_path / "key.pem",
               "-out", tmp_path / "made.pem", "-subj", "/CN=old"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    command = ["openssl", "x509", "-in", tmp_path / "made.pem", "-signkey", tmp_path / "key.pem", "-days", "-1",
               "-out", tmp_path / "cert.pem"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    meeting.trust(key.partition(":")[0], tmp_path / "cert.pem")
    node = meeting.peer()
    node.identity = peer.Identity(tmp_path, [meeting.node.certificate])
    send(meeting, node, [meeting.file(1)])


def test_nothing_is_stored_of_a_session_that_discards(meeting):
    node = meeting.peer(discard=True, crc_kinds=[0])
    path = meeting.file(MIB)
    assert node.send(meeting.address, [path], "null:").ended
    assert path.name not in names(meeting.node)


def test_destination_that_is_a_directory_after_all(meeting):
    path = meeting.file(10)
    meeting.peer().send(meeting.address, [path], "data")
    assert same_bytes(path, meeting.node.export() / path.name)


@pytest.mark.parametrize("act", [send, be_sent])
def test_need_alone_completes_a_transfer(meeting, act):
    """Losses, no gap that is named or heard, and few extents of credit, which fill up with holes."""

    class Deaf(peer.Source):
        def on_datagram(self, lane, datagram):
            lane.carried.clear()
            super().on_datagram(lane, datagram)

    class Mute(peer.Destination):
        def begin(self, goes_on):
            super().begin(goes_on)
            for lane in self.lanes:
                lane.gap_list = list

    node = meeting.peer(lose_one_in=20, source=Deaf, destination=Mute, extent_bytes=64 << 10)
    path = meeting.file(3 * MIB) if act is send else make_file(meeting.node, 3 * MIB)
    session = act(meeting, node, [path])
    assert session.repairs_sent if act is send else session.needs_sent


# ---- interrupted ------------------------------------------------------------------------------------


def interrupted(kind, after_bytes, lose_flows):
    """Such a session whose first connection is lost once so many bytes have moved."""

    class Interrupted(kind):
        cut = False
        flows = []

        def tick(self, now):
            super().tick(now)
            if not self.cut and self.moved() >= after_bytes:
                self.cut, self.flows = True, self.flow_ids()
                if lose_flows:
                    self.drop_lanes()
                raise peer.Gone("cut for a test")
            self.flows_at_end = self.flow_ids()

        def moved(self):
            if kind is peer.Source:
                return self.chunks_sent * self.terms.chunk_bytes
            return sum(len(file.crcs) for file in self.files) * self.terms.extent_bytes

    return Interrupted


@pytest.mark.parametrize("lose_flows", [True, False], ids=["new_flows", "same_flows"])
@pytest.mark.parametrize("act", [send, receive, be_sent, be_asked])
def test_goes_on_after_an_interruption(meeting, act, lose_flows):
    size = 3 * MIB + 1
    node = meeting.peer(source=interrupted(peer.Source, 2 * MIB, lose_flows),
                        destination=interrupted(peer.Destination, 2 * MIB, lose_flows))  # fmt: skip
    gives = act in (send, be_asked)
    path = meeting.file(size) if gives else make_file(meeting.node, size)
    session = act(meeting, node, path if act is be_asked else [path])
    assert session.cut
    assert (session.flows_at_end == session.flows) is not lose_flows
    if gives:
        # What the node held by then was not sent again.
        assert session.chunks_sent * session.terms.chunk_bytes < 1.8 * size


# ---- lies -------------------------------------------------------------------------------------------


def failure_of(meeting, node, code):
    """The peer sends a file, and the node ends the session with this code: nothing of it is left."""
    path = meeting.file(MIB)
    with pytest.raises(peer.Failed) as failed:
        node.send(meeting.address, [path], "data/")
    assert failed.value.code == code, failed.value
    wait_until(lambda: not list(meeting.node.export().glob(f"*{path.name}*")), 10, f"nothing is left of {path.name}")


def test_hello_of_another_session(meeting):
    class Liar(peer.Source):
        def say_hello(self, **more):
            self.id = bytes(16)
            super().say_hello(**more)

    node = meeting.peer(source=Liar, destination=Liar)
    path = make_file(meeting.node, 1)
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        call = thread.submit(node.take_one, meeting.listener)
        refused(meeting.node.sluice("send", path, "peer:data/"), INCOMPATIBLE, "session")
        with pytest.raises(peer.Failed):
            call.result()


def test_message_that_is_not_due(meeting):
    class Liar(peer.Source):
        def agree(self):
            self.stream.send("partition_sent", object=0, range={"length": 1})
            super().agree()

    failure_of(meeting, meeting.peer(source=Liar), INCOMPATIBLE)


def test_digest_of_another_size(meeting):
    class Liar(peer.Source):
        def _say_digest(self, number, file):
            self.stream.send("file_digest", object=number, size=file.size + 1, digest=0)
            file.digest_told = True

    failure_of(meeting, meeting.peer(source=Liar), INCOMPATIBLE)


def test_wrong_digest(meeting):
    class Liar(peer.Source):
        def _say_digest(self, number, file):
            self.stream.send("file_digest", object=number, size=file.size, digest=1)
            file.digest_told = True

    failure_of(meeting, meeting.peer(source=Liar), INTEGRITY)


@pytest.mark.parametrize("offset,length", [(0, 0), (MIB, 1), (0, MIB + 1), ((1 << 64) - 1, 1)])
def test_partition_beyond_its_file(meeting, offset, length):
    class Liar(peer.Source):
        def _say_sent(self, number, first, count, lane):
            self.stream.send("partition_sent", object=number, lane=lane, range={"offset": offset, "length": length})

    failure_of(meeting, meeting.peer(source=Liar), INCOMPATIBLE)


def test_completed_extents_that_are_not(meeting):
    """What a status lists frees the source's buffers, no more: what is asked for by Need comes again."""

    class Liar(peer.Destination):
        def begin(self, goes_on):
            super().begin(goes_on)
            for lane in self.lanes:
                lane.complete(0, 3)  # it will come
                lane.complete(0, 1 << 40)
                lane.complete(77, 0)

        def _take(self, lane, datagram):
            if self.needs_sent or datagram.offset >= self.terms.extent_bytes:
                super()._take(lane, datagram)

    session = be_sent(meeting, meeting.peer(destination=Liar), [make_file(meeting.node, 2 * MIB)])
    assert session.needs_sent


def test_need_of_what_is_not_there(meeting):
    """It is cut to the object; of no object, no lane or no bytes it asks for nothing."""

    class Liar(peer.Destination):
        def begin(self, goes_on):
            super().begin(goes_on)
            far = [{"offset": 1 << 62, "length": 1 << 62}, {"offset": (1 << 64) - 1, "length": 7}, {}]
            self.stream.send("need", object=99, ranges=[{"length": 1}])
            self.stream.send("need", object=0, ranges=far)
            self.stream.send("need", object=0, ranges=[{"offset": 5, "length": 1 << 63}], lane=1000)

    be_sent(meeting, meeting.peer(destination=Liar), [make_file(meeting.node, MIB)])


def test_too_many_ranges(meeting):
    class Liar(peer.Destination):
        def begin(self, goes_on):
            super().begin(goes_on)
            self.stream.send("need", object=0, ranges=[{"length": 1}] * 4097)

    path = make_file(meeting.node, MIB)
    with pytest.raises(peer.Failed) as failed:
        meeting.peer(destination=Liar).get(meeting.address, [str(path)])
    assert failed.value.code == INCOMPATIBLE
