# The small peer of tools/peer as a source of which a destination wants parts of files: the golden words of
# docs/WIRE.md, 2.1.6, and whole sessions with a destination that wants them in an odd order. A node is such a source as
# well.
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import os

import pytest
from harness import veth_missing
from harness.system import free_ports
from peer_alone_test import documented
from stranger import met, receive
from transfers import MIB, make_file

import peer
from peer.control import pb
from peer.session import fold, ranges_of

EXTENT = 64 << 10


def words(name, body):
    message = pb.PeerMessage.FromString(documented(f"parts, {name}"))
    assert message.SerializeToString() == documented(f"parts, {name}")
    return getattr(message, body)


def test_golden_words():
    answer = words("answer", "specification_set")
    assert answer.parts and answer.digests_unanswered == 4096
    want = words("want", "want")
    assert (want.object, want.withdrawn) == (2, False)
    assert [(each.offset, each.length) for each in want.ranges] == [(0, 2 * EXTENT), (300 * EXTENT, 9)]
    withdrawn = words("withdrawn", "want")
    assert withdrawn.withdrawn and [(each.offset, each.length) for each in withdrawn.ranges] == [(EXTENT, EXTENT)]
    digests = words("extent digests", "extent_digests")
    assert (digests.object, digests.offset) == (2, 299 * EXTENT)
    assert list(digests.digests) == [0x0123456789ABCDEF, 0x995DC9BBDF1939FA]
    wanted = words("digests wanted", "digests_wanted")
    assert (wanted.object, [(each.offset, each.length) for each in wanted.ranges]) == (2, [(300 * EXTENT, 9)])
    last = words("last digests wanted", "digests_wanted")
    assert (last.object, last.last, list(last.ranges)) == (2, True, list(wanted.ranges))
    last = words("last extent digests", "extent_digests")
    assert (last.object, last.offset, list(last.digests), last.last) == (2, 300 * EXTENT, [0x995DC9BBDF1939FA], True)


class Wanting(peer.Destination):
    """First the digest of the last extent, then the extents that are odd, then the others."""

    wants_parts = True

    def begin(self, goes_on):
        super().begin(goes_on)
        self.said = [{} for _ in self.files]
        for number, file in enumerate(self.files):
            if file.size:
                self.stream.send("digests_wanted", object=number, ranges=self.ranges(file, [self.extents_of(file) - 1]))
            else:
                file.digest = 0

    def ranges(self, file, extents):
        found = ranges_of(extents, self.terms.extent_bytes)
        return [{"offset": each["offset"], "length": min(each["length"], file.size - each["offset"])} for each in found]

    def want(self, number, odd, **more):
        extents = range(int(odd), self.extents_of(self.files[number]), 2)
        self.stream.send("want", object=number, ranges=self.ranges(self.files[number], extents), **more)

    def on_extent_digests(self, message):
        file, said = self.files[message.object], self.said[message.object]
        first = not said
        for at, digest in enumerate(message.digests):
            extent = message.offset // self.terms.extent_bytes + at
            assert said.setdefault(extent, digest) == digest
        everything = set(range(self.extents_of(file)))
        odd = {extent for extent in everything if extent % 2} | {max(everything)}
        if first:
            assert said.keys() == {max(everything)} and not file.crcs
            self.want(message.object, True)
            self.want(message.object, False)
            self.want(message.object, False, withdrawn=True)
        if said.keys() >= odd:
            self.want(message.object, False)
        if said.keys() == everything:
            file.digest = fold(file, said, self.terms.extent_bytes, self.terms.crc)

    def on_file_digest(self, message):
        raise AssertionError("no digest of a whole file is said")


@pytest.fixture
def two(tmp_path):
    ports = free_ports(2)
    nodes = []
    for name, other, address in (("a", "b", "127.0.0.1"), ("b", "a", "127.0.0.2")):
        peer.make_identity(tmp_path / name)
        (tmp_path / f"{name}-data").mkdir()
        nodes.append((name, other, address))
    return [peer.Node(peer.Identity(tmp_path / name, [tmp_path / other / "cert.pem"]),
                      peer.Abilities(address4=address, lanes=2, ports=ports, extent_bytes=EXTENT),
                      tmp_path / f"{name}-data")
            for name, other, address in nodes]  # fmt: skip


def get(taker, giver, names):
    """The session at the taker; what the giver says of it."""
    listener = peer.Listener(("127.0.0.1", 0), giver.identity)
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        answered = thread.submit(giver.serve, listener)
        try:
            taker.get(listener.address, [f"data/{name}" for name in names])
            return answered.result()
        finally:
            listener.close()


