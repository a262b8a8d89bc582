# What holds a session is named, at both ends, live and at the end: each cause is provoked, and nothing is said of times.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

import pytest
from harness import EmulatedWire, Pair
from transfers import MIB, finish, forget, fresh_name, last_session, make_file, start_slow

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "perf"))
from lab import slow_disk  # noqa: E402


@pytest.fixture(scope="module")
def emulated(make_pair):
    return make_pair(wire=EmulatedWire(rate="1G"), bytes_needed=1 << 29)


@pytest.fixture
def pair(emulated):
    emulated.wire.clear()
    yield emulated
    emulated.wire.clear()


def moved(pair, *options, size=24 * MIB, to="b:data/"):
    """Both ends' verdicts on a file that a sends."""
    source = make_file(pair.a, size)
    result = pair.a.sluice("send", source, to, *options)
    assert result.returncode == 0, result.stderr
    forget(source, pair.b.export() / source.name)
    return [shown(node) for node in pair.nodes]


def shown(node):
    status, session, error = node.json("session", "show", last_session(node)["id"])
    assert status == 0, error
    return session


def assert_both_name(sessions, cause):
    for session in sessions:
        verdict = session["bottleneck"]
        print(session["direction"], verdict, [(each["cause"], round(each["share"], 2)) for each in session["causes"]])
        assert verdict["cause"] == cause
        assert 0 < verdict["share"] <= 1
        assert verdict["evidence"]


def test_a_rate_that_was_asked_for_is_a_limit(pair):
    sessions = moved(pair, "--mode", "fixed", "--rate", "100M")
    assert_both_name(sessions, "limit")
    assert any("100.0 Mbit/s" in line for line in sessions[0]["bottleneck"]["evidence"])


def test_a_narrow_link_is_the_network(pair):
    pair.wire.set(rate={"bits_per_s": "100M", "queue_bytes": 250_000}, delay={"fixed_us": 2000})
    assert_both_name(moved(pair), "network")


def test_loss_that_a_fixed_rate_yields_to_is_the_network(pair):
    pair.wire.set("a_to_b", loss={"probability": 0.3})
    # Before it yields the rate is the limit, for a second or two.
    sessions = moved(pair, "--mode", "fixed", "--rate", "200M", size=56 * MIB)
    assert_both_name(sessions, "network")
    assert any("lost" in line for line in sessions[0]["bottleneck"]["evidence"])


def test_the_caller_of_a_get_hears_the_verdict_of_its_source(pair):
    remote = make_file(pair.b, 24 * MIB)
    target = pair.a.export() / fresh_name()
    result = pair.a.sluice("get", f"b:{remote}", target, "--mode", "fixed", "--rate", "100M")
    assert result.returncode == 0, result.stderr
    assert_both_name([shown(node) for node in pair.nodes], "limit")
    forget(remote, target)


def test_it_is_told_while_data_moves_and_in_the_summary(pair):
    source = make_file(pair.a, 24 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/", "--mode", "fixed")
    causes = set()
    while process.poll() is None and causes != {"limit"}:
        now = shown(pair.a)
        causes = {now["bottleneck"]["cause"]} if now["state"] == "transferring" else causes
    text = pair.a.must("session", "show", session).stdout
    assert "bottleneck    limit" in text
    ended = finish(process)
    assert ended.returncode == 0, ended.stderr
    assert "bottleneck: limit" in ended.stdout
    status, history, _ = pair.a.json("session", "show", session)
    assert status == 0
    assert len(history["history"]) > 1
    assert sum(point["seconds"] * point["rate_bps"] for point in history["history"]) > 0
    forget(source, pair.b.export() / source.name)


def test_a_slow_disk_of_the_destination_is_named():
    reason = slow_disk.missing()
    if reason:
        pytest.skip(reason)
    size = 64 * MIB
    with Pair(wire=EmulatedWire(rate="1G"), bytes_needed=1 << 29) as pair, \
            slow_disk.SlowDisk(pair.base, 2 * size) as disk:  # fmt: skip
        pair.b.add_export("slow", disk.folder)
        pair.b.write_configuration()
        try:
            pair.start()
            disk.hold(pair.b.dataplane.pid)
            disk.limit(10 * MIB)
            assert_both_name(moved(pair, size=size, to="b:slow/"), "destination disk")
        finally:
            for node in pair.nodes:  # before the file system that they have open
                node.stop()
