# Rucio's own submitter, poller and finisher on SQLite, and three nodes: rules become sessions from alpha to beta that the node
# home orders, and every end comes back to Rucio. `./dev rucio` makes the environment that it needs.
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess

import pytest
from harness import Group, group_missing, wait_until
from harness.system import random_file, same_bytes
from rucios import PYTHON, TOOLS, Rucio, rucio_missing
from transfers import MIB, ended_session, nothing_temporary, wait_state

_reason = group_missing() or rucio_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

RATE = "80M"


@pytest.fixture(scope="module")
def group():
    with Group(["home", "alpha", "beta"], bytes_needed=1 << 30,
               of_node={"alpha": {"port": {"rate": RATE}, "control": {"sessions_max": 2}}}) as nodes:  # fmt: skip
        nodes["beta"].add_export("data", nodes["beta"].export(), "rwm")
        nodes["beta"].add_export("dark", nodes.base / "beta-dark", "w")
        nodes["beta"].write_configuration()
        nodes.start()
        yield nodes
        nothing_temporary(*nodes.nodes)


@pytest.fixture(scope="module")
def rucio(group):
    host = Rucio(group.base / "rucio", group["home"])
    places = {name.upper(): [name, *group[name].address.split(":")] for name in group.names}
    rses = {name: [node, address, int(port), f"/data/{node}-rse/", "hash"] for name, (node, address, port) in places.items()}
    rses["FLAT"] = [*rses["BETA"][:3], "/data/flat-rse/", "identity"]
    rses["DARK"] = [*rses["BETA"][:3], "/dark/rse/", "hash"]
    host.do("setup", rses=rses)
    yield host
    host.close()


def dataset(group, rucio, name, sizes, missing=(), of="ALPHA", to="BETA"):
    """Files of the source that Rucio knows; where each comes to stand."""

    def beneath(rse, path):
        return group[rse.lower() if rse.lower() in group.names else "beta"].export() / path.partition("/")[2]

    here = rucio.do("paths", name=of, files=list(sizes))
    there = rucio.do("paths", name=to, files=list(sizes))
    for each, size in sizes.items():
        path = beneath(of, here[each])
        path.parent.mkdir(parents=True, exist_ok=True)
        if each not in missing:
            random_file(path, size, seed=size)
    rucio.do("declare", name=of, dataset=name, sizes=sizes)
    return {each: (beneath(of, here[each]), beneath(to, there[each])) for each in sizes}


def finished(rucio, rule, state="OK"):
    rucio.do("finish")
    seen = rucio.do("state")
    assert seen["rules"][rule] == state, f"{seen['rules'][rule]}\n{rucio.log()}"
    return seen


def moving(group, session):
    home = group["home"]
    wait_until(lambda: home.json("session", "show", session)[1].get("bytes_done", 0) > MIB, 60, "data have come")


def held(group, session):
    """It moves, and will not end before the test wants it."""
    moving(group, session)
    group["home"].must("session", "limit", session, "--rate", "4M")


def test_a_rule_becomes_a_session_and_its_replicas_available(group, rucio):
    files = dataset(group, rucio, "first", {"first.a": 1000, "first.b": 3 * MIB + 1, "first.empty": 0})
    rule = rucio.do("add_rule", dataset="first", to="BETA")
    assert {each["state"] for each in rucio.requests(rule).values()} == {"QUEUED"}
    ran = rucio.run("conveyor-submitter", "--run-once")
    assert ran.returncode == 0, ran.stderr
    submitted = rucio.requests(rule)
    assert {each["state"] for each in submitted.values()} == {"SUBMITTED"}, ran.stderr
    # The hash algorithm gave each file a directory of its own, and still one session takes all.
    assert len({each["eid"] for each in submitted.values()}) == 1
    assert len({path.parent for _, path in files.values()}) == 3
    session = submitted["first.a"]["eid"]
    assert submitted["first.a"]["host"] == f"sluice:{group['home'].directory}"
    polled = rucio.polled(rule)
    assert {each["state"] for each in polled.values()} == {"DONE"}, polled
    replicas = finished(rucio, rule)["replicas"]
    for name, (source, destination) in files.items():
        assert replicas[f"BETA:{name}"] == "AVAILABLE"
        assert same_bytes(source, destination)
    shown = group["home"].json("session", "show", session)[1]
    assert (shown["direction"], shown["from"], shown["peer"]) == ("order", "alpha", "beta")
    assert rucio.do("query", eids=[session, "0" * 32]) == {session: "succeeded", "0" * 32: "unknown"}
    assert not any(value for name, value in group["home"].counters().items() if "chunks" in name)


