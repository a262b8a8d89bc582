# One job's stages: what is kept of them on disk, and its sessions, begun as the job's user and waited for.
#
# A folder for each job holds job.json (what is to be done, fixed by setup), and for its session N the files N.out and N.err, into which
# `sluice send|get --detach` itself writes: so the id of a session is kept although who started the command was killed.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import time

import directives
from directives import Command, Problem

_DAEMON_AWAY, _PEER_UNTRUSTED, _TIMED_OUT = 4, 5, 124
_LIST_BYTES_MAX = 8 << 20
_LIST_READ_S = 60
_LOOK_S = 5  # so often a session that does not move is looked at


class NotYet(Exception):
    """A session has not ended."""


class Configuration:
    """/etc/sluice/slurm.conf: lines of KEY = VALUE."""

    def __init__(self):
        self.sluice = "/usr/bin/sluice"
        self.node = "/etc/sluice"
        self.state_dir = "/var/lib/sluice-slurm"
        # As whom stages between two other nodes are ordered: user, the job's, or slurm, whom slurmctld runs as.
        self.between = "user"
        self.patience_s = "600"  # so long sluice-control may be away
        path = pathlib.Path(os.environ.get("SLUICE_STAGE_CONF", "/etc/sluice/slurm.conf"))
        with contextlib.suppress(FileNotFoundError):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                self._take(path, number, line.strip())
        if self.between not in ("user", "slurm"):
            raise Problem(f"{path}: between = {self.between}: user or slurm")
        if not self.patience_s.isdigit():
            raise Problem(f"{path}: patience_s = {self.patience_s}: a number of seconds")

    def _take(self, path, number, line):
        if not line or line.startswith("#"):
            return
        key, equals, value = (part.strip() for part in line.partition("="))
        if not equals or key not in vars(self):
            raise Problem(f"{path}:{number}: {key}: no such key; there are {', '.join(vars(self))}")
        setattr(self, key, value)


def scontrol(*words):
    return subprocess.run(["scontrol", *words], capture_output=True, text=True, errors="surrogateescape", check=False)


def _as_user(entry):
    """What stands before a command of the job's user."""
    if entry.pw_uid == os.geteuid():
        return []
    if os.geteuid() == 0:
        return ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--init-groups", "--inh-caps=-all", "--"]
    return ["sudo", "-n", "-u", entry.pw_name, "--"]


