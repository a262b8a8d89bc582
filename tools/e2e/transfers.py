# What the end-to-end tests say over and over: make a file, move it, compare it, refuse it.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import itertools
import os
import pathlib
import pwd
import random
import shutil

from harness import HarnessError, find_binaries, wait_until
from harness.system import random_file, same_bytes

MIB = 1 << 20
HOTMALLOC = find_binaries() / "sluice_hotmalloc.so"
SANITIZED = not HOTMALLOC.exists()  # such builds go without: a sanitizer has its own allocator
_serial = itertools.count(1)

# dataplane/base/error.h
USAGE, CONFIGURATION, DAEMON, UNTRUSTED, UNREACHABLE, SOURCE, OUTSIDE, EXISTS, NO_SPACE = range(2, 11)
INTEGRITY, CANCELLED, DEVICE, STALLED, INCOMPATIBLE, STORAGE, RESOURCES = range(11, 18)
TOO_SLOW, DEADLINE, LATE, PARTIAL, QUOTA, ATTRIBUTES, SUPERSEDED, MOVED = range(18, 26)


def fresh_name(stem="file"):
    return f"{stem}{next(_serial)}.bin"


def make_file(node, size, export="data", name=None):
    """A file of random bytes in an export of the node; removed by the caller with `forget`."""
    number = next(_serial)
    return random_file(node.export(export) / (name or f"file{number}.bin"), size, seed=number)


def forget(*paths):
    for path in paths:
        path.unlink(missing_ok=True)


def as_user(user, group=None, also=()):
    """What stands before a command that another user of this host runs, who is in these groups besides."""
    entry = pwd.getpwnam(user)
    groups = ",".join(str(gid) for gid in also)
    return ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid if group is None else group}",
            *([f"--groups={groups}"] if groups else ["--clear-groups"]), "--"]  # fmt: skip


def run_control_as(pair, node, user, also=()):
    """sluice-control of this node, before its start: the node's directory is the user's, and anybody may write in its export."""
    pair.base.chmod(0o711)
    run, control = node.directory / "run", pwd.getpwnam(user)
    run.mkdir(exist_ok=True)
    for path in (node.directory, *node.directory.rglob("*")):
        os.chown(path, control.pw_uid, control.pw_gid)
    node.export().chmod(0o1777)
    node.control.command[:0] = as_user(user, also=(control.pw_gid, *also))


def names(node, export="data"):
    return {path.name for path in node.export(export).iterdir()}


def temporary_files(node):
    """Whatever Sluice left in the exports under a name that no test gave."""
    return [path for folder, _ in node.exports.values() for top, _, files in os.walk(folder) for name in files
            if name.startswith(".") and (path := pathlib.Path(top, name)).is_file()]  # fmt: skip


def as_before(group):
    """Daemons that a test has ended run again, and the exports are empty."""
    for node in group.nodes:
        if not node.dataplane.running():
            node.start_dataplane()
        if not node.control.running():
            node.start_control()
        for path in list(node.export().iterdir()):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    nothing_temporary(*group.nodes)


def nothing_temporary(*nodes):
    """A session that has ended may be removing what came of it."""
    try:
        wait_until(lambda: not any(temporary_files(node) for node in nodes), 10, "no temporary file is left")
    except HarnessError as error:
        left = [str(path) for node in nodes for path in temporary_files(node)]
        sessions = [node.must("session", "list").stdout for node in nodes]
        raise HarnessError("\n".join([str(error), *left, *sessions])) from None


def push(pair, source, *options, to="data/", name=None, check=True):
    """a sends; returns the path where it now stands at b, compared with cmp."""
    result = pair.a.sluice("send", source, f"b:{to}{name or ''}", *options)
    assert result.returncode == 0, result.stderr
    target = pair.b.export(to.split("/")[0]) / to.partition("/")[2] / (name or source.name)
    if check:
        assert same_bytes(source, target), f"{target} differs from {source}"
    return target


def pull(pair, source, *options, name=None):
    """a gets a file from b."""
    target = pair.a.export() / (name or "got-" + source.name)
    result = pair.a.sluice("get", f"b:{source}", target, *options)
    assert result.returncode == 0, result.stderr
    assert same_bytes(source, target), f"{target} differs from {source}"
    return target


def last_session(node):
    return node.sessions()[-1]


