"""Where things lie, and what all of ./dev cards needs."""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess
import threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build" / "cards"
# Set when ./dev cards is to end before its time: whatever waits for a case gives up.
stopping = threading.Event()


class Failed(Exception):
    pass


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)