class Job:
    def __init__(self, configuration, number):
        if not str(number).isdigit():
            raise Problem(f"{number} is no number of a job")
        self._configuration = configuration
        self.number = str(number)
        self._folder = pathlib.Path(configuration.state_dir, self.number)
        self._kept = None

    def known(self):
        return (self._folder / "job.json").exists()

    def set_started(self):
        """Slurm begins the job; burst_buffer.lua makes the same file."""
        (self._folder / "started").touch()

    def started(self):
        return (self._folder / "started").exists()

    @contextlib.contextmanager
    def only_guard(self):
        """False: another process guards it."""
        try:
            with open(self._folder / "guard", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield True
        except (FileNotFoundError, BlockingIOError):
            yield False

    # ---- what is to be done -------------------------------------------------------------------

    def keep(self, uid, script):
        """Once for a job: setup comes again when slurmctld was restarted, and finds what was begun."""
        entry = self._user(uid)
        digest = hashlib.sha256(script.encode(errors="surrogateescape")).hexdigest()
        if self.known():
            kept = self._load()
            if (kept["uid"], kept["script"]) == (uid, digest) and not (self._folder / "ran").exists():
                return
            self._forget()  # another job had that number; or this one ran, and runs again
        plan, paths = [], []
        for stage in directives.parse(script):
            for key in ("source", "destination", "list_file"):
                setattr(stage, key, directives.expand(getattr(stage, key), self.number, entry.pw_name))
            listed = self._read_list(entry, stage.list_file) if stage.list_file else None
            between = all(map(directives.node_of, (stage.source, stage.destination)))
            plan += [{"way": stage.way, "stage": stage.number, "between": between, **dataclasses.asdict(command)}
                     for command in directives.commands(stage, listed)]  # fmt: skip
            path = stage.destination if stage.way == "in" else stage.source
            paths.append(f"SLUICE_STAGE_{stage.way.upper()}_{stage.number}={path}\n")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._folder / "paths").write_text("".join(paths))
        written = self._folder / "job.json.new"
        written.write_text(json.dumps({"uid": uid, "script": digest, "plan": plan}))
        written.rename(self._folder / "job.json")

    @staticmethod
    def _user(uid):
        if uid == 0:
            raise Problem("root has no jobs with staging: submit it as a user")
        try:
            return pwd.getpwuid(uid)
        except KeyError:
            raise Problem(f"this host knows no user {uid}") from None

    def _read_list(self, entry, path):
        """As the job's user: slurmctld's may be able to read what he may not."""
        command = [*_as_user(entry), "timeout", str(_LIST_READ_S), "head", "-c", str(_LIST_BYTES_MAX + 1), "--", path]
        result = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False, cwd="/")
        if result.returncode != 0:
            reason = result.stderr.decode(errors="replace").strip().rpartition(": ")[2] or f"not read within {_LIST_READ_S} s"
            raise Problem(f"list={path}: user {entry.pw_name} cannot read it: {reason}")
        if len(result.stdout) > _LIST_BYTES_MAX:
            raise Problem(f"list={path}: longer than {_LIST_BYTES_MAX >> 20} MiB; use several lists")
        try:
            return result.stdout.decode()
        except UnicodeDecodeError:
            raise Problem(f"list={path}: not valid UTF-8") from None

    def _load(self):
        if self._kept is None:
            try:
                self._kept = json.loads((self._folder / "job.json").read_text())
            except FileNotFoundError:
                raise Problem(f"nothing is known of job {self.number} in {self._configuration.state_dir}") from None
        return self._kept

    def _forget(self):
        self._kept = None
        shutil.rmtree(self._folder)

    def _sessions(self, way=None):
        return [Session(self._configuration, self, at, entry) for at, entry in enumerate(self._load()["plan"])
                if way in (None, entry["way"])]  # fmt: skip

    @property
    def uid(self):
        return self._load()["uid"]

    def file(self, name):
        return self._folder / name

    # ---- what is done -------------------------------------------------------------------------

    @contextlib.contextmanager
    def _locked(self):
        """Held by a command that begins a session too, until it has ended: whoever comes next finds its id."""
        try:
            with open(self._folder / "lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield lock
        except FileNotFoundError:
            raise Problem(f"nothing is known of job {self.number} in {self._configuration.state_dir}") from None

    def begin(self, way):
        if way not in ("in", "out"):
            raise Problem(f"{way}: in or out")
        with self._locked() as lock:
            self._load()
            if way == "out":
                (self._folder / "ran").touch()
            for session in self._sessions(way):
                session.begin(lock)

    def wait(self, way):
        for session in self._sessions(way):
            session.wait()

    def test(self, way):
        """Of each, so that the first error is told at once."""
        waits = 0
        for session in self._sessions(way):
            try:
                session.test()
            except NotYet:
                waits += 1
        if waits:
            raise NotYet

    def cancel(self):
        with self._locked():
            sessions = self._sessions()
            for session in sessions:
                session.cancel()
            self._forget()

    def says(self):
        return [session.says() for session in self._sessions()]


class Session:
    """One of a job's. Its id is in the file N.out, or it was not begun."""

    def __init__(self, configuration, job, at, entry):
        self._configuration, self._job, self._entry = configuration, job, entry
        self._out, self._err = job.file(f"{at}.out"), job.file(f"{at}.err")
        self._command = Command(entry["words"], entry["directory"], entry["text"])
        words = self._command.words[self._command.words.index("--") + 1 :]
        more = f" and {len(words) - 2} more" if len(words) > 2 else ""
        self._name = f"stage-{entry['way']} {words[0]}{more} {words[-1]}"

    def _prefix(self):
        if self._entry["between"] and self._configuration.between == "slurm":
            return []
        return _as_user(self._job._user(self._job.uid))

    def _sluice(self, *words):
        command = [*self._prefix(), self._configuration.sluice, "--node", self._configuration.node, *words]
        return subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False, cwd="/")

    def id(self):
        with contextlib.suppress(FileNotFoundError):
            words = self._out.read_text().split()
            return words[-1] if words else ""
        return ""

    def _fail(self, result, stderr=None):
        text = (result.stderr if stderr is None else stderr).strip()
        said = (text.splitlines() or ["no message"])[-1].removeprefix("sluice: ")
        session = f", session {self.id()[:8]}" if self.id() else ""
        raise Problem(f"{self._name}: {said} (exit {result.returncode}{session})")

    # ---- beginning ----------------------------------------------------------------------------

    def begin(self, lock):
        """Never twice: one that runs, waits or has succeeded is this stage's; one that failed is begun again."""
        if self.id():
            state = self._show().get("state")
            if state == "paused" and self._show().get("error_code"):
                self._sluice("session", "continue", self.id())
                return
            if state not in ("failed", "cancelled", "partial"):
                return
        elif self._out.exists() and not self._err.read_text().strip():
            raise Problem(f"{self._name}: whether it was begun is not known, since this host or a process was ended just then: "
                          "look at `sluice session list`, and submit the job again")  # fmt: skip
        self._make_directory()
        command = [*self._prefix(), self._configuration.sluice, "--node", self._configuration.node, *self._command.words]
        with open(self._out, "w") as out, open(self._err, "w") as err:
            # A session of its own: slurmctld ends what it started with its whole group.
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=err, cwd="/", text=True,
                                     start_new_session=True, pass_fds=(lock.fileno(),))  # fmt: skip
            with contextlib.suppress(BrokenPipeError):
                child.communicate(self._command.text)
        if child.returncode != 0:
            self._fail(child, self._err.read_text())

    def _make_directory(self):
        if not self._command.directory:
            return
        command = [*_as_user(self._job._user(self._job.uid)), "mkdir", "-p", "--", self._command.directory]
        result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, cwd="/")
        if result.returncode != 0:
            self._fail(result)

    # ---- waiting ------------------------------------------------------------------------------

    def _show(self):
        result = self._sluice("session", "show", self.id(), "--json")
        if result.returncode == _DAEMON_AWAY:
            return {"state": "unknown"}
        try:
            return json.loads(result.stdout.strip().splitlines()[-1])
        except (ValueError, IndexError):
            self._fail(result)

    def wait(self):
        """Until it has succeeded. Raises Problem with what ended it, or holds it until somebody mends it."""
        away_since = None
        while True:
            result = self._sluice("session", "wait", "--quiet", "--timeout", str(_LOOK_S), self.id())
            if result.returncode == 0:
                return
            if result.returncode == _TIMED_OUT:
                away_since = None
                self._check_pause()
            elif result.returncode == _DAEMON_AWAY:
                away_since = away_since or time.monotonic()
                if time.monotonic() > away_since + int(self._configuration.patience_s):
                    self._fail(result)
                time.sleep(1)
            else:
                self._fail(result)

    def _check_pause(self):
        shown = self._show()
        if shown.get("state") == "paused" and shown.get("error_code"):
            raise Problem(f"{self._name}: {shown['error']} (exit {shown['error_code']}, session {self.id()[:8]} is paused)")

    def test(self):
        result = self._sluice("session", "wait", "--quiet", "--timeout", "0", self.id())
        if result.returncode in (_TIMED_OUT, _DAEMON_AWAY):
            self._check_pause()
            raise NotYet
        if result.returncode != 0:
            self._fail(result)

    # ---- ending -------------------------------------------------------------------------------

    def cancel(self):
        if not self.id():
            return
        if self._show().get("state") in ("succeeded", "partial", "failed", "cancelled"):
            return
        result = self._sluice("session", "cancel", self.id())
        if result.returncode != 0 and "has ended already" not in result.stderr:
            self._fail(result)

    def says(self):
        state = self._show().get("state", "unknown") if self.id() else "not begun"
        return f"stage-{self._entry['way']} {self._entry['stage']}: {self.id()[:8]} {state}".replace(":  ", ": ")
