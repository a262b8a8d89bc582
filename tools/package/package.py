# `./dev package`: makes of what was built the .deb, and a self-contained bundle for hosts with another C library: as a
# tarball, an .rpm and an OCI image. --try uses them: the .deb in a clean Debian that is booted for it, where the installed
# services move files, are upgraded meanwhile, and are removed; the bundle in a root that has nothing else.
# SPDX-License-Identifier: Apache-2.0
import argparse
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import bundle
import oci
import repo
import rpm_package
import trial_bundle
from common import BUILD, HERE, OUT, Failure, run, version

GFAL2 = BUILD / "CPackGfal2.cmake"  # where libgfal2-dev is installed (tools/gfal2)
# A session waits for others, a file is moved at a low rate, three daemons are restarted.
TRIAL_LIMIT_S = 900
KINDS = ("deb", "bundle", "rpm", "oci")


def newest(pattern):
    found = sorted(OUT.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not found:
        raise Failure(f"{OUT}: no {pattern} there; what was said of it stands above")
    return found[-1]


def make_deb():
    run("cpack", "-G", "DEB", cwd=BUILD, stdout=subprocess.DEVNULL)
    if GFAL2.exists():
        run("cpack", "-G", "DEB", "--config", GFAL2, cwd=BUILD, stdout=subprocess.DEVNULL)
    shutil.rmtree(OUT / "_CPack_Packages", ignore_errors=True)


def make(kinds):
    OUT.mkdir(parents=True, exist_ok=True)
    patterns = {"deb": "*.deb", "bundle": "sluice-*.tar.gz", "rpm": "*.rpm", "oci": "sluice-*.oci"}
    for kind in kinds:
        for old in OUT.glob(patterns[kind]):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    made = []
    if "deb" in kinds:
        make_deb()
        made += sorted(OUT.glob("*.deb"))
    if set(kinds) - {"deb"}:
        tree, root = bundle.make()
        if "bundle" in kinds:
            made.append(bundle.archive(root))
        if "rpm" in kinds:
            made.append(rpm_package.make(tree, root))
        if "oci" in kinds:
            made.append(oci.make(root))
    return made


def judge(kinds):
    if "deb" in kinds:
        for package in OUT.glob("*.deb"):
            run("lintian", "--fail-on", "error", "--allow-root", package)
    if "rpm" in kinds:
        run("rpmlint", "-c", HERE / "rpm/rpmlint.toml", newest("sluice-*.rpm"))


# ---- trials --------------------------------------------------------------------------------------


def debian(place):
    """A Debian with nothing but what is essential, and apt."""
    sources = ["deb http://deb.debian.org/debian bookworm main", "deb http://deb.debian.org/debian bookworm-updates main",
               "deb http://deb.debian.org/debian-security bookworm-security main"]  # fmt: skip
    run("mmdebstrap", "--quiet", "--variant=apt", "bookworm", place, *sources)


@contextlib.contextmanager
def system(keep):
    """A place for one that is booted."""
    if os.geteuid() != 0:
        raise Failure("--try: a Debian is installed and booted, which only root may do")
    place = pathlib.Path(tempfile.mkdtemp(prefix="sluice-trial-", dir="/var/tmp"))
    try:
        yield place
    except Failure as failure:
        raise Failure(f"{failure}{keep and f'; it is {place}'}") from failure
    finally:
        if not keep:
            shutil.rmtree(place, ignore_errors=True)


_NSPAWN = ("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--timezone=off")  # tzdata makes its own


def boot(place, script, *others):
    """Runs the script as a service of what is booted there, with these files beside it."""
    place.chmod(0o755)
    for file in (script, *others):
        shutil.copy(HERE / file, place / "root")
    (place / "etc/systemd/system/trial.service").write_text(
        f"[Unit]\nAfter=multi-user.target\n[Service]\nType=oneshot\nExecStart=/bin/bash /root/{script}\n"
        "StandardOutput=file:/root/trial.log\nStandardError=inherit\nExecStopPost=/bin/systemctl poweroff --no-block\n"
        "[Install]\nWantedBy=default.target\n")  # fmt: skip
    run(*_NSPAWN, "--pipe", "-D", place, "systemctl", "--quiet", "enable", "trial.service", stdin=subprocess.DEVNULL)
    # As high as a host lets its services go.
    limits = ["--rlimit=RLIMIT_MEMLOCK=infinity", "--rlimit=RLIMIT_NOFILE=524288"]
    words = [str(word) for word in [*_NSPAWN, *limits, "-D", place, "--private-network", "--boot"]]
    print("+", *words, flush=True)
    try:
        subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=TRIAL_LIMIT_S)
    except subprocess.TimeoutExpired:
        pass  # it is ended, and the log tells how far it came
    log = place / "root/trial.log"
    text = log.read_text(errors="replace") if log.exists() else ""
    print(text, flush=True)
    if not text.rstrip().endswith("the trial is over, all is well"):
        raise Failure(f"--try: {script} did not come to its end; its last lines stand above")


