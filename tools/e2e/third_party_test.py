# A transfer between two nodes that a third one orders: no byte comes there, its rights count, and it hears of the end
# whatever dies meanwhile.
# SPDX-License-Identifier: Apache-2.0
import json
import subprocess

import pytest
from harness import Group, group_missing, wait_until
from harness.system import random_file, same_bytes
from python_client_test import sluice  # noqa: F401: a fixture
from transfers import (
    CANCELLED,
    EXISTS,
    MIB,
    OUTSIDE,
    QUOTA,
    SOURCE,
    UNTRUSTED,
    USAGE,
    as_before,
    ended_session,
    last_session,
    refused,
)
from trees import make_tree, same

_reason = group_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

RATE = "80M"


@pytest.fixture(scope="module")
def group():
    with Group(["home", "alpha", "beta"], bytes_needed=1 << 30,
               of_node={"alpha": {"port": {"rate": RATE}}}) as nodes:  # fmt: skip
        nodes.start()
        yield nodes


@pytest.fixture
def home(group):
    yield group["home"]
    as_before(group)


def source_of(group, name, size):
    return random_file(group["alpha"].export() / name, size, seed=size)


def begin(home, *words):
    reply = home.json("send", *words, "--detach")
    assert reply[0] == 0, reply[2]
    return reply[1]["id"]


def show(node, session):
    return node.json("session", "show", session)[1]


def wait_for_bytes(home, session, least):
    wait_until(lambda: show(home, session).get("bytes_done", 0) >= least, 60, "data have come")


def audited(node, event, session):
    lines = [json.loads(line) for line in (node.directory / "audit.ndjson").read_text().splitlines()]
    return [line for line in lines if line["event"] == event and line["session"] == session]


@pytest.mark.parametrize("verb", ["send", "get"])
def test_a_file_moves_and_no_byte_comes_here(group, home, verb):
    source = source_of(group, "file", 3 * MIB + 1)
    result = home.sluice(verb, "alpha:data/file", "beta:data/arrived")
    assert result.returncode == 0, result.stderr
    assert same_bytes(source, group["beta"].export() / "arrived")
    session = last_session(home)
    assert (session["state"], session["direction"]) == ("succeeded", "order")
    assert (session["from"], session["peer"]) == ("alpha", "beta")
    assert session["bytes_done"] == 3 * MIB + 1
    digests = {session["files"][0]["digest_source"], session["files"][0]["digest_destination"]}
    assert len(digests) == 1 and "" not in digests
    for node, direction in (("alpha", "send"), ("beta", "serve-receive")):
        there = show(group[node], session["id"])
        assert (there["direction"], there["ordered_by"]) == (direction, "home")
        wait_until(lambda node=node: audited(group[node], "session_ended", session["id"]), 30, "the audit log")
        assert audited(group[node], "session_begun", session["id"])[0]["ordered_by"] == "home"
        assert audited(group[node], "session_begun", session["id"])[0]["asked_by"] == "peer"
        assert audited(group[node], "session_ended", session["id"])[0]["asked_by"] == "peer"
    assert audited(home, "order_begun", session["id"])[0]["source"] == "alpha"
    wait_until(lambda: audited(home, "session_ended", session["id"]), 30, "the audit log")
    ended = audited(home, "session_ended", session["id"])[0]
    assert [ended[key] for key in ("asked_by", "role", "source", "destination")] == ["operator", "order", "alpha", "beta"]
    for words in (("verify",), ("session", "log")):
        refused(home.sluice(*words, session["id"]), USAGE, "between alpha and beta")
    assert not any(value for name, value in home.counters().items() if "chunks" in name)
    assert home.sluice("receipt", session["id"]).returncode == USAGE
    said = json.loads(json.loads(group["beta"].must("receipt", session["id"]).stdout)["statement"])
    assert said["ordered_by"] == "home"


