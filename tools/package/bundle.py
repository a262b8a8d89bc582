# The self-contained bundle: the programs with the dynamic loader, the libraries and DPDK's drivers of the Debian that they
# were built on, so that they run where the host's C library is older, another, or none. It runs from any directory:
#
#   ROOT/bin/NAME               tools/package/launch: starts the program by the loader beside it
#   ROOT/lib                    the loader and the libraries
#   ROOT/lib/dpdk               DPDK's drivers, which the dataplane loads where a device needs them
#   ROOT/lib/loader/NAME        links to the loader, for the name of the process
#   ROOT/lib/programs/NAME      the programs
#   ROOT/share                  manual pages, documents, completion, units; who made what is bundled, and its licences
#
# The .rpm (rpm_package.py) and the image (oci.py) are made of it. What Debian's libraries would look for elsewhere is settled so:
# EAL's own directory of drivers is struck out (without_host_drivers); name services that nsswitch.conf names and the C
# library does not have itself come from the host, through its /etc/ld.so.cache; nothing here needs gconv, OpenSSL's modules
# or certificates of authorities.
# SPDX-License-Identifier: Apache-2.0
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

from common import BUILD, OUT, ROOT, Failure, captured, run, version

LOADER = "ld-linux-x86-64.so.2"
# By their place in the installed tree.
PROGRAMS = ("usr/bin/sluice", "usr/sbin/sluice-control", "usr/sbin/sluice-dataplane", "usr/sbin/sluice-users",
            "usr/libexec/sluice/sluice-enrol")  # fmt: skip
NAMES = tuple(pathlib.PurePath(program).name for program in PROGRAMS)
# The kinds of drivers that the .deb recommends: librte-meta-bus, -mempool, -net, and what these need.
_DRIVER = re.compile(r"librte_(bus|common|mempool|net)_\w+\.so\.\d+$")
_RESOLVED = re.compile(r"^\s+(\S+) => (\S.*?)(?: \(0x[0-9a-f]+\))?$", re.MULTILINE)
_DEFAULT_DRIVERS = re.compile(rb"\0(/usr/lib/x86_64-linux-gnu/dpdk/pmds-[0-9.]+)\0")


