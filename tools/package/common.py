# What the parts of `./dev package` share: where things lie, and commands that must succeed.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
OUT = ROOT / "build/package"
HERE = ROOT / "tools/package"


class Failure(Exception):
    pass


def run(*command, **options):
    words = [str(word) for word in command]
    print("+", *words, flush=True)
    result = subprocess.run(words, **options)
    if result.returncode != 0:
        raise Failure(f"{words[0]}: ended with {result.returncode}; its message stands above")


def captured(*command, **options):
    """What it prints."""
    words = [str(word) for word in command]
    result = subprocess.run(words, capture_output=True, text=True, **options)
    if result.returncode != 0:
        raise Failure(f"{' '.join(words)}: ended with {result.returncode}: {result.stderr.strip() or result.stdout.strip()}")
    return result.stdout


def version():
    return re.search(r"^project\(sluice VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
