# `./dev package --repo DIR --key KEY`: a repository for apt and one for dnf of the packages in build/package, signed by a key
# that gpg has (GNUPGHOME). DIR is served as it is, by any web server, or as file://.
#
#   DIR/apt           dists/stable/{Release,InRelease,Release.gpg}, main/binary-amd64/Packages, pool/
#   DIR/rpm           signed packages, repodata/ with repomd.xml.asc
#   DIR/sluice.asc    the public key
#   DIR/sluice.sources, DIR/sluice.repo    for /etc/apt/sources.list.d and /etc/yum.repos.d
#
# What was made is read before it is done: by apt, which knows no other source and fetches the package; by rpm, which knows the
# key alone; and each checksum of repodata is compared.
# SPDX-License-Identifier: Apache-2.0
import gzip
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as xml

from bundle import epoch_s
from common import OUT, Failure, captured, run, version

_RELEASE = {"Origin": "Sluice", "Label": "Sluice", "Suite": "stable", "Codename": "stable", "Architectures": "amd64",
            "Components": "main", "Description": "Sluice"}  # fmt: skip


def _gpg(key, *words):
    run("gpg", "--batch", "--yes", "--quiet", "--local-user", key, *words)


def _packages(pattern):
    found = sorted(OUT.glob(pattern))
    if not found:
        raise Failure(f"{OUT}: no {pattern} there; run ./dev package first")
    return found


def _check_place(directory):
    if directory.exists() and any(directory.iterdir()) and not (directory / "sluice.sources").exists():
        raise Failure(f"--repo {directory}: holds something else; name an empty directory, or one that --repo has made")


def _for_apt(place, key):
    pool = place / "pool"
    index = place / "dists/stable/main/binary-amd64"
    pool.mkdir(parents=True)
    index.mkdir(parents=True)
    for package in _packages("*.deb"):
        shutil.copy(package, pool)
    packages = captured("apt-ftparchive", "packages", "pool", cwd=place)
    (index / "Packages").write_text(packages)
    (index / "Packages.gz").write_bytes(gzip.compress(packages.encode(), mtime=0))
    options = [word for name, value in _RELEASE.items() for word in ("-o", f"APT::FTPArchive::Release::{name}={value}")]
    release = place / "dists/stable/Release"
    text = captured("apt-ftparchive", *options, "release", "dists/stable", cwd=place)
    release.write_text(text)
    _gpg(key, "--clearsign", "--output", release.with_name("InRelease"), release)
    _gpg(key, "--armor", "--detach-sign", "--output", release.with_name("Release.gpg"), release)


def _for_dnf(place, key):
    place.mkdir()
    for package in _packages(f"sluice-{version()}-*.rpm"):
        shutil.copy(package, place)
        run("rpmsign", "--define", f"_gpg_name {key}", "--define", f"__gpg {shutil.which('gpg')}", "--addsign", place / package.name,
            stdout=subprocess.DEVNULL)  # fmt: skip
    run("createrepo_c", "--quiet", "--no-database", "--general-compress-type", "gz", "--revision", epoch_s(), "--set-timestamp-to-revision", place)
    _gpg(key, "--armor", "--detach-sign", "--output", place / "repodata/repomd.xml.asc", place / "repodata/repomd.xml")


# ---- read again ----------------------------------------------------------------------------------


def _read_by_apt(directory, work):
    """apt with this source alone, and nothing of this host's."""
    for name in ("sources", "state/lists/partial", "cache/archives/partial", "got"):
        (work / name).mkdir(parents=True)
    (work / "status").touch()
    text = (directory / "sluice.sources").read_text()
    url = text.split("URIs: ")[1].split("\n")[0]  # where it will be served
    (work / "sources/sluice.sources").write_text(text.replace(url, (directory / "apt").as_uri()))
    options = {"Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": work / "sources", "Dir::State": work / "state",
               "Dir::State::status": work / "status", "Dir::Cache": work / "cache", "Dir::Etc::trusted": "/dev/null",
               "Dir::Etc::trustedparts": "/dev/null", "APT::Sandbox::User": "", "APT::Update::Error-Mode": "any"}  # fmt: skip
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    run("apt-get", "-qq", *words, "update")
    run("apt-get", "-qq", *words, "download", f"sluice={version()}-1", cwd=work / "got")
    if not list((work / "got").glob("sluice_*.deb")):
        raise Failure("apt: fetched no sluice from the repository")


def _sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _compare(path, expected):
    if _sha256(path) != expected:
        raise Failure(f"{path}: its checksum is not the one in repodata")


def _read_by_rpm(place, public, work):
    database = work / "rpm"
    database.mkdir()
    run("rpmkeys", "--dbpath", database, "--import", public)
    for package in place.glob("*.rpm"):
        run("rpmkeys", "--dbpath", database, "--checksig", package)
    kinds = {"r": "{http://linux.duke.edu/metadata/repo}", "c": "{http://linux.duke.edu/metadata/common}"}
    listed = 0
    for data in xml.parse(place / "repodata/repomd.xml").getroot().iter(kinds["r"] + "data"):
        file = place / data.find(kinds["r"] + "location").get("href")
        _compare(file, data.find(kinds["r"] + "checksum").text)
        if data.get("type") != "primary":
            continue
        for package in xml.fromstring(gzip.decompress(file.read_bytes())).iter(kinds["c"] + "package"):
            _compare(place / package.find(kinds["c"] + "location").get("href"), package.find(kinds["c"] + "checksum").text)
            listed += 1
    if listed != len(list(place.glob("*.rpm"))):
        raise Failure(f"{place}: repodata lists {listed} packages, not those that are there")


def _read_again(directory):
    with tempfile.TemporaryDirectory(prefix="sluice-repo-") as work:
        _read_by_apt(directory, pathlib.Path(work))
        _read_by_rpm(directory / "rpm", directory / "sluice.asc", pathlib.Path(work))


def make(directory, key, url):
    if subprocess.run(["gpg", "--batch", "--list-secret-keys", key], capture_output=True).returncode != 0:
        raise Failure(f"--key {key}: gpg has no secret key of this name in {os.environ.get('GNUPGHOME') or '~/.gnupg'}")
    _check_place(directory)
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".sluice-repo-", dir=directory.parent) as new:
        made = pathlib.Path(new)
        _fill(made, key, (url or directory.as_uri()).rstrip("/"))
        _read_again(made)
        # What is served is replaced only by what could be read.
        for each in sorted(made.iterdir()):
            old = directory / each.name
            if old.is_dir():
                shutil.rmtree(old)
            each.rename(old)
    return directory


def _fill(place, key, where):
    _for_apt(place / "apt", key)
    _for_dnf(place / "rpm", key)
    public = captured("gpg", "--batch", "--armor", "--export", key)
    (place / "sluice.asc").write_text(public)
    # A key within a deb822 source: each line is indented, an empty one is a dot.
    signed_by = "".join(f"\n {line or '.'}" for line in public.strip().splitlines())
    (place / "sluice.sources").write_text(
        f"Types: deb\nURIs: {where}/apt\nSuites: stable\nComponents: main\nSigned-By:{signed_by}\n")  # fmt: skip
    (place / "sluice.repo").write_text(
        f"[sluice]\nname=Sluice\nbaseurl={where}/rpm\nenabled=1\ngpgcheck=1\nrepo_gpgcheck=1\n"
        f"gpgkey={where}/sluice.asc\n")  # fmt: skip