def epoch_s():
    """The time that every file has: the same commit makes the same bytes."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    found = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    return int(found.stdout) if found.returncode == 0 else 0


# ---- what is bundled -----------------------------------------------------------------------------


def driver_directory():
    found = sorted(pathlib.Path("/usr/lib/x86_64-linux-gnu/dpdk").glob("pmds-*"))
    if len(found) != 1:
        raise Failure(f"DPDK's drivers: one directory /usr/lib/x86_64-linux-gnu/dpdk/pmds-* is expected, {len(found)} are there")
    return found[0]


def libraries_of(files):
    """{name: file} of every shared library that these need, directly or not, but for the loader."""
    found = {}
    for file in files:
        text = captured("ldd", file)
        for name, where in _RESOLVED.findall(text):
            if where == "not found":
                raise Failure(f"{file}: needs {name}, which is not installed")
            if pathlib.PurePath(name).name != LOADER:
                found[pathlib.PurePath(name).name] = pathlib.Path(where).resolve()
    return found


def without_host_drivers(eal):
    """EAL also loads what lies where Debian has the drivers. On a host that has some, of another build, they would be loaded
    beside those of the bundle. An empty name is no directory."""
    found = list(_DEFAULT_DRIVERS.finditer(eal))
    if len(found) != 1:
        raise Failure(f"librte_eal: the directory of drivers stands in it {len(found)} times, not once")
    return eal[: found[0].start(1)] + b"\0" + eal[found[0].start(1) + 1 :]


def _place(source, target, mode):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(mode)


def _strip(*files):
    run("strip", "--strip-unneeded", *files)


def packages_of(files):
    """{package: [file names]} of Debian, which brought these files."""
    by_path = {}
    for file in files:
        path = str(file)
        by_path[path] = file.name
        if path.startswith("/usr/lib"):  # it may be known by the name that it had before /lib became a link
            by_path[path.removeprefix("/usr")] = file.name
    answer = subprocess.run(["dpkg-query", "-S", *by_path], capture_output=True, text=True).stdout
    packages = {}
    for line in answer.splitlines():
        package, _, path = line.partition(": ")
        if path in by_path:
            packages.setdefault(package.split(":")[0], set()).add(by_path[path])
    unknown = {file.name for file in files} - set().union(*packages.values())
    if unknown:
        raise Failure(f"{', '.join(sorted(unknown))}: of no package of Debian, so nobody knows its licence")
    return packages


def describe(files, share):
    """Versions, sources and licences of what is bundled."""
    packages = packages_of(files)
    form = "${Package}\t${Version}\t${source:Package}\t${source:Version}\n"
    rows = {line.split("\t")[0]: line for line in captured("dpkg-query", "-W", "-f", form, *sorted(packages)).splitlines()}
    share.mkdir(parents=True)
    lines = ["# The files of Debian 12 in lib/, by package. Licences: PACKAGE.copyright beside this file. Sources:",
             "# https://snapshot.debian.org/package/SOURCE/VERSION/", "#package\tversion\tsource\tversion\tfiles"]  # fmt: skip
    for package, names in sorted(packages.items()):
        lines.append(f"{rows[package]}\t{' '.join(sorted(names))}")
        # A link to a package of the same source is followed.
        _place(pathlib.Path("/usr/share/doc", package, "copyright"), share / f"{package}.copyright", 0o644)
    (share / "bundled.tsv").write_text("\n".join(lines) + "\n")


# ---- the tree ------------------------------------------------------------------------------------


def installed(place):
    """What the .deb has, as a tree."""
    shutil.rmtree(place, ignore_errors=True)
    run("cmake", "--install", BUILD, "--prefix", "/usr", "--strip", env={**os.environ, "DESTDIR": str(place)},
        stdout=subprocess.DEVNULL)  # fmt: skip
    return place


def make_tree(tree, root):
    """The bundle, of the installed tree."""
    shutil.rmtree(root, ignore_errors=True)
    programs = root / "lib/programs"
    for path in PROGRAMS:
        name = pathlib.PurePath(path).name
        _place(BUILD / "bin/sluice-shared" if name == "sluice" else tree / path, programs / name, 0o755)
        _place(BUILD / "bin/sluice-launch", root / "bin" / name, 0o755)
    _strip(programs / "sluice", *(root / "bin" / name for name in NAMES))
    drivers = sorted(file for file in driver_directory().iterdir() if _DRIVER.match(file.name))
    needed = libraries_of([*(programs / name for name in NAMES), *drivers])
    needed[LOADER] = pathlib.Path("/lib64", LOADER).resolve()
    needed |= {file.name: file.resolve() for file in drivers}
    for name, file in needed.items():
        folder = "lib/dpdk" if _DRIVER.match(name) else "lib"
        _place(file, root / folder / name, 0o755 if name == LOADER else 0o644)
    eal = next((root / "lib").glob("librte_eal.so.*"))
    eal.write_bytes(without_host_drivers(eal.read_bytes()))
    for name in NAMES:
        link = root / "lib/loader" / name
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(f"../{LOADER}")
    _place(tree / "usr/bin/sluice-console", root / "bin/sluice-console", 0o755)
    shutil.copytree(tree / "usr/lib/sluice-console", root / "lib/sluice-console")
    _place(tree / "usr/libexec/sluice/sluice-host", root / "libexec/sluice-host", 0o755)
    shutil.copytree(tree / "usr/share", root / "share", ignore=shutil.ignore_patterns("lintian"))
    for folder in ("systemd/system", "sysusers.d", "tmpfiles.d"):
        shutil.copytree(tree / "usr/lib" / folder, root / "share/sluice" / folder.split("/")[0])
    describe(list(needed.values()), root / "share/doc/sluice/bundled")
    return root


# ---- archives ------------------------------------------------------------------------------------


def write_tar(archive, top, root, owners=None):
    """Every file beneath root, by name, with the same time and of root; owners: {path: number} of what is of another."""
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            inside = path.relative_to(root).as_posix()
            entry = tar.gettarinfo(path, arcname=f"{top}{inside}")
            entry.uid = entry.gid = (owners or {}).get(inside, 0)
            entry.uname = entry.gname = ""
            entry.mtime = epoch_s()
            if entry.islnk():
                raise Failure(f"{path}: a hard link; the archive has none")
            if not entry.issym() and inside not in (owners or {}) and entry.mode & 0o7000 == 0:
                entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            if entry.isreg():
                with path.open("rb") as file:
                    tar.addfile(entry, file)
            else:
                tar.addfile(entry)


def make():
    """(the tree as it is installed, the bundle's tree)."""
    tree = installed(OUT / "tree")
    return tree, make_tree(tree, OUT / "bundle")


def archive(root):
    name = f"sluice-{version()}-x86_64"
    target = OUT / f"{name}.tar.gz"
    with target.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
        write_tar(packed, f"{name}/", root)
    print(f"{target}: {target.stat().st_size >> 20} MiB, unpacked {total_bytes(root) >> 20} MiB")
    return target


def total_bytes(root):
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink())
