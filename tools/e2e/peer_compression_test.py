# Compressed extents between a node and the small peer of tools/peer, which was written from docs/WIRE.md 1.14; and a peer
# whose compressed extents are none.
# SPDX-License-Identifier: Apache-2.0
import functools

import pytest
from harness import veth_missing, wait_until
from stranger import be_sent, met, refusal_of, send
from transfers import INCOMPATIBLE, MIB, make_file

from peer import compression, wire

_reason = veth_missing()
pytestmark = [pytest.mark.skipif(_reason is not None, reason=str(_reason)),
              pytest.mark.skipif(compression.zstandard is None, reason="python3-zstandard is not installed")]  # fmt: skip
import peer  # noqa: E402

TEXT = b"".join(b"line %d of a text that gets shorter\n" % number for number in range(60_000))


@pytest.fixture(scope="module")
def meeting():
    with met() as one:
        yield one


def text_at(path):
    path.write_bytes(TEXT)
    return path


def newest(meeting):
    wait_until(lambda: meeting.node.sessions()[-1]["state"] == "succeeded", 20, "the session has ended at the node")
    return meeting.node.json("session", "show", meeting.node.sessions()[-1]["id"])[1]


WAYS = {"plain": {}, "lossy": {"lose_one_in": 10}, "crc32c": {"crc_kinds": [1], "protection": 0},
        "parity": {"reed_solomon": True, "lose_one_in": 10}}  # fmt: skip


@pytest.fixture(params=WAYS.values(), ids=WAYS.keys())
def way(request):
    return request.param


def test_the_node_restores_what_the_peer_compressed(meeting, way):
    sender = send(meeting, meeting.peer(zstd=True, **way), [text_at(meeting.file(1)), meeting.file(MIB + 1)])
    shown = newest(meeting)
    assert shown["compress"] == "auto" and sender.compressed_sent > 0
    assert len(TEXT) * 0.5 < shown["compressed_bytes"] <= len(TEXT) < MIB * 3
    assert shown["compressed_wire_bytes"] < shown["compressed_bytes"] / 2


def test_the_peer_restores_what_the_node_compressed(meeting, way):
    options = ["--crc", "crc32c"] if "crc_kinds" in way else []
    taker = be_sent(meeting, meeting.peer(zstd=True, **way), [text_at(make_file(meeting.node, 1)), make_file(meeting.node, MIB)],
                    "--compress", "zstd", *options)  # fmt: skip
    assert newest(meeting)["compress"] == "zstd"
    assert taker.restored > 0 and taker.not_restored == 0


def test_a_peer_that_restores_nothing_gets_the_file_plain(meeting, monkeypatch):
    """Over loss as well: what is asked for again of an extent that came plain is not what travelled before."""
    monkeypatch.setattr(compression.Collected, "restored", lambda *_: None)
    taker = be_sent(meeting, meeting.peer(zstd=True, lose_one_in=10), [text_at(make_file(meeting.node, 1))], "--compress", "zstd")
    assert newest(meeting)["compress"] == "zstd"
    assert taker.not_restored > 0 and taker.restored == 0


class Lying(peer.Source):
    """Of what it compresses, one chunk of each extent is changed."""

    change = None  # of a payload

    def make_lanes(self, flow_ids, kind):
        super().make_lanes(flow_ids, kind)
        for lane in self.lanes:
            lane.send = functools.partial(self._lie, lane.send)

    def _lie(self, honest, datagram):
        begins = datagram.offset % self.terms.extent_bytes == 0
        if datagram.type == wire.DATA and datagram.flags & compression.COMPRESSED and begins:
            datagram.payload = type(self).change(datagram.payload)
        honest(datagram)


LIES = {
    "frame": lambda payload: payload[:16] + bytes(each ^ 0x5A for each in payload[16:]),
    "digest": lambda payload: payload[:8] + bytes([payload[8] ^ 1]) + payload[9:],
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_what_cannot_be_restored_is_asked_for_again(meeting, lie):
    class Liar(Lying):
        change = staticmethod(lie)

    before = meeting.node.counters()["rx_false_compressed"]
    # One chunk an extent, so that its head is that of all.
    giver = meeting.peer(source=Liar, zstd=True, mtu=9000, extent_bytes=65536)
    sender = send(meeting, giver, [text_at(meeting.file(1))])
    assert meeting.node.counters()["rx_false_compressed"] > before
    assert newest(meeting)["compressed_bytes"] < len(TEXT) and sender.repairs_sent > 0


def test_compression_that_is_demanded_of_a_node_without_it(meeting):
    refusal_of(meeting, meeting.peer(), INCOMPATIBLE, "compression is demanded",
               command=("send", make_file(meeting.node, MIB), "peer:data/", "--compress", "zstd"))  # fmt: skip
    be_sent(meeting, meeting.peer(), [text_at(make_file(meeting.node, MIB))], "--compress", "auto")
