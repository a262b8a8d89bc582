# `sluice doctor` on real nodes: nothing fails on one that runs, and what is broken is named with its remedy.
# SPDX-License-Identifier: Apache-2.0
import json
import resource
import shutil
import subprocess

import pytest
from harness import Node, find_binaries, is_root
from harness.system import free_ports
from transfers import CONFIGURATION, DAEMON, names, refused


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair()


def examine(node, *arguments):
    """(exit status, {check: [finding]})."""
    status, reply, _ = node.json("doctor", *arguments)
    assert reply["schema"] == "sluice.doctor.v1"
    findings = {}
    for finding in reply["checks"]:
        assert (finding["level"] == "pass") == (finding["remedy"] == ""), finding
        findings.setdefault(finding["check"], []).append(finding)
    assert (status == CONFIGURATION) == (reply["worst"] == "fail")
    return status, findings


def levels(findings, check):
    return [finding["level"] for finding in findings.get(check, [])]


def test_a_node_that_runs_has_nothing_that_fails(pair):
    for node in pair.nodes:
        status, findings = examine(node)
        failed = [finding for each in findings.values() for finding in each if finding["level"] == "fail"]
        assert status == 0 and not failed
        for check in ("configuration", "identity", "control", "dataplane", "export", "peer", "io_uring"):
            assert levels(findings, check) == ["pass"], findings[check]
        assert not names(node), "it leaves nothing in an export"


def test_a_peer_is_called_asked_and_sent_to(pair):
    status, findings = examine(pair.a, "b")
    for check in ("peer_asked", "peer_version", "peer_clock", "peer_space", "path_mtu"):
        assert levels(findings, check) == ["pass"], findings.get(check)
    assert status == 0 and len(findings["path_loss"]) == 1
    assert "b:data" in findings["peer_space"][0]["text"]
    assert pair.a.sessions()[-1]["state"] == "succeeded"
    assert not names(pair.b)


def test_a_peer_that_is_not_there_or_not_known_fails_by_name(pair):
    pair.b.control.stop()
    try:
        status, findings = examine(pair.a, "b")
        assert status == CONFIGURATION and levels(findings, "peer_asked") == ["fail"]
        assert "start sluice-control there" in findings["peer_asked"][0]["remedy"]
        assert "path" not in findings
    finally:
        pair.b.start_control()
    status, findings = examine(pair.a, "nobody")
    assert status == CONFIGURATION and "nobody" in findings["peer_asked"][0]["text"]
    assert "sluice node trust nobody" in findings["peer_asked"][0]["remedy"]
    pair.a.must("node", "trust", "b", "--address", pair.a.address)
    try:
        _status, findings = examine(pair.a, "b")
        assert "that is this node itself" in findings["peer_asked"][0]["text"]
        assert "sluice node trust b --address HOST:PORT" in findings["peer_asked"][0]["remedy"]
    finally:
        pair.a.must("node", "trust", "b", "--address", pair.b.address)


def test_limits_are_those_of_the_daemon_that_runs(pair):
    for daemon in (pair.a.control, pair.a.dataplane):
        before = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (1000, before[1]))
        try:
            _, findings = examine(pair.a)
        finally:
            resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, before)
        told = [each for each in findings["open_files"] if f"(process {daemon.pid})" in each["text"]]
        assert len(told) == 1 and told[0]["level"] == "warn" and "1000" in told[0]["text"], findings["open_files"]


@pytest.mark.skipif(not is_root(), reason="becomes another user")
def test_what_another_user_may_not_see_is_not_called_broken(pair, tmp_path):
    def as_nobody(directory, *words):
        command = [pair.a.command()[0], "--node", directory, *words]
        return subprocess.run(command, user=65534, group=65534, extra_groups=[], capture_output=True, text=True,
                              check=False)  # fmt: skip

    for folder in (pair.a.directory, pair.a.directory.parent):
        folder.chmod(folder.stat().st_mode | 0o055)
    reply = json.loads(as_nobody(pair.a.directory, "doctor", "--json").stdout)
    found = {each["check"]: each for each in reply["checks"]}
    for check in ("user", "identity", "control"):
        assert found[check]["level"] == "warn", found[check]
        assert "run it as root: sudo -u root sluice" in found[check]["remedy"], found[check]
    assert found["identity"]["text"] == "you may not see this as nobody"
    tmp_path.chmod(0o700)
    refused(as_nobody(tmp_path / "node", "doctor"), CONFIGURATION, "you may not see", "as nobody")
    refused(as_nobody(tmp_path / "node", "session", "list"), CONFIGURATION, "you may not see", "as nobody")


