# One file that several nodes write, a range each: two sources of one directory, two destinations of another. Whatever befalls one of
# them, under the final name stands the file or nothing, and what has arrived is not sent again.
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import json
import os
import signal
import time

import pytest
from harness import Group, group_missing, wait_until
from harness.system import random_file, same_bytes
from stranger import called, met
from transfers import ENDED, EXISTS, INCOMPATIBLE, INTEGRITY, MIB, USAGE, as_before, ended_session, last_session, make_file, refused

pytestmark = pytest.mark.skipif(group_missing() is not None, reason=str(group_missing()))

SOURCES, DESTINATIONS = ("alpha", "beta"), ("arc1", "arc2")
SIZE = 12 * MIB + 4321
RANGES = ((0, 4 * MIB), (4 * MIB, 5 * MIB), (9 * MIB, 0))  # the last one up to the end


@pytest.fixture(scope="module", params=["memory", "disk"])
def group(request):
    with Group([*SOURCES, *DESTINATIONS], bytes_needed=1 << 29, in_memory=request.param == "memory",
               settings={"port": {"rate": "200M"}}) as nodes:  # fmt: skip
        for name in ("from", "to"):
            (nodes.base / name).mkdir()
        for name in SOURCES:
            nodes[name].add_export("data", nodes.base / "from", mode="rw")
        for name in DESTINATIONS:
            nodes[name].add_export("data", nodes.base / "to", mode="rw")
        for node in nodes.nodes:
            node.write_configuration()
        nodes.start()
        yield nodes


@pytest.fixture(autouse=True)
def clean(group):
    as_before(group)


@pytest.fixture
def source(group):
    path = random_file(group["alpha"].export() / "big.bin", SIZE, seed=7)
    path.chmod(0o640)
    os.utime(path, ns=(1_600_000_000_123_456_789,) * 2)
    return path


def part(number, of="0123456789abcdef0123456789abcdef"):
    offset, length = RANGES[number]
    return f"{of}:{offset}+{length or ''}"


FINISH, DROP = (f"0123456789abcdef0123456789abcdef:{word}" for word in ("finish", "drop"))


def send(node, source, what, *options, to="arc1:data/"):
    return node.sluice("send", "--part", what, source, to, *options)


def must_send(node, source, what, *options, to="arc1:data/"):
    result = send(node, source, what, *options, to=to)
    assert result.returncode == 0, result.stderr
    return last_session(node)


def stored(group):
    return group["arc1"].export() / "big.bin"


def left(group):
    return {path.name for path in group["arc1"].export().iterdir()}


def digest_of(node):
    session = last_session(node)
    return [(one["size_bytes"], one["digest_destination"]) for one in session["files"]]


def as_sent(source, target):
    assert same_bytes(source, target)
    one, other = source.stat(), target.stat()
    assert (one.st_size, one.st_mode, one.st_mtime_ns) == (other.st_size, other.st_mode, other.st_mtime_ns)


def test_ranges_of_two_sources_by_two_destinations_become_one_file(group, source):
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        ways = [("beta", 2, "arc2"), ("alpha", 0, "arc1"), ("beta", 1, "arc1")]
        for result in pool.map(lambda way: send(group[way[0]], source, part(way[1]), to=f"{way[2]}:data/"), ways):
            assert result.returncode == 0, result.stderr
    assert not stored(group).exists()
    session = must_send(group["beta"], source, FINISH, to="arc2:data/")
    as_sent(source, stored(group))
    assert left(group) == {"big.bin"}
    # It moved nothing, and tells of all.
    assert session["bytes_sent"] == 0
    whole = group["alpha"].must("send", source, "arc1:data/other").returncode
    assert whole == 0
    assert digest_of(group["beta"]) == [(SIZE, last_session(group["alpha"])["files"][0]["digest_destination"])]


