# Runs one command and says exactly how long it took, what CPU it used and how large it grew.
#
# The end is taken from a pidfd: polling for it, as subprocess does with a timeout, adds up to 50 ms.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import os
import select
import signal
import subprocess
import tempfile
import time

from .errors import LabError


@dataclasses.dataclass
class Finished:
    status: int  # as subprocess: negative for a signal
    wall_s: float
    cpu_s: float  # the process and those descendants that it waited for
    rss_bytes: int  # of the largest of them
    stdout: str
    stderr: str
    timed_out: bool = False

    def reason(self):
        """What it said last, for an error message."""
        lines = [line.strip() for line in (self.stderr + "\n" + self.stdout).splitlines() if line.strip()]
        return lines[-1] if lines else "no message"

    def must_have_worked(self, name):
        if self.timed_out:
            raise LabError(f"{name}: not ended after {self.wall_s:.0f} s")
        if self.status != 0:
            raise LabError(f"{name}: exit {self.status}: {self.reason()}")


class Running:
    """A command that was started; `end` waits for it. Output goes to files, so no pipe can hold it up."""

    def __init__(self, command, stdin=None, environment=None, cwd=None):
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        words = [str(word) for word in command]
        self.started = time.monotonic()
        self._process = subprocess.Popen(words, stdin=stdin or subprocess.DEVNULL, stdout=self._out, stderr=self._err,
                                         env=environment, cwd=cwd, start_new_session=True)  # fmt: skip
        self._pidfd = os.pidfd_open(self._process.pid)

    @property
    def pid(self):
        return self._process.pid

    def ended(self, timeout_s=0):
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        return bool(poller.poll(timeout_s * 1000))

    def end(self, timeout_s=600, after=None):
        """Waits for the end, then runs `after` while the clock still runs, for what belongs to the time: an fsync."""
        timed_out = not self.ended(timeout_s)
        if timed_out:
            # Its whole session: what it started must not go on either.
            os.killpg(self._process.pid, signal.SIGKILL)
            self.ended(60)
        elif after:
            after()
        wall_s = time.monotonic() - self.started
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        os.close(self._pidfd)
        return Finished(status=self._process.returncode, wall_s=wall_s, cpu_s=usage.ru_utime + usage.ru_stime,
                        rss_bytes=usage.ru_maxrss * 1024, stdout=self._text(self._out),
                        stderr=self._text(self._err), timed_out=timed_out)  # fmt: skip

    def stop(self):
        """For a server: SIGTERM, then SIGKILL."""
        if not self.ended():
            self._process.terminate()
            if not self.ended(10):
                os.killpg(self._process.pid, signal.SIGKILL)
        return self.end(60)

    def stop_if_running(self):
        if self._process.returncode is None:
            self.stop()

    @staticmethod
    def _text(file):
        with file:
            file.seek(0)
            return file.read().decode(errors="replace")


def timed(command, timeout_s=600, after=None, **options):
    return Running(command, **options).end(timeout_s, after)
