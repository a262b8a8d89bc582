"""./dev storage: two nodes on storage that centres have: NFS by the kernel's own server, disks that are slow, RAID.

All of it is in a virtual machine, whose kernel has what that takes: node a has a disk of its own, node b a mount.
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

from vm import machine  # noqa: E402
from vm.cases import cases_of, table  # noqa: E402

WORK = ROOT / "build" / "storage"
BINARIES = pathlib.Path(os.environ.get("SLUICE_BIN", ROOT / "build" / "release" / "bin"))
KINDS = {"nfs4.2": 300, "nfs4.1": 300, "nfs3": 300, "trouble": 400, "disks": 400, "figures": 900}  # and seconds at most
DEFAULT = [kind for kind in KINDS if kind != "figures"]


def parse():
    parser = argparse.ArgumentParser(prog="./dev storage", description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; none: all but figures")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="of figures (5)")
    parser.add_argument("--kvm", action="store_true", help="with /dev/kvm, where that works; without, QEMU emulates a processor, ten times as slow")
    arguments = parser.parse_args()
    wrong = [kind for kind in arguments.kinds if kind not in KINDS]
    if wrong:
        parser.error(f"{wrong[0]}: no such kind; there are {', '.join(KINDS)}")
    if os.geteuid() != 0:
        parser.error("needs root: it makes a file system for a virtual machine")
    return arguments


def make_disk():
    programs = [BINARIES / name for name in ("sluice", "sluice-control", "sluice-dataplane", "sluice-users")]
    scripts = [HERE / f"{name}.sh" for name in ("cases", "server", "nfs", "trouble", "disks", "figures")]
    machine.make_disk(WORK / "root.img", programs, scripts)


def main():
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the virtual machine ends, too
    results = {}
    try:
        machine.check_packages()
        machine.make_image()
        make_disk()
        with machine.Machine(WORK / "root.img", WORK / "guest", memory="3G", kvm=arguments.kvm) as guest:
            slower = 1 if guest.kvm else 6
            for kind in arguments.kinds or DEFAULT:
                said = guest.script(kind, f"export PATH={machine.PATH} KINDS={kind} ROUNDS={arguments.rounds} SLOWER={slower}\n. /cases.sh\n",
                                    KINDS[kind] * slower)  # fmt: skip
                results[kind] = cases_of(said)
                passed = sum(case.result == "pass" for case in results[kind])
                print(f"storage: {kind}: {passed} of {len(results[kind])} passed", flush=True)
                print("".join(f"{line}\n" for line in said.splitlines() if line.startswith(("FIGURE", "stripe "))), end="")
    except (machine.Failed, subprocess.CalledProcessError) as error:
        print(f"storage: {error}", file=sys.stderr)
        return 1
    print(table(results))
    print(f"What the nodes said is in {WORK}/guest/out/*.log.")
    good = all(cases and all(case.result != "fail" for case in cases) for cases in results.values())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