def test_a_destination_may_get_its_ranges_as_well(group, source):
    for node, number in (("arc1", 1), ("arc2", 0), ("arc2", 2)):
        group[node].must("get", "--part", part(number), "alpha:data/big.bin", group[node].export())
    group["arc1"].must("get", "--part", FINISH, "beta:data/big.bin", group["arc1"].export())
    as_sent(source, stored(group))
    assert left(group) == {"big.bin"}


def test_a_range_that_is_missing_is_named_and_what_is_there_is_not_sent_again(group, source):
    must_send(group["alpha"], source, part(0))
    must_send(group["beta"], source, part(2), to="arc2:data/")
    refused(send(group["alpha"], source, FINISH), USAGE, 4 * MIB, "not here yet")
    assert not stored(group).exists()
    again = must_send(group["beta"], source, part(0), to="arc2:data/")  # of another node, at another node
    assert again["bytes_sent"] == 0
    must_send(group["alpha"], source, part(1))
    must_send(group["alpha"], source, FINISH)
    as_sent(source, stored(group))


def test_a_source_that_changed_between_the_ranges_is_never_mixed(group, source):
    must_send(group["alpha"], source, part(0))
    with source.open("r+b") as file:
        file.write(b"changed")
    must_send(group["beta"], source, part(1))
    must_send(group["beta"], source, part(2))
    refused(send(group["alpha"], source, FINISH), INTEGRITY, "changed")
    assert not stored(group).exists()
    must_send(group["alpha"], source, part(0))  # its record counts no more
    must_send(group["alpha"], source, FINISH)
    as_sent(source, stored(group))


def test_a_source_that_became_shorter_is_told(group, source):
    os.truncate(source, 3 * MIB)
    refused(send(group["alpha"], source, part(0)), INTEGRITY, "changed")
    refused(send(group["alpha"], source, part(2)), INTEGRITY, "changed")
    assert left(group) == set()


def test_dropped_it_is_gone_and_begins_anew(group, source):
    must_send(group["alpha"], source, part(0))
    must_send(group["beta"], source, part(2), to="arc2:data/")
    assert len(left(group)) == 3
    must_send(group["alpha"], source, DROP, to="arc2:data/")
    assert left(group) == set()
    must_send(group["alpha"], source, DROP)  # nothing is there
    assert left(group) == set()
    refused(send(group["alpha"], source, FINISH), USAGE, "no part")
    assert must_send(group["alpha"], source, part(0))["bytes_sent"] == 4 * MIB
    must_send(group["alpha"], source, DROP)


def test_what_has_the_name_stays_without_overwrite(group, source):
    stored(group).write_bytes(b"older")
    refused(send(group["alpha"], source, part(0)), EXISTS, "--overwrite")
    for number in range(3):
        must_send(group["alpha"], source, part(number), "--overwrite")
    refused(send(group["alpha"], source, FINISH), EXISTS, "--overwrite")
    assert stored(group).read_bytes() == b"older"
    must_send(group["alpha"], source, FINISH, "--overwrite")
    as_sent(source, stored(group))
    assert left(group) == {"big.bin"}


def test_two_sets_of_one_name_do_not_meet(group, source):
    other = "f" * 32
    must_send(group["alpha"], source, part(0))
    must_send(group["alpha"], source, part(1, other))
    refused(send(group["alpha"], source, f"{other}:finish"), USAGE, "bytes from 0 on")
    dropped = send(group["alpha"], source, f"{other}:drop")
    assert dropped.returncode == 0, dropped.stderr
    assert "no digest" in dropped.stdout and "0000000000000000" not in dropped.stdout
    assert all(other not in name for name in left(group)) and len(left(group)) == 2
    must_send(group["alpha"], source, DROP)


def test_a_name_as_long_as_can_be_has_parts_too(group):
    source = random_file(group["alpha"].export() / ("n" * 255), MIB + 5, seed=3)
    must_send(group["alpha"], source, "a" * 32 + ":0+")
    must_send(group["alpha"], source, "a" * 32 + ":finish")
    target = group["arc1"].export() / source.name
    as_sent(source, target)
    assert left(group) == {source.name}


