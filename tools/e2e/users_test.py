# More than one user: members of a group send and get files as themselves, with sluice-control as a user that may open none
# of them, and see their own sessions alone.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import pwd
import signal
import stat
import subprocess

import pytest
from harness import Pair, is_root, wait_until
from harness.system import random_file, same_bytes
from harness.users import UsersHelper
from transfers import (CONFIGURATION, DAEMON, DEVICE, MIB, OUTSIDE, RESOURCES, SOURCE, USAGE, as_user, ended_session, forget, refused,
                       run_control_as, wait_state)  # fmt: skip

pytestmark = pytest.mark.skipif(not is_root(), reason="needs root, to be other users")

# Of Debian's own: two whose group is `nogroup`, one with a lower number, and one who is no member.
_GROUP, _ADA, _BEN, _SYSTEM, _STRANGER = "nogroup", "nobody", "_apt", "sync", "games"
_CONTROL = "daemon"  # whom sluice-control runs as


def _gid(user):
    return pwd.getpwnam(user).pw_gid


class Users:
    """A pair whose node a is used by users; its control may open none of their files."""

    def __init__(self, pair):
        self.pair, self.a, self.b = pair, pair.a, pair.b
        self.helper = UsersHelper(self.a, pair.base / "a-users.log")
        self.socket = self.helper.socket

    def prepare(self):
        run_control_as(self.pair, self.a, _CONTROL, also=(_gid(_ADA),))

    def start_helper(self):
        self.helper.start()

    def file_of(self, user, size, name):
        """That nobody but the user can read."""
        path = random_file(self.a.export() / name, size, seed=size)
        os.chown(path, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        path.chmod(0o400)
        return path

    def sluice(self, user, *words):
        command = [*as_user(user), *self.a.command(*words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def send(self, user, *words):
        return self.sluice(user, "send", *words, "--quiet")

    def begin(self, user, *words):
        result = self.sluice(user, *words, "--detach")
        assert result.returncode == 0, result.stderr
        return result.stdout.split()[-1]

    def sessions(self, user):
        result = self.sluice(user, "session", "list", "--json")
        assert result.returncode == 0, result.stderr
        return {one["id"]: one for one in json.loads(result.stdout)["sessions"]}


@pytest.fixture(scope="module")
def users(make_pair):
    settings = {"control": {"users_group": _GROUP, "sessions_per_peer": 1, "queue_max": 4, "users_uid_min": pwd.getpwnam(_BEN).pw_uid},
                "dataplane": {"group": _CONTROL}}  # fmt: skip
    made = []

    def prepare(pair):
        assert isinstance(pair, Pair)
        made.append(Users(pair))
        made[0].prepare()

    make_pair(prepare, settings_a=settings, bytes_needed=1 << 29)
    made[0].start_helper()
    yield made[0]
    assert made[0].helper.stop() == 0
    assert not made[0].helper.log_lines("the sandbox did not allow")


def test_each_sends_what_only_he_can_read(users):
    source = users.file_of(_ADA, 3 * MIB + 1, "ada.bin")
    result = users.send(_ADA, source, "b:data/")
    assert result.returncode == 0, result.stderr
    assert same_bytes(source, users.b.export() / "ada.bin")
    refused(users.send(_BEN, source, "b:data/other.bin"), SOURCE, source, "permission denied")
    # Nor does an operator lend his daemon's rights: it has none to this file.
    refused(users.a.sluice("send", source, "b:data/other.bin"), SOURCE, source, "permission denied")
    assert not (users.b.export() / "other.bin").exists()
    forget(source, users.b.export() / "ada.bin")


def test_what_arrives_is_his_who_asked_for_it(users):
    source = random_file(users.b.export() / "wanted.bin", 2 * MIB + 3, seed=5)
    source.chmod(0o666)
    for user in (_ADA, _BEN):
        target = users.a.export() / f"of-{user}.bin"
        result = users.sluice(user, "get", f"b:{source}", target, "--quiet")
        assert result.returncode == 0, result.stderr
        assert same_bytes(source, target)
        about = target.stat()
        assert (about.st_uid, about.st_gid) == (pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        assert stat.S_IMODE(about.st_mode) == 0o644
        # What is one's, the other does not replace: the directory is sticky.
        other = _BEN if user == _ADA else _ADA
        result = users.sluice(other, "get", f"b:{source}", target, "--overwrite", "--quiet")
        refused(result, OUTSIDE, target, "another user's", "sticky", "choose another name")
        assert not list(users.a.export().glob(".*.sluice-part")), "it has failed: a right does not come by itself"
        assert target.stat().st_uid == about.st_uid and same_bytes(source, target)
        forget(target)
    forget(source)


def test_nobody_sees_or_touches_sessions_of_others(users):
    source = users.file_of(_ADA, 8 * MIB, "long.bin")
    session = users.begin(_ADA, "send", source, "b:data/", "--rate", "2M")
    wait_state(users.a, session, "transferring")
    seen = users.sessions(_ADA)[session]
    assert (seen["user"], seen["uid"]) == (_ADA, pwd.getpwnam(_ADA).pw_uid)
    of_operator = {one["id"]: one for one in users.a.sessions()}
    assert of_operator[session]["user"] == _ADA
    assert session not in users.sessions(_BEN)
    for words in (["session", "show", session], ["session", "cancel", session], ["session", "cancel", session[:8]],
                  ["session", "pause", session], ["session", "continue", session], ["session", "log", session],
                  ["session", "limit", session, "--rate", "1M"], ["session", "priority", session, "-1"],
                  ["session", "log-level", session, "off"], ["session", "events", session], ["verify", session],
                  ["receipt", session]):  # fmt: skip
        refused(users.sluice(_BEN, *words), USAGE, f'no session "{words[2] if words[0] == "session" else words[1]}"')
    assert users.sluice(_ADA, "session", "log", session).returncode == 0
    assert users.sluice(_ADA, "session", "limit", session, "--rate", "3M").returncode == 0
    refused(users.sluice(_ADA, "session", "priority", session, "1"), CONFIGURATION, "users_group", "operator")
    assert users.sluice(_ADA, "session", "cancel", session[:12]).returncode == 0
    assert ended_session(users.a, session)["state"] == "cancelled"
    assert session in users.sessions(_ADA) and session not in users.sessions(_BEN)
    forget(source)


def test_who_may_not_is_told_why(users):
    source = users.file_of(_SYSTEM, 1, "system.bin")
    refused(users.send(_SYSTEM, source, "b:data/"), CONFIGURATION, "users_uid_min", pwd.getpwnam(_SYSTEM).pw_uid)
    refused(users.send(_STRANGER, source, "b:data/"), CONFIGURATION, "control.sock", "users_group")
    own = users.file_of(_ADA, 1, "own.bin")
    refused(users.send(_ADA, own, "b:data/", "--priority", 5), USAGE, "users_group")
    refused(users.send(_ADA, own, "b:data/", "--mkdir"), USAGE, "users_group", "--mkdir")
    for words in (["mkdir", "b:data/x"], ["rm", "b:data/x"], ["mv", "b:data/x", "b:data/y"]):
        refused(users.sluice(_ADA, *words), CONFIGURATION, "users_group")
    assert users.sluice(_ADA, "ls", "b:data/").returncode == 0
    forget(source, own)


def test_a_session_of_a_user_outlives_his_daemons(users):
    """Control and sluice-users are killed while it runs: the journal knows whose it is."""
    source = random_file(users.b.export() / "long.bin", 12 * MIB + 7, seed=6)
    target = users.a.export() / "kept.bin"
    session = users.begin(_ADA, "get", f"b:{source}", target, "--rate", "20M")
    wait_until(lambda: users.sessions(_ADA)[session]["bytes_done"] > 0, 30, "first bytes")
    users.helper.kill()
    users.a.control.kill()
    users.a.start_control()
    assert users.sessions(_ADA)[session]["user"] == _ADA
    assert session not in users.sessions(_BEN)
    users.start_helper()
    assert ended_session(users.a, session)["state"] == "succeeded"
    assert same_bytes(source, target)
    assert target.stat().st_uid == pwd.getpwnam(_ADA).pw_uid
    lines = [json.loads(line) for line in (users.a.directory / "audit.ndjson").read_text().splitlines()]
    ended = [line for line in lines if line["event"] == "session_ended" and line["session"] == session]
    assert [(line["asked_by"], line["user"]) for line in ended] == [("user", _ADA)]
    forget(source, target)


def test_without_sluice_users_it_waits_or_says_so(users):
    source = random_file(users.b.export() / "waits.bin", 4 * MIB + 7, seed=7)
    target = users.a.export() / "waited.bin"
    session = users.begin(_BEN, "get", f"b:{source}", target, "--rate", "20M")
    wait_until(lambda: users.sessions(_BEN)[session]["bytes_done"] > 0, 30, "first bytes")
    users.helper.kill()
    waits = lambda: "sluice-users" in json.dumps(users.sessions(_BEN)[session])  # noqa: E731
    wait_until(waits, 60, "the session says that it misses sluice-users")
    assert not target.exists()
    refused(users.send(_BEN, source, "b:data/x.bin"), DAEMON, "sluice-users", "start it")
    users.start_helper()
    assert ended_session(users.a, session)["state"] == "succeeded"
    assert same_bytes(source, target)
    assert target.stat().st_uid == pwd.getpwnam(_BEN).pw_uid
    forget(source, target)


def _processes_of(user, helper):
    of = pwd.getpwnam(user).pw_uid
    children = pathlib.Path(f"/proc/{helper.pid}/task/{helper.pid}/children").read_text().split()
    return [int(pid) for pid in children if pathlib.Path(f"/proc/{pid}").stat().st_uid == of]


def test_who_stops_his_own_process_holds_up_no_other_user_and_no_end_of_control(users):
    """The process is his, so that he may: the file that it was to name gets its name later."""
    source = random_file(users.b.export() / "held.bin", 4 * MIB + 7, seed=8)
    target = users.a.export() / "held.bin"
    private = users.file_of(_ADA, 1, "private.bin")
    session = users.begin(_ADA, "get", f"b:{source}", target, "--rate", "20M")
    wait_until(lambda: users.sessions(_ADA)[session]["bytes_done"] > 0, 30, "first bytes")
    frozen = _processes_of(_ADA, users.helper)
    assert frozen
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: users.sessions(_ADA)[session]["bytes_done"] == source.stat().st_size, 30, "all bytes")
        # It is Ben's process that says so, while Ada's answers nothing.
        refused(users.send(_BEN, private, "b:data/"), SOURCE, private, "permission denied")
        assert users.sessions(_ADA)[session]["state"] in ("transferring", "finishing")
        assert users.a.control.stop() == 0, "it had to be killed"
        users.a.start_control()
        assert ended_session(users.a, session)["state"] == "succeeded"
        assert same_bytes(source, target)
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
    forget(source, target, private)


def test_neither_users_nor_one_of_them_fill_the_queue(users):
    source, of_ben = users.file_of(_ADA, MIB, "many.bin"), users.file_of(_BEN, MIB, "ben.bin")
    began = [(_ADA, users.begin(_ADA, "send", source, f"b:data/many{i}.bin", "--rate", "1M")) for i in range(2)]
    refused(users.send(_ADA, source, "b:data/more.bin"), RESOURCES, f"sessions of user {_ADA}")
    began.append((_BEN, users.begin(_BEN, "send", of_ben, "b:data/bens.bin", "--rate", "1M")))
    refused(users.send(_BEN, of_ben, "b:data/more.bin"), RESOURCES, "sessions of users")
    for_operator = users.a.sluice("send", "memory:1000", "b:null:")
    assert for_operator.returncode == 0, for_operator.stderr
    for user, session in began:
        assert users.sluice(user, "session", "cancel", session).returncode == 0
        ended_session(users.a, session)
    forget(source, of_ben)


def test_only_control_may_ask_sluice_users(users):
    """Its socket is the user's of sluice-control alone, and it looks who calls even if it were not."""
    assert stat.S_IMODE(users.socket.stat().st_mode) == 0o600
    assert users.socket.stat().st_uid == pwd.getpwnam(_CONTROL).pw_uid
    ask = ("import socket,sys; s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET); s.connect(sys.argv[1]);"
           "s.send(bytes([8,1,16,254,255,3])); print(len(s.recv(4096)))")  # fmt: skip
    command = ["/usr/bin/python3", "-c", ask, str(users.socket)]
    result = subprocess.run([*as_user(_ADA), *command], capture_output=True, text=True, timeout=30, check=False)
    assert "PermissionError" in result.stderr
    users.socket.chmod(0o666)
    result = subprocess.run([*as_user(_ADA), *command], capture_output=True, text=True, timeout=30, check=False)
    users.socket.chmod(0o600)
    assert result.stdout.strip() in ("", "0"), "it was answered"
    assert users.helper.log_lines("is not sluice-control")


def test_it_needs_its_rights_and_its_group(users):
    program = users.a.binaries / "sluice-users"
    run = lambda *words: subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)  # noqa: E731
    refused(run(program, "--node", users.b.directory), CONFIGURATION, "users_group", users.b.directory)
    refused(run(program, "--node", users.a.directory), CONFIGURATION, "another sluice-users")
    refused(run(*as_user(_CONTROL), program, "--node", users.a.directory), DEVICE, "CAP_SETUID")