def attempt(deb, keep, before):
    with system(keep) as place:
        debian(place)
        shutil.copy(deb, place / "root")
        first = f"./{deb.name}"
        if before is not None:
            (place / "root/before").mkdir()
            shutil.copy(before, place / "root/before")
            first = f"./before/{before.name}"
        run(*_NSPAWN, "--pipe", "-D", place, "/bin/sh", "-c",
            f"export DEBIAN_FRONTEND=noninteractive; apt-get -qq update && cd /root && apt install -y {first}",
            stdin=subprocess.DEVNULL)  # fmt: skip
        boot(place, "trial.sh", "trial_console.py")


def attempt_older(keep):
    """The .rpm on a system whose C library is older than what the programs were linked with. Of such that have rpm themselves
    none can be had from Debian's archive."""
    with system(keep) as place:
        run("mmdebstrap", "--quiet", "--variant=apt", "--include=systemd,systemd-sysv,iproute2,libnss-extrausers", "bullseye",
            place, "deb http://deb.debian.org/debian bullseye main")  # fmt: skip
        last = place / "usr/lib/systemd/system-preset/99-default-disable.preset"
        last.write_text("disable *\n")  # as RHEL has it
        rpm_package.install(place)
        last.unlink()
        boot(place, "trial_rpm.sh")


def attempt_alone(kinds, keep):
    """Each kind in a root of its own that has nothing else."""
    fillers = {"bundle": fill_bundle, "rpm": rpm_package.install, "oci": oci.unpack}
    for kind in kinds:
        if kind not in fillers:
            continue
        if kind != "bundle" and os.geteuid() != 0:
            print(f"--try: the {kind} is not tried: only root may install it")
            continue
        root = pathlib.Path(tempfile.mkdtemp(prefix=f"sluice-{kind}-", dir="/var/tmp"))
        root.chmod(0o755)
        try:
            print(f"== the {kind} in an empty root", flush=True)
            programs = fillers[kind](root)
            trial_bundle.try_root(root, programs)
            if kind == "rpm":
                rpm_package.remove(root)
        except subprocess.CalledProcessError as error:
            raise Failure(f"--try: the {kind} did not do in an empty root; why stands above{keep and f'; it is {root}'}") from error
        finally:
            if not keep:
                shutil.rmtree(root, ignore_errors=True)


def fill_bundle(root):
    run("tar", "-xzf", newest("sluice-*.tar.gz"), "-C", root)
    return [f"/sluice-{version()}-x86_64/bin"]


def main():
    parser = argparse.ArgumentParser(prog="./dev package", description=__doc__)
    parser.add_argument("--deb", action="store_true", help="the .deb alone, or with what else is named")
    parser.add_argument("--bundle", action="store_true", help="the self-contained tarball")
    parser.add_argument("--rpm", action="store_true", help="the .rpm, which is self-contained as well")
    parser.add_argument("--oci", action="store_true", help="the image, as a directory of the OCI's layout")
    parser.add_argument("--no-lint", action="store_true", help="without lintian and rpmlint")
    parser.add_argument("--try", action="store_true", dest="attempt",
                        help="use what was made: the .deb in a clean Debian that is booted (as root; minutes), the others "
                        "in a root that has nothing else")  # fmt: skip
    parser.add_argument("--from", dest="before", metavar="DEB", type=pathlib.Path,
                        help="with --try: install this older .deb first, and upgrade it under a live session")  # fmt: skip
    parser.add_argument("--keep", action="store_true", help="with --try: leave what was tried in /var/tmp")
    parser.add_argument("--repo", metavar="DIR", type=pathlib.Path,
                        help="of the packages that were made before, signed repositories for apt and for dnf")  # fmt: skip
    parser.add_argument("--key", help="with --repo: the key of gpg that signs")
    parser.add_argument("--url", help="with --repo: where DIR will be found; file:// if it is left out")
    chosen = parser.parse_args()
    kinds = [kind for kind in KINDS if getattr(chosen, kind)] or list(KINDS)
    if chosen.before is not None and not (chosen.attempt and "deb" in kinds and chosen.before.exists()):
        parser.error("--from needs --try, the .deb, and a file that is there")
    if (chosen.repo is None) != (chosen.key is None):
        parser.error("--repo and --key go together")
    try:
        if chosen.repo is not None:
            print(repo.make(chosen.repo.resolve(), chosen.key, chosen.url))
            return 0
        made = make(kinds)
        if not chosen.no_lint:
            judge(kinds)
        if chosen.attempt:
            attempt_alone(kinds, chosen.keep)
            if "rpm" in kinds and os.geteuid() == 0:
                attempt_older(chosen.keep)
            if "deb" in kinds:
                attempt(newest("sluice_*.deb"), chosen.keep, chosen.before)
    except Failure as failure:
        print(f"package: {failure}", file=sys.stderr)
        return 1
    for each in made:
        print(each)
    return 0


if __name__ == "__main__":
    sys.exit(main())
