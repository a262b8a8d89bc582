"""./dev cards: nodes on network cards of their own, in a virtual machine whose cards have DPDK's real drivers.

QEMU gives the guest two cards of a kind, joined to each other, and an IOMMU (intel-iommu); sluice-host binds them to vfio-pci
there, as on a real host. The machine is emulated (TCG): what is shown is that things work, never how fast. The image is made
once, with mmdebstrap; the programs are put into it anew each time.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
WORK = ROOT / "build" / "cards"
BINARIES = ROOT / "build" / "release" / "bin"
PACKAGES = ("qemu-system-x86", "ipxe-qemu", "mmdebstrap", "e2fsprogs")
# Kind: QEMU's device, its options, how many workers it has queues for.
KINDS = {
    "e1000": ("e1000", "", 1),
    "e1000e": ("e1000e", "", 1),
    "vmxnet3": ("vmxnet3", "", 2),
    "virtio": ("virtio-net-pci", "disable-legacy=on,iommu_platform=on,ats=on,mrg_rxbuf=on,host_mtu={mtu}", 1),
    "virtio-packed": ("virtio-net-pci", "disable-legacy=on,iommu_platform=on,ats=on,packed=on,host_mtu={mtu}", 1),
    "virtio-unmerged": ("virtio-net-pci", "disable-legacy=on,iommu_platform=on,ats=on,mrg_rxbuf=off,host_mtu={mtu}", 1),
}
_CASE = re.compile(r"^CASE (\S+) (pass|fail) (\d+) ?(.*)$")


class Failed(Exception):
    pass


def cases_of(text):
    """[(name, passed, milliseconds, why)] of what the guest said, in its order."""
    found = []
    for line in text.splitlines():
        match = _CASE.match(line)
        if match:
            found.append((match[1], match[2] == "pass", int(match[3]), match[4].strip()))
    return found


def table(results):
    """Of {kind: cases}: a line for each case, a column for each kind; what did not pass stands below."""
    names = list(dict.fromkeys(case[0] for cases in results.values() for case in cases))
    width = max([len(name) for name in names] + [4]) + 2
    lines = ["".ljust(width) + "".join(kind.ljust(17) for kind in results)]
    for name in names:
        line = name.ljust(width)
        for cases in results.values():
            one = next((case for case in cases if case[0] == name), None)
            line += ("-" if one is None else f"pass {one[2] / 1000:.1f} s" if one[1] else "FAIL").ljust(17)
        lines.append(line.rstrip())
    for kind, cases in results.items():
        lines += [f"{kind}: {name}: {why or 'failed'}" for name, passed, _, why in cases if not passed]
    return "\n".join(lines)


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


def make_image():
    """Once; anew when the list of packages changes."""
    made, recipe = WORK / "initrd.img", HERE / "image.sh"
    if made.exists() and made.stat().st_mtime > recipe.stat().st_mtime:
        return
    print("cards: making the guest's image (about a minute)", flush=True)
    run(recipe, WORK)


def make_disk():
    root = WORK / "root"
    for name in ("sluice", "sluice-control", "sluice-dataplane"):
        run("install", "-m755", BINARIES / name, root / "usr/sbin/")
    run("install", "-m755", ROOT / "tools/package/sluice-host", root / "usr/sbin/")
    run("install", "-m755", HERE / "guest_init.sh", HERE / "guest_cases.sh", root)
    disk = WORK / "root.img"
    disk.unlink(missing_ok=True)
    run("mke2fs", "-q", "-t", "ext4", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1", "-d", root, disk, "2500M")


class Guest:
    """A virtual machine with two cards of a kind, until the end of its `with`."""

    def __init__(self, kind, mtu):
        self.device, options, self.workers = KINDS[kind]
        self.options = options.format(mtu=mtu)
        self.mtu = mtu
        self.share = WORK / f"{kind}-{mtu}"

    def __enter__(self):
        shutil.rmtree(self.share, ignore_errors=True)
        for folder in ("in", "out"):
            (self.share / folder).mkdir(parents=True)
        scratch = self.share / "scratch.img"
        with scratch.open("wb") as file:
            file.truncate(6 << 30)
        with (self.share / "qemu.log").open("wb") as log:
            self.process = subprocess.Popen(self._command(scratch), stdout=log, stderr=log)
        self._wait(lambda: (self.share / "out/up").exists(), 300, "the guest is up")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        (self.share / "scratch.img").unlink(missing_ok=True)

    def _command(self, scratch):
        if self.device == "e1000":  # conventional PCI: each behind a bridge, so each has an IOMMU group with it
            buses = ["br0,addr=1", "br1,addr=1"]
            bridges = ["-device", "pcie-pci-bridge,id=br0,bus=rp0", "-device", "pcie-pci-bridge,id=br1,bus=rp1"]
        else:
            buses, bridges = ["rp0", "rp1"], []
        cards = []
        for i, bus in enumerate(buses):
            extra = f",{self.options}" if self.options else ""
            cards += ["-netdev", f"hubport,id=wire{i},hubid=0",
                      "-device", f"{self.device},id=card{i},netdev=wire{i},mac=52:54:00:00:00:0{i + 1},bus={bus}{extra}"]  # fmt: skip
        kernel = "root=/dev/vda rw console=ttyS0 intel_iommu=on init=/guest_init.sh panic=-1"
        return ["qemu-system-x86_64", "-machine", "q35,kernel-irqchip=split", "-accel", "tcg,thread=multi,tb-size=1024",
                "-cpu", "max", "-smp", "2", "-m", "5G", "-nodefaults", "-display", "none", "-no-reboot",
                "-device", "intel-iommu,intremap=on,caching-mode=on,device-iotlb=on",
                "-kernel", WORK / "vmlinuz", "-initrd", WORK / "initrd.img", "-append", kernel,
                "-drive", f"file={WORK / 'root.img'},if=virtio,format=raw,snapshot=on,cache=unsafe",
                "-drive", f"file={scratch},if=virtio,format=raw,cache=unsafe",
                "-serial", f"file:{self.share / 'serial.log'}",
                "-monitor", f"unix:{self.share / 'monitor'},server=on,wait=off",
                "-virtfs", f"local,path={self.share},mount_tag=host,security_model=none",
                "-device", "pcie-root-port,id=rp0,chassis=1,slot=1", "-device", "pcie-root-port,id=rp1,chassis=2,slot=2",
                *bridges, *cards]  # fmt: skip

    def _wait(self, condition, limit_s, what):
        until = time.monotonic() + limit_s
        while not condition():
            if self.process.poll() is not None:
                raise Failed(f"the virtual machine ended: {(self.share / 'qemu.log').read_text(errors='replace').strip()}")
            if time.monotonic() > until:
                raise Failed(f"waited {limit_s} s until {what}; see {self.share}")
            self._monitor()
            time.sleep(0.1)

    def _monitor(self):
        """Hands QEMU what the guest wants of it: a link that goes down, say."""
        asked = self.share / "out/monitor"
        if not asked.exists():
            return
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(str(self.share / "monitor"))
            monitor.recv(4096)
            monitor.sendall(asked.read_bytes().strip() + b"\n")
            time.sleep(0.2)
        asked.unlink()

    def cases(self, short, limit_s):
        script = f"export MTU={self.mtu} WORKERS={1 if short else self.workers} SHORT={'1' if short else ''}\n. /guest_cases.sh\n"
        (self.share / "in/cases.new").write_text(script)
        (self.share / "in/cases.new").rename(self.share / "in/cases.sh")
        log = self.share / "out/cases.log"
        try:
            self._wait(lambda: (self.share / "out/cases.rc").exists(), limit_s, "the cases have ended")
        except Failed as error:
            said = log.read_text(errors="replace") if log.exists() else ""
            return [*cases_of(said), ("to_the_end", False, 0, str(error))]
        return cases_of(log.read_text(errors="replace"))


def check_packages():
    missing = [name for name in PACKAGES if subprocess.run(["dpkg", "-s", name], capture_output=True, check=False).returncode != 0]
    if not missing:
        return
    if os.geteuid() != 0:
        raise Failed(f"packages are missing; as root: apt-get install {' '.join(missing)}")
    run("apt-get", "install", "-y", "-q", "--no-install-recommends", *missing,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, stdout=subprocess.DEVNULL)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(prog="./dev cards", description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; none: all")
    parser.add_argument("--mtu", type=int, default=9000, help="of both cards (9000)")
    parser.add_argument("--short", action="store_true", help="the shortest cases: both directions, a tree, a paced transfer")
    parser.add_argument("--limit", type=int, default=420, metavar="S", help="seconds for the cases of a kind (420)")
    arguments = parser.parse_args()
    wrong = [kind for kind in arguments.kinds if kind not in KINDS]
    if wrong:
        parser.error(f"{wrong[0]}: no such kind; there are {', '.join(KINDS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the virtual machine ends, too
    results = {}
    try:
        check_packages()
        make_image()
        make_disk()
        for kind in arguments.kinds or KINDS:
            print(f"cards: {kind}, MTU {arguments.mtu}", flush=True)
            begun = time.monotonic()
            with Guest(kind, arguments.mtu) as guest:
                results[kind] = guest.cases(arguments.short, arguments.limit)
            passed = sum(case[1] for case in results[kind])
            print(f"cards: {kind}: {passed} of {len(results[kind])} passed, {time.monotonic() - begun:.0f} s", flush=True)
    except (Failed, subprocess.CalledProcessError) as error:
        print(f"cards: {error}", file=sys.stderr)
        return 1
    print(table(results))
    print(f"What the guests said is in {WORK}/KIND-MTU/out.")
    return 0 if all(case[1] for cases in results.values() for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
