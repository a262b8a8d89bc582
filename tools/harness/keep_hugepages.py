# Runs a command (ctest), and keeps hugepages that its tests give back for the tests that come after them.
#
# python3 -m harness.keep_hugepages COMMAND [ARGUMENTS]; ends as the command does. Signals go to the command.
# SPDX-License-Identifier: Apache-2.0
import os
import signal
import subprocess
import sys

from .hugepages import kept_hugepages


def main(command):
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)  # ours, by which this module was found
    with kept_hugepages():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the command has it as well
        child = subprocess.Popen(command, env=environment, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda its_number, _frame: child.send_signal(its_number))
        status = child.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
