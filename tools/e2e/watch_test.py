# `session events` and `session watch`, the latter on a terminal of its own: what it shows, and that it gives it back.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest
from transfers import MIB, USAGE, finish, forget, make_file, refused, start_slow

_STEP_S = 60
_BEHIND = b"<behind the last>"


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 28)


@pytest.fixture
def running(pair):
    """A session that runs until the test is over: (id, source)."""
    source = make_file(pair.a, 64 * MIB, name="run \x1b[7m42.h5")
    process, session = start_slow(pair.a, "send", source, "b:data/", "--mode", "fixed", rate="10M")
    yield session
    pair.a.sluice("session", "cancel", session)
    finish(process)
    forget(source)


class Screen:
    """The command in a pseudo-terminal; `text` is all that it has written, without escape sequences."""

    def __init__(self, command, columns=80, rows=24):
        self._master, worker = pty.openpty()
        self.before = termios.tcgetattr(worker)
        self.resize(columns, rows)
        self.process = subprocess.Popen(command, stdin=worker, stdout=worker, stderr=worker, start_new_session=True,
                                        env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"})  # fmt: skip
        self._worker = worker
        self.raw = b""

    def resize(self, columns, rows):
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    @property
    def text(self):
        return re.sub(rb"\x1b(\[[0-9;?]*[a-zA-Z]|\(.|[=>78])", b"", self.raw).decode(errors="replace")

    def read(self, until):
        """Reads on until that is so; a bound, no measure of time."""
        end = time.monotonic() + _STEP_S
        while not until():
            assert time.monotonic() < end, self.text[-3000:]
            if select.select([self._master], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    self.raw += os.read(self._master, 65536)

    def shows(self, *texts):
        self.read(lambda: all(text in self.text for text in texts))

    def ended(self):
        self.read(lambda: self.process.poll() is not None)
        # What it wrote last may still be on its way: it came when what is written behind it has come.
        os.write(self._worker, _BEHIND)
        self.read(lambda: self.raw.endswith(_BEHIND))
        self.raw = self.raw.removesuffix(_BEHIND)
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._worker)
        os.close(self._master)

    def restored(self):
        assert b"\x1b[?1049h" in self.raw, "another screen was entered"
        assert b"\x1b[?1049l" in self.raw.split(b"\x1b[?1049h")[-1], "and left"
        assert termios.tcgetattr(self._worker)[:4] == self.before[:4]


@pytest.fixture
def watch(pair, request):
    screens = []

    def start(*arguments, **size):
        screens.append(Screen(pair.a.command("session", "watch", *arguments), **size))
        return screens[-1]

    yield start
    for screen in screens:
        screen.close()


def test_it_shows_the_session_and_q_leaves_it_running(pair, running, watch):
    screen = watch(running)
    screen.shows(running[:8], "bottleneck", "limit", "lane", "q quits", "#")
    assert "\x07" not in screen.text
    os.write(screen._master, b"q")
    assert screen.ended() == 0
    screen.restored()
    status, session, _ = pair.a.json("session", "show", running)
    assert (status, session["state"]) == (0, "transferring")


def test_without_an_id_it_is_the_newest_and_names_cannot_steer_the_terminal(running, watch):
    screen = watch()
    screen.shows(running[:8], "42.h5")
    assert b"\x1b[7m42.h5" not in screen.raw
    os.write(screen._master, b"q")
    assert screen.ended() == 0
    screen.restored()


def test_it_follows_the_size_of_the_terminal(running, watch):
    screen = watch(running, columns=39, rows=24)
    screen.shows("at least 40 columns")
    screen.resize(100, 30)
    os.kill(screen.process.pid, signal.SIGWINCH)
    screen.shows("q quits", running[:8])
    os.write(screen._master, b"q")
    assert screen.ended() == 0
    screen.restored()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_and_the_terminal_is_as_it_was(running, watch, number):
    screen = watch(running)
    screen.shows("q quits")
    os.kill(screen.process.pid, number)
    assert screen.ended() == 128 + number
    screen.restored()


def test_at_the_end_it_leaves_with_the_summary(pair, watch):
    source = make_file(pair.a, 8 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/", "--mode", "fixed", rate="20M")
    screen = watch(session)
    screen.shows("q quits")
    assert screen.ended() == 0
    screen.shows("bottleneck: limit")
    screen.restored()
    assert finish(process).returncode == 0
    forget(source, pair.b.export() / source.name)


def test_without_a_terminal_it_says_what_to_use_instead(pair, running):
    refused(pair.a.sluice("session", "watch", running), USAGE, "session show", "session events")


def test_events_are_lines_until_the_end(pair):
    source = make_file(pair.a, 8 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/", "--mode", "fixed", rate="20M")
    result = pair.a.sluice("session", "events", session)
    assert result.returncode == 0, result.stderr
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert {event["session"] for event in events} == {session}
    assert events[0]["event"] == "state"
    assert "bottleneck" in [event["event"] for event in events]
    files = [event["file"] for event in events if event["event"] == "file"]
    assert [(file["source"], file["done"]) for file in files] == [(str(source), True)]
    assert [event["state"] for event in events if event["event"] == "state"][-1] == "succeeded"
    assert finish(process).returncode == 0
    forget(source, pair.b.export() / source.name)


def test_events_of_all_sessions_name_each_also_the_shortest(pair):
    events = pair.a.popen("session", "events")
    try:
        sources = [make_file(pair.a, 1000) for _ in range(3)]
        first = make_file(pair.a, 1000)
        process, _ = start_slow(pair.a, "send", make_file(pair.a, 4 * MIB, name="marker.bin"), "b:data/", rate="40M")
        seen = json.loads(events.stdout.readline())
        assert seen["event"] == "state"
        for source in [first, *sources]:
            pair.a.must("send", source, "b:data/")
        wanted = {session["id"] for session in pair.a.sessions()[-4:]}
        ended = set()
        while not wanted <= ended:
            event = json.loads(events.stdout.readline())
            if event["event"] == "state" and event["state"] == "succeeded":
                ended.add(event["session"])
        assert finish(process).returncode == 0
    finally:
        events.terminate()
        events.communicate()


def test_events_of_no_such_session_are_an_error(pair):
    refused(pair.a.sluice("session", "events", "ffffffff"), USAGE, "ffffffff")
