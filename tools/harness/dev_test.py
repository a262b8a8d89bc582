# `./dev NAME --help` tells, and builds, installs and fetches nothing.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import subprocess

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_NAMES = sorted(set(re.findall(r"^[.]/dev ([a-z-]+)", (_ROOT / "dev").read_text(), re.MULTILINE)))
_EFFECTS = ("apt-get", "cmake", "ctest", "dpkg-query", "ninja", "sudo")


@pytest.fixture
def tree(tmp_path):
    """This tree, without what was built, and with programs that only tell that they were called."""
    for each in _ROOT.iterdir():
        if each.name not in ("build", "dev"):
            (tmp_path / each.name).symlink_to(each)
    (tmp_path / "dev").write_text((_ROOT / "dev").read_text())
    (tmp_path / "dev").chmod(0o755)
    (tmp_path / "programs").mkdir()
    for name in _EFFECTS:
        (tmp_path / "programs" / name).write_text(f'#!/bin/sh\necho "{name} $*" >>"{tmp_path}/called"\n')
        (tmp_path / "programs" / name).chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("word", ["--help", "-h"])
@pytest.mark.parametrize("name", _NAMES)
def test_help_has_no_effects(tree, name, word):
    before = set(tree.iterdir())
    told = subprocess.run([tree / "dev", name, word], capture_output=True, text=True, timeout=50, check=False,
                          env={**os.environ, "PATH": f"{tree}/programs:{os.environ['PATH']}", "HOME": str(tree / "home")})  # fmt: skip
    assert (told.returncode, told.stderr) == (0, "")
    assert f"./dev {name}" in told.stdout
    assert set(tree.iterdir()) == before


def test_all_commands_are_known_here():
    handled = re.findall(r"^  ([a-z-]+)\) ?(?:[a-z]|$)", (_ROOT / "dev").read_text(), re.MULTILINE)
    assert set(handled) <= set(_NAMES) and len(_NAMES) > 15
