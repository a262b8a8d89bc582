# One file from several sources: each sends a part, and whatever befalls one of them the others bring the rest. Replicas
# that differ are never mixed.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import signal
import subprocess

import pytest
from harness import group_missing, wait_until
from harness.system import random_file, same_bytes
from sources import ALL, SOURCES, home_and_sources
from transfers import ENDED, INTEGRITY, MIB, PARTIAL, UNTRUSTED, USAGE, as_before, ended_session, last_session, refused
from trees import make_tree, same

_reason = group_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

@pytest.fixture(scope="module")
def group():
    with home_and_sources() as nodes:
        yield nodes


@pytest.fixture
def home(group):
    yield group["home"]
    as_before(group)


def replicas(group, name, size, of=SOURCES):
    """The same random bytes at each of these sources; the path of one of them."""
    first = random_file(group[of[0]].export() / name, size, seed=size)
    for other in of[1:]:
        shutil.copy(first, group[other].export() / name)  # with a time of its own
    return first


def bytes_by_source(session):
    return {leg["peer"]: leg["bytes"] for leg in session["legs"]}


def get(home, name, *options, sources=ALL):
    target = home.export() / f"got-{name}"
    return home.sluice("get", "--from", sources, f"data/{name}", target, *options), target


def begin(home, name):
    reply = home.json("get", "--from", ALL, f"data/{name}", home.export() / f"got-{name}", "--detach")
    assert reply[0] == 0, reply[2]
    return reply[1]["id"]


def wait_for_bytes(home, session, least):
    wait_until(lambda: home.json("session", "show", session)[1].get("bytes_done", 0) >= least, 60, "data have come")


def test_each_source_sends_a_part_and_the_file_is_identical(group, home):
    source = replicas(group, "file", 24 * MIB + 1)
    result, target = get(home, "file")
    assert result.returncode == 0, result.stderr
    assert same_bytes(source, target)
    session = last_session(home)
    parts = bytes_by_source(session)
    assert set(parts) == set(SOURCES) and all(parts.values()), parts
    assert session["peer"] == "alpha, beta, gamma"
    assert session["attempts"] == 1, "all sources together"
    assert "from alpha +2 " in home.must("session", "list", "--peer", "gamma").stdout
    receipt = json.loads(home.must("receipt", session["id"]).stdout)
    said = json.loads(receipt["statement"])["peers"]
    assert {each["name"]: each["bytes"] for each in said} == parts
    for name in SOURCES:
        wait_until(lambda name=name: last_session(group[name])["state"] == "succeeded", 30, f"it has ended at {name}")


def test_a_rate_is_that_of_all_together(group, home):
    replicas(group, "file", 8 * MIB)
    result, _ = get(home, "file", "--rate", "60M")
    assert result.returncode == 0, result.stderr
    session = last_session(home)
    assert session["rate_limit_bps"] == 60_000_000
    assert session["data_elapsed_s"] > 0.9 * 8 * 8 * MIB / 60e6
    assert "from          beta: " in home.must("session", "show", session["id"]).stdout


@pytest.mark.parametrize("size", [0, 1, 65536, MIB + 5])
def test_files_of_any_size(group, home, size):
    source = replicas(group, "small", size)
    result, target = get(home, "small")
    assert result.returncode == 0, result.stderr
    assert same_bytes(source, target)


def test_a_tree_arrives_from_all(group, home):
    tree = group["alpha"].export() / "tree"
    make_tree(tree, files=200, large=3)
    for other in ("beta", "gamma"):
        subprocess.run(["cp", "-a", tree, group[other].export()], check=True)
    result = home.sluice("get", "--from", ALL, "data/tree", home.export() / "in/", "--mkdir")
    assert result.returncode == 0, result.stderr
    same(tree, home.export() / "in" / "tree")


@pytest.mark.parametrize("daemons", [("control",), ("dataplane",), ("control", "dataplane")])
def test_the_others_bring_what_a_source_that_died_had(group, home, daemons):
    source = replicas(group, "file", 24 * MIB + 7)
    session = begin(home, "file")
    wait_for_bytes(home, session, 4 * MIB)
    for daemon in daemons:
        getattr(group["beta"], daemon).kill()
    end = ended_session(home, session)
    assert end["state"] == "succeeded", end["error"]
    assert same_bytes(source, home.export() / "got-file")


@pytest.mark.parametrize("restarts", [False, True])
def test_a_source_that_was_cut_off_before_the_end_hears_of_it_afterwards(group, home, restarts):
    """Also from the journal, when the control of the destination was another meanwhile."""
    source = replicas(group, "file", 24 * MIB + 11)
    session = begin(home, "file")
    wait_for_bytes(home, session, 4 * MIB)
    group.cut("beta")
    try:
        end = ended_session(home, session)
        assert end["state"] == "succeeded", end["error"]
        assert group["beta"].json("session", "show", session)[1]["state"] not in ENDED
        if restarts:
            home.control.kill()
            home.start_control()
    finally:
        group.cut("beta", False)
    assert ended_session(group["beta"], session)["state"] == "succeeded"
    assert same_bytes(source, home.export() / "got-file")


