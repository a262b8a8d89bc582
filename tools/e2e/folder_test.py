# `sluice watch`: what is finished in a folder arrives, once, whatever is killed meanwhile; it is removed only afterwards.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import os
import pathlib
import signal
import subprocess

import pytest
from harness.system import wait_until
from transfers import MIB, OUTSIDE, UNTRUSTED, USAGE, ended_session, forget, refused

_LIMIT_S = 60
_QUIET = "1s"


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(in_memory=True)


class Watched:
    """A folder of node a, and the directory of node b that it is sent to."""

    def __init__(self, pair, name, tmp_path):
        self.pair = pair
        self.name = name
        self.source, self.target = pair.a.export() / name, pair.b.export() / name
        self.source.mkdir()
        self.target.mkdir()
        self.state = tmp_path / "state"
        self.errors = tmp_path / "errors"

    def command(self, *options):
        return self.pair.a.command("watch", self.source, f"b:data/{self.name}", "--quiet-time", _QUIET,
                                   "--state", self.state, "--json", *options)  # fmt: skip

    @contextlib.contextmanager
    def running(self, *options, end=signal.SIGKILL):
        with open(self.errors, "ab") as errors:
            process = subprocess.Popen(self.command(*options), stdout=subprocess.DEVNULL, stderr=errors)
        try:
            yield process
        finally:
            process.send_signal(end)
            assert process.wait(timeout=4 * _LIMIT_S) == (-end if end == signal.SIGKILL else 0), self.errors.read_text()

    def write(self, name, text="x"):
        path = self.source / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
        return path

    def arrives(self, *names):
        wait_until(lambda: all((self.target / name).exists() for name in names), _LIMIT_S, f"{names[-1]} has arrived")

    def sessions(self):
        return [one for one in self.pair.a.sessions()
                if one["files"] and one["files"][0]["source"].startswith(str(self.source))]  # fmt: skip


@pytest.fixture
def watched(pair, tmp_path, request):
    return Watched(pair, request.node.name, tmp_path)


def test_what_is_still_written_waits_also_over_a_restart(watched):
    with open(watched.source / "slow", "w") as slow:
        slow.write("first ")
        slow.flush()
        for turn in range(2):  # the second start finds a file whose making it has not seen
            with watched.running():
                if turn == 0:
                    slow.write("then ")
                    slow.flush()
                watched.write(f"after/{turn}")
                watched.arrives(f"after/{turn}")  # so `slow` was quiet for as long, and was looked at
                assert not (watched.target / "slow").exists()
        slow.write("last")
    with watched.running(end=signal.SIGTERM):
        watched.arrives("slow")
    assert (watched.target / "slow").read_text() == "first then last"


def test_each_is_sent_once_whatever_is_killed(watched):
    wanted = {f"run{i % 7}/f{i}" for i in range(200)}
    for name in sorted(wanted):
        watched.write(name, name * 600)
    slow = ("--rate", "2M", "--mode", "fixed")
    with watched.running(*slow):
        moving = wait_until(lambda: [one for one in watched.sessions() if one["bytes_done"] > 0], _LIMIT_S, "it moves")
    ended_session(watched.pair.a, moving[0]["id"])
    with watched.running(*slow):
        watched.write("late")
        watched.arrives(*wanted, "late")
        wait_until(lambda: all(one["state"] == "succeeded" for one in watched.sessions()), _LIMIT_S, "all have ended")
        wait_until(lambda: "arrived 2" in watched.state.read_text(), _LIMIT_S, "it is noted")
    # Killed before it knew what had become of the session that it had asked for, it asks the node.
    lines = [line for line in watched.state.read_text().splitlines(keepends=True) if not line.startswith("arrived 2")]
    watched.state.write_text("".join(lines))
    with watched.running(end=signal.SIGTERM):
        watched.write("last")
        watched.arrives("last")
        wait_until(lambda: any(word in watched.state.read_text() for word in ("arrived 2 ", "failed 2 ")), _LIMIT_S,
                   "it knows what became of the second session")  # fmt: skip
    assert "failed 2 " not in watched.state.read_text()
    ends = [ended_session(watched.pair.a, one["id"]) for one in watched.sessions()]
    assert len(ends) == 3, [one["names"] for one in ends]
    files = [path for path in watched.target.rglob("*") if path.is_file()]
    assert len(files) == len(wanted) + 2
    assert all((watched.target / name).read_text() == name * 600 for name in wanted)


