# What the daemons tell a service manager: that they serve, that they end, and that their loops turn; and what
# they write into a journal. Both are sockets of this test.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import ctypes
import os
import pathlib
import socket
import time

import pytest
from harness import Node, find_binaries
from harness.system import free_ports, wait_until

_LIMIT_S = 60  # a bound, no measure of time


class Manager:
    """Of one daemon: the socket that it tells, and all that it told."""

    def __init__(self, path):
        self.name = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.name)
        self._socket.settimeout(_LIMIT_S)
        self.told = []

    def hears(self, line):
        """Waits for a datagram with this line in it, and gives its lines."""
        while True:
            lines = self._socket.recv(65536).decode().split("\n")
            self.told += lines
            if line in lines:
                return lines

    def count(self, line, within_s):
        """How often that comes within a time from now on."""
        self.told_now()
        found, end = 0, time.monotonic() + within_s
        while (left_s := end - time.monotonic()) > 0:
            self._socket.settimeout(left_s)
            with contextlib.suppress(TimeoutError):
                found += self._socket.recv(65536).decode().split("\n").count(line)
        self._socket.settimeout(_LIMIT_S)
        return found

    def told_now(self):
        """The lines that are there already."""
        self._socket.setblocking(False)
        lines = []
        try:
            while True:
                lines += self._socket.recv(65536).decode().split("\n")
        except BlockingIOError:
            self._socket.settimeout(_LIMIT_S)
            return lines

    def close(self):
        self._socket.close()


@pytest.fixture
def node(tmp_path):
    one = Node(find_binaries(), tmp_path / "n", "n", free_ports(1)[0])
    one.add_export("data", tmp_path / "data")
    one.create()
    yield one
    one.stop()


@pytest.fixture
def managers(node, tmp_path, monkeypatch):
    """start(daemon, watchdog_us) starts it beneath a manager of its own."""
    made = []

    def start(daemon, watchdog_us=400_000):
        made.append(Manager(tmp_path / f"manager{len(made)}"))
        with monkeypatch.context() as patch:
            patch.setenv("NOTIFY_SOCKET", made[-1].name)
            patch.setenv("WATCHDOG_USEC", str(watchdog_us))
            daemon.start()
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_ready_is_told_once_they_serve_and_stopping_when_they_end(node, managers):
    dataplane = managers(node.dataplane)
    assert "STATUS=serves device udp" in dataplane.hears("READY=1")
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    probe.connect(str(node.directory / "run" / "dataplane.sock"))
    probe.close()
    control = managers(node.control)
    assert "STATUS=0 sessions" in control.hears("READY=1")[1]
    # No waiting here: whoever waited for READY may ask at once.
    status, reply, error = node.json("node", "show")
    assert status == 0, error
    assert reply["name"] == "n"
    for manager in (dataplane, control):
        manager.hears("WATCHDOG=1")
    assert node.stop() == (0, 0)
    for manager in (dataplane, control):
        manager.hears("STOPPING=1")
        assert manager.told.index("READY=1") < manager.told.index("WATCHDOG=1")
        assert "READY=1" not in manager.told[manager.told.index("READY=1") + 1 :]


def test_control_tells_when_its_dataplane_is_gone(node, managers):
    control = managers(node.control)
    assert "STATUS=0 sessions; no dataplane: they wait for it" in control.hears("READY=1")
    node.start_dataplane()
    control.hears("STATUS=0 sessions")


class HeldThread:
    """One thread of a process does not run, as if it were stuck; all others do."""

    _SEIZE, _INTERRUPT, _DETACH, _WALL = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self, thread):
        self._thread = thread

    def _ptrace(self, request):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        if libc.ptrace(request, self._thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def __enter__(self):
        try:
            self._ptrace(self._SEIZE)
        except OSError as error:
            pytest.skip(f"threads cannot be held here: {error}")
        self._ptrace(self._INTERRUPT)
        os.waitpid(self._thread, self._WALL)

    def __exit__(self, *_):
        self._ptrace(self._DETACH)


def threads(daemon):
    """{thread: its name}, without those that the kernel made."""
    tasks = pathlib.Path(f"/proc/{daemon.pid}/task")
    named = {int(task.name): (task / "comm").read_text().strip() for task in tasks.iterdir()}
    return {thread: name for thread, name in named.items() if not name.startswith("iou-")}


@pytest.mark.parametrize(("which", "held"), [("control", "main"), ("dataplane", "main"), ("dataplane", "worker")])
def test_a_loop_that_is_stuck_is_not_called_alive(node, managers, which, held):
    daemon = getattr(node, which)
    manager = managers(daemon)
    manager.hears("READY=1")
    others = [thread for thread in threads(daemon) if thread != daemon.pid]
    if held == "worker":
        assert len(others) == 1, threads(daemon)
    with HeldThread(daemon.pid if held == "main" else others[0]):
        # What had turned just before counts once; a loop that is well tells five times as often.
        assert manager.count("WATCHDOG=1", within_s=1) <= 1
    manager.hears("WATCHDOG=1")


def test_a_start_that_fails_is_never_ready(node, managers):
    node.settings["port"] = {"colour": "blue"}
    node.write_configuration()
    for daemon in (node.control, node.dataplane):
        manager = managers(daemon)
        wait_until(lambda: not daemon.running(), _LIMIT_S, f"{daemon.name} has ended")  # noqa: B023
        assert manager.told_now() == []