class Lossy:
    """A UDP socket that loses one datagram in `one_in`, on its way out and in."""

    def __init__(self, inner, one_in, seed):
        self._inner, self._one_in, self._chance = inner, one_in, random.Random(seed)

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def _lost(self):
        return self._chance.randrange(self._one_in) == 0

    def sendto(self, data, address):
        if not self._lost():
            self._inner.sendto(data, address)

    def recvfrom(self, size):
        received = self._inner.recvfrom(size)
        while self._lost():
            received = self._inner.recvfrom(size)
        return received


ENDED = ("succeeded", "partial", "failed", "cancelled")


def wait_state(node, session, *states, deadline_s=60):
    """The session as the node shows it, once it is in one of these states. The node may be restarting."""
    seen = {}

    def there():
        status, reply, _ = node.json("session", "show", session)
        if status == 0:
            seen.update(reply)
        return status == 0 and reply["state"] in states and reply

    try:
        return wait_until(there, deadline_s, f"session {session} of node {node.name} is {' or '.join(states)}")
    except HarnessError as error:
        raise HarnessError(f"{error}; it is {seen.get('state')}, waiting for {seen.get('waiting_for')!r}") from None


def ended_session(node, session, deadline_s=90):
    return wait_state(node, session, *ENDED, deadline_s=deadline_s)


def refused(result, code, *naming):
    """One line on stderr that names each of `naming`, nothing else, and the exit status of its class."""
    lines = result.stderr.strip().splitlines()
    assert result.returncode == code, f"status {result.returncode}, expected {code}: {result.stderr}"
    assert len(lines) == 1, f"not one line: {result.stderr}"
    for word in naming:
        assert str(word) in lines[0], f"does not name {word}: {lines[0]}"
    return lines[0]


def begin(node, *arguments):
    """The id of a session that nobody follows."""
    return node.must(*arguments, "--detach").stdout.split()[-1]


def cancel_all(pair):
    """Ends whatever either node of the pair began; one that ends by itself just then is as well."""
    for node in pair.nodes:
        for session in node.sessions():
            if session["state"] not in ENDED and session["direction"] in ("send", "get"):
                result = node.sluice("session", "cancel", session["id"])
                assert result.returncode == 0 or "has ended already" in result.stderr, result.stderr
    wait_until(lambda: all(session["state"] in ENDED for node in pair.nodes for session in node.sessions()), 60,
               "every session has ended at both nodes")  # fmt: skip


def start_slow(node, *arguments, rate="40M", lookup=None):
    """Starts a transfer in the background; returns (process, session id) once bytes have arrived."""
    before = {session.id for session in node.listed()}
    process = node.popen(*arguments, "--rate", rate)

    def moving():
        assert process.poll() is None, f"ended early: {process.communicate()[1]}"
        new = [session for session in node.listed() if session.id not in before]
        return new and new[-1].bytes_done > 0 and new[-1].id

    return process, wait_until(moving, 30, "first bytes of the slow transfer")


def finish(process, deadline_s=60):
    """Waits for the end of a background transfer: an object with returncode, stdout, stderr."""
    process.stdout_text, process.stderr_text = process.communicate(timeout=deadline_s)

    class Ended:
        returncode, stdout, stderr = process.returncode, process.stdout_text, process.stderr_text

    return Ended


def still_serving(pair):
    """Both nodes still take and give a file."""
    for giver, taker in ((pair.a, pair.b), (pair.b, pair.a)):
        source = make_file(giver, 100_000)
        result = giver.sluice("send", source, f"{taker.name}:data/")
        assert result.returncode == 0, result.stderr
        target = taker.export() / source.name
        assert same_bytes(source, target)
        forget(source, target)


def log_tails(pair):
    if not hasattr(pair, "b"):
        return "(no nodes)"
    daemons = [daemon for node in pair.nodes for daemon in (node.dataplane, node.control)]
    return "\n".join(f"--- {daemon.name}\n{daemon.log_tail(15)}" for daemon in daemons)


@contextlib.contextmanager
def unharmed(pair):
    """Whatever happens inside: the exports end as they began, and both nodes still serve."""
    before = [names(node) for node in pair.nodes]
    yield
    wait_until(lambda: [names(node) for node in pair.nodes] == before, 10, f"exports are as before: {before}")
    still_serving(pair)
