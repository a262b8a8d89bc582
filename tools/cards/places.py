"""Where things lie, and what all of ./dev cards needs."""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build" / "cards"


class Failed(Exception):
    pass


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)
