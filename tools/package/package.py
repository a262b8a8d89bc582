# `./dev package`: makes the .deb and the .rpm of what was built, and has them judged; with --try, installs the .deb in a
# clean Debian that is booted for it, where the installed services move files, are upgraded meanwhile, and are removed.
# SPDX-License-Identifier: Apache-2.0
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
OUT = ROOT / "build/package"
HERE = ROOT / "tools/package"
GFAL2 = BUILD / "CPackGfal2.cmake"  # where libgfal2-dev is installed (tools/gfal2)
# A session waits for others, a file is moved at a low rate, three daemons are restarted.
TRIAL_LIMIT_S = 900
# What a .rpm that is made on Debian cannot know: the names that another system gives to groups and to libraries.
RPM_FILTERS = HERE / "rpm/rpmlint.toml"


class Failure(Exception):
    pass


def run(*command, **options):
    words = [str(word) for word in command]
    print("+", *words, flush=True)
    result = subprocess.run(words, **options)
    if result.returncode != 0:
        raise Failure(f"{words[0]}: ended with {result.returncode}; its message stands above")


def newest(pattern):
    found = sorted(OUT.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not found:
        raise Failure(f"{OUT}: no {pattern} there; what cpack said stands above")
    return found[-1]


def make(kinds):
    OUT.mkdir(parents=True, exist_ok=True)
    for pattern in (f"*.{kind.lower()}" for kind in kinds):
        for old in OUT.glob(pattern):
            old.unlink()
    run("cpack", "-G", ";".join(kinds), cwd=BUILD, stdout=subprocess.DEVNULL)
    if "DEB" in kinds and GFAL2.exists():
        run("cpack", "-G", "DEB", "--config", GFAL2, cwd=BUILD, stdout=subprocess.DEVNULL)
    shutil.rmtree(OUT / "_CPack_Packages", ignore_errors=True)


def judge(kinds):
    if "DEB" in kinds:
        for package in OUT.glob("*.deb"):
            run("lintian", "--fail-on", "error", "--allow-root", package)
    if "RPM" in kinds:
        run("rpmlint", "-c", RPM_FILTERS, newest("sluice-*.rpm"))


def debian(place):
    """A Debian with nothing but what is essential, and apt."""
    sources = ["deb http://deb.debian.org/debian bookworm main", "deb http://deb.debian.org/debian bookworm-updates main",
               "deb http://deb.debian.org/debian-security bookworm-security main"]  # fmt: skip
    run("mmdebstrap", "--quiet", "--variant=apt", "bookworm", place, *sources)


def attempt(deb, keep):
    if subprocess.run(["id", "-u"], capture_output=True, text=True).stdout.strip() != "0":
        raise Failure("--try: a Debian is installed and booted, which only root may do")
    place = pathlib.Path(tempfile.mkdtemp(prefix="sluice-trial-", dir="/var/tmp"))
    try:
        debian(place)
        place.chmod(0o755)
        shutil.copy(deb, place / "root")
        alone = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--timezone=off"]  # tzdata makes its own
        inside = [*alone, "--pipe", "-D", place]
        run(*inside, "/bin/sh", "-c",
            f"export DEBIAN_FRONTEND=noninteractive; apt-get -qq update && cd /root && apt install -y ./{deb.name}",
            stdin=subprocess.DEVNULL)  # fmt: skip
        for script in ("trial.sh", "trial_console.py"):
            shutil.copy(HERE / script, place / "root")
        (place / "etc/systemd/system/trial.service").write_text(
            "[Unit]\nAfter=multi-user.target\n[Service]\nType=oneshot\nExecStart=/bin/bash /root/trial.sh\n"
            "StandardOutput=file:/root/trial.log\nStandardError=inherit\nExecStopPost=/bin/systemctl poweroff --no-block\n"
            "[Install]\nWantedBy=default.target\n")  # fmt: skip
        run(*inside, "systemctl", "--quiet", "enable", "trial.service", stdin=subprocess.DEVNULL)
        # As high as a host lets its services go.
        limits = ["--rlimit=RLIMIT_MEMLOCK=infinity", "--rlimit=RLIMIT_NOFILE=524288"]
        boot = [str(word) for word in [*alone, *limits, "-D", place, "--private-network", "--boot"]]
        print("+", *boot, flush=True)
        try:
            subprocess.run(boot, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=TRIAL_LIMIT_S)
        except subprocess.TimeoutExpired:
            pass  # it is ended, and the log tells how far it came
        log = place / "root/trial.log"
        text = log.read_text(errors="replace") if log.exists() else ""
        print(text)
        if not text.rstrip().endswith("the trial is over, all is well"):
            raise Failure(f"--try: did not come to its end; its last lines stand above{keep and f', the rest in {place}'}")
    finally:
        if not keep:
            shutil.rmtree(place, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev package", description=__doc__)
    parser.add_argument("--deb", action="store_true", help="the .deb alone")
    parser.add_argument("--rpm", action="store_true", help="the .rpm alone")
    parser.add_argument("--no-lint", action="store_true", help="without lintian and rpmlint")
    parser.add_argument("--try", action="store_true", dest="attempt",
                        help="install the .deb in a clean Debian, boot that and use it (as root; minutes)")  # fmt: skip
    parser.add_argument("--keep", action="store_true", help="with --try: leave that Debian in /var/tmp")
    chosen = parser.parse_args()
    kinds = [kind for kind, wanted in (("DEB", chosen.deb), ("RPM", chosen.rpm)) if wanted] or ["DEB", "RPM"]
    if chosen.attempt and "DEB" not in kinds:
        parser.error("--try needs the .deb")
    try:
        make(kinds)
        if not chosen.no_lint:
            judge(kinds)
        if chosen.attempt:
            attempt(newest("sluice_*.deb"), chosen.keep)
    except Failure as failure:
        print(f"package: {failure}", file=sys.stderr)
        return 1
    for kind in kinds:
        print(newest("sluice_*.deb" if kind == "DEB" else "sluice-*.rpm"))
    for package in OUT.glob("sluice-gfal2_*.deb"):
        print(package)
    return 0


if __name__ == "__main__":
    sys.exit(main())
