# Users of one node are users of another: a map says who is who. Files belong to those whom it names, who may do what the
# host lets them, and nobody else comes in.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pwd
import stat
import subprocess

import pytest
from harness import is_root, wait_until
from harness.system import random_file, same_bytes
from mapped import ADA, CONTROL, HERE, STRANGER, SYSTEM, USUAL, mapped_pair, uid
from transfers import CONFIGURATION, DAEMON, MIB, SOURCE, STORAGE, UNTRUSTED, as_user, ended_session, forget, refused

pytestmark = pytest.mark.skipif(not is_root(), reason="needs root, to be other users")

@pytest.fixture(scope="module")
def nodes(make_pair):
    yield from mapped_pair(make_pair)


@pytest.fixture(autouse=True)
def usual(nodes):
    nodes.write(USUAL)


@pytest.fixture
def source(nodes):
    """That nobody at a but its owner can read."""
    path = random_file(nodes.a.export() / "ada.bin", 2 * MIB + 1, seed=1)
    os.chown(path, uid(ADA), pwd.getpwnam(ADA).pw_gid)
    path.chmod(0o400)
    yield path
    forget(path)


def test_what_is_sent_belongs_to_whom_the_map_says(nodes, source):
    result = nodes.send(ADA, source, "b:data/")
    assert result.returncode == 0, result.stderr
    target = nodes.b.export() / source.name
    assert same_bytes(source, target)
    about = target.stat()
    assert (about.st_uid, about.st_gid) == (uid(HERE), pwd.getpwnam(HERE).pw_gid)
    session = nodes.b.sessions()[-1]
    assert (session["user"], session["uid"]) == (f"{HERE} ({ADA} at a)", uid(HERE))
    assert f"{HERE} ({ADA} at a)" in nodes.b.must("session", "show", session["id"], "--json").stdout
    for event in ("session_begun", "session_ended"):
        line = [one for one in nodes.audit(event) if one["session"] == session["id"]][-1]
        told = (line["asked_by"], line["user"], line["uid"], line["peer_user"])
        assert told == ("peer", HERE, uid(HERE), ADA)
    # It is theirs at b: they see it, by the socket of users.
    command = [*as_user(HERE), *nodes.b.command("session", "list", "--json")]
    seen = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert session["id"] in seen.stdout, seen.stderr
    command[: len(as_user(ADA))] = as_user(ADA)
    seen = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert session["id"] not in seen.stdout
    forget(target)


def test_they_get_what_they_may_read_there(nodes):
    """Where control may read it and they may not, they get nothing: and the other way round."""
    source = random_file(nodes.b.export() / "there.bin", MIB + 3, seed=2)
    os.chown(source, uid(HERE), pwd.getpwnam(HERE).pw_gid)
    source.chmod(0o400)
    target = nodes.a.export() / "got.bin"
    result = nodes.get(ADA, f"b:{source}", target)
    assert result.returncode == 0, result.stderr
    assert same_bytes(source, target)
    assert target.stat().st_uid == uid(ADA)
    forget(target)
    os.chown(source, uid(CONTROL), pwd.getpwnam(CONTROL).pw_gid)
    refused(nodes.get(ADA, f"b:{source}", target), SOURCE, source, "permission denied", f"{ADA} of node a is user {HERE}",
            "node b")  # fmt: skip
    assert not target.exists()
    forget(source)


def test_they_write_where_they_may_write_there(nodes, source):
    folder = nodes.b.export() / "closed"
    folder.mkdir(mode=0o755)
    os.chown(folder, uid(CONTROL), pwd.getpwnam(CONTROL).pw_gid)
    refused(nodes.send(ADA, source, "b:data/closed/"), STORAGE, "permission denied", f"{ADA} of node a is user {HERE}")
    assert not list(folder.iterdir())
    # An operator's files are control's, as ever.
    readable = random_file(nodes.a.export() / "operators.bin", 1, seed=3)
    readable.chmod(0o644)
    assert nodes.a.sluice("send", readable, "b:data/closed/").returncode == 0
    assert (folder / readable.name).stat().st_uid == uid(CONTROL)
    forget(readable, folder / readable.name)
    folder.rmdir()


