# What a node does about a peer that it trusts and that lies: the outcomes that docs/WIRE.md names.
# SPDX-License-Identifier: Apache-2.0
import contextlib

import pytest
from harness import veth_missing
from stranger import be_sent, failure_of, met, refusal_of
from transfers import INCOMPATIBLE, INTEGRITY, MIB, make_file, names

import peer

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))


@pytest.fixture(scope="module")
def meeting():
    with met() as one:
        yield one


def test_hello_of_another_session(meeting):
    class Liar(peer.Source):
        def say_hello(self, **more):
            self.id = bytes(16)
            super().say_hello(**more)

    refusal_of(meeting, meeting.peer(source=Liar), INCOMPATIBLE, "session")


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


@pytest.mark.parametrize("files", [
    [],
    [{"path": b"../x"}],
    [{"path": b""}],
    [{"path": b"a\0b"}],
    [{"path": b"x", "object": 1}],
    [{"path": b"x"}, {"path": b"y"}],
    [{"path": b"x", "size": (1 << 60) + 1}],
    [{"path": b"x%d" % number, "object": number} for number in range(4097)],
], ids=["none", "parent", "empty", "nul", "number", "twice_0", "huge", "many"])  # fmt: skip
def test_offer_of_what_cannot_be(meeting, files):
    class Liar(peer.Source):
        def agree_on_files(self):
            self.stream.send("transfer_offer", files=files, destination="data/", destination_is_directory=True)
            self.stream.expect("transfer_ready")

    before = names(meeting.node)
    failure_of(meeting, meeting.peer(source=Liar), INCOMPATIBLE)
    assert names(meeting.node) == before


@pytest.mark.parametrize("offered", [[b"other"], [b"wanted", b"other"], []], ids=["another", "one_more", "none"])
def test_other_files_than_were_asked_for(meeting, offered):
    """A node chooses itself what it stores."""

    class Liar(peer.Source):
        def agree_on_files(self):
            self.stream.expect("transfer_request")
            files = [{"object": number, "path": name, "size": 1} for number, name in enumerate(offered)]
            self.stream.send("transfer_offer", files=files)
            self.stream.expect("transfer_ready")

    before = names(meeting.node)
    command = ("get", "peer:data/wanted", f"{meeting.node.export()}/")
    refusal_of(meeting, meeting.peer(source=Liar), INCOMPATIBLE, command=command)
    assert names(meeting.node) == before


def test_end_before_the_files_are_done(meeting):
    class Liar(peer.Source):
        def begin(self, goes_on):
            super().begin(goes_on)
            self.stream.send("session_done")

    failure_of(meeting, meeting.peer(source=Liar), INCOMPATIBLE)


def test_file_that_is_done_with_another_digest(meeting):
    class Liar(peer.Destination):
        def _digest(self, file):
            return super()._digest(file) ^ 1

        def _commit(self, number, file):
            file.digest ^= 1
            super()._commit(number, file)

    refusal_of(meeting, meeting.peer(destination=Liar), INTEGRITY, "digest")


def test_answer_that_goes_beyond_the_question(meeting):
    class Liar(peer.Destination):
        def _choose(self):
            self.specification.chunk_bytes_max_ip4 = 1 << 14
            self.node.abilities.mtu = 1 << 15
            super()._choose()

    refusal_of(meeting, meeting.peer(destination=Liar), INCOMPATIBLE, "chunks")


def test_flow_without_a_name(meeting):
    class Liar(peer.Destination):
        def make_lanes(self, flow_ids, kind):
            flow_ids[0] = 0
            super().make_lanes(flow_ids, kind)

    refusal_of(meeting, meeting.peer(destination=Liar), INCOMPATIBLE, "id")


@pytest.mark.parametrize("frame", [b"", b"\x6a\x00", b"\xff\xff"], ids=["empty", "heartbeat", "rubbish"])
def test_connection_that_does_not_begin_with_hello(meeting, frame):
    stream = peer.connect(meeting.address, meeting.identity)
    stream.send_frame(frame)
    with contextlib.closing(stream), pytest.raises(peer.Gone):
        stream.expect("hello")


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


def test_need_beyond_what_is_there(meeting):
    """It is cut to the object; of no bytes it asks for nothing."""

    class Liar(peer.Destination):
        def begin(self, goes_on):
            super().begin(goes_on)
            self.stream.send("need", object=0, ranges=[{"offset": 1 << 62, "length": 1 << 62}, {}])
            self.stream.send("need", object=0, ranges=[{"offset": 5, "length": 1 << 63}], lane=0)

    be_sent(meeting, meeting.peer(destination=Liar), [make_file(meeting.node, MIB)])


@pytest.mark.parametrize("need", [
    {"object": 99, "ranges": [{"length": 1}]},
    {"object": 0, "ranges": [{"length": 1}], "lane": 1000},
    {"object": 0, "ranges": [{"offset": (1 << 64) - 1, "length": 7}]},
    {"object": 0, "ranges": [{"length": 1}] * 4097},
])  # fmt: skip
def test_need_of_what_is_not_there(meeting, need):
    class Liar(peer.Destination):
        def begin(self, goes_on):
            super().begin(goes_on)
            self.stream.send("need", **need)

    path = make_file(meeting.node, MIB)
    with pytest.raises(peer.Failed) as failed:
        meeting.peer(destination=Liar).get(meeting.address, [str(path)])
    assert failed.value.code == INCOMPATIBLE
