# Files outside the exports: whoever types `sluice send` or `sluice get` names any that he may open himself, though the
# daemon may not. A process of his own opens them for as long as the session lives; peers reach none of them.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import signal
import stat
import subprocess

import pytest
from harness import is_root, wait_until
from harness.system import random_file, same_bytes
from transfers import (EXISTS, MIB, OUTSIDE, SOURCE, STORAGE, USAGE, cancel_all, ended_session, fresh_name, forget, make_file,
                       refused, run_control_as, start_slow, unharmed, wait_state)  # fmt: skip

pytestmark = pytest.mark.skipif(not is_root(), reason="needs root, to run control as another user")

_CONTROL = "daemon"  # whom sluice-control of node a runs as


@pytest.fixture(scope="module")
def pair(make_pair):
    pair = make_pair(lambda pair: run_control_as(pair, pair.a, _CONTROL), settings_a={"dataplane": {"group": _CONTROL}},
                     bytes_needed=1 << 28)  # fmt: skip
    yield pair
    wait_until(lambda: not openers(), 90, "no process that opens files is left")


@pytest.fixture(autouse=True)
def nothing_left_and_still_serving(pair):
    with unharmed(pair):
        yield


@pytest.fixture
def home(pair):
    """A directory that only its owner may look into, beneath no export."""
    home = pair.base / f"home-{fresh_name()}"
    home.mkdir(mode=0o700)
    yield home
    subprocess.run(["rm", "-rf", home], check=True)


