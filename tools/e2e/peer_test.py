# A node and a stranger: the small peer of tools/peer, which was written from docs/WIRE.md alone, in every role.
# What it would have to guess is a defect of that document.
# SPDX-License-Identifier: Apache-2.0
import collections
import functools
import json
import subprocess

import pytest
from harness import veth_missing, wait_until
from harness.system import same_bytes
from stranger import be_asked, be_sent, called, met, receive, refusal_of, send
from transfers import INCOMPATIBLE, INTEGRITY, MIB, STORAGE, make_file, names

import peer

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))


@pytest.fixture(scope="module")
def meeting():
    with met() as one:
        yield one


# ---- honest, in every role --------------------------------------------------------------------------

SIZES = [0, 1, 5000, MIB + 1]
WAYS = {  # of the peer, and what the node is told where it calls
    "plain": ({}, []),
    "crc32c": ({"crc_kinds": [1]}, ["--crc", "crc32c"]),
    "two_lanes": ({"lanes": 2, "ports": [46000, 46001]}, ["--lanes", 2]),
    "aes_256": ({"protection": 2}, []),
    "crc_is_not_enough": ({"protection": 0}, []),
    "ip6": ({"prefer_ip6": True}, ["-6"]),
    "parity": ({"reed_solomon": True, "lose_one_in": 10}, ["--fec", "auto"]),
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


# ---- erasure codes (WIRE 1.12) --------------------------------------------------------------------------

CODED = {"reed_solomon": True, "parity_demanded": True, "lose_one_in": 10}


class WithoutGaps(peer.Source):
    """Nothing but parity and NEED brings back what was lost."""

    def on_datagram(self, lane, datagram):
        super().on_datagram(lane, datagram)
        lane.repeats = collections.deque(each for each in lane.repeats if each[2] == peer.wire.REPAIR)


def newest(meeting):
    """The node's last session, once it is over there as well."""
    wait_until(lambda: meeting.node.sessions()[-1]["state"] == "succeeded", 20, "the session has ended at the node")
    return meeting.node.json("session", "show", meeting.node.sessions()[-1]["id"])[1]


def test_the_node_makes_what_was_lost_of_the_peers_parity(meeting):
    path = meeting.file(MIB + 1)
    sender = send(meeting, meeting.peer(source=WithoutGaps, **CODED), [path])
    shown = newest(meeting)
    assert sender.parity_sent > 0 and shown["parity"] > 0
    assert shown["fec"] == "rs" and shown["decoded_chunks"] > 0


def test_the_peer_makes_what_was_lost_of_the_nodes_parity(meeting):
    taker = be_sent(meeting, meeting.peer(**CODED), [make_file(meeting.node, 2 * MIB)], "--fec", "rs",
                    "--expect-loss", 10, "--chunk-bytes", 1024)  # fmt: skip
    shown = newest(meeting)
    assert shown["fec"] == "rs" and shown["parity"] > 0
    assert taker.decoded > 0 and taker.false_parity == 0


class Lying(WithoutGaps):
    """Every symbol is wrong in one byte, under the right keys."""

    def make_lanes(self, flow_ids, kind):
        super().make_lanes(flow_ids, kind)
        for lane in self.lanes:
            lane.send = functools.partial(self._lie, lane.send)

    @staticmethod
    def _lie(honest, datagram):
        if datagram.type == peer.wire.PARITY:
            datagram.payload = bytes([datagram.payload[0] ^ 1]) + datagram.payload[1:]
        honest(datagram)


def test_parity_that_lies_is_counted_and_the_chunks_are_asked_for(meeting):
    before = meeting.node.counters()["rx_false_parity"]
    sender = send(meeting, meeting.peer(source=Lying, **CODED), [meeting.file(MIB + 1)])
    assert meeting.node.counters()["rx_false_parity"] > before
    assert newest(meeting)["decoded_chunks"] == 0 and sender.repairs_sent > 0


def test_a_code_that_is_demanded_of_a_node_without_it(meeting):
    refusal_of(meeting, meeting.peer(), INCOMPATIBLE, "erasure code",
               command=("send", make_file(meeting.node, MIB), "peer:data/", "--fec", "rs"))  # fmt: skip
    be_sent(meeting, meeting.peer(), [make_file(meeting.node, MIB)], "--fec", "auto")
    assert newest(meeting)["fec"] == "off"


@pytest.mark.parametrize("act", [send, receive])
def test_peer_that_only_calls(meeting, act):
    """Its datagrams come from other ports than it says, and nothing is sent to it before."""
    caller = meeting.peer(learn_address=True, lanes=2, ports=[46000, 46001])
    act(meeting, caller, [meeting.file(MIB + 1) if act is send else make_file(meeting.node, MIB + 1)])


def test_small_files_of_a_quick_peer(meeting):
    """Data is on its way before the node has heard the last of its own ObjectStates go."""
    for _ in range(50):
        send(meeting, meeting.peer(), [meeting.file(5000)])


@pytest.mark.parametrize("key", ["rsa:2048", "ed25519"])
@pytest.mark.parametrize("days", ["1", "-1"], ids=["good", "expired"])
def test_any_key_in_a_certificate_until_it_has_expired(meeting, tmp_path, key, days):
    command = ["openssl", "req", "-x509", "-newkey", key, "-noenc", "-keyout", tmp_path / "key.pem",
               "-out", tmp_path / "made.pem", "-subj", "/CN=old"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    command = ["openssl", "x509", "-in", tmp_path / "made.pem", "-signkey", tmp_path / "key.pem", "-days", days,
               "-out", tmp_path / "cert.pem"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    meeting.trust(key.partition(":")[0] + ("" if days == "1" else "-old"), tmp_path / "cert.pem")
    node = meeting.peer()
    node.identity = peer.Identity(tmp_path, [meeting.node.certificate])
    if days == "1":
        send(meeting, node, [meeting.file(1)])
    else:
        with pytest.raises(peer.Gone, match="unknown ca"):
            peer.connect(meeting.address, node.identity)


def test_nothing_is_stored_of_a_session_that_discards(meeting):
    node = meeting.peer(discard=True, crc_kinds=[0])
    path = meeting.file(MIB)
    assert node.send(meeting.address, [path], "null:").ended
    assert path.name not in names(meeting.node)


def test_destination_that_is_a_directory_after_all(meeting):
    path = meeting.file(10)
    meeting.peer().send(meeting.address, [path], "data")
    assert same_bytes(path, meeting.node.export() / path.name)


def test_missing_directories_are_made_where_the_offer_says_so(meeting):
    path = meeting.file(10)
    with pytest.raises(peer.Failed) as failed:
        meeting.peer().send(meeting.address, [path], "data/new/by-peer/")
    assert failed.value.code == STORAGE
    meeting.peer().send(meeting.address, [path], "data/new/by-peer/", mkdir=True)
    assert same_bytes(path, meeting.node.export() / "new/by-peer" / path.name)
    with called(meeting, meeting.peer()) as session:
        source = make_file(meeting.node, 10)
        meeting.node.must("send", source, "peer:data/new/by-node/name", "--mkdir")
        assert session.result().ended
    assert same_bytes(source, meeting.folder / "new/by-node/name")


# ---- under a CRC alone, which the node has to want as well ------------------------------------------


@pytest.fixture(scope="module")
def trusting():
    with met(settings={"transfer": {"protection": "crc"}}) as one:
        yield one


@pytest.mark.parametrize("protection", [0, 1])
def test_with_a_node_that_wants_only_a_crc(trusting, protection):
    def mate(**more):
        return trusting.peer(protection=protection, **more)

    send(trusting, mate(), [trusting.file(MIB + 1)])
    receive(trusting, mate(crc_kinds=[1]), [make_file(trusting.node, MIB + 1)])
    be_sent(trusting, mate(lose_one_in=10), [make_file(trusting.node, MIB + 1)])
    be_asked(trusting, mate(), trusting.file(MIB + 1))
    last = trusting.node.sessions()[-1]
    assert last["protection"] == ("aes-128-gcm" if protection else "crc")


# ---- echoes (WIRE 1.13) ---------------------------------------------------------------------------------


def probed(meeting, node, state, *options):
    """The node has its datagrams reflected by the peer, and says what came back."""
    command = ("probe", "integrity", "peer", "--state", state, "--packets", 200, "--size", 500, "--json", *options)
    with called(meeting, node) as session:
        result = meeting.node.sluice(*command)
        return result, session.result()


def test_the_peer_reflects_echoes(meeting, tmp_path):
    result, session = probed(meeting, meeting.peer(), tmp_path / "state")
    found = json.loads(result.stdout)
    assert (result.returncode, found["done"], found["wrong"], found["lost"]) == (0, 200, 0, 0), result.stderr
    assert session.reflected == 200


class Damaging(peer.Destination):
    """Every tenth echo goes back with another byte."""

    def make_lanes(self, flow_ids, kind):
        super().make_lanes(flow_ids, kind)
        for lane in self.lanes:
            lane.send = functools.partial(self._damage, lane.send)

    @staticmethod
    def _damage(honest, datagram):
        if datagram.type == peer.wire.ECHO and datagram.tx_seq % 10 == 3:
            datagram.payload = datagram.payload[:77] + bytes([datagram.payload[77] ^ 0x81]) + datagram.payload[78:]
        honest(datagram)


def test_the_node_finds_what_the_peer_has_damaged(meeting, tmp_path):
    result, _session = probed(meeting, meeting.peer(destination=Damaging), tmp_path / "state")
    found = json.loads(result.stdout)
    assert (result.returncode, found["wrong"], found["wrong_bytes"]) == (INTEGRITY, 20, 20), result.stderr
    assert found["positions"] == [[77, 20]] and found["bits_set"] + found["bits_cleared"] == 40
    assert [each["number"] for each in found["faults"]] == list(range(3, 200, 10))


def test_a_peer_that_reflects_nothing_is_incompatible(meeting, tmp_path):
    refusal_of(meeting, meeting.peer(echoes=False), INCOMPATIBLE, "reflect",
               command=("probe", "integrity", "peer", "--state", tmp_path / "state", "--packets", 10))  # fmt: skip