def test_whom_the_map_does_not_let_in_hears_why(nodes, source):
    """It is read anew each time that it has changed."""
    said = {f"{ADA}@a deny\n*@* *\n": ("by line 1", "ask an operator"),
            "somebody@a else\n": ("no line", f"add {ADA}@a LOCAL"),
            "@a deny\n": ("no line", f"add {ADA}@a LOCAL")}  # fmt: skip
    for text, words in said.items():
        nodes.write(text)
        refused(nodes.send(ADA, source, "b:data/"), UNTRUSTED, f"{ADA} of node a", "users_map_file", *words)
        line = nodes.audit("user_refused")[-1]
        assert (line["peer"], line["peer_user"], line["result"]) == ("a", ADA, "peer_untrusted")
    refused(nodes.a.sluice("send", "memory:1", "b:null:"), UNTRUSTED, "an operator of node a", "by line 1")
    refused(nodes.get(ADA, "b:data/whatever", f"{nodes.a.export()}/"), UNTRUSTED, f"{ADA} of node a")
    assert not list(nodes.b.export().iterdir())


@pytest.mark.parametrize("local, why", [(SYSTEM, "users_uid_min"), (STRANGER, "users_group"), ("no-such-user", "no such user")])
def test_whom_it_may_not_be_there(nodes, source, local, why):
    uid_min = uid(HERE)
    if local == STRANGER and uid(local) < uid_min:
        why = "users_uid_min"
    nodes.write(f"{ADA}@a {local}\n")
    refused(nodes.send(ADA, source, "b:data/"), CONFIGURATION, f"{ADA} of node a is user {local} at node b", why)


def test_patterns_and_operators(nodes, source):
    nodes.write(f"no[a-z]*@? {HERE}\n@a {HERE}\n")
    readable = random_file(nodes.a.export() / "operators.bin", MIB, seed=4)
    readable.chmod(0o644)
    result = nodes.send(ADA, source, "b:data/")
    assert result.returncode == 0, result.stderr
    assert nodes.a.sluice("send", readable, "b:data/").returncode == 0
    for path in (source, readable):
        assert (nodes.b.export() / path.name).stat().st_uid == uid(HERE)
        forget(nodes.b.export() / path.name)
    session = nodes.b.sessions()[-1]
    assert session["user"] == f"{HERE} (an operator at a)"
    nodes.write("*@a *\n")
    result = nodes.send(ADA, source, "b:data/")
    assert result.returncode == 0, result.stderr
    assert (nodes.b.export() / source.name).stat().st_uid == uid(ADA)
    forget(nodes.b.export() / source.name, readable)


def test_where_no_line_names_the_node_it_is_as_ever(nodes, source):
    nodes.write("alice@other asmith\n")
    result = nodes.send(ADA, source, "b:data/")
    assert result.returncode == 0, result.stderr
    target = nodes.b.export() / source.name
    assert target.stat().st_uid == uid(CONTROL)
    assert (nodes.b.sessions()[-1]["user"], nodes.b.sessions()[-1]["uid"]) == ("", None)
    forget(target)


def _begin(nodes, source):
    result = nodes.sluice(ADA, "send", source, "b:data/", "--rate", "20M", "--detach")
    assert result.returncode == 0, result.stderr
    session = result.stdout.split()[-1]
    there = lambda: [one for one in nodes.b.sessions() if one["id"] == session and one["bytes_done"] > 0]  # noqa: E731
    wait_until(there, 60, "first bytes have arrived")
    return session


def _big(nodes):
    path = random_file(nodes.a.export() / "long.bin", 12 * MIB + 7, seed=6)
    os.chown(path, uid(ADA), pwd.getpwnam(ADA).pw_gid)
    path.chmod(0o400)
    return path


