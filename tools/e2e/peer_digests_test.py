# Digests that archives ask for, with the small peer of tools/peer at one end (docs/WIRE.md 2.18).
# SPDX-License-Identifier: Apache-2.0
import hashlib
import os

import pytest
from harness import veth_missing
from peer_alone_test import documented
from stranger import be_sent, called, met, refusal_of
from transfers import INCOMPATIBLE, INTEGRITY, MIB, PARTIAL, make_file

from peer import digests
from peer.control import pb

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))


@pytest.fixture(scope="module")
def meeting():
    with met() as one:
        yield one


def test_golden_words():
    said = pb.PeerMessage.FromString(documented("digests, names"))
    assert said.SerializeToString() == documented("digests, names")
    names = said.name_digests
    assert (names.object, names.first, names.last) == (3, 0, True)
    file, link = names.names
    assert (file.path, file.size, file.target) == (b"run/a", 3, b"")
    found = [(each.kind, each.value) for each in file.digests]
    assert found == [(each["kind"], each["value"]) for each in digests.of(b"abc", 1 << 1 | 1 << 6)]
    assert (link.path, link.target, len(link.digests)) == (b"run/b", b"run/a", 0)
    progress = pb.PeerMessage.FromString(documented("digests, progress")).digest_progress
    assert (progress.object, progress.bytes, progress.took_ns) == (3, 4 * MIB, 250_000_000)


def test_the_peer_computes_them(meeting):
    source = make_file(meeting.node, MIB + 5)
    be_sent(meeting, meeting.peer(), [source], "--digest", "adler32,crc32c,crc64,md5,sha1,sha256,sha512")
    (file,) = meeting.node.json("session", "show", meeting.node.sessions()[-1]["id"])[1]["files"]
    assert len(file["digests"]) == 7
    assert file["digests"]["sha256"] == hashlib.sha256(source.read_bytes()).hexdigest()


def test_a_tree_with_a_list(meeting, tmp_path):
    tree = meeting.node.export() / "digested"
    tree.mkdir()
    for at in range(5):
        (tree / f"file{at}").write_bytes(os.urandom(100 * at))
    listed = tmp_path / "list"
    lines = [f"{hashlib.sha256((tree / f'file{at}').read_bytes()).hexdigest()}  file{at}\n" for at in range(5)]
    listed.write_text("".join(lines))
    written = tmp_path / "written"
    with called(meeting, meeting.peer()) as session:
        meeting.node.must("send", tree, "peer:data/", "--manifest", listed, "--write-manifest", written)
        assert session.result().ended
    assert written.read_text() == "".join(line.replace("  ", "  digested/") for line in lines)
    listed.write_text("".join(lines[:-1]) + f"{'0' * 64}  file4\n")
    with called(meeting, meeting.peer()) as session:
        result = meeting.node.sluice("send", tree, "peer:data/again/", "--mkdir", "--manifest", listed)
        assert result.returncode == PARTIAL and "digested/file4: differs" in result.stderr
        assert session.result().ended


def test_a_peer_without_it_is_refused(meeting):
    words = ("send", make_file(meeting.node, MIB), "peer:data/", "--digest", "md5")
    refusal_of(meeting, meeting.peer(digests=False), INCOMPATIBLE, "digests", command=words)


def test_a_peer_that_lacks_a_kind_says_so(meeting):
    words = ("send", make_file(meeting.node, MIB), "peer:data/", "--digest", "blake3")
    refusal_of(meeting, meeting.peer(), INCOMPATIBLE, "digest", command=words)


def test_one_name_that_differs_ends_the_session(meeting, tmp_path):
    source = make_file(meeting.node, MIB)
    listed = tmp_path / "list"
    listed.write_text(f"{'0' * 64}  {source.name}\n")
    words = ("send", source, "peer:data/", "--manifest", listed)
    refusal_of(meeting, meeting.peer(), INTEGRITY, "list", command=words)