def test_a_tree_moves_and_patterns_are_those_of_the_source(group, home):
    tree = group["alpha"].export() / "tree"
    make_tree(tree, files=100, large=1)
    for at in range(3):
        random_file(group["alpha"].export() / f"run{at}.dat", 1000, seed=at)
    assert home.sluice("send", "alpha:data/tree", "beta:data/", ).returncode == 0
    same(tree, group["beta"].export() / "tree")
    assert home.sluice("send", "alpha:data/tree", "beta:data/another").returncode == 0
    same(tree, group["beta"].export() / "another")
    assert home.sluice("send", "alpha:data/run*.dat", "beta:data/in/", "--mkdir").returncode == 0
    assert sorted(path.name for path in (group["beta"].export() / "in").iterdir()) == [f"run{at}.dat" for at in range(3)]


def test_a_directory_of_one_becomes_that_of_the_other(group, home):
    tree, there = group["alpha"].export() / "tree", group["beta"].export() / "tree"
    make_tree(tree, files=60, large=1)
    words = ("send", "--sync", "alpha:data/tree/", "beta:data/tree/", "--mkdir")
    assert home.sluice(*words).returncode == 0
    same(tree, there)
    (tree / "new").write_text("new")
    (there / "extra").write_text("extra")
    says = home.sluice(*words, "--dry-run", "--delete").stdout
    assert "send new" in says and "remove extra" in says
    assert (there / "extra").exists() and not (there / "new").exists()
    refused(home.sluice(*words, "--delete"), OUTSIDE, "lacks the right manage")
    path = group["beta"].export()
    group["beta"].exports["data"] = (path, "rwm")
    try:
        restrict(group, "beta", None)
        assert home.sluice(*words, "--delete").returncode == 0
    finally:
        group["beta"].exports["data"] = (path, "rw")
        restrict(group, "beta", None)
    same(tree, there)
    assert "nothing to do" in home.sluice(*words).stdout


@pytest.mark.parametrize("victim, daemons", [
    ("home", ("control",)), ("alpha", ("control",)), ("beta", ("control", "dataplane")), ("alpha", ("dataplane",)),
])  # fmt: skip
def test_it_goes_on_whatever_dies(group, home, victim, daemons):
    source = source_of(group, "file", 24 * MIB + 3)
    session = begin(home, "alpha:data/file", "beta:data/")
    wait_for_bytes(home, session, 4 * MIB)
    for daemon in daemons:
        getattr(group[victim], daemon).kill()
    if "dataplane" in daemons:
        group[victim].start_dataplane()
    if "control" in daemons:
        group[victim].start_control()
    end = ended_session(home, session)
    assert end["state"] == "succeeded", end["error"]
    assert same_bytes(source, group["beta"].export() / "file")


def test_who_ordered_it_pauses_limits_and_cancels_it(group, home):
    source_of(group, "file", 60 * MIB)
    session = begin(home, "alpha:data/file", "beta:data/", "--rate", "20M")
    wait_for_bytes(home, session, MIB)
    home.must("session", "limit", session, "--rate", "10M")
    wait_until(lambda: show(group["alpha"], session)["rate_limit_bps"] == 10_000_000, 30, "its limit is the source's")
    home.must("session", "pause", session)
    for node in ("home", "alpha"):
        wait_until(lambda node=node: show(group[node], session)["state"] == "paused", 30, f"it is paused at {node}")
    home.must("session", "continue", session)
    wait_until(lambda: show(home, session)["state"] == "transferring", 60, "it goes on")
    home.must("session", "cancel", session)
    assert ended_session(home, session)["state"] == "cancelled"
    wait_until(lambda: show(group["beta"], session)["state"] in ("failed", "cancelled"), 60, "it has ended at beta")
    assert "home" in ended_session(group["alpha"], session)["error"]
    assert not (group["beta"].export() / "file").exists()


def restrict(group, node, peers):
    group[node].control.stop()
    group[node].export_peers.pop("data", None)
    if peers:
        group[node].export_peers["data"] = peers
    group[node].write_configuration()
    group[node].start_control()