def test_one_range_alone_that_is_read_back(group):
    source = group["alpha"].export() / "one.bin"
    source.write_bytes(os.urandom(2 * MIB))
    must_send(group["alpha"], source, "b" * 32 + ":0+", "--verify")
    must_send(group["alpha"], source, "b" * 32 + ":finish")
    as_sent(source, group["arc1"].export() / "one.bin")


def test_a_node_is_killed_in_the_middle_and_its_session_goes_on(group):
    source = random_file(group["alpha"].export() / "slow.bin", 24 * MIB, seed=11)
    mark = "c" * 32
    slow = group["alpha"].must("send", "--detach", "--rate", "40M", "--part", f"{mark}:0+{12 * MIB}", source, "arc1:data/").stdout.split()[-1]
    wait_until(lambda: group["alpha"].json("session", "show", slow)[1].get("bytes_done", 0) >= 2 * MIB, 60, "data have come")
    must_send(group["beta"], source, f"{mark}:{12 * MIB}+", to="arc2:data/")  # beside it, at the other node
    for daemon in (group["arc1"].control, group["arc1"].dataplane):
        daemon.kill()
    group["arc1"].start_dataplane()
    group["arc1"].start_control()
    session = ended_session(group["alpha"], slow)
    assert session["state"] == "succeeded", session
    must_send(group["alpha"], source, f"{mark}:finish")
    as_sent(source, group["arc1"].export() / "slow.bin")


def test_while_a_session_writes_it_is_neither_finished_nor_dropped(group):
    source = random_file(group["alpha"].export() / "held.bin", 24 * MIB, seed=12)
    mark = "d" * 32
    slow = group["alpha"].must("send", "--detach", "--rate", "8M", "--part", f"{mark}:0+", source, "arc1:data/").stdout.split()[-1]
    wait_until(lambda: group["alpha"].json("session", "show", slow)[1].get("bytes_done", 0) >= MIB // 2, 60, "data have come")
    refused(send(group["beta"], source, f"{mark}:drop", to="arc1:data/"), EXISTS, "still write")
    group["alpha"].must("session", "cancel", slow)
    ended_session(group["alpha"], slow)
    assert len(left(group)) == 1  # of a set nothing is removed with one of its sessions
    must_send(group["beta"], source, f"{mark}:drop", to="arc1:data/")
    assert left(group) == set()


@pytest.mark.parametrize("words, said", [
    (["--part", "0+4"], "32 hex digits"),
    (["--part", "a" * 32 + ":17+4"], "whole MiB"),
    (["--part", "a" * 32 + ":0+0"], "no length"),
    (["--part", "a" * 32 + ":begin"], "no range"),
    (["--part", "A" * 32 + ":finish"], "32 hex digits"),
    (["--part", FINISH, "--dry-run"], "--dry-run"),
])  # fmt: skip
def test_what_cannot_be_is_refused(group, source, words, said):
    refused(group["alpha"].sluice("send", *words, source, "arc1:data/"), USAGE, said)


def test_a_part_is_of_one_file_into_a_file(group, source):
    alpha = group["alpha"]
    other = alpha.export() / "other"
    other.mkdir()
    refused(send(alpha, other, part(0)), USAGE, "one file")
    refused(alpha.sluice("send", "--part", part(0), source, other, "arc1:data/"), USAGE, "one source")
    refused(alpha.sluice("send", "--part", part(0), "memory:4M", "arc1:data/"), USAGE, "one file")
    refused(alpha.sluice("send", "--part", part(0), source, "arc1:null:"), USAGE, "null:")
    # The end of a range lies at a whole MiB, but for that of the file.
    refused(send(alpha, source, "a" * 32 + f":0+{MIB + 1}"), USAGE, "end at a whole MiB")


def test_a_peer_that_does_not_know_parts_gets_none(tmp_path):
    with met() as meeting:
        source = make_file(meeting.node, 2 * MIB)
        with called(meeting, meeting.peer()):
            refused(meeting.node.sluice("send", "--part", "a" * 32 + ":0+", source, "peer:x"), INCOMPATIBLE, "upgrade it")
