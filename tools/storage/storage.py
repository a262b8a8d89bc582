"""./dev storage: two nodes on storage that centres have: NFS by the kernel's own server, disks that are slow or full, RAID.

All of it is in a guest, whose kernel has what that takes: node a has a disk of its own, node b a mount.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import os
import pathlib
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from vm import machine, user  # noqa: E402
from vm.cases import cases_of, summary, table  # noqa: E402

WORK = ROOT / "build" / "storage"
BINARIES = pathlib.Path(os.environ.get("SLUICE_BIN", ROOT / "build" / "release" / "bin"))
# And seconds at most, where system calls are as fast as they should be.
KINDS = {"nfs4.2": 300, "nfs4.1": 300, "nfs3": 300, "trouble": 400, "disks": 400, "stripes": 300, "figures": 900}
SLOWER = 3  # with system calls of User Mode Linux
SCRIPTS = ("cases", "server", "nfs", "trouble", "disks", "stripes", "figures")


def parse():
    parser = argparse.ArgumentParser(prog="./dev storage", description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; none: all, one after the other")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="of each figure (5)")
    parser.add_argument("--kvm", action="store_true", help="in QEMU with /dev/kvm, where that works; without, the guest's kernel is a process (User Mode Linux)")
    arguments = parser.parse_args()
    wrong = [kind for kind in arguments.kinds if kind not in KINDS]
    if wrong:
        parser.error(f"{wrong[0]}: no such kind; there are {', '.join(KINDS)}")
    if os.geteuid() != 0:
        parser.error("needs root: it makes a file system for its guest")
    return arguments


def make_disk(kvm):
    programs = [BINARIES / name for name in ("sluice", "sluice-control", "sluice-dataplane", "sluice-users", "sluice_timerfd.so")]
    scripts = [HERE / f"{name}.sh" for name in SCRIPTS]
    machine.make_disk(WORK / "root.img", programs, scripts, None if kvm else user.modules())


def try_kinds(arguments, kinds, results, number):
    """In one guest, until a kind does not end: what is left of `kinds`."""
    slower = 1 if arguments.kvm else SLOWER
    kind_of_machine = machine.Machine if arguments.kvm else user.UserMachine
    with kind_of_machine(WORK / "root.img", WORK / f"guest{number}", memory="3G", kvm=arguments.kvm) as guest:
        while kinds:
            kind = kinds.pop(0)
            said = guest.script(kind, f"export PATH={machine.PATH} KINDS={kind} ROUNDS={arguments.rounds} SLOWER={slower}\n. /cases.sh\n",
                                KINDS[kind] * slower)  # fmt: skip
            results[kind] = cases_of(said)
            passed = sum(case.result == "pass" for case in results[kind])
            print(f"storage: {kind}: {passed} of {len(results[kind])} passed", flush=True)
            print("".join(f"{line}\n" for line in said.splitlines() if line.startswith("FIGURE")), end="", flush=True)
            if not guest.is_idle(kind):
                return


def main():
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the guest ends, too
    kinds, results, number = list(arguments.kinds or KINDS), {}, 0
    try:
        machine.check_packages(machine.PACKAGES if arguments.kvm else user.PACKAGES)
        machine.make_image()
        make_disk(arguments.kvm)
        while kinds:
            number += 1
            try_kinds(arguments, kinds, results, number)
    except (machine.Failed, subprocess.CalledProcessError) as error:
        print(f"storage: {error}", file=sys.stderr)
    for kind in kinds:
        results[kind] = []  # not tried
    print(table(results))
    print(f"storage: {summary(results)}. What the nodes said is in {WORK}/guest*/out/*.log.")
    good = all(cases and all(case.result != "fail" for case in cases) for cases in results.values())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
