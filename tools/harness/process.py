# A daemon under the harness: started by its own pid, watched, and stopped by that pid only.
# SPDX-License-Identifier: Apache-2.0
import signal
import subprocess

from .system import HarnessError

_STOP_DEADLINE_S = 60  # then it hangs; a slow machine needs some seconds


class Daemon:
    def __init__(self, name, command, log_file):
        self.name = name
        self.log_file = log_file
        self.command = [str(word) for word in command]
        self._process = None

    def start(self):
        if self.running():
            raise HarnessError(f"{self.name}: is running already")
        # setpriv: should the harness be killed itself, the kernel ends the daemon. A session of its
        # own: an interrupt from the terminal reaches the harness, which stops things in order.
        with open(self.log_file, "ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "--", *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self):
        return self._process.pid

    def running(self):
        return self._process is not None and self._process.poll() is None

    def exit_status(self):
        return None if self._process is None else self._process.poll()

    def kill(self):
        """As a crash: SIGKILL, nothing tidied."""
        self._end(signal.SIGKILL)

    def stop(self):
        """SIGTERM, then SIGKILL. Returns the exit status, or None if it was not running."""
        return self._end(signal.SIGTERM)

    def _end(self, number):
        if self._process is None:
            return None
        process, self._process = self._process, None
        if process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(_STOP_DEADLINE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        return process.returncode

    def log_lines(self, words):
        """All lines of its log, over its lives, that hold these words."""
        if not self.log_file.exists():
            return []
        return [line for line in self.log_file.read_text(errors="replace").splitlines() if words in line]

    def log_tail(self, lines=12):
        try:
            text = self.log_file.read_text(errors="replace")
        except OSError:
            return "(no log)"
        return "\n".join(text.splitlines()[-lines:]) or "(empty log)"
