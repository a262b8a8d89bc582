# The golden words of docs/WIRE.md, 2.17: a range that is offered, one that is asked for, and a file that was finished.
# SPDX-License-Identifier: Apache-2.0
from peer_alone_test import documented
from transfers import MIB

from peer.control import pb


def words(name, body):
    message = pb.PeerMessage.FromString(documented(f"ranges, {name}"))
    assert message.SerializeToString() == documented(f"ranges, {name}")
    return getattr(message, body)


def test_golden_words():
    offer = words("offer", "transfer_offer")
    assert [(each.path, each.size) for each in offer.files] == [(b"big", 5 * MIB)]
    part = offer.part
    assert (part.what, part.set, part.offset, part.length) == (1, bytes(range(16)), 4 * MIB, 5 * MIB)
    assert part.whole_bytes == 12 * MIB + 4321
    request = words("request", "transfer_request")
    assert list(request.source_paths) == ["data/big"]
    assert (request.part.what, request.part.offset, request.part.length) == (1, 9 * MIB, 0)
    done = words("finished", "file_done")
    assert (done.digest, done.whole_digest) == (0, 0x995DC9BBDF1939FA)