def test_where_paths_differ_each_pair_of_directories_has_a_session(group, rucio):
    files = dataset(group, rucio, "flat", {"flat.a": 1000, "flat.b": 2 * MIB}, to="FLAT")
    assert {there.name for _, there in files.values()} == set(files)
    assert len({there.parent for _, there in files.values()}) == 1
    rule = rucio.do("add_rule", dataset="flat", to="FLAT")
    rucio.do("submit")
    polled = rucio.polled(rule)
    assert {each["state"] for each in polled.values()} == {"DONE"}, polled
    assert len({each["eid"] for each in polled.values()}) == 2
    assert finished(rucio, rule)["replicas"]["FLAT:flat.a"] == "AVAILABLE"
    assert all(same_bytes(*pair) for pair in files.values())


def test_a_pair_of_rses_of_one_node_stays_queued_and_the_log_says_why(group, rucio):
    dataset(group, rucio, "near", {"near.a": 1000}, to="BETA")
    rule = rucio.do("add_rule", dataset="near", to="BETA")
    rucio.do("submit")
    rucio.polled(rule, lambda state: state == "DONE")
    finished(rucio, rule)
    rucio.do("remove_replica", name="ALPHA", file="near.a")
    again = rucio.do("add_rule", dataset="near", to="FLAT")
    rucio.do("submit")
    assert rucio.requests(again)["near.a"]["state"] == "QUEUED"
    assert "both RSEs are of the node beta" in rucio.log()
    rucio.do("delete_rule", id=again)


def test_a_file_that_is_not_there_fails_with_the_reason_and_no_other_one_does(group, rucio):
    files = dataset(group, rucio, "holes", {"holes.a": 1000, "holes.none": 2000}, missing=["holes.none"])
    rule = rucio.do("add_rule", dataset="holes", to="BETA")
    rucio.do("submit")
    polled = rucio.polled(rule)
    assert polled["holes.a"]["eid"] == polled["holes.none"]["eid"]
    assert (polled["holes.a"]["state"], polled["holes.none"]["state"]) == ("DONE", "FAILED")
    assert "was not there" in polled["holes.none"]["error"]
    replicas = finished(rucio, rule, "REPLICATING")["replicas"]
    assert replicas["BETA:holes.a"] == "AVAILABLE" and replicas["BETA:holes.none"] != "AVAILABLE"
    # Rucio tries again by itself, and now it is there.
    again = rucio.requests(rule)["holes.none"]
    assert (again["state"], again["retry"]) == ("QUEUED", 1)
    random_file(files["holes.none"][0], 2000, seed=7)
    rucio.do("submit")
    assert rucio.polled(rule)["holes.none"]["state"] == "DONE"
    assert finished(rucio, rule)["replicas"]["BETA:holes.none"] == "AVAILABLE"


def test_a_file_of_another_size_than_rucio_knows_is_no_replica(group, rucio):
    files = dataset(group, rucio, "short", {"short.a": 1000, "short.b": 1000})
    files["short.b"][0].write_bytes(b"x" * 999)
    rule = rucio.do("add_rule", dataset="short", to="BETA")
    rucio.do("submit")
    polled = rucio.polled(rule)
    assert (polled["short.a"]["state"], polled["short.b"]["state"]) == ("DONE", "FAILED")
    assert "999 bytes" in polled["short.b"]["error"] and "1000" in polled["short.b"]["error"]
    rucio.do("delete_rule", id=rule)


def test_an_export_that_cannot_be_read_is_no_place_for_replicas(group, rucio):
    dataset(group, rucio, "dark", {"dark.a": 1000})
    rule = rucio.do("add_rule", dataset="dark", to="DARK")
    rucio.do("submit")
    polled = rucio.polled(rule)["dark.a"]
    assert polled["state"] == "FAILED" and "its size cannot be compared" in polled["error"], polled
    rucio.do("delete_rule", id=rule)


def test_what_stands_there_with_other_bytes_is_replaced_only_where_that_is_said(group, rucio):
    source, there = dataset(group, rucio, "stands", {"stands.a": 1000})["stands.a"]
    there.parent.mkdir(parents=True)
    there.write_bytes(b"y" * 1000)
    rule = rucio.do("add_rule", dataset="stands", to="BETA")
    rucio.do("submit")
    polled = rucio.polled(rule)["stands.a"]
    assert polled["state"] == "FAILED" and "exists at the destination" in polled["error"]
    assert there.read_bytes() == b"y" * 1000
    finished(rucio, rule, "REPLICATING")
    rucio.do("set_attribute", name="BETA", key="overwrite", value=True)
    try:
        rucio.do("submit")
        assert rucio.polled(rule)["stands.a"]["state"] == "DONE"
    finally:
        rucio.do("set_attribute", name="BETA", key="overwrite", value=False)
    finished(rucio, rule)
    assert same_bytes(source, there)


