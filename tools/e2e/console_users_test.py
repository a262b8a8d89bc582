# Somebody who may send and get as himself, at the console: he sees and changes the names of this node as who he is, by
# sluice-users, and no others.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pwd
import shutil
import subprocess

import pytest
from console_test import ended
from harness import Console, is_root, wait_until
from harness.console import Browser
from harness.system import same_bytes
from transfers import MIB, as_user, forget
from users_test import _ADA, _BEN, _CONTROL, _GROUP, Users

pytestmark = pytest.mark.skipif(not is_root(), reason="needs root, to be other users")


@pytest.fixture(scope="module")
def setting(make_pair):
    settings = {"control": {"users_group": _GROUP, "users_uid_min": pwd.getpwnam(_BEN).pw_uid}, "dataplane": {"group": _CONTROL}}
    made = []

    def prepare(pair):
        console, users = Console(pair.a), Users(pair)
        users.prepare()
        made.extend((console, users))

    pair = make_pair(prepare, settings_a=settings, bytes_needed=1 << 28)
    console, users = made
    users.start_helper()
    console.start()
    yield pair, console, users
    assert console.stop() == 0, console.daemon.log_tail()
    assert users.helper.stop() == 0
    assert not users.helper.log_lines("the sandbox did not allow"), users.helper.log_tail()


def signed_in(console, user):
    """As `sluice console open` does it, by this user."""
    command = [*as_user(user, also=(pwd.getpwnam(_ADA).pw_gid,)), console.program, "--node", console.node.directory, "open"]
    said = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    assert said.returncode == 0, said.stderr
    return Browser(console).sign_in(said.stdout.strip())


@pytest.fixture(scope="module")
def ada(setting):
    return signed_in(setting[1], _ADA)


def owned(path, user, mode):
    os.chown(path, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
    path.chmod(mode)
    return path


def test_a_user_lists_what_he_may_read_and_is_told_what_not(setting, ada):
    pair, console, _ = setting
    assert ada.ask("me")["role"] == "user"
    own, other = pair.a.export() / "of-ada", pair.a.export() / "of-ben"
    for path in (own, other):
        path.mkdir()
        (path / "note").write_text("note")
    for number in range(3000):
        (own / f"many{number:04}").touch()
    owned(own, _ADA, 0o700)
    owned(other, _BEN, 0o700)
    assert [row[0] for row in ada.names("", "")] == ["data"]
    assert {row[0] for row in ada.names("", "data")} == {"of-ada", "of-ben"}
    assert len(ada.names("", "data/of-ada")) == 3001
    assert ada.lines("names/size", node="", path="data/of-ada")[-1]["files"] == 3001
    assert ada.ask("names/look", node="", path="data/of-ada/note")["size"] == 4
    status, message = ada.refused("names/list", {"node": "", "path": "data/of-ben"})
    assert status == 422 and "permission denied" in message
    ben = signed_in(console, _BEN)
    assert [row[0] for row in ben.names("", "data/of-ben")] == ["note"]
    assert ben.refused("names/list", {"node": "", "path": "data/of-ada"})[0] == 422
    # Nor is it an operator's daemon that lends him a right: that one may not, either.
    assert console.browser(role="operator").refused("names/list", {"node": "", "path": "data/of-ada"})[0] == 422


def test_a_user_changes_what_is_his_and_nothing_else(setting, ada):
    pair, _, _ = setting
    there = pair.a.export()
    ada.ask("names/make", node="", path="data/made")
    assert (there / "made").stat().st_uid == pwd.getpwnam(_ADA).pw_uid
    ada.ask("names/move", **{"node": "", "from": "data/made", "to": "data/moved"})
    assert not (there / "made").exists() and (there / "moved").is_dir()
    (there / "of-root").write_text("root's")
    said = ada.lines("names/remove", node="", path="data", names=["of-root", "of-ben"], recursive=True)
    assert [one["failed"] > 0 for one in said[1:]] == [True, True], said
    assert (there / "of-root").exists() and (there / "of-ben/note").exists()
    assert ada.refused("names/move", {"node": "", "from": "data/of-ben", "to": "data/mine"})[0] == 422
    assert ada.lines("names/remove", node="", path="data", names=["moved"], recursive=True)[-1]["entries"] == 1
    for path in ("data/../etc", "/etc"):
        assert ada.refused("names/make", {"node": "", "path": path})[0] == 400
    assert ada.refused("names/make", {"node": "b", "path": "data/x"})[0] == 422, "at a peer this is the operators'"
    lines = [json.loads(line) for line in (pair.a.directory / "audit.ndjson").read_text().splitlines()]
    changed = [line for line in lines if line["event"] == "names_changed"]
    assert {(line["asked_by"], line["user"]) for line in changed} == {("user", _ADA)}
    assert [line["result"] for line in changed[:2]] == ["ok", "ok"]


def test_a_user_copies_his_file_and_sees_his_sessions_alone(setting, ada):
    pair, console, users = setting
    source = users.file_of(_ADA, MIB, "own.bin")
    sides = {"from": {"node": "", "path": "data"}, "to": {"node": "b", "path": "data"}}
    rows = [row for part in ada.lines("compare", **sides) if isinstance(part, list) for row in part]
    assert ["new", "own.bin"] in [row[:2] for row in rows]
    id = ada.ask("copy", **sides, names=["own.bin"])["id"]
    ended(ada, id)
    assert same_bytes(source, pair.b.export() / "own.bin")
    assert id not in [one["id"] for one in signed_in(console, _BEN).ask("sessions/list")["sessions"]]
    ended(ada, ada.ask("copy", **sides, names=["of-ada"])["id"])
    assert (pair.b.export() / "of-ada").is_dir()
    shutil.rmtree(pair.b.export() / "of-ada")
    forget(source, pair.b.export() / "own.bin")


def test_without_sluice_users_it_is_said_what_is_missing(setting, ada):
    _, _, users = setting
    assert users.helper.stop() == 0
    try:
        status, message = ada.refused("names/list", {"node": "", "path": "data"})
        assert status == 503 and "sluice-users" in message
    finally:
        users.start_helper()
    wait_until(lambda: ada.open("names/list", {"node": "", "path": "data"}).status == 200, 60, "it answers again")