def test_a_source_that_stands_still_is_done_without(group, home):
    """It says nothing, and nobody says that it is gone. It hears of the end once it goes on."""
    source = replicas(group, "file", 24 * MIB + 13)
    session = begin(home, "file")
    wait_for_bytes(home, session, 4 * MIB)
    still = group["gamma"].control.pid
    os.kill(still, signal.SIGSTOP)
    try:
        end = ended_session(home, session)
        assert end["state"] == "succeeded", end["error"]
    finally:
        os.kill(still, signal.SIGCONT)
    assert ended_session(group["gamma"], session)["state"] == "succeeded"
    assert same_bytes(source, home.export() / "got-file")


def test_a_source_that_lacks_the_file_is_done_without(group, home):
    source = replicas(group, "file", 8 * MIB + 1, of=("beta", "gamma"))
    result, target = get(home, "file")
    assert result.returncode == 0, result.stderr
    assert same_bytes(source, target)
    session = last_session(home)
    why = {leg["peer"]: leg["error"] for leg in session["legs"]}
    assert "file" in why["alpha"] and not why["beta"] and not why["gamma"], why
    assert f"done without: {why['alpha']}" in home.must("session", "show", session["id"]).stdout
    assert home.control.log_lines("leg 0 to alpha has ended, others go on")


def test_a_session_outlives_its_own_node(group, home):
    source = replicas(group, "file", 24 * MIB + 9)
    session = begin(home, "file")
    wait_for_bytes(home, session, 4 * MIB)
    home.control.kill()
    home.start_control()
    end = ended_session(home, session)
    assert end["state"] == "succeeded", end["error"]
    assert same_bytes(source, home.export() / "got-file")


def test_a_source_that_is_away_is_done_without(group, home):
    group["gamma"].control.kill()
    source = replicas(group, "file", 2 * MIB, of=("alpha", "beta"))
    result, target = get(home, "file")
    assert result.returncode == 0, result.stderr
    assert same_bytes(source, target)


def test_replicas_of_different_size_are_not_mixed(group, home):
    replicas(group, "file", 8 * MIB)
    os.truncate(group["beta"].export() / "file", 8 * MIB - 1)
    result, target = get(home, "file")
    refused(result, INTEGRITY, "beta")
    assert not target.exists()


def test_replicas_of_different_bytes_are_not_mixed(group, home):
    replicas(group, "file", 24 * MIB)
    with open(group["gamma"].export() / "file", "r+b") as file:
        file.write(b"another")
    result, target = get(home, "file")
    refused(result, INTEGRITY, "gamma")
    assert not target.exists()


@pytest.mark.parametrize("name", ["file", "tree"])
def test_replicas_that_differ_in_a_few_bytes_are_not_mixed(group, home, name):
    """In extents that nobody compares beforehand: each source has some of its own."""
    inside = "tree/file" if name == "tree" else name
    for source in SOURCES:
        (group[source].export() / "tree").mkdir(exist_ok=True)
    replicas(group, inside, 24 * MIB)
    for place, source in enumerate(SOURCES):
        with open(group[source].export() / inside, "r+b") as file:
            for extent in (3 + place, 16 + place):
                file.seek(extent * MIB + 777)
                file.write(bytes([place]) * 3)
    if name == "tree":
        (home.export() / "got-tree").mkdir()
    result, target = get(home, name, "--rate", "200M")
    # By chance one of these extents is compared beforehand: that ends the whole session.
    assert result.returncode == INTEGRITY or (name == "tree" and result.returncode == PARTIAL), result.stderr
    assert not (target / "tree" / "file" if name == "tree" else target).exists()


@pytest.mark.parametrize("wrong, code, words", [
    (["--from", "alpha,alpha", "data/x", "y"], USAGE, ["--from", "alpha", "twice"]),
    (["--from", "alpha,", "data/x", "y"], USAGE, ["--from", "no name of a node"]),
    (["--from", "alpha,beta", "alpha:data/x", "y"], USAGE, ["data/x"]),
    (["--from", "alpha,beta", "--sync", "data/x", "y"], USAGE, ["--sync", "--from"]),
    (["--from", "alpha,nobody", "data/x", "y"], UNTRUSTED, ["nobody"]),
])  # fmt: skip
def test_what_cannot_be_is_refused(home, wrong, code, words):
    refused(home.sluice("get", *wrong), code, *words)
