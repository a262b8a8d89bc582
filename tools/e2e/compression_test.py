# Compression between real nodes: what gets shorter travels so where the network is slow, what does not travels plain, and
# every file arrives identical, through packs, restarts and several sources.
# SPDX-License-Identifier: Apache-2.0
import random

import pytest
from harness import EmulatedWire, wait_until
from harness.system import same_bytes
from transfers import MIB, USAGE, ended_session, finish, forget, last_session, make_file, pull, push, refused, start_slow

WORDS = "a of the in extent chunk lane worker status credit sender receiver digest flow object peer node file".split()


def text(size, seed):
    """Words, and numbers between them: a third as long, or less."""
    draw = random.Random(seed)
    lines = [f"{draw.randrange(10**6):06} {' '.join(draw.choices(WORDS, k=12))}\n" for _ in range(5000)]
    found, total = [], 0
    while total < size:
        found.append(draw.choice(lines))
        total += len(found[-1])
    return "".join(found).encode()[:size]


def text_file(node, name, size, seed=1):
    path = node.export() / name
    path.write_bytes(text(size, seed))
    return path


@pytest.fixture(scope="module")
def slow(make_pair):
    return make_pair(wire=EmulatedWire(rate="100M"), bytes_needed=1 << 29)


def ended(pair):
    """The last session as its source and its destination show it. Pushed files have ended at a first."""
    wait_until(lambda: last_session(pair.b)["state"] == "succeeded", 30, "the session has ended at b")
    return last_session(pair.a), last_session(pair.b)


@pytest.mark.parametrize("choice", ["auto", "zstd"])
def test_text_travels_compressed(slow, choice):
    source = text_file(slow.a, "text", 16 * MIB + 1)
    target = push(slow, source, "--compress", choice)
    at_a, at_b = ended(slow)
    assert at_a["compress"] == at_b["compress"] == choice
    assert at_a["compressed_bytes"] > 8 * MIB
    assert 0 < at_a["compressed_wire_bytes"] < at_a["compressed_bytes"] / 2
    assert at_b["compressed_bytes"] == at_a["compressed_bytes"]
    assert at_a["bytes_done"] == at_b["bytes_done"] == 16 * MIB + 1
    assert slow.b.counters()["rx_false_compressed"] == 0
    assert f"{choice}, " in slow.a.must("session", "show", at_a["id"]).stdout
    forget(source, target)


def test_it_is_off_unless_somebody_asks(slow):
    source = text_file(slow.a, "text", 4 * MIB)
    target = push(slow, source)
    at_a, _ = ended(slow)
    assert (at_a["compress"], at_a["compressed_bytes"]) == ("off", 0)
    forget(source, target)


def test_random_bytes_travel_plain(slow):
    source = make_file(slow.a, 8 * MIB)
    target = push(slow, source, "--compress", "auto")
    at_a, _ = ended(slow)
    assert (at_a["compress"], at_a["compressed_bytes"]) == ("auto", 0)
    assert at_a["bytes_sent"] == 8 * MIB
    forget(source, target)


def test_who_gets_chooses_for_the_source(slow):
    source = text_file(slow.b, "text", 8 * MIB)
    target = pull(slow, source, "--compress", "zstd", "--crc", "crc32c", "--protection", "aes-256-gcm", "--lanes", 2)
    at_a, at_b = last_session(slow.a), last_session(slow.b)
    assert at_a["compressed_bytes"] == at_b["compressed_bytes"] > 4 * MIB
    forget(source, target)


def test_what_is_lost_comes_again(slow):
    slow.wire.set("both", loss={"probability": 0.05})
    for fec in ("off", "rs"):
        source = text_file(slow.a, f"text-{fec}", 12 * MIB, seed=3)
        target = push(slow, source, "--compress", "zstd", "--fec", fec)
        at_a, at_b = ended(slow)
        assert at_b["compressed_bytes"] > 6 * MIB
        assert fec == "off" or at_b["decoded_chunks"] > 0
        assert at_a["lost"] > 0
        forget(source, target)
    slow.wire.clear()
    assert slow.b.counters()["rx_false_compressed"] == 0


def test_a_tree_of_small_files(slow):
    tree = slow.a.export() / "small"
    for number in range(300):
        path = tree / f"d{number % 7}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text(1 + number * 37, number))
    slow.a.must("send", tree, "b:data/", "--compress", "zstd", "--digest", "blake3")
    at_a, _ = ended(slow)
    assert at_a["compressed_bytes"] > MIB / 2
    for path in (each for each in tree.rglob("*") if each.is_file()):
        assert same_bytes(path, slow.b.export() / path.relative_to(slow.a.export()))
    slow.a.must("send", tree, "b:data/", "--compress", "auto", "--sync")


@pytest.mark.parametrize("ends", ["control", "dataplane"])
def test_what_was_agreed_upon_outlives_daemons(slow, ends):
    source = text_file(slow.a, "long", 48 * MIB)
    process, session = start_slow(slow.a, "send", source, "b:data/", "--compress", "zstd", rate="20M")
    for node in slow.nodes:
        getattr(node, ends).kill()
        getattr(node, f"start_{ends}")()
    finish(process, 180)
    end = ended_session(slow.a, session)
    assert (end["state"], end["compress"]) == ("succeeded", "zstd"), end["error"]
    assert end["compressed_bytes"] > 24 * MIB
    target = slow.b.export() / source.name
    assert same_bytes(source, target)
    forget(source, target)


def test_into_null_it_is_off(slow):
    source = text_file(slow.a, "text", 4 * MIB)
    slow.a.must("send", source, "b:null:", "--compress", "zstd")
    assert (last_session(slow.a)["compress"], last_session(slow.a)["compressed_bytes"]) == ("off", 0)
    forget(source)


def test_a_choice_that_does_not_exist_is_refused(slow):
    refused(slow.a.sluice("send", make_file(slow.a, 1), "b:data/", "--compress", "lz4"), USAGE, "--compress", "lz4")