def test_rucio_may_say_that_its_next_attempt_replaces_what_is_wrong(group, rucio):
    source, there = dataset(group, rucio, "wrong", {"wrong.a": 1000})["wrong.a"]
    there.parent.mkdir(parents=True)
    there.write_bytes(b"y" * 1000)
    rule = rucio.do("add_rule", dataset="wrong", to="BETA")
    rucio.do("configure", section="transfers", option="overwrite_corrupted_files", value="True")
    try:
        rucio.do("submit")
        assert rucio.polled(rule)["wrong.a"]["state"] == "FAILED"
    finally:
        rucio.do("configure", section="transfers", option="overwrite_corrupted_files", value="False")
    finished(rucio, rule, "REPLICATING")
    rucio.do("submit")
    assert rucio.polled(rule)["wrong.a"]["state"] == "DONE"
    finished(rucio, rule)
    assert same_bytes(source, there)


def test_a_rule_that_is_removed_cancels_its_session_and_no_other(group, rucio):
    sizes = {"gone.a": 60 * MIB, "stays.a": 2 * MIB}
    rules = {}
    for name, size in sizes.items():
        paths = dataset(group, rucio, name.partition(".")[0], {name: size})
        rules[name] = (rucio.do("add_rule", dataset=name.partition(".")[0], to="BETA"), paths[name])
    rucio.do("submit")
    session = rucio.requests(rules["gone.a"][0])["gone.a"]["eid"]
    held(group, session)
    rucio.do("delete_rule", id=rules["gone.a"][0])
    assert ended_session(group["home"], session)["state"] == "cancelled"
    assert rucio.requests(rules["gone.a"][0]) == {} and not rules["gone.a"][1][1].exists()
    polled = rucio.polled(rules["stays.a"][0])
    assert polled["stays.a"]["state"] == "DONE"
    finished(rucio, rules["stays.a"][0])


def test_a_session_that_an_operator_cancels_fails_and_is_tried_again(group, rucio):
    dataset(group, rucio, "cancelled", {"cancelled.a": 60 * MIB})
    rule = rucio.do("add_rule", dataset="cancelled", to="BETA")
    rucio.do("submit")
    session = rucio.requests(rule)["cancelled.a"]["eid"]
    held(group, session)
    group["home"].must("session", "cancel", session)
    polled = rucio.polled(rule)["cancelled.a"]
    assert polled["state"] == "FAILED" and "cancel" in polled["error"]
    finished(rucio, rule, "REPLICATING")
    assert rucio.requests(rule)["cancelled.a"]["state"] == "QUEUED"
    rucio.do("delete_rule", id=rule)


@pytest.mark.parametrize("victim, daemons", [("alpha", ("control", "dataplane")), ("beta", ("control",)), ("home", ("control",))])
def test_a_node_that_dies_and_comes_back_delays_and_loses_nothing(group, rucio, victim, daemons):
    name = f"dies-{victim}.a"
    source, there = dataset(group, rucio, f"dies-{victim}", {name: 20 * MIB + 3})[name]
    rule = rucio.do("add_rule", dataset=f"dies-{victim}", to="BETA")
    rucio.do("submit")
    moving(group, rucio.requests(rule)[name]["eid"])
    for daemon in daemons:
        getattr(group[victim], daemon).kill()
    rucio.do("poll")
    assert rucio.requests(rule)[name]["state"] != "FAILED"
    if "dataplane" in daemons:
        group[victim].start_dataplane()
    group[victim].start_control()
    polled = rucio.polled(rule)
    assert polled[name]["state"] == "DONE", polled
    finished(rucio, rule)
    assert same_bytes(source, there)


def test_a_submitter_that_dies_before_the_database_orders_the_same_again_and_no_harm_comes_of_it(group, rucio):
    files = dataset(group, rucio, "twice", {"twice.a": 1000, "twice.b": 2 * MIB})
    rule = rucio.do("add_rule", dataset="twice", to="BETA")
    rucio.do("submit_twice", rule_id=rule)
    first = group["home"].sessions()[-1]["id"]
    assert ended_session(group["home"], first)["state"] == "succeeded"
    rucio.do("submit")
    polled = rucio.polled(rule)
    assert {each["state"] for each in polled.values()} == {"DONE"}, polled
    assert polled["twice.a"]["eid"] != first
    finished(rucio, rule)
    assert all(same_bytes(*pair) for pair in files.values())


