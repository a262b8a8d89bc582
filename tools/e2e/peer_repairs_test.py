# The small peer of tools/peer and a node: holes and durable extents are not sent, lost data is sent again.
# SPDX-License-Identifier: Apache-2.0
import pytest
from harness import veth_missing
from stranger import be_asked, be_sent, met, receive, send
from transfers import MIB, fresh_name, make_file

import peer

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))


@pytest.fixture(scope="module")
def meeting():
    with met() as one:
        yield one


def sparse(path):
    with open(path, "wb") as file:
        file.truncate(10 * MIB)
        for offset in (3 * MIB + 5, 7 * MIB - 1, 10 * MIB - 2):
            file.seek(offset)
            file.write(b"x")
    return path


@pytest.mark.parametrize("act", [send, be_asked])
def test_holes_of_the_peer_take_no_room(meeting, act):
    path = sparse(meeting.folder / fresh_name())
    act(meeting, meeting.peer(), [path] if act is send else path)
    target = meeting.node.export() / path.name
    assert target.stat().st_blocks * 512 <= 4 * MIB
    target.unlink()


@pytest.mark.parametrize("act", [receive, be_sent])
def test_a_peer_that_knows_no_holes_is_sent_their_zeros(meeting, act):
    path = sparse(meeting.node.export() / fresh_name())
    act(meeting, meeting.peer(), [path])
    path.unlink()


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


def interrupted(kind, after_bytes, lose_flows):
    """Such a session whose first connection is lost once the destination holds so many bytes."""

    class Interrupted(kind):
        cut = False
        before = frozenset()  # extents that the destination held then
        after = set()  # extents that were sent since

        def tick(self, now):
            super().tick(now)
            self.flows_at_end = self.flow_ids()
            held = self.held()
            if not self.cut and len(held) * self.terms.extent_bytes >= after_bytes:
                self.cut, self.before, self.after, self.flows = True, held, set(), self.flow_ids()
                if lose_flows:
                    self.drop_lanes()
                raise peer.Gone("cut for a test")

        def held(self):
            return frozenset(self.files[0].held if kind is peer.Source else self.files[0].crcs)

        def _send_one(self, lane):
            if lane.chunks:
                self.after.add(lane.chunks[0][1] // self.terms.extent_bytes)
            return super()._send_one(lane)

        def _take(self, lane, datagram):
            self.after.add(datagram.offset // self.terms.extent_bytes)
            super()._take(lane, datagram)

    return Interrupted


@pytest.mark.parametrize("lose_flows", [True, False], ids=["new_flows", "same_flows"])
@pytest.mark.parametrize("act", [send, receive, be_sent, be_asked])
def test_goes_on_after_an_interruption(meeting, act, lose_flows):
    size = 3 * MIB + 1
    node = meeting.peer(source=interrupted(peer.Source, MIB, lose_flows),
                        destination=interrupted(peer.Destination, MIB, lose_flows))  # fmt: skip
    gives = act in (send, be_asked)
    path = meeting.file(size) if gives else make_file(meeting.node, size)
    session = act(meeting, node, path if act is be_asked else [path])
    assert session.cut
    assert (session.flows_at_end == session.flows) is not lose_flows
    if lose_flows:
        assert session.after and not session.after & session.before, "what was held is not sent again"
