# A node and a stranger: files of a session that fail, told honestly and not. docs/WIRE.md, 2.9.
# SPDX-License-Identifier: Apache-2.0
import types

import pytest
from harness import veth_missing
from harness.system import same_bytes
from stranger import called, met, refusal_of
from transfers import INCOMPATIBLE, INTEGRITY, MIB, forget, last_session, make_file, temporary_files

import peer

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

PARTIAL = 21
UNREADABLE, UNWRITABLE = 4, 8  # docs/WIRE.md, 2.7
SIZE = 2 * MIB


@pytest.fixture(scope="module")
def meeting():
    with met() as one:
        yield one


@pytest.fixture
def theirs(meeting):
    paths = [meeting.file(SIZE), meeting.file(SIZE), meeting.file(SIZE)]
    yield paths
    forget(*paths, *(meeting.node.export() / path.name for path in paths))


@pytest.fixture
def ours(meeting):
    paths = [make_file(meeting.node, SIZE), make_file(meeting.node, SIZE), make_file(meeting.node, SIZE)]
    yield paths
    forget(*paths, *(meeting.folder / path.name for path in paths))


def word(path, failure):
    return types.SimpleNamespace(path=path.name.encode(), failure=failure)


def withdrawing(path, *words):
    """Says these once the states have ended, and no digest of its second file."""

    class Quitter(peer.Source):
        def _states_are_complete(self):
            super()._states_are_complete()
            for number, failures in words or [(1, [{"path": path.name.encode(), "failure": UNREADABLE}])]:
                self.stream.send("object_failed", object=number, failures=failures)

        def _say_digest(self, number, file):
            file.digest_told = True
            if number != 1:
                super()._say_digest(number, file)

    return Quitter


def giving_up(path, then=lambda _destination: None):
    """Its second file it calls failed instead of done."""

    class Quitter(peer.Destination):
        def _commit(self, number, file):
            if number != 1:
                return super()._commit(number, file)
            self._give_up(number, file, [word(path, UNWRITABLE)])
            then(self)

    return Quitter


def second_failed_here(meeting, paths, reason):
    """At the node, which is the destination."""
    where = meeting.node.export()
    assert same_bytes(paths[0], where / paths[0].name) and same_bytes(paths[2], where / paths[2].name)
    assert not (where / paths[1].name).exists() and not temporary_files(meeting.node)
    names = last_session(meeting.node)["names"]
    assert names["failed"] == 1 and names["missing"] == [{"path": paths[1].name, "reason": reason}]


def test_what_the_peer_cannot_send_is_named(meeting, theirs):
    session = meeting.peer(source=withdrawing(theirs[1])).send(meeting.address, theirs, "data/", is_directory=True)
    assert session.ended and session.failed == {1: [(theirs[1].name.encode(), UNREADABLE)]}
    second_failed_here(meeting, theirs, "could not be read")


def test_what_the_peer_cannot_store_is_named(meeting, ours):
    with called(meeting, meeting.peer(destination=giving_up(ours[1]))) as session:
        sent = meeting.node.sluice("send", *ours, "peer:data/")
        assert session.result().ended
    assert sent.returncode == PARTIAL, sent.stderr
    assert f"missing: {ours[1].name}: could not be written at the destination" in sent.stdout
    assert same_bytes(ours[0], meeting.folder / ours[0].name) and same_bytes(ours[2], meeting.folder / ours[2].name)


def test_a_file_that_the_node_cannot_store_the_peer_hears_of(meeting, theirs):
    there = meeting.node.export() / theirs[1].name
    there.write_bytes(b"mine")
    session = meeting.peer().send(meeting.address, theirs, "data/", is_directory=True)
    assert session.ended and session.failed == {1: [(theirs[1].name.encode(), 7)]}
    assert there.read_bytes() == b"mine"
    assert same_bytes(theirs[2], meeting.node.export() / theirs[2].name)


# ---- a peer that lies --------------------------------------------------------------------------------


def test_said_twice_it_is_one_failure(meeting, theirs):
    failures = [{"path": theirs[1].name.encode(), "failure": UNREADABLE}]
    liar = withdrawing(theirs[1], (1, failures), (1, [{"failure": 1}]))
    assert meeting.peer(source=liar).send(meeting.address, theirs, "data/", is_directory=True).ended
    second_failed_here(meeting, theirs, "could not be read")


