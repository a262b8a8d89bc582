# Who of this host may use a node: its owner, or the members of a group; and a node whose daemons are two users, whose
# state lies elsewhere.
# SPDX-License-Identifier: Apache-2.0
import grp
import os
import pathlib
import pwd
import shutil
import stat
import subprocess
import tempfile

import pytest
from harness import Node, find_binaries, is_root
from harness.process import Daemon
from harness.system import free_ports
import transfers
from transfers import CONFIGURATION, refused

_GROUP, _READERS = "games", "news"  # of Debian's own; nobody needs them


@pytest.fixture
def base():
    path = pathlib.Path(tempfile.mkdtemp(prefix="sluice-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def node(base):
    one = Node(find_binaries(), base / "n", "n", free_ports(1)[0])
    one.add_export("data", base / "data")
    one.create()
    yield one
    one.stop()


def configure(node, section, **keys):
    node.settings.setdefault(section, {}).update(keys)
    node.write_configuration()


def as_user(user, *groups):
    """Words before a command that has to run as this user, in its own group first."""
    if not is_root():
        pytest.skip("needs root, to be another user")
    return transfers.as_user(user, also=[grp.getgrnam(name).gr_gid for name in groups])


def asked_by(node, *groups, words=("session", "list")):
    command = [*as_user("nobody", *groups), *node.command(*words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def _stranger(node):
    """The certificate of another node, that nobody runs."""
    other = Node(node.binaries, node.directory.parent / "other", "other", free_ports(1)[0])
    other.create()
    return other.certificate


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_members_of_the_group_may_use_the_node_and_nobody_else(node):
    configure(node, "control", group=_GROUP)
    node.start()
    socket = node.directory / "run" / "control.sock"
    assert (mode(socket), mode(node.directory / "run")) == (0o660, 0o711)
    assert grp.getgrgid(socket.stat().st_gid).gr_name == _GROUP
    assert mode(node.directory / "run" / "dataplane.sock") == 0o600
    result = asked_by(node, _GROUP)
    assert result.returncode == 0, result.stderr
    refused(asked_by(node), CONFIGURATION, "control.sock", "[control] group")


def test_without_a_group_it_is_its_owners_alone(node):
    node.start()
    assert mode(node.directory / "run") == 0o700
    assert mode(node.directory / "run" / "control.sock") == 0o600
    refused(asked_by(node, _GROUP), CONFIGURATION, "control.sock")


def test_those_who_may_look_see_sessions_without_files_and_change_nothing(node):
    configure(node, "control", readers_group=_READERS)
    node.must("node", "trust", "self", _stranger(node), "--address", "127.0.0.1:9")
    node.start()
    secret = node.export() / "secret.bin"
    secret.write_bytes(b"x")
    session = node.must("send", secret, "self:data/", "--detach").stdout.split()[-1]
    socket = node.directory / "run" / "readers.sock"
    assert mode(socket) == 0o660 and grp.getgrgid(socket.stat().st_gid).gr_name == _READERS
    for words in (["session", "list"], ["session", "show", session], ["node", "show"], ["counters"]):
        result = asked_by(node, _READERS, words=[*words, "--json"])
        assert result.returncode == 0, result.stderr
        assert "secret" not in result.stdout
        assert session in result.stdout or words[0] != "session"
    for words in (["session", "cancel", session], ["send", secret, "self:data/"], ["ls", "self:"],
                  ["verify", session], ["session", "pause", session]):  # fmt: skip
        refused(asked_by(node, _READERS, words=words), CONFIGURATION, "readers_group")
    refused(asked_by(node, _GROUP), CONFIGURATION, "control.sock")


@pytest.mark.parametrize(("section", "program"), [("control", "sluice-control"), ("dataplane", "sluice-dataplane")])
def test_a_group_that_is_not_there_is_named(node, section, program):
    configure(node, section, group="no-such-group")
    command = [node.binaries / program, "--node", node.directory]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == CONFIGURATION
    assert f'[{section}] group = "no-such-group"' in result.stderr.splitlines()[-1]
    assert "groupadd" in result.stderr


def test_the_daemons_may_be_two_users(node):
    """As the package has it: a directory where both make sockets, and a group of those who may attach."""
    dataplane, control = as_user("games"), as_user("daemon", "daemon", _GROUP)
    configure(node, "dataplane", group=_GROUP)
    for path in (node.directory / "identity", *(node.directory / "identity").iterdir(), node.directory):
        os.chown(path, pwd.getpwnam("daemon").pw_uid, -1)
    run = node.directory / "run"
    os.chown(run, pwd.getpwnam("daemon").pw_uid, grp.getgrnam(_GROUP).gr_gid)
    run.chmod(0o1771)
    for name, prefix in (("dataplane", dataplane), ("control", control)):
        program = node.binaries / f"sluice-{name}"
        setattr(node, name, Daemon(f"{name} as another user", [*prefix, program, "--node", node.directory],
                                   node.directory.parent / f"{name}.log"))  # fmt: skip
    node.start()
    assert pwd.getpwuid((run / "dataplane.sock").stat().st_uid).pw_name == "games"
    assert pwd.getpwuid((run / "control.sock").stat().st_uid).pw_name == "daemon"


def test_the_state_lies_where_it_is_told_and_is_never_forgotten(node, base):
    node.start()
    node.stop()
    assert (node.directory / "journal.sqlite").exists()
    state = base / "state"
    configure(node, "control", state_dir=str(state))

    def start():
        command = [node.binaries / "sluice-control", "--node", node.directory]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    refused(start(), CONFIGURATION, "[control] state_dir", f"install -d -m 700 {state}")
    state.mkdir(mode=0o700)
    refused(start(), CONFIGURATION, "[control] state_dir", "mv ", node.directory / "journal.sqlite", state)
    for path in node.directory.glob("journal.sqlite*"):
        path.rename(state / path.name)
    node.start()
    assert node.stop() == (0, 0)
    assert not (node.directory / "journal.sqlite").exists()
