# What data are under: the stricter wish of both nodes, and what somebody on the path can do about it.
# SPDX-License-Identifier: Apache-2.0
import contextlib

import pytest
from harness import EmulatedWire, Pair
from harness.system import same_bytes
from transfers import MIB, USAGE, forget, last_session, make_file, pull, push

CRC, AES128, AES256 = "crc", "aes-128-gcm", "aes-256-gcm"
WARNING = "neither encrypted nor authenticated"


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=256 << 20)


@contextlib.contextmanager
def other_pair(a, b, **options):
    """Nodes that want at least so much."""
    wishes = [{"transfer": {"protection": each}} if each else {} for each in (a, b)]
    with Pair(settings_a=wishes[0], settings_b=wishes[1], **options) as made:
        made.start()
        yield made


def log_of(node):
    return node.control.log_file.read_text()


def test_the_default_is_aes_128(pair):
    source = make_file(pair.a, 5 * MIB + 1)
    for options, expected in (([], AES128), (["--protection", AES256], AES256), (["--protection", AES128], AES128)):
        target = push(pair, source, *options)
        for node in pair.nodes:
            session = last_session(node)
            assert session["protection"] == expected
            text = node.sluice("session", "show", session["id"]).stdout
            assert expected in text and WARNING not in text
        forget(target)
        got = pull(pair, make_file(pair.b, MIB + 1), *options)
        assert last_session(pair.b)["protection"] == expected
        forget(got)
    forget(source)
    assert WARNING not in log_of(pair.a) + log_of(pair.b)


def test_a_session_cannot_have_less_than_its_node_wants(pair):
    source = make_file(pair.a, 1000)
    refused = pair.a.sluice("send", source, "b:data/", "--protection", CRC)
    assert refused.returncode == USAGE
    assert "aes-128-gcm at least" in refused.stderr and "node.toml" in refused.stderr
    forget(source)


@pytest.mark.parametrize("a, b, expected", [
    (CRC, CRC, CRC), (CRC, None, AES128), (None, CRC, AES128), (AES256, CRC, AES256), (None, AES256, AES256),
], ids=str)  # fmt: skip
def test_the_stricter_node_counts(a, b, expected):
    with other_pair(a, b) as made:
        for move, giver in ((push, made.a), (pull, made.b)):
            source = make_file(giver, 3 * MIB + 7)
            move(made, source)
            for node in made.nodes:
                session = last_session(node)
                assert session["protection"] == expected
                shown = node.sluice("session", "show", session["id"]).stdout
                assert (WARNING in shown) == (expected == CRC), shown
                assert (WARNING in log_of(node)) == (expected == CRC)


def forged(pair):
    return pair.wire.counters()["a_to_b"]["corrupted"]["forge"]


def test_an_altered_chunk_costs_its_loss(make_pair):
    """Somebody on the path adds a codeword of the CRC to one chunk in fifty."""
    pair = make_pair(wire=EmulatedWire(rate="1G"), bytes_needed=256 << 20)
    before = pair.b.counters()
    pair.wire.set("a_to_b", corrupt={"forge": 0.02})
    source = make_file(pair.a, 20 * MIB + 5)
    target = push(pair, source)
    assert forged(pair) >= 20
    after = pair.b.counters()
    assert after["rx_drop_forged"] - before["rx_drop_forged"] == forged(pair)
    assert after["rx_drop_crc"] == before["rx_drop_crc"]
    assert last_session(pair.a)["retransmits"] >= 20
    forget(source, target)


def test_under_crc_nobody_sees_it():
    """Which is why both nodes have to write it down: a wrong file, the same digests, and success."""
    with other_pair(CRC, CRC, wire=EmulatedWire(rate="1G")) as made:
        made.wire.set("a_to_b", corrupt={"forge": 0.02})
        source = make_file(made.a, 20 * MIB + 5)
        sent = made.a.sluice("send", source, "b:data/")
        assert forged(made) >= 20
        assert sent.returncode == 0, sent.stderr
        assert not same_bytes(source, made.b.export() / source.name)