def test_a_session_that_nobody_knows_any_more_is_lost_and_ordered_again(group, rucio):
    dataset(group, rucio, "lost", {"lost.a": 1000})
    rule = rucio.do("add_rule", dataset="lost", to="BETA")
    rucio.do("submit")
    ended_session(group["home"], rucio.requests(rule)["lost.a"]["eid"])
    rucio.do("forget", rule_id=rule, external_id="0" * 32)
    polled = rucio.polled(rule)["lost.a"]
    assert polled["state"] == "LOST" and "knows no session" in polled["error"]
    finished(rucio, rule, "REPLICATING")
    rucio.do("submit")
    assert rucio.polled(rule)["lost.a"]["state"] == "DONE"
    finished(rucio, rule)


def test_the_higher_priority_goes_first_in_the_queue_of_the_source(group, rucio):
    rules, eids = {}, {}
    for name, size, priority in (("running", 60 * MIB, 3), ("late", 1000, 1), ("urgent", 1000, 5)):
        dataset(group, rucio, name, {f"{name}.a": size})
        rules[name] = rucio.do("add_rule", dataset=name, to="BETA", priority=priority)
        rucio.do("submit")
        eids[name] = rucio.requests(rules[name])[f"{name}.a"]["eid"]
        if name == "running":
            held(group, eids[name])
    alpha = group["alpha"]
    places = {name: wait_state(alpha, eids[name], "queued")["queue_place"] for name in ("urgent", "late")}
    assert places == {"urgent": 1, "late": 2}
    rucio.do("prioritize", id=rules["late"], priority=5)  # of no effect, which Rucio logs and survives
    assert "an operator there may" in rucio.log()
    rucio.do("delete_rule", id=rules["running"])
    assert ended_session(group["home"], eids["running"])["state"] == "cancelled"
    for name in ("late", "urgent"):
        assert rucio.polled(rules[name])[f"{name}.a"]["state"] == "DONE"
    assert finished(rucio, rules["late"])["rules"][rules["urgent"]] == "OK"


@pytest.mark.parametrize("of, to, direction", [("HOME", "BETA", "send"), ("ALPHA", "HOME", "get")])
def test_the_node_beside_rucio_may_be_that_of_an_rse(group, rucio, of, to, direction):
    name = f"own-{direction}"
    files = dataset(group, rucio, name, {f"{name}.a": 1000, f"{name}.b": 2 * MIB}, of=of, to=to)
    rule = rucio.do("add_rule", dataset=name, to=to)
    rucio.do("submit")
    polled = rucio.polled(rule)
    assert {each["state"] for each in polled.values()} == {"DONE"}, polled
    assert group["home"].json("session", "show", polled[f"{name}.a"]["eid"])[1]["direction"] == direction
    finished(rucio, rule)
    assert all(same_bytes(*pair) for pair in files.values())
    path = rucio.do("paths", name=to, files=[f"{name}.a"])[f"{name}.a"]
    url = f"sluice://{group[to.lower()].address}/{path}"
    assert rucio.do("protocol", name=to, method="exists", url=url) is True


def test_the_protocol_looks_at_replicas_and_removes_them(group, rucio):
    url = f"sluice://{group['beta'].address}/data/beta-rse/looked/at"
    path = group["beta"].export() / "beta-rse/looked/at"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"12345")
    assert rucio.do("protocol", name="BETA", method="exists", url=url) is True
    assert rucio.do("protocol", name="BETA", method="stat", url=url) == {"filesize": 5}
    rucio.do("protocol", name="BETA", method="delete", url=url)
    assert not path.exists()
    assert rucio.do("protocol", name="BETA", method="exists", url=url) is False


def test_a_daemon_that_does_not_exist_is_named(rucio):
    ran = rucio.run("conveyor-nobody")
    assert ran.returncode == 2 and "rucio-conveyor-nobody" in ran.stderr


def test_the_package_brings_its_command(tmp_path):
    subprocess.run([PYTHON, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation", "--target", tmp_path,
                    TOOLS / "python", TOOLS / "rucio"], check=True)  # fmt: skip
    helped = subprocess.run([tmp_path / "bin/sluice-rucio-daemon", "--help"], env={**os.environ, "PYTHONPATH": str(tmp_path)},
                            capture_output=True, text=True, check=False)  # fmt: skip
    assert helped.returncode == 0 and "conveyor-submitter" in helped.stdout, helped.stderr