def test_what_a_peer_says_of_itself_is_told_of_the_peer(pair):
    pair.b.dataplane.stop()
    try:
        said = refused(pair.a.sluice("send", "memory:1000", "b:null:"), DAEMON, "sluice-dataplane of node b does not run")
        assert "this node" not in said
    finally:
        pair.b.start_dataplane()
        pair.b.wait_attached()


def test_a_look_at_a_peer_is_no_failed_handshake_there(pair):
    examine(pair.a, "b")
    pair.b.stop()  # with all that it had to say
    try:
        assert not pair.b.control.log_lines("no handshake with")
    finally:
        pair.b.start()
        pair.b.wait_attached()


def test_the_plan_has_the_data_port_and_the_exports(pair):
    status, plan, _ = pair.a.json("node", "topology")
    assert status == 0 and plan["schema"] == "sluice.topology.v1"
    assert sum(port["data_port"] for node in plan["nodes"] for port in node["ports"]) == 1
    assert sum(len(node["cores"]) for node in plan["nodes"]) > 0
    text = pair.a.must("node", "topology").stdout
    assert "data port" in text and "data (" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_text_has_a_line_for_each_and_the_remedies(pair):
    text = pair.a.must("doctor").stdout
    assert "pass  configuration  " in text and text.splitlines()[-1].endswith(" 0 fail")
    _, findings = examine(pair.a)
    for each in findings.values():
        for finding in each:
            # Figures of the machine differ from one look to the next.
            assert finding["check"] in text and finding["remedy"] in text


def test_what_is_broken_is_named(pair):
    pair.b.dataplane.stop()
    pair.b.control.stop()
    try:
        status, findings = examine(pair.a)
        assert status == CONFIGURATION
        assert levels(findings, "peer") == ["fail"] and "b at" in findings["peer"][0]["text"]
        status, findings = examine(pair.b)
        assert status == 0 and levels(findings, "control") == ["warn"]
        assert f"sluice-control --node {pair.b.directory}" in findings["control"][0]["remedy"]
        pair.b.control.start()
        pair.b._wait(pair.b.control, lambda: pair.b.sluice("session", "list").returncode == 0, "serves")
        status, findings = examine(pair.b)
        assert status == CONFIGURATION and levels(findings, "dataplane") == ["fail"]
    finally:
        pair.b.start_dataplane()
        pair.b.wait_attached()


def test_a_node_that_cannot_start(tmp_path):
    node = Node(find_binaries(), tmp_path / "n", "n", free_ports(1)[0], settings={
        "port": {"device": "0000:ff:1f.7", "address4": "10.77.0.1/24"},
        "dataplane": {"memory_mib": 1048576, "cores": [1023], "extents_per_worker": 64},
    })  # fmt: skip
    node.add_export("data", tmp_path / "data")
    node.create()
    shutil.rmtree(tmp_path / "data")
    status, findings = examine(node)
    assert status == CONFIGURATION
    for check in ("memory", "hugepages", "device", "cores", "export"):
        assert "fail" in levels(findings, check), (check, findings.get(check))
    (node.directory / "node.toml").write_text("[node]\nname = 7\n")
    (node.directory / "identity/key.pem").unlink()
    status, findings = examine(node)
    assert status == CONFIGURATION
    assert levels(findings, "configuration") == levels(findings, "identity") == ["fail"]
    assert "node.toml:2" in findings["configuration"][0]["text"] and "io_uring" in findings