def test_the_rights_of_who_ordered_it_count_and_no_others(group, home):
    source = source_of(group, "file", MIB)
    try:
        # alpha itself may do nothing at beta, nor beta at alpha.
        restrict(group, "alpha", ["home"])
        restrict(group, "beta", ["home"])
        assert home.sluice("send", "alpha:data/file", "beta:data/").returncode == 0
        assert same_bytes(source, group["beta"].export() / "file")
        refused(group["alpha"].sluice("send", source, "beta:data/again"), OUTSIDE, "beta")
        # Now the other way round: what alpha may do at beta is not home's to use.
        restrict(group, "beta", ["alpha"])
        refused(home.sluice("send", "alpha:data/file", "beta:data/again"), OUTSIDE, "beta")
        restrict(group, "beta", ["home"])
        restrict(group, "alpha", ["beta"])
        refused(home.sluice("send", "alpha:data/file", "beta:data/again"), OUTSIDE, "alpha")
        probed = audited(group["alpha"], "grant_refused", last_session(home)["id"])
        assert [(line["peer"], line["result"]) for line in probed] == [("home", "outside_exports")]
        assert not (group["beta"].export() / "again").exists()
    finally:
        restrict(group, "alpha", None)
        restrict(group, "beta", None)


@pytest.mark.parametrize("bound", ["alpha", "beta"])
def test_the_quotas_of_who_ordered_it_count(group, home, bound):
    source = source_of(group, "file", 2 * MIB)
    other = "beta" if bound == "alpha" else "alpha"
    try:
        for peer, code in (("home", QUOTA), (other, 0)):
            group[bound].export_quotas["data"] = [{"peer": peer, "session_bytes": "1MiB"}]
            restrict(group, bound, None)
            result = home.sluice("send", "alpha:data/file", "beta:data/")
            assert result.returncode == code, result.stderr
            assert (group["beta"].export() / "file").exists() == (code == 0)
    finally:
        group[bound].export_quotas["data"] = []
        restrict(group, bound, None)
    assert same_bytes(source, group["beta"].export() / "file")


def test_no_more_bytes_arrive_than_the_order_allows(group, home):
    tree = group["alpha"].export() / "bounded"
    tree.mkdir()
    for number in range(3):
        random_file(tree / f"f{number}", 2 * MIB, seed=number)
    refused(home.sluice("send", "alpha:data/bounded", "beta:data/", "--max-bytes", "5MiB"), UNTRUSTED, "5242880 at most")
    assert not any((group["beta"].export() / "bounded").glob("f*"))
    result = home.sluice("send", "alpha:data/bounded", "beta:data/", "--max-bytes", "7MiB")
    assert result.returncode == 0, result.stderr
    same(tree, group["beta"].export() / "bounded")
    refused(home.sluice("send", __file__, "beta:data/", "--max-bytes", "1MiB"), USAGE, "max_bytes")


def test_a_file_of_transfers_may_name_two_other_nodes(group, home):
    source = source_of(group, "file", 1000)
    work = home.directory / "work.toml"
    work.write_text('[[send]]\nsources = "alpha:data/file"\nto = "beta:data/"\n')
    result = home.sluice("run", work)
    assert result.returncode == 0, result.stderr
    assert same_bytes(source, group["beta"].export() / "file")


def test_a_list_longer_than_a_first_message_may_be(group, home):
    names = [f"a-name-of-some-length-{at:05}-{'x' * 60}.dat" for at in range(1500)]
    for name in names:
        (group["alpha"].export() / name).write_text(name)
    result = home.sluice("send", "alpha:data/*.dat", "beta:data/all/", "--mkdir")
    assert result.returncode == 0, result.stderr
    assert sorted(path.name for path in (group["beta"].export() / "all").iterdir()) == names