def test_a_session_of_other_files_says_nothing_of_those_that_were_never_sent(watched):
    """The host dies after the first batch was written down, and before the node has begun its session."""
    control = watched.pair.a.control
    for number in range(3):
        watched.write(f"old{number}")
    with watched.running("--then", "remove"):
        wait_until(lambda: watched.state.exists() and "folder " in watched.state.read_text(), _LIMIT_S, "it has begun")
        os.kill(control.pid, signal.SIGSTOP)
        watched.write("old3")
        wait_until(lambda: "batch " in watched.state.read_text(), _LIMIT_S, "a batch is written down")
    control.kill()
    watched.pair.a.start_control()
    for number in range(3):
        watched.write(f"new{number}")
    with watched.running("--then", "remove", end=signal.SIGTERM):
        watched.arrives("new0", "new1", "new2")
        wait_until(lambda: not [one for one in watched.source.iterdir()], _LIMIT_S, "all were removed")
    assert {one.name for one in watched.target.iterdir()} == {f"{what}{n}" for what in ("new", "old") for n in range(3)} | {"old3"}


def test_a_state_that_does_not_say_where_its_files_went_is_taken_and_says_it_from_then_on(watched):
    watched.write("old")
    with watched.running(end=signal.SIGTERM):
        watched.arrives("old")
        wait_until(lambda: "arrived 1" in watched.state.read_text(), _LIMIT_S, "it is noted")
    lines = watched.state.read_text().splitlines(keepends=True)
    before = [line for line in lines if not line.startswith("to ")]
    assert len(before) == len(lines) - 1
    watched.state.write_text("".join(before))  # as 1.0.0 wrote it
    with watched.running(end=signal.SIGTERM):
        watched.write("new")
        watched.arrives("new")
    assert len(watched.sessions()) == 2
    assert f"to b:data/{watched.name}\n" in watched.state.read_text()


def test_more_than_the_kernel_keeps_is_found_all_the_same(watched):
    kept = int(pathlib.Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if kept > 40_000:
        pytest.skip(f"fs.inotify.max_queued_events is {kept}: too many files for a test")
    with watched.running(end=signal.SIGTERM) as process:
        watched.write("first")
        watched.arrives("first")
        process.send_signal(signal.SIGSTOP)
        count = kept // 2 + 500
        for i in range(count):
            os.close(os.open(watched.source / f"f{i}", os.O_WRONLY | os.O_CREAT, 0o644))
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: len(os.listdir(watched.target)) == count + 1, 2 * _LIMIT_S, "all have arrived")
    assert "more happened in the folder" in watched.errors.read_text()


def test_a_file_is_removed_once_it_has_arrived_and_only_if_it_is_what_was_sent(watched, tmp_path):
    receipts = tmp_path / "receipts"
    receipts.mkdir()
    path = watched.write("a", "old" * MIB)
    options = ("--then", "remove", "--receipts", receipts, "--rate", "10M", "--mode", "fixed")
    with watched.running(*options, end=signal.SIGTERM):
        wait_until(lambda: any(one["bytes_done"] > 0 for one in watched.sessions()), _LIMIT_S, "it moves")
        assert path.exists() and not (watched.target / "a").exists()
        path.write_text("new")
        watched.arrives("a")
        wait_until(lambda: not path.exists(), _LIMIT_S, "it is removed")
        assert (watched.target / "a").read_text() == "new"
        # Of the session that failed there is no receipt; of the one that succeeded there is.
        kept = [json.loads(one.read_text())["schema"] for one in receipts.iterdir()]
        assert kept == ["sluice.receipt.v1"]
        watched.pair.b.control.kill()
        stays = watched.write("b")
        wait_until(lambda: len(watched.sessions()) >= 3, _LIMIT_S, "a session is begun")
        assert stays.exists()
        watched.pair.b.start_control()
        wait_until(lambda: not stays.exists(), _LIMIT_S, "it goes once the other node is back")
    assert (watched.target / "b").read_text() == "x"


