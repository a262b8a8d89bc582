# Lanes, address families, CRC kinds, several sessions at once, and signals.
# SPDX-License-Identifier: Apache-2.0
import re
import signal

import pytest
from harness.system import same_bytes
from transfers import (CANCELLED, INCOMPATIBLE, MIB, USAGE, ended_session, finish, forget, last_session, make_file, names,
                       pull, push, start_slow, still_serving)  # fmt: skip


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30)


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_a_session_uses_the_lanes_it_was_given(pair, lanes):
    source = make_file(pair.a, 48 * MIB + 77)
    target = push(pair, source, "--lanes", lanes)
    assert last_session(pair.a)["lanes"] == lanes
    forget(source, target)


@pytest.mark.parametrize("lanes", [2, 4])
def test_a_pull_uses_the_lanes_it_was_given(pair, lanes):
    source = make_file(pair.b, 48 * MIB + 77)
    target = pull(pair, source, "--lanes", lanes)
    assert last_session(pair.a)["lanes"] == lanes
    forget(source, target)


def test_several_sessions_at_once_in_both_directions(pair):
    running = []
    for giver, taker in ((pair.a, pair.b), (pair.b, pair.a)):
        for _ in range(2):
            source = make_file(giver, 20 * MIB + 1)
            running.append((giver.popen("send", source, f"{taker.name}:data/"), source, taker.export() / source.name))
            source = make_file(taker, 12 * MIB + 4095)
            target = giver.export() / ("got-" + source.name)
            running.append((giver.popen("get", f"{taker.name}:{source}", target), source, target))
    for process, source, target in running:
        ended = finish(process, 120)
        assert ended.returncode == 0, ended.stderr
        assert same_bytes(source, target)
        forget(source, target)
    still_serving(pair)


@pytest.mark.parametrize("move", [push, pull])
def test_ipv6_carries_a_file(pair, move):
    source = make_file(pair.a if move is push else pair.b, 20 * MIB + 3)
    target = move(pair, source, "-6")
    forget(source, target)


@pytest.mark.parametrize("crc", ["crc64", "crc32c"])
def test_crc_kind_can_be_chosen(pair, crc):
    source = make_file(pair.a, 20 * MIB + 5)
    target = push(pair, source, "--crc", crc)
    session = last_session(pair.a)
    assert session["crc"] == crc
    assert re.fullmatch(r"0*[0-9a-f]{8}" if crc == "crc32c" else "[0-9a-f]{16}",
                        session["files"][0]["digest_destination"])  # fmt: skip
    forget(source, target)


@pytest.mark.parametrize("crc", ["none", "crc32c", "crc64"])
def test_any_crc_kind_will_do_into_the_discard_sink(pair, crc):
    result = pair.a.sluice("send", f"memory:{64 * MIB}", "b:null:", "--crc", crc)
    assert result.returncode == 0, result.stderr
    session = last_session(pair.a)
    assert session["bytes_done"] == 64 * MIB
    assert not names(pair.b)


def test_without_crc_no_file_is_written(pair):
    source = make_file(pair.a, MIB)
    result = pair.a.sluice("send", source, "b:data/", "--crc", "none")
    assert result.returncode in (USAGE, INCOMPATIBLE), result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not names(pair.b)
    forget(source)
    still_serving(pair)


@pytest.mark.parametrize("chunk_bytes", [256, 900, 4096])
def test_chunk_size_can_be_chosen(pair, chunk_bytes):
    source = make_file(pair.a, 5 * MIB + 9)
    target = push(pair, source, "--chunk-bytes", chunk_bytes)
    assert last_session(pair.a)["chunk_bytes"] == chunk_bytes
    forget(source, target)


def test_goodput_stays_below_the_rate_that_was_asked_for(pair):
    source = make_file(pair.a, 40 * MIB)
    target = push(pair, source, "--rate", "200M")
    session = last_session(pair.a)
    assert 0 < session["goodput_bps"] <= 200e6
    forget(source, target)


def test_a_signal_that_comes_twice_at_once_cancels_the_session(pair):
    """As `timeout` sends it, to the command and to its group."""
    source = make_file(pair.a, 48 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGTERM):
        process.send_signal(number)
    assert finish(process).returncode == CANCELLED
    assert ended_session(pair.a, session)["state"] == "cancelled"
    forget(source)