def test_what_is_wrong_is_told_here(group, home):
    source_of(group, "file", 1000)
    refused(home.sluice("send", "alpha:data/none", "beta:data/"), SOURCE, "alpha", "none")
    assert home.sluice("send", "alpha:data/file", "beta:data/").returncode == 0
    refused(home.sluice("send", "alpha:data/file", "beta:data/"), EXISTS, "beta", "file")
    assert home.sluice("send", "alpha:data/file", "beta:data/", "--overwrite").returncode == 0
    refused(home.sluice("send", "alpha:data/file", "alpha:data/x"), USAGE, "alpha")
    refused(home.sluice("get", "alpha:data/file", "alpha:data/x"), USAGE, "alpha")
    refused(home.sluice("send", "alpha:data/file", "home:data/x"), UNTRUSTED, "home")
    refused(home.sluice("send", "--dry-run", "alpha:data/file", "beta:data/"), USAGE, "--dry-run")


def test_a_local_file_that_is_called_so_is_never_taken_for_another(group, home):
    (home.directory / "alpha:x").write_text("local")

    def send(word):
        return subprocess.run(home.command("send", word, "beta:data/", "--quiet"), cwd=home.directory,
                              capture_output=True, text=True, check=False)  # fmt: skip

    refused(send("alpha:x"), USAGE, "./alpha:x")
    assert send("./alpha:x").returncode == 0
    assert (group["beta"].export() / "alpha:x").read_text() == "local"


def test_a_node_that_does_not_know_the_other_says_so(group, home):
    source_of(group, "file", 1000)
    group["alpha"].must("node", "distrust", "beta")
    try:
        refused(home.sluice("send", "alpha:data/file", "beta:data/"), UNTRUSTED, "alpha", "node trust")
    finally:
        group["alpha"].trust(group["beta"])
    group["beta"].must("node", "distrust", "home")
    try:
        refused(home.sluice("send", "alpha:data/file", "beta:data/"), UNTRUSTED, "beta", "node trust")
    finally:
        group["beta"].trust(home)


def test_a_session_ends_when_its_orderer_is_trusted_no_more(group, home):
    source_of(group, "file", 60 * MIB)
    session = begin(home, "alpha:data/file", "beta:data/", "--rate", "8M")
    wait_for_bytes(home, session, MIB)
    group["beta"].must("node", "distrust", "home")
    try:
        assert ended_session(group["beta"], session)["state"] == "failed"
        wait_until(lambda: show(group["alpha"], session)["state"] == "failed", 60, "it has ended at alpha")
        end = ended_session(home, session)
        assert end["state"] == "failed" and "home" in end["error"], end["error"]
    finally:
        group["beta"].trust(home)


def test_a_cancelled_order_that_nobody_took_ends_here(group, home):
    group["alpha"].control.kill()
    session = begin(home, "alpha:data/file", "beta:data/")
    wait_until(lambda: "node alpha" in show(home, session)["waiting_for"], 30, "it waits for alpha")
    home.must("session", "cancel", session)
    end = ended_session(home, session)
    assert end["state"] == "cancelled" and end["error_code"] == CANCELLED


def test_the_python_client_orders_as_well(group, home, sluice):  # noqa: F811
    source = source_of(group, "file", MIB)
    with sluice.Node(home.directory) as node:
        end = node.send(["data/file"], "beta", "data/by-client", source_node="alpha").wait(timeout_s=60)
        assert (getattr(end, "from"), end.peer, end.direction, end.bytes_done) == ("alpha", "beta", "order", MIB)
        with pytest.raises(sluice.SluiceError) as failed:
            node.send(["data/file"], "beta", "data/by-client", source_node="beta")
        assert failed.value.code == USAGE
    assert same_bytes(source, group["beta"].export() / "by-client")


def test_a_cancel_outlives_the_control_that_answered_it(group, home):
    source_of(group, "file", 40 * MIB)
    session = begin(home, "alpha:data/file", "beta:data/", "--rate", "4M")
    wait_for_bytes(home, session, MIB)
    group["alpha"].control.kill()
    wait_until(lambda: "node alpha" in show(home, session)["waiting_for"], 40, "it cannot hear alpha")
    home.must("session", "cancel", session)
    home.control.stop()
    home.start_control()
    group["alpha"].start_control()
    assert ended_session(home, session)["state"] == "cancelled"
