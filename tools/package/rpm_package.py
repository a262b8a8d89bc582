# The .rpm: the bundle beneath /usr/lib/sluice, links to its programs, and the units, pages and documents of the .deb. It needs
# no package of the system: its scripts are rpm's own Lua. rpm/sluice.spec says the rest.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import subprocess
import tempfile

from bundle import PROGRAMS, epoch_s
from common import HERE, OUT, Failure, captured, run, version

_DATABASE = "/var/lib/rpm"
_NAME = "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"  # without a folder


def _lay_out(tree, root, stage):
    """The installed tree, with links to the bundle's programs in place of its own."""
    shutil.rmtree(stage, ignore_errors=True)
    shutil.copytree(tree, stage, symlinks=True)
    shutil.rmtree(stage / "usr/share/lintian")
    for old, new in (("zsh/vendor-completions", "zsh/site-functions"),):
        (stage / "usr/share" / old).rename(stage / "usr/share" / new)
    for folder in ("bin", "lib"):
        shutil.copytree(root / folder, stage / "usr/lib/sluice" / folder, symlinks=True)
    shutil.copytree(root / "share/doc/sluice/bundled", stage / "usr/share/doc/sluice/bundled")
    shutil.rmtree(stage / "usr/lib/sluice-console")
    for program in (*PROGRAMS, "usr/bin/sluice-console"):
        at = stage / program
        at.unlink()
        up = "../" * (len(pathlib.PurePath(program).parts) - 2)  # to /usr
        at.symlink_to(f"{up}lib/sluice/bin/{at.name}")
    return stage


def make(tree, root):
    stage = _lay_out(tree, root, OUT / "rpm-tree")
    date = captured("date", "-u", "-d", f"@{epoch_s()}", "+%a %b %d %Y", env={**os.environ, "LC_ALL": "C"}).strip()
    with tempfile.TemporaryDirectory(dir=OUT) as work:
        defines = {"_topdir": work, "_rpmdir": OUT, "stage": stage, "_build_name_fmt": _NAME, "here": HERE / "rpm", "sluice_version": version(),
                   "sluice_date": date}  # fmt: skip
        words = [word for name, value in defines.items() for word in ("--define", f"{name} {value}")]
        run("rpmbuild", "-bb", "--quiet", "--target", "x86_64-linux", *words, HERE / "rpm/sluice.spec",
            env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch_s())})  # fmt: skip
    shutil.rmtree(stage)
    return OUT / f"sluice-{version()}-1.x86_64.rpm"


def _rpm(root, *words):
    run("rpm", "--root", root, "--dbpath", _DATABASE, *words)


def install(root):
    """By rpm, scripts and all, into an empty root. The folders of its programs."""
    (root / _DATABASE.lstrip("/")).mkdir(parents=True)
    _rpm(root, "--initdb")
    _rpm(root, "--install", "--nosignature", OUT / f"sluice-{version()}-1.x86_64.rpm")
    _rpm(root, "--verify", "sluice")
    return ["/usr/bin", "/usr/sbin"]


def remove(root):
    _rpm(root, "--erase", "sluice")
    left = [path for path in root.rglob("*") if "sluice" in path.name and "lib/rpm" not in str(path)
            and path.parent != root / "tmp"]  # fmt: skip
    if left:
        raise Failure(f"rpm --erase: {left[0]} is left")
    if subprocess.run(["rpm", "--root", root, "--dbpath", _DATABASE, "-q", "sluice"], capture_output=True).returncode == 0:
        raise Failure("rpm --erase: the package is still known")
