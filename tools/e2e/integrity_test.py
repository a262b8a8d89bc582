# `sluice probe integrity`: what is sound is found sound, and damage that the path does is found where it was done.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import signal

import pytest
from harness import EmulatedWire, wait_until
from transfers import CANCELLED, ENDED, EXISTS, INTEGRITY, MIB, RESOURCES, USAGE, names, temporary_files


@pytest.fixture(scope="module")
def pair(make_pair):
    # Under `crc` what was damaged on the way is counted.
    return make_pair(wire=EmulatedWire(), settings={"transfer": {"protection": "crc"}})


# So many datagrams are lost by nobody: they fit where they wait while a node stands still.
_PACKETS = 1000


def reflects_nothing(pair):
    """An end is known at one node before it is at the other, and one probe of a node is reflected at a time."""
    wait_until(lambda: all(each["state"] in ENDED for node in pair.nodes for each in node.sessions()), 60, "each probe has ended")


@pytest.fixture(autouse=True)
def sound(pair):
    yield
    pair.wire.clear()
    reflects_nothing(pair)
    for node in pair.nodes:
        assert not names(node) and not temporary_files(node)


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def probe(pair, state, *options, code=0):
    result = pair.a.sluice("probe", "integrity", "b", "--state", state, "--json", *options)
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout)


def test_transfers_resume_where_they_were(pair, state):
    first = probe(pair, state, "--transfers", 2, "--bytes", "1M")
    assert (first["done"], first["wrong"], first["bytes_moved"], first["faults"]) == (2, 0, 2 * MIB, [])
    assert first["wrong_share_at_most"] == 1
    second = probe(pair, state, "--transfers", 4, "--bytes", "1M")
    assert (second["done"], second["wrong"], second["began_unix_ns"]) == (4, 0, first["began_unix_ns"])
    assert second["wrong_share_at_most"] == 0.75 and second["elapsed_s"] > first["elapsed_s"]
    sessions = len(pair.a.sessions())
    assert probe(pair, state, "--transfers", 4, "--bytes", "1M")["done"] == 4
    assert len(pair.a.sessions()) == sessions, "it was done"
    assert "another probe" in pair.a.sluice("probe", "integrity", "b", "--state", state, "--transfers", 4).stderr
    assert probe(pair, state, "--transfers", 1, "--bytes", "1K", "--restart")["done"] == 1


def test_what_is_damaged_on_the_way_is_repaired_and_counted(pair, state):
    pair.wire.set("a_to_b", corrupt={"bits_repaired": 0.05})
    found = probe(pair, state, "--transfers", 2, "--bytes", "1M")
    assert (found["done"], found["wrong"]) == (2, 0)
    assert found["crc_errors"] > 0 and found["resent"] > 0


def test_a_sound_path_reflects_what_was_sent(pair, state):
    found = probe(pair, state, "--packets", _PACKETS, "--size", 1111, "--rate", "200M")
    assert (found["done"], found["wrong"], found["lost"], found["wrong_bytes"]) == (_PACKETS, 0, 0, 0)
    assert found["bytes_moved"] == 2 * _PACKETS * 1111 and not found["udp_checksum"] and not found["faults"]
    assert found["wrong_share_at_most"] == 3 / _PACKETS
    counted = {each["name"]: each["value"] for each in pair.b.json("counters")[1]["counters"]}
    assert counted["rx_echoes"] >= _PACKETS and counted["rx_drop_echo"] == 0


@pytest.mark.parametrize("direction", ["a_to_b", "b_to_a"])
def test_bits_that_flip_are_found_there_and_back(pair, state, direction):
    def flipped():
        return pair.wire.counters()[direction]["corrupted"]["bits_repaired"]

    pair.wire.set(direction, corrupt={"bits_repaired": 0.02})
    before = flipped()
    found = probe(pair, state, "--packets", _PACKETS, "--size", 800, "--rate", "100M", code=INTEGRITY)
    damaged = flipped() - before  # statuses and data of the sessions among them, and headers
    assert found["done"] == _PACKETS and found["tried_again"] == 0
    assert 0.4 * damaged < found["wrong"] + found["lost"] <= damaged
    # 72 of 872 bytes are header: what is hit there is lost.
    assert found["wrong"] > found["lost"] and found["copies"] == 0
    assert found["wrong_bytes"] == found["wrong"] == len(found["faults"]), "one bit of each"
    assert found["bits_set"] + found["bits_cleared"] == found["wrong"]
    assert sum(count for _offset, count in found["positions"]) == found["wrong"]
    for fault in found["faults"]:
        [run] = fault["runs"]
        sent, came = (int.from_bytes(bytes.fromhex(run[word]), "big") for word in ("sent", "came"))
        assert (sent ^ came).bit_count() == 1 and 0 <= run["offset"] < 800 and 0 <= fault["number"] < _PACKETS
    text = pair.a.sluice("probe", "integrity", "b", "--state", state, "--packets", _PACKETS, "--size", 800).stdout
    assert "by their place in the payload" in text and f"{found['wrong']} wrong" in text


def test_an_interruption_keeps_what_was_found_and_one_is_reflected_at_a_time(pair, state, tmp_path):
    process = pair.a.popen("probe", "integrity", "b", "--state", state, "--packets", 40_000, "--size", 100, "--rate", "20M")
    reflects = lambda each: each["state"] == "transferring"  # noqa: E731
    wait_until(lambda: any(reflects(each) for each in pair.a.sessions()), 60, "it is under way")
    busy = pair.a.sluice("probe", "integrity", "b", "--state", tmp_path / "other", "--packets", 10)
    used = pair.a.sluice("probe", "integrity", "b", "--state", state, "--packets", 40_000, "--size", 100)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == CANCELLED and "resumes" in err, (out, err)
    assert busy.returncode == RESOURCES and "reflected here already" in busy.stderr, busy.stderr
    assert used.returncode == EXISTS, used.stderr
    reflects_nothing(pair)
    kept = json.loads(state.read_text())
    assert kept["done"] % 16384 == 0
    found = probe(pair, state, "--packets", kept["done"] + 100, "--size", 100)
    assert (found["done"], found["wrong"]) == (kept["done"] + 100, 0)


def test_what_cannot_be_is_refused(pair, state):
    long = pair.a.sluice("probe", "integrity", "b", "--state", state, "--packets", 5, "--size", 20_000)
    assert long.returncode == USAGE and "carry" in long.stderr, long.stderr
    # Nothing was found: the file is free for another probe.
    nobody = pair.a.sluice("probe", "integrity", "nobody", "--state", state, "--transfers", 5)
    assert nobody.returncode != 0 and "nobody" in nobody.stderr