def test_what_arrived_of_a_partial_session_goes_as_well_with_a_receipt_of_it(watched, tmp_path):
    receipts = tmp_path / "receipts"
    receipts.mkdir()
    (watched.target / "b").write_text("another's")
    arrived, stays = watched.write("a"), watched.write("b", "mine")
    with watched.running("--then", "remove", "--receipts", receipts, end=signal.SIGTERM):
        wait_until(lambda: not arrived.exists(), _LIMIT_S, "what has arrived is removed")
        assert stays.read_text() == "mine" and (watched.target / "a").read_text() == "x"
        (partial,) = [one for one in watched.sessions() if one["state"] == "partial"]
        path = receipts / f"{partial['id']}.json"
        checked = watched.pair.a.sluice("receipt", "--check", path)
        assert checked.returncode == 21 and "missing" in checked.stdout, checked
        (missing,) = json.loads(json.loads(path.read_text())["statement"])["missing"]
        assert missing["name"] == "b" and missing["reason"]
        (watched.target / "b").unlink()
        wait_until(lambda: not stays.exists(), _LIMIT_S, "it goes once it has arrived")
    assert (watched.target / "b").read_text() == "mine"


def test_of_names_that_are_shown_alike_none_is_removed_that_has_not_arrived(watched):
    files = [watched.write(name, name) for name in ("run\x01", "run\x02")]
    (watched.target / "run\x01").write_text("another's")
    with watched.running("--then", "remove", end=signal.SIGTERM):
        watched.arrives("run\x02")
        wait_until(lambda: any(one["state"] == "partial" for one in watched.sessions()), _LIMIT_S, "a session has ended")
        watched.write("later")
        watched.arrives("later")
    assert [path.read_text() for path in files] == ["run\x01", "run\x02"]
    assert (watched.target / "run\x01").read_text() == "another's"


def test_markers_patterns_and_a_place_for_what_has_arrived(watched):
    done = watched.source / "done"
    done.mkdir()
    for name in ("run/a.h5", "run/b.h5", "run/c.tmp", ".hidden.h5"):
        watched.write(name)
    for name in ("run/a.h5.ok", "run/c.tmp.ok", ".hidden.h5.ok"):
        watched.write(name, "")
    options = ("--marker", ".ok", "--pattern", "*.h5", "--then", f"move:{done}")
    with watched.running(*options, end=signal.SIGTERM):
        watched.arrives("run/a.h5")
        wait_until(lambda: (done / "run/a.h5").exists(), _LIMIT_S, "it is moved")
        watched.write("run/b.h5.ok", "")
        watched.arrives("run/b.h5")
        wait_until(lambda: (done / "run/b.h5").exists(), _LIMIT_S, "it is moved")
    left = {str(path.relative_to(watched.source)) for path in watched.source.rglob("*") if path.is_file()}
    assert left == {"done/run/a.h5", "done/run/b.h5", "run/c.tmp", "run/c.tmp.ok", ".hidden.h5", ".hidden.h5.ok"}
    assert {path.name for path in watched.target.rglob("*") if path.is_file()} == {"a.h5", "b.h5"}
    forget(*watched.source.glob(".hidden*"))


def test_what_cannot_be_is_said_at_once(watched, tmp_path):
    def attempt(*options, peer="b"):
        return watched.pair.a.sluice("watch", watched.source, f"{peer}:data/x", "--state", watched.state, *options)

    refused(attempt(peer="nobody"), UNTRUSTED, "nobody")
    outside = watched.pair.a.sluice("watch", tmp_path, "b:data/x", "--state", watched.state)
    refused(outside, OUTSIDE, str(tmp_path), "export")
    refused(attempt("--then", "burn"), USAGE, "burn", "keep, remove or move:DIR")
    refused(attempt("--quiet-time", "soon"), USAGE, "soon")
    refused(attempt("--receipts", tmp_path / "none"), USAGE, "none")
    refused(attempt("--then", "move:/proc"), USAGE, "same file system")
    watched.state.unlink()
    with watched.running(end=signal.SIGTERM):
        wait_until(lambda: watched.state.exists() and watched.state.stat().st_size > 0, _LIMIT_S, "it has begun")
        refused(attempt(), 3, "another process")
    other = watched.pair.a.sluice("watch", watched.source, f"b:data/{watched.name}/other", "--state", watched.state)
    refused(other, 3, f"b:data/{watched.name}/other", f"b:data/{watched.name},", "--state")
    notes = tmp_path / "notes.txt"
    notes.write_text("my lab notes\nwithout an end")
    refused(watched.pair.a.sluice("watch", watched.source, f"b:data/{watched.name}", "--state", notes), 3, "no state")
    assert notes.read_text() == "my lab notes\nwithout an end"
    watched.source.rmdir()
    (watched.source.parent / "another").mkdir()
    watched.source.mkdir()
    refused(attempt(), 3, "is not the directory")
