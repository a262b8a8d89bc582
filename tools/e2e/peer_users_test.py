# A node with a map of users, and a stranger whose calls name users, or do not. docs/WIRE.md, 2.19.
# SPDX-License-Identifier: Apache-2.0
import os
import pwd
import shutil

import pytest
from harness import is_root, veth_missing
from harness.system import same_bytes
from harness.users import UsersHelper
from stranger import met
from transfers import INCOMPATIBLE, MIB, SOURCE, UNTRUSTED, forget, make_file

import peer

_reason = veth_missing() or (None if is_root() else "needs root, to be other users")
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

_HERE, _GROUP, _ALICE = "nobody", "nogroup", (b"alice", 7)


@pytest.fixture(scope="module")
def meeting():
    with met(settings_a={"control": {"users_group": _GROUP, "users_uid_min": pwd.getpwnam(_HERE).pw_uid}}) as one:
        one.node.export().chmod(0o1777)
        one.node.directory.parent.chmod(0o711)
        one.map = one.node.directory.parent / "users.map"
        one.map.write_text(f"alice@peer {_HERE}\nmallory@peer deny\n")
        one.map.chmod(0o644)
        assert one.node.control.stop() == 0
        one.node.settings["control"]["users_map_file"] = str(one.map)
        one.node.write_configuration()
        one.node.start_control()
        helper = UsersHelper(one.node, one.node.directory.parent / "users.log")
        helper.start()
        yield one
        assert helper.stop() == 0


def _owner(meeting, path):
    target = meeting.node.export() / path.name
    assert same_bytes(path, target)
    owner = target.stat().st_uid
    forget(target)
    return owner


def test_what_a_users_call_brings_is_theirs_there(meeting):
    path = meeting.file(MIB + 5)
    meeting.peer().send(meeting.address, [path], "data/", user=_ALICE, is_directory=True)
    assert _owner(meeting, path) == pwd.getpwnam(_HERE).pw_uid


def test_a_peer_that_knows_no_users_is_as_ever(meeting):
    path = meeting.file(5000)
    meeting.peer().send(meeting.address, [path], "data/", is_directory=True)
    assert _owner(meeting, path) == os.getuid()


def test_what_a_users_call_gets_they_may_read(meeting):
    source = make_file(meeting.node, 5000)
    source.chmod(0o600)
    with pytest.raises(peer.Failed, match="alice of node peer is user nobody") as error:
        meeting.peer().get(meeting.address, [f"data/{source.name}"], user=_ALICE)
    assert error.value.code == SOURCE
    os.chown(source, pwd.getpwnam(_HERE).pw_uid, -1)
    meeting.peer().get(meeting.address, [f"data/{source.name}"], user=_ALICE)
    assert same_bytes(source, meeting.folder / source.name)
    forget(source, meeting.folder / source.name)


@pytest.mark.parametrize("user, code, words", [
    ((b"mallory", 7), UNTRUSTED, "by line 2"),
    ((b"bob", 7), UNTRUSTED, "no line"),
    ((b"", 7), UNTRUSTED, "does not say whose session"),
    ((b"al\nice", 7), INCOMPATIBLE, "names a user that cannot be"),
    ((b"al\0ice", 7), INCOMPATIBLE, "names a user that cannot be"),
    ((b"a" * 257, 7), INCOMPATIBLE, "names a user that cannot be"),
], ids=["denied", "unmatched", "older", "line", "zero", "long"])  # fmt: skip
def test_who_is_not_let_in_hears_why(meeting, user, code, words):
    path = meeting.file(1)
    with pytest.raises(peer.Failed, match=words) as error:
        meeting.peer().send(meeting.address, [path], "data/", user=user, is_directory=True)
    assert error.value.code == code
    assert not (meeting.node.export() / path.name).exists()


def test_a_users_tree_is_theirs_there(meeting):
    tree = meeting.folder / "a-tree"
    (tree / "within").mkdir(parents=True)
    for i in range(50):
        (tree / "within" / f"{i}").write_bytes(b"x" * i)
    meeting.peer().send(meeting.address, [tree], "data/", user=_ALICE, is_directory=True)
    target = meeting.node.export() / "a-tree"
    for path in (target, target / "within", *(target / "within").iterdir()):
        assert path.stat().st_uid == pwd.getpwnam(_HERE).pw_uid
    assert [(target / "within" / f"{i}").read_bytes() for i in range(50)] == [b"x" * i for i in range(50)]
    shutil.rmtree(target)


def test_a_users_names_are_theirs_there(meeting):
    private = meeting.node.export() / "private"
    private.mkdir(mode=0o700)
    (private / "x").write_bytes(b"x")
    with pytest.raises(peer.Failed) as error:
        meeting.peer().ask(meeting.address, "list", user=_ALICE, path=b"data/private")
    assert error.value.code == SOURCE
    for path in (private, private / "x"):
        os.chown(path, pwd.getpwnam(_HERE).pw_uid, -1)
    entries, _ = meeting.peer().ask(meeting.address, "list", user=_ALICE, path=b"data/private")
    assert [each.path for each in entries] == [b"x"]
    shutil.rmtree(private)


@pytest.mark.parametrize("user", [(b"mallory", 7), (b"bob", 7), (b"", 7)], ids=["denied", "unmatched", "older"])
def test_who_is_not_let_in_sees_no_names(meeting, user):
    with pytest.raises(peer.Failed) as error:
        meeting.peer().ask(meeting.address, "list", user=user, path=b"data")
    assert error.value.code == UNTRUSTED


def test_names_without_a_user_are_the_nodes(meeting):
    assert meeting.peer().ask(meeting.address, "list", path=b"data")[1].failed == 0