@pytest.mark.parametrize("said, reason", [
    ([{"path": b"../../etc/passwd\n\xff", "failure": UNREADABLE}], "could not be read"),
    ([{"path": b"x", "failure": 1 << 31}], "failed"),
    ([], "failed"),
    ([{"path": b"n%d" % number, "failure": UNREADABLE} for number in range(1000)], "could not be read"),
], ids=["absurd", "unknown", "none", "many"])  # fmt: skip
def test_whatever_it_is_called_the_file_has_its_own_name(meeting, theirs, said, reason):
    liar = withdrawing(theirs[1], (1, said))
    assert meeting.peer(source=liar).send(meeting.address, theirs, "data/", is_directory=True).ended
    second_failed_here(meeting, theirs, reason)


@pytest.mark.parametrize("said", [(3, []), (1 << 31, []), (1, [{"path": b"x" * 5000, "failure": 1}])],
                         ids=["none", "far", "long"])  # fmt: skip
def test_a_source_that_calls_what_cannot_be_failed(meeting, theirs, said):
    with pytest.raises(peer.Failed) as failed:
        meeting.peer(source=withdrawing(theirs[1], said)).send(meeting.address, theirs, "data/", is_directory=True)
    assert failed.value.code == INCOMPATIBLE, failed.value


def test_a_source_that_calls_its_only_file_failed(meeting, theirs):
    liar = withdrawing(theirs[0], (0, []))
    with pytest.raises(peer.Failed) as failed:
        meeting.peer(source=liar).send(meeting.address, theirs[:1], "data/")
    assert failed.value.code == INCOMPATIBLE, failed.value


def test_a_source_that_calls_what_is_done_failed(meeting, theirs):
    class Liar(peer.Source):
        def on_file_done(self, message):
            super().on_file_done(message)
            self.stream.send("object_failed", object=message.object, failures=[{"failure": UNREADABLE}])

    assert meeting.peer(source=Liar).send(meeting.address, theirs, "data/", is_directory=True).ended
    for path in theirs:
        assert same_bytes(path, meeting.node.export() / path.name)
    assert last_session(meeting.node)["names"]["failed"] == 0


def test_a_destination_that_calls_what_is_done_failed(meeting, ours):
    class Liar(peer.Destination):
        def _commit(self, number, file):
            super()._commit(number, file)
            self.stream.send("object_failed", object=number)

    refusal_of(meeting, meeting.peer(destination=Liar), INTEGRITY, ours[0].name, command=("send", *ours, "peer:data/"))


@pytest.mark.parametrize("number", [3, 1 << 31])
def test_a_destination_that_calls_what_is_not_there_failed(meeting, ours, number):
    class Liar(peer.Destination):
        def begin(self, goes_on):
            self.stream.send("object_failed", object=number)
            super().begin(goes_on)

    refusal_of(meeting, meeting.peer(destination=Liar), INCOMPATIBLE, command=("send", *ours, "peer:data/"))


def test_a_destination_that_calls_the_only_file_failed(meeting):
    class Liar(peer.Destination):
        def begin(self, goes_on):
            self.stream.send("object_failed", object=0)
            super().begin(goes_on)

    refusal_of(meeting, meeting.peer(destination=Liar), INCOMPATIBLE, "failed")


def test_a_destination_that_goes_on_about_what_has_failed(meeting, ours):
    def then(destination):
        destination.stream.send("object_failed", object=1, failures=[{"failure": 1}])
        destination.stream.send("partition_done", object=1, ranges=[{"offset": 0, "length": SIZE}])
        destination.stream.send("need", object=1, ranges=[{"offset": 0, "length": SIZE}])
        destination.stream.send("file_done", object=1, digest=1)

    with called(meeting, meeting.peer(destination=giving_up(ours[1], then))) as session:
        sent = meeting.node.sluice("send", *ours, "peer:data/")
        assert session.result().ended
    assert sent.returncode == PARTIAL, sent.stderr
    assert f"missing: {ours[1].name}: could not be written at the destination" in sent.stdout
