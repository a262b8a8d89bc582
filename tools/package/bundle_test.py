# The bundle's maker: what it finds, strikes out and archives. The bundle itself is tried by ./dev package --bundle --try.
# SPDX-License-Identifier: Apache-2.0
import io
import os
import pathlib
import shutil
import subprocess
import tarfile

import bundle
import pytest
from common import Failure

_DRIVERS = b"/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0"


def test_the_hosts_drivers_are_struck_out_and_nothing_else():
    eal = b"\x7fELF\0DPDK_PLUGIN_PATH=" + _DRIVERS + b"\0" + _DRIVERS + b"\0rest"
    changed = bundle.without_host_drivers(eal)
    assert len(changed) == len(eal)
    assert changed == eal[: -len(_DRIVERS) - 5] + b"\0" + _DRIVERS[1:] + b"\0rest"


@pytest.mark.parametrize("eal", [b"\x7fELF\0other\0", b"\0" + _DRIVERS + b"\0x\0" + _DRIVERS + b"\0"])
def test_an_eal_that_is_built_otherwise_is_refused(eal):
    with pytest.raises(Failure, match="not once"):
        bundle.without_host_drivers(eal)


def test_the_libraries_of_a_program_are_all_found():
    found = bundle.libraries_of([pathlib.Path("/usr/bin/openssl")])
    assert {"libc.so.6", "libcrypto.so.3"} <= set(found)
    assert all(file.is_file() and not file.is_symlink() for file in found.values())
    assert bundle.LOADER not in found
    assert "libc6" in bundle.packages_of(list(found.values()))


def test_the_same_tree_makes_the_same_archive(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1764000000")
    made = []
    for order in ("ab", "ba"):
        root = tmp_path / order
        for name in order:
            (root / name).mkdir(parents=True)
            (root / name / "file").write_text(name)
        (root / "a/link").symlink_to("file")
        (root / "tmp").mkdir()
        (root / "tmp").chmod(0o1777)
        archive = io.BytesIO()
        bundle.write_tar(archive, "top/", root, owners={"b": 7400})
        made.append(archive.getvalue())
    assert made[0] == made[1]
    with tarfile.open(fileobj=io.BytesIO(made[0])) as tar:
        entries = {entry.name: entry for entry in tar}
    assert list(entries) == ["top/a", "top/a/file", "top/a/link", "top/b", "top/b/file", "top/tmp"]
    assert (entries["top/b"].uid, entries["top/b/file"].uid, entries["top/tmp"].mode) == (7400, 0, 0o1777)
    assert {entry.mtime for entry in entries.values()} == {1764000000}


# ---- what starts the programs --------------------------------------------------------------------

_LAUNCH = pathlib.Path(os.environ.get("SLUICE_BIN") or bundle.BUILD / "bin") / "sluice-launch"
_LIMIT_S = 60  # a bound, no measure of time
needs_launch = pytest.mark.skipif(not _LAUNCH.exists(), reason="sluice-launch is not built: a build with a sanitizer has none")


@pytest.fixture
def small(tmp_path):
    """A bundle of one program, cat."""
    root = tmp_path / "bundle"
    for folder in ("bin", "lib/loader", "lib/programs"):
        (root / folder).mkdir(parents=True)
    shutil.copy(_LAUNCH, root / "bin/cat")
    shutil.copy("/usr/bin/cat", root / "lib/programs/cat")
    shutil.copy(pathlib.Path("/lib64", bundle.LOADER), root / "lib" / bundle.LOADER)
    for name, file in bundle.libraries_of([root / "lib/programs/cat"]).items():
        shutil.copy(file, root / "lib" / name)
    (root / "lib/loader/cat").symlink_to(f"../{bundle.LOADER}")
    return root


def start(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=_LIMIT_S, check=False)


@needs_launch
def test_a_program_runs_by_the_bundles_own_loader_from_any_place(small, tmp_path):
    moved = small.rename(tmp_path / "moved to here")
    link = tmp_path / "called"
    link.symlink_to(moved / "bin/cat")
    for program in (moved / "bin/cat", link):
        result = start(program, "/proc/self/comm", "/proc/self/maps")
        assert result.returncode == 0, result.stderr
        name, *maps = result.stdout.splitlines()
        assert name == "cat"
        mapped = {line.split(maxsplit=5)[5] for line in maps if "/" in line and ".so" in line}
        assert {pathlib.Path(file).name for file in mapped} >= {bundle.LOADER, "libc.so.6"}
        assert all(file.startswith(str(moved)) for file in mapped), mapped


@needs_launch
@pytest.mark.parametrize(("break_it", "reason"), [
    (lambda root: root.rename(root.with_name("a:b")), "may have no ':'"),
    (lambda root: shutil.rmtree(root / "lib/loader") or root, "unpack the bundle anew"),
])  # fmt: skip
def test_a_bundle_that_cannot_start_a_program_says_why(small, break_it, reason):
    result = start(break_it(small) / "bin/cat")
    assert (result.returncode, reason in result.stderr) == (3, True), result.stderr