def test_it_goes_on_as_theirs_after_everything_was_killed(nodes):
    source = _big(nodes)
    target = nodes.b.export() / source.name
    session = _begin(nodes, source)
    for node in nodes.pair.nodes:
        nodes.helpers[node.name].kill()
        node.control.kill()
    for node in nodes.pair.nodes:
        node.start_control()
        nodes.start_helper(node)
    assert ended_session(nodes.a, session)["state"] == "succeeded"
    assert same_bytes(source, target)
    about = target.stat()
    assert (about.st_uid, stat.S_IMODE(about.st_mode)) == (uid(HERE), 0o400)
    shown = ended_session(nodes.b, session)
    assert shown["user"] == f"{HERE} ({ADA} at a)"
    forget(source, target)


def test_it_waits_while_the_map_says_otherwise(nodes):
    source = _big(nodes)
    target = nodes.b.export() / source.name
    session = _begin(nodes, source)
    nodes.b.control.kill()
    nodes.write(f"{ADA}@a {ADA}\n")
    nodes.b.start_control()
    held = lambda: [one for one in nodes.a.sessions() if one["id"] == session and "users_map_file" in one["error"]]  # noqa: E731
    wait_until(held, 120, "the session says what it waits for")
    nodes.write(USUAL)
    assert nodes.sluice(ADA, "session", "continue", session).returncode == 0
    assert ended_session(nodes.a, session)["state"] == "succeeded"
    assert same_bytes(source, target)
    assert target.stat().st_uid == uid(HERE)
    forget(source, target)


def test_without_sluice_users_nothing_is_opened(nodes, source):
    nodes.helpers["b"].kill()
    refused(nodes.send(ADA, source, "b:data/"), DAEMON, "sluice-users", "start it")
    found = {one["check"]: one for one in json.loads(nodes.b.sluice("doctor", "--json").stdout)["checks"]}
    assert found["users"]["level"] == "fail" and found["users map"]["level"] == "pass"
    nodes.start_helper(nodes.b)
    found = {one["check"]: one for one in json.loads(nodes.b.sluice("doctor", "--json").stdout)["checks"]}
    assert found["users"]["level"] == "pass"
    assert "1 line" in found["users map"]["text"] and str(nodes.map) in found["users map"]["text"]


def test_a_map_that_makes_somebody_a_user_who_cannot_be_is_told(nodes):
    nodes.write(f"{ADA}@a nobody-of-that-name\n")
    found = {one["check"]: one for one in json.loads(nodes.b.sluice("doctor", "--json").stdout)["checks"]}
    assert found["users map"]["level"] == "warn"
    for word in (f"{nodes.map}:1: nobody-of-that-name", "no such user"):
        assert word in found["users map"]["text"]
    nodes.write(USUAL)


def test_a_map_that_is_wrong_is_named_and_the_former_counts(nodes, source):
    result = nodes.send(ADA, source, "b:data/")
    assert result.returncode == 0, result.stderr
    target = nodes.b.export() / source.name
    forget(target)
    nodes.write(f"{ADA}@a {ADA}\n{ADA} deny\n")
    result = nodes.send(ADA, source, "b:data/")
    assert result.returncode == 0, result.stderr
    assert target.stat().st_uid == uid(HERE)
    assert nodes.b.control.log_lines(f"{nodes.map}:2: '{ADA}' has no @")
    found = {one["check"]: one for one in json.loads(nodes.b.sluice("doctor", "--json").stdout)["checks"]}
    assert found["users map"]["level"] == "fail" and f"{nodes.map}:2:" in found["users map"]["text"]
    forget(target)
    # With it nothing starts.
    assert nodes.b.control.stop() == 0
    try:
        tried = subprocess.run(nodes.b.control.command, capture_output=True, text=True, timeout=60, check=False)
        assert tried.returncode == CONFIGURATION and f"{nodes.map}:2:" in tried.stderr
    finally:
        nodes.write(USUAL)
        nodes.b.start_control()