def openers():
    """Processes that open files for a caller."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--for-caller" in words and words[0].endswith(b"sluice-users"):
            found.append(int(entry.name))
    return found


def run_in(directory, node, *words, umask=0o022, timeout_s=120):
    """As somebody types it who stands there."""
    return subprocess.run([*node.command(*words), *(["--quiet"] if words[0] in ("send", "get") else [])], cwd=directory, umask=umask,
                          capture_output=True, text=True, timeout=timeout_s, check=False)  # fmt: skip


def test_a_file_is_fetched_to_where_one_stands_and_sent_from_there(pair, home):
    there = make_file(pair.b, 3 * MIB + 1)
    there.chmod(0o666)
    got = run_in(home, pair.a, "get", f"b:data/{there.name}", ".", umask=0o027)
    assert got.returncode == 0, got.stderr
    assert same_bytes(there, home / there.name)
    about = (home / there.name).stat()
    assert stat.S_IMODE(about.st_mode) == 0o640 and about.st_uid == os.getuid()
    shown = run_in(home, pair.a, "send", "--dry-run", there.name, "b:data/")
    assert shown.returncode == 0 and there.name in shown.stdout, shown.stderr
    sent = run_in(home, pair.a, "send", there.name, "b:data/back.bin")
    assert sent.returncode == 0, sent.stderr
    assert same_bytes(there, pair.b.export() / "back.bin")
    wait_until(lambda: not openers(), 30, "the processes that opened the files have ended")
    forget(there, pair.b.export() / "back.bin")


def test_several_files_odd_names_a_new_directory_and_a_new_name(pair, home):
    files = [make_file(pair.b, 100_000 + n, name=name) for n, name in enumerate(("a b.bin", "ümlaut,[x].bin", "-dash.bin"))]
    sources = [f"b:data/{path.name}" for path in files]
    got = run_in(home, pair.a, "get", "--literal", "--mkdir", *sources, "new/deep/")
    assert got.returncode == 0, got.stderr
    assert all(same_bytes(path, home / "new/deep" / path.name) for path in files)
    got = run_in(home, pair.a, "get", f"b:data/{files[0].name}", "other-name")
    assert got.returncode == 0, got.stderr
    assert same_bytes(files[0], home / "other-name")
    back = run_in(home, pair.a, "send", *(f"./new/deep/{path.name}" for path in files), "b:data/", "--overwrite")
    assert back.returncode == 0, back.stderr
    forget(*files)


def test_what_is_there_is_not_replaced_unless_that_is_asked_for(pair, home):
    there = make_file(pair.b, 200_000)
    (home / there.name).write_bytes(b"mine")
    refused(run_in(home, pair.a, "get", f"b:data/{there.name}", "."), EXISTS, home / there.name, "--overwrite")
    assert (home / there.name).read_bytes() == b"mine"
    got = run_in(home, pair.a, "get", f"b:data/{there.name}", ".", "--overwrite")
    assert got.returncode == 0, got.stderr
    assert same_bytes(there, home / there.name)
    assert sorted(home.iterdir()) == [home / there.name]
    forget(there)


def test_what_cannot_be_is_told_and_nothing_is_left(pair, home):
    (home / "folder").mkdir()
    (home / "folder" / "x").write_bytes(b"x")
    refused(run_in(home, pair.a, "send", "folder", "b:data/"), USAGE, home / "folder", "directory", "export")
    (home / "list").write_text("x\n")
    refused(run_in(home, pair.a, "send", "folder/", "b:data/", "--files-from", "list"), USAGE, home / "folder", "directory", "export")
    (home / "list").unlink()
    refused(run_in(home, pair.a, "send", "missing", "b:data/"), SOURCE, home / "missing", "does not exist")
    inside = make_file(pair.a, 1000)
    refused(run_in(home, pair.a, "send", inside, "folder/x", "b:data/"), USAGE, inside, "commands of their own")
    there = make_file(pair.b, 1000)
    refused(run_in(home, pair.a, "get", f"b:data/{there.name}", "no/such/"), STORAGE, "no/such", "--mkdir")
    assert sorted(path.name for path in home.rglob("*")) == ["folder", "x"]
    wait_until(lambda: not openers(), 30, "the processes that opened the files have ended")
    forget(inside, there)


def test_a_peer_reaches_none_of_it(pair, home):
    secret = random_file(home / "secret.bin", 1000, seed=1)
    refused(pair.b.sluice("get", f"a:{secret}", "data/stolen.bin"), OUTSIDE, secret)
    mine = make_file(pair.b, 1000)
    refused(pair.b.sluice("send", mine, f"a:{home}/planted.bin"), OUTSIDE, home)
    assert sorted(home.iterdir()) == [secret]
    forget(mine)


def test_it_goes_on_without_the_command_and_after_a_restart_of_control(pair, home):
    there = make_file(pair.b, 12 * MIB)
    process, session = start_slow(pair.a, "get", f"b:data/{there.name}", home / "slow.bin", rate="30M")
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    assert openers()
    assert pair.a.control.stop() == 0
    pair.a.start_control()
    assert ended_session(pair.a, session)["state"] == "succeeded"
    assert same_bytes(there, home / "slow.bin")
    verified = pair.a.sluice("verify", session)
    assert verified.returncode == 0, verified.stderr
    assert "good" in verified.stdout
    forget(there)


def test_a_source_is_read_on_after_kills_of_control(pair, home):
    mine = random_file(home / "mine.bin", 12 * MIB, seed=3)
    process, session = start_slow(pair.a, "send", mine, "b:data/slow.bin", rate="30M")
    pair.a.control.kill()
    pair.a.start_control()
    process.communicate(timeout=60)
    assert ended_session(pair.a, session)["state"] == "succeeded"
    assert same_bytes(mine, pair.b.export() / "slow.bin")
    forget(pair.b.export() / "slow.bin")


def test_the_process_that_opened_them_is_brought_back(pair, home):
    there = make_file(pair.b, 12 * MIB)
    process, session = start_slow(pair.a, "get", f"b:data/{there.name}", home / "slow.bin", rate="20M")
    for pid in openers():
        os.kill(pid, signal.SIGKILL)
    waits = wait_state(pair.a, session, "waiting", "paused")
    assert "outside the exports" in waits["waiting_for"] + waits["error"], waits
    assert not (home / "slow.bin").exists()
    # One that goes on by itself just then is not paused; the process is brought back all the same.
    result = pair.a.sluice("session", "continue", session)
    assert result.returncode == 0 or "is not paused here" in result.stderr, result.stderr
    process.communicate(timeout=120)
    assert ended_session(pair.a, session)["state"] == "succeeded"
    assert same_bytes(there, home / "slow.bin")
    forget(there)


def test_cancelled_it_leaves_nothing(pair, home):
    there = make_file(pair.b, 12 * MIB)
    process, session = start_slow(pair.a, "get", f"b:data/{there.name}", home / "slow.bin", rate="20M")
    pair.a.must("session", "cancel", session)
    process.communicate(timeout=60)
    wait_until(lambda: not list(home.iterdir()), 30, "the unfinished file has gone")
    wait_until(lambda: not openers(), 30, "the process that opened the files has ended")
    cancel_all(pair)
    forget(there)


def test_standard_input_is_a_source(pair, home):
    data = os.urandom(3 * MIB + 5)
    environment = {**os.environ, "TMPDIR": str(home)}
    command = pair.a.command("send", "-", "b:data/from-stdin.bin", "--quiet")
    sent = subprocess.run(command, input=data, env=environment, capture_output=True, timeout=120, check=False)
    assert sent.returncode == 0, sent.stderr
    assert (pair.b.export() / "from-stdin.bin").read_bytes() == data
    wait_until(lambda: not list(home.iterdir()), 30, "the file that held it meanwhile has gone")
    for words, naming in ((("data/",), "no name"), (("data/x", "--dry-run"), "--dry-run")):
        command = pair.a.command("send", "-", f"b:{words[0]}", *words[1:], "--quiet")
        sent = subprocess.run(command, input="x", env=environment, capture_output=True, text=True, timeout=120, check=False)
        refused(sent, USAGE, naming)
    assert not list(home.iterdir())
    forget(pair.b.export() / "from-stdin.bin")


def test_links_on_the_way_to_a_source_are_followed(pair, home):
    mine = random_file(home / "mine.bin", 100_000, seed=9)
    inside = make_file(pair.a, 100_000)
    (home / "here").symlink_to(home)
    (home / "export").symlink_to(pair.a.export())
    sent = run_in(home, pair.a, "send", "here/mine.bin", "b:data/")
    assert sent.returncode == 0, sent.stderr
    sent = run_in(home, pair.a, "send", f"export/{inside.name}", "b:data/")
    assert sent.returncode == 0, sent.stderr
    (home / "deep").mkdir()
    sent = run_in(home / "deep", pair.a, "send", "../mine.bin", "b:data/by-dots.bin")
    assert sent.returncode == 0, sent.stderr
    assert same_bytes(mine, pair.b.export() / "by-dots.bin")
    assert same_bytes(mine, pair.b.export() / "mine.bin") and same_bytes(inside, pair.b.export() / inside.name)
    (home / "link").symlink_to(mine)
    refused(run_in(home, pair.a, "send", "link", "b:data/"), OUTSIDE, home / "link", "symbolic link")
    forget(inside, *(pair.b.export() / name for name in ("mine.bin", "by-dots.bin", inside.name)))