def test_a_source_sends_what_is_wanted(two):
    taker, giver = two
    taker.destination = Wanting
    names = []
    for size in (0, 1, 5 * EXTENT + 9, 3 * EXTENT):
        names.append(f"file{size}")
        (giver.folder / names[-1]).write_bytes(os.urandom(size))
    get(taker, giver, names)
    for name in names:
        assert (giver.folder / name).read_bytes() == (taker.folder / name).read_bytes()


def test_a_file_that_has_changed_gets_no_digest(two):
    taker, giver = two

    class Changing(Wanting):
        def want(self, number, odd, **more):
            with (giver.folder / "file").open("ab") as file:
                file.write(b"x")
            super().want(number, odd, **more)

    taker.destination = Changing
    (giver.folder / "file").write_bytes(os.urandom(4 * EXTENT))
    with pytest.raises(peer.Failed) as failed:
        get(taker, giver, ["file"])
    assert failed.value.code == 11
    assert not (taker.folder / "file").exists()


class Asking(Wanting):
    """All digests at once, before anything else."""

    def begin(self, goes_on):
        peer.Destination.begin(self, goes_on)
        self.said = [{} for _ in self.files]
        for number, file in enumerate(self.files):
            self.stream.send("digests_wanted", object=number, ranges=self.ranges(file, range(self.extents_of(file))))

    def on_extent_digests(self, message):
        file, said = self.files[message.object], self.said[message.object]
        everything = range(self.extents_of(file))
        for at, digest in enumerate(message.digests):
            extent = message.offset // self.terms.extent_bytes + at
            assert said.setdefault(extent, digest) == digest
        if len(said) == len(everything) and file.digest is None:
            file.digest = fold(file, said, self.terms.extent_bytes, self.terms.crc)
            self.stream.send("want", object=message.object, ranges=self.ranges(file, everything))


@pytest.mark.parametrize(("said", "extents", "taken"), [(0, 64, True), (0, 65, False), (100, 100, True), (100, 101, False)])
def test_a_source_takes_as_many_questions_as_it_said(two, said, extents, taken):
    taker, giver = two
    taker.destination, giver.abilities.digests_unanswered = Asking, said
    (giver.folder / "file").write_bytes(os.urandom(extents * EXTENT))
    if taken:
        get(taker, giver, ["file"])
        assert (giver.folder / "file").read_bytes() == (taker.folder / "file").read_bytes()
        return
    with pytest.raises(peer.Failed) as failed:
        get(taker, giver, ["file"])
    assert failed.value.code == 15


def test_a_source_that_sends_everything_is_not_one_of_several(two):
    taker, giver = two
    taker.destination, giver.abilities.parts = Wanting, False
    (giver.folder / "file").write_bytes(b"x")
    with pytest.raises(peer.Failed) as failed:
        get(taker, giver, ["file"])
    assert failed.value.code == 15


# ---- a node is the source ---------------------------------------------------------------------------

_reason = veth_missing()
with_a_node = pytest.mark.skipif(_reason is not None, reason=str(_reason))


@pytest.fixture(scope="module")
def meeting():
    with met() as one:
        yield one


@with_a_node
@pytest.mark.parametrize("abilities", [{}, {"lose_one_in": 10, "lanes": 2, "ports": [46000, 46001]}], ids=["one", "lossy"])
def test_a_node_sends_what_is_wanted(meeting, abilities):
    taker = meeting.peer(destination=Wanting, extent_bytes=EXTENT, **abilities)
    receive(meeting, taker, [make_file(meeting.node, size) for size in (0, 1, 5 * EXTENT + 9, 2 * MIB)])


@with_a_node
def test_a_node_takes_as_many_questions_as_it_says(meeting):
    class Checking(Asking):
        def begin(self, goes_on):
            assert self.terms.digests_unanswered == 4096
            super().begin(goes_on)

    receive(meeting, meeting.peer(destination=Checking, extent_bytes=EXTENT), [make_file(meeting.node, 200 * EXTENT)])


@with_a_node
def test_a_node_that_finds_its_file_changed_says_no_digest(meeting):
    path = make_file(meeting.node, 8 * EXTENT)

    class Changing(Wanting):
        def want(self, number, odd, **more):
            with path.open("ab") as file:
                file.write(b"x")
            super().want(number, odd, **more)

    with pytest.raises(peer.Failed) as failed:
        receive(meeting, meeting.peer(destination=Changing, extent_bytes=EXTENT), [path])
    assert failed.value.code == 11


@with_a_node
def test_a_node_that_was_not_asked_for_parts_hears_no_wants(meeting):
    class Impatient(peer.Destination):
        def begin(self, goes_on):
            super().begin(goes_on)
            self.stream.send("want", object=0, ranges=[{"offset": 0, "length": EXTENT}])

    with pytest.raises(peer.Failed) as failed:
        receive(meeting, meeting.peer(destination=Impatient), [make_file(meeting.node, MIB)])
    assert failed.value.code == 15
