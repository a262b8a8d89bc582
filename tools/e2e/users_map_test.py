# Users of one node are users of another: a map says who is who. Files belong to those whom it names, who may do what the
# host lets them, and nobody else comes in.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pwd
import stat
import subprocess

import pytest
from harness import Pair, is_root, wait_until
from harness.process import Daemon
from harness.system import random_file, same_bytes
from transfers import (CONFIGURATION, DAEMON, MIB, SOURCE, STORAGE, UNTRUSTED, USAGE, as_user, ended_session, forget, refused,
                       run_control_as)  # fmt: skip

pytestmark = pytest.mark.skipif(not is_root(), reason="needs root, to be other users")

# Of Debian's own: two whose group is `nogroup`, one with a lower number, and one who is no member.
_GROUP, _ADA, _HERE, _SYSTEM, _STRANGER = "nogroup", "nobody", "_apt", "sync", "games"
_CONTROL = "daemon"  # whom both sluice-controls run as
_USUAL = f"# whom users of a are here\n{_ADA}@a {_HERE}\n"


def _uid(user):
    return pwd.getpwnam(user).pw_uid


class Mapped:
    """Two nodes that users use; b has a map."""

    def __init__(self, pair):
        self.pair, self.a, self.b = pair, pair.a, pair.b
        self.map = pair.base / "users.map"
        self.helpers = {node.name: Daemon(f"sluice-users of node {node.name}",
                                          [node.binaries / "sluice-users", "--node", node.directory],
                                          pair.base / f"{node.name}-users.log") for node in pair.nodes}  # fmt: skip

    def prepare(self):
        self.write(_USUAL)
        self.b.settings["control"]["users_map_file"] = str(self.map)
        self.b.write_configuration()
        for node in self.pair.nodes:
            run_control_as(self.pair, node, _CONTROL, also=(pwd.getpwnam(_ADA).pw_gid,))

    def write(self, text):
        new = self.map.with_suffix(".new")
        new.write_text(text)
        new.chmod(0o644)
        new.rename(self.map)

    def start_helper(self, node):
        helper = self.helpers[node.name]
        helper.start()
        socket = node.directory / "run" / "users-helper.sock"
        wait_until(lambda: helper.log_lines("opens files as") and socket.exists(), 20, "sluice-users is ready")

    def sluice(self, user, *words):
        command = [*as_user(user), *self.a.command(*words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def send(self, user, *words):
        return self.sluice(user, "send", *words, "--quiet")

    def get(self, user, *words):
        return self.sluice(user, "get", *words, "--quiet")

    def audit(self, event):
        """Lines of b."""
        lines = [json.loads(line) for line in (self.b.directory / "audit.ndjson").read_text().splitlines()]
        return [line for line in lines if line["event"] == event]


@pytest.fixture(scope="module")
def nodes(make_pair):
    control = {"users_group": _GROUP, "users_uid_min": _uid(_HERE)}
    made = []

    def prepare(pair):
        assert isinstance(pair, Pair)
        made.append(Mapped(pair))
        made[0].prepare()

    make_pair(prepare, settings={"control": control, "dataplane": {"group": _CONTROL}}, bytes_needed=1 << 29)
    for node in made[0].pair.nodes:
        made[0].start_helper(node)
    yield made[0]
    for helper in made[0].helpers.values():
        assert helper.stop() == 0
        assert not helper.log_lines("the sandbox did not allow")


@pytest.fixture(autouse=True)
def usual(nodes):
    nodes.write(_USUAL)


@pytest.fixture
def source(nodes):
    """That nobody at a but its owner can read."""
    path = random_file(nodes.a.export() / "ada.bin", 2 * MIB + 1, seed=1)
    os.chown(path, _uid(_ADA), pwd.getpwnam(_ADA).pw_gid)
    path.chmod(0o400)
    yield path
    forget(path)


def test_what_is_sent_belongs_to_whom_the_map_says(nodes, source):
    result = nodes.send(_ADA, source, "b:data/")
    assert result.returncode == 0, result.stderr
    target = nodes.b.export() / source.name
    assert same_bytes(source, target)
    about = target.stat()
    assert (about.st_uid, about.st_gid) == (_uid(_HERE), pwd.getpwnam(_HERE).pw_gid)
    session = nodes.b.sessions()[-1]
    assert (session["user"], session["uid"]) == (f"{_HERE} ({_ADA} at a)", _uid(_HERE))
    assert f"{_HERE} ({_ADA} at a)" in nodes.b.must("session", "show", session["id"], "--json").stdout
    for event in ("session_begun", "session_ended"):
        line = [one for one in nodes.audit(event) if one["session"] == session["id"]][-1]
        told = (line["asked_by"], line["user"], line["uid"], line["peer_user"])
        assert told == ("peer", _HERE, _uid(_HERE), _ADA)
    # It is theirs at b: they see it, by the socket of users.
    command = [*as_user(_HERE), *nodes.b.command("session", "list", "--json")]
    seen = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert session["id"] in seen.stdout, seen.stderr
    command[: len(as_user(_ADA))] = as_user(_ADA)
    seen = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert session["id"] not in seen.stdout
    forget(target)


def test_they_get_what_they_may_read_there(nodes):
    """Where control may read it and they may not, they get nothing: and the other way round."""
    source = random_file(nodes.b.export() / "there.bin", MIB + 3, seed=2)
    os.chown(source, _uid(_HERE), pwd.getpwnam(_HERE).pw_gid)
    source.chmod(0o400)
    target = nodes.a.export() / "got.bin"
    result = nodes.get(_ADA, f"b:{source}", target)
    assert result.returncode == 0, result.stderr
    assert same_bytes(source, target)
    assert target.stat().st_uid == _uid(_ADA)
    forget(target)
    os.chown(source, _uid(_CONTROL), pwd.getpwnam(_CONTROL).pw_gid)
    refused(nodes.get(_ADA, f"b:{source}", target), SOURCE, source, "permission denied", f"{_ADA} of node a is user {_HERE}",
            "node b")  # fmt: skip
    assert not target.exists()
    forget(source)


def test_they_write_where_they_may_write_there(nodes, source):
    folder = nodes.b.export() / "closed"
    folder.mkdir(mode=0o755)
    os.chown(folder, _uid(_CONTROL), pwd.getpwnam(_CONTROL).pw_gid)
    refused(nodes.send(_ADA, source, "b:data/closed/"), STORAGE, "permission denied", f"{_ADA} of node a is user {_HERE}")
    assert not list(folder.iterdir())
    # An operator's files are control's, as ever.
    readable = random_file(nodes.a.export() / "operators.bin", 1, seed=3)
    readable.chmod(0o644)
    assert nodes.a.sluice("send", readable, "b:data/closed/").returncode == 0
    assert (folder / readable.name).stat().st_uid == _uid(_CONTROL)
    forget(readable, folder / readable.name)
    folder.rmdir()


def test_whom_the_map_does_not_let_in_hears_why(nodes, source):
    """It is read anew each time that it has changed."""
    said = {f"{_ADA}@a deny\n*@* *\n": ("by line 1", "ask an operator"),
            "somebody@a else\n": ("no line", f"add {_ADA}@a LOCAL"),
            "@a deny\n": ("no line", f"add {_ADA}@a LOCAL")}  # fmt: skip
    for text, words in said.items():
        nodes.write(text)
        refused(nodes.send(_ADA, source, "b:data/"), UNTRUSTED, f"{_ADA} of node a", "users_map_file", *words)
        line = nodes.audit("user_refused")[-1]
        assert (line["peer"], line["peer_user"], line["result"]) == ("a", _ADA, "peer_untrusted")
    refused(nodes.a.sluice("send", "memory:1", "b:null:"), UNTRUSTED, "an operator of node a", "by line 1")
    refused(nodes.get(_ADA, "b:data/whatever", f"{nodes.a.export()}/"), UNTRUSTED, f"{_ADA} of node a")
    assert not list(nodes.b.export().iterdir())


@pytest.mark.parametrize("local, why", [(_SYSTEM, "users_uid_min"), (_STRANGER, "users_group"), ("no-such-user", "no such user")])
def test_whom_it_may_not_be_there(nodes, source, local, why):
    uid_min = _uid(_HERE)
    if local == _STRANGER and _uid(local) < uid_min:
        why = "users_uid_min"
    nodes.write(f"{_ADA}@a {local}\n")
    refused(nodes.send(_ADA, source, "b:data/"), CONFIGURATION, f"{_ADA} of node a is user {local} at node b", why)


def test_patterns_and_operators(nodes, source):
    nodes.write(f"no[a-z]*@? {_HERE}\n@a {_HERE}\n")
    readable = random_file(nodes.a.export() / "operators.bin", MIB, seed=4)
    readable.chmod(0o644)
    result = nodes.send(_ADA, source, "b:data/")
    assert result.returncode == 0, result.stderr
    assert nodes.a.sluice("send", readable, "b:data/").returncode == 0
    for path in (source, readable):
        assert (nodes.b.export() / path.name).stat().st_uid == _uid(_HERE)
        forget(nodes.b.export() / path.name)
    session = nodes.b.sessions()[-1]
    assert session["user"] == f"{_HERE} (an operator at a)"
    nodes.write("*@a *\n")
    result = nodes.send(_ADA, source, "b:data/")
    assert result.returncode == 0, result.stderr
    assert (nodes.b.export() / source.name).stat().st_uid == _uid(_ADA)
    forget(nodes.b.export() / source.name, readable)


def test_where_no_line_names_the_node_it_is_as_ever(nodes, source):
    nodes.write("alice@other asmith\n")
    result = nodes.send(_ADA, source, "b:data/")
    assert result.returncode == 0, result.stderr
    target = nodes.b.export() / source.name
    assert target.stat().st_uid == _uid(_CONTROL)
    assert (nodes.b.sessions()[-1]["user"], nodes.b.sessions()[-1]["uid"]) == ("", None)
    forget(target)


def test_what_users_may_not_mapped_ones_may_not(nodes):
    tree = nodes.b.export() / "tree"
    tree.mkdir(mode=0o755)
    (tree / "small.bin").write_bytes(b"x")
    result = nodes.get(_ADA, f"b:{tree}", f"{nodes.a.export()}/")
    refused(result, USAGE, "directory", "one by one", f"{_ADA} of node a is user {_HERE} at node b")
    forget(tree / "small.bin")
    tree.rmdir()


def _begin(nodes, source):
    result = nodes.sluice(_ADA, "send", source, "b:data/", "--rate", "20M", "--detach")
    assert result.returncode == 0, result.stderr
    session = result.stdout.split()[-1]
    there = lambda: [one for one in nodes.b.sessions() if one["id"] == session and one["bytes_done"] > 0]  # noqa: E731
    wait_until(there, 60, "first bytes have arrived")
    return session


def _big(nodes):
    path = random_file(nodes.a.export() / "long.bin", 12 * MIB + 7, seed=6)
    os.chown(path, _uid(_ADA), pwd.getpwnam(_ADA).pw_gid)
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
    assert (about.st_uid, stat.S_IMODE(about.st_mode)) == (_uid(_HERE), 0o400)
    shown = ended_session(nodes.b, session)
    assert shown["user"] == f"{_HERE} ({_ADA} at a)"
    forget(source, target)


def test_it_waits_while_the_map_says_otherwise(nodes):
    source = _big(nodes)
    target = nodes.b.export() / source.name
    session = _begin(nodes, source)
    nodes.b.control.kill()
    nodes.write(f"{_ADA}@a {_ADA}\n")
    nodes.b.start_control()
    held = lambda: [one for one in nodes.a.sessions() if one["id"] == session and "users_map_file" in one["error"]]  # noqa: E731
    wait_until(held, 120, "the session says what it waits for")
    nodes.write(_USUAL)
    assert nodes.sluice(_ADA, "session", "continue", session).returncode == 0
    assert ended_session(nodes.a, session)["state"] == "succeeded"
    assert same_bytes(source, target)
    assert target.stat().st_uid == _uid(_HERE)
    forget(source, target)


def test_without_sluice_users_nothing_is_opened(nodes, source):
    nodes.helpers["b"].kill()
    refused(nodes.send(_ADA, source, "b:data/"), DAEMON, "sluice-users", "start it")
    found = {one["check"]: one for one in json.loads(nodes.b.sluice("doctor", "--json").stdout)["checks"]}
    assert found["users"]["level"] == "fail" and found["users map"]["level"] == "pass"
    nodes.start_helper(nodes.b)
    found = {one["check"]: one for one in json.loads(nodes.b.sluice("doctor", "--json").stdout)["checks"]}
    assert found["users"]["level"] == "pass"
    assert "1 line" in found["users map"]["text"] and str(nodes.map) in found["users map"]["text"]


def test_a_map_that_is_wrong_is_named_and_the_former_counts(nodes, source):
    result = nodes.send(_ADA, source, "b:data/")
    assert result.returncode == 0, result.stderr
    target = nodes.b.export() / source.name
    forget(target)
    nodes.write(f"{_ADA}@a {_ADA}\n{_ADA} deny\n")
    result = nodes.send(_ADA, source, "b:data/")
    assert result.returncode == 0, result.stderr
    assert target.stat().st_uid == _uid(_HERE)
    assert nodes.b.control.log_lines(f"{nodes.map}:2: '{_ADA}' has no @")
    found = {one["check"]: one for one in json.loads(nodes.b.sluice("doctor", "--json").stdout)["checks"]}
    assert found["users map"]["level"] == "fail" and f"{nodes.map}:2:" in found["users map"]["text"]
    forget(target)
    # With it nothing starts.
    assert nodes.b.control.stop() == 0
    try:
        tried = subprocess.run(nodes.b.control.command, capture_output=True, text=True, timeout=60, check=False)
        assert tried.returncode == CONFIGURATION and f"{nodes.map}:2:" in tried.stderr
    finally:
        nodes.write(_USUAL)
        nodes.b.start_control()
