# The bundle's maker: what it finds, strikes out and archives. The bundle itself is tried by ./dev package --bundle --try.
# SPDX-License-Identifier: Apache-2.0
import io
import pathlib
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
