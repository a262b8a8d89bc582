"""A virtual machine with two network cards of a kind, joined to each other, behind an emulated IOMMU (intel-iommu)."""
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import socket
import subprocess
import time

from places import HERE, ROOT, WORK, Failed, run, stopping

BINARIES = ROOT / "build" / "release" / "bin"
PACKAGES = ("qemu-system-x86", "ipxe-qemu", "mmdebstrap", "e2fsprogs")
_MODERN = "disable-legacy=on,iommu_platform=on,ats=on,host_mtu={mtu}"
# Kind: QEMU's device, its options, the numbers of workers that it has queues for.
KINDS = {
    "e1000e": ("e1000e", "", (1,)),
    "vmxnet3": ("vmxnet3", "", (1, 2, 4)),
    "virtio": ("virtio-net-pci", _MODERN + ",mrg_rxbuf=on,mq=on,vectors=10", (1, 2, 4)),
    "e1000": ("e1000", "", (1,)),
    "virtio-packed": ("virtio-net-pci", _MODERN + ",packed=on", (1,)),
    "virtio-plain": ("virtio-net-pci", _MODERN + ",mrg_rxbuf=off,csum=off,guest_csum=off", (1,)),
}
# Why a kind's link is not taken down.
NO_LINK = {
    "virtio-packed": "QEMU 7.2 asks for no notice of frames after that (virtqueue_packed_drop_all), and takes none any more",
}
# Their driver is that of a kind above.
SAME_DRIVER = ("e1000", "virtio-packed", "virtio-plain")


def check_packages():
    missing = [name for name in PACKAGES if subprocess.run(["dpkg", "-s", name], capture_output=True, check=False).returncode != 0]
    if not missing:
        return
    if os.geteuid() != 0:
        raise Failed(f"packages are missing; as root: apt-get install {' '.join(missing)}")
    run("apt-get", "install", "-y", "-q", "--no-install-recommends", *missing,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, stdout=subprocess.DEVNULL)  # fmt: skip


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
    run("install", "-m755", HERE / "guest_init.sh", HERE / "cases.sh", root)
    disk = WORK / "root.img"
    disk.unlink(missing_ok=True)
    run("mke2fs", "-q", "-t", "ext4", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1", "-d", root, disk, "2500M")


class Guest:
    """Runs until the end of its `with`."""

    def __init__(self, kind, mtu):
        self.device, options, self.workers = KINDS[kind]
        self.options = options.format(mtu=mtu)
        self.mtu = mtu
        self.no_link = NO_LINK.get(kind, "")
        self.share = WORK / f"{kind}-{mtu}"
        # A card with several queues needs a wire with as many: taps on a bridge, in a network of their own.
        self.network = f"sluice-cards-{os.getpid()}" if "mq=on" in self.options else None

    def __enter__(self):
        shutil.rmtree(self.share, ignore_errors=True)
        for folder in ("in", "out"):
            (self.share / folder).mkdir(parents=True)
        scratch = self.share / "scratch.img"
        with scratch.open("wb") as file:
            file.truncate(6 << 30)
        if self.network:
            self._make_network()
        inside = ["ip", "netns", "exec", self.network] if self.network else []
        with (self.share / "qemu.log").open("wb") as log:
            self.process = subprocess.Popen([*inside, *self._command(scratch)], stdout=log, stderr=log)
        try:
            self._wait(lambda: (self.share / "out/up").exists(), 300, "the guest is up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        if self.network:
            run("ip", "netns", "del", self.network)
        (self.share / "scratch.img").unlink(missing_ok=True)

    def _make_network(self):
        def ip(*words):
            run("ip", "-n", self.network, *words)

        run("ip", "netns", "add", self.network)
        ip("link", "add", "wire", "type", "bridge")
        for i in range(2):
            ip("tuntap", "add", f"wire{i}", "mode", "tap", "multi_queue")
            ip("link", "set", f"wire{i}", "mtu", self.mtu, "master", "wire", "up")
        ip("link", "set", "wire", "mtu", self.mtu, "up")

    def _command(self, scratch):
        if self.device == "e1000":  # conventional PCI: each behind a bridge, so each has an IOMMU group with it
            buses = ["br0,addr=1", "br1,addr=1"]
            bridges = ["-device", "pcie-pci-bridge,id=br0,bus=rp0", "-device", "pcie-pci-bridge,id=br1,bus=rp1"]
        else:
            buses, bridges = ["rp0", "rp1"], []
        cards = []
        for i, bus in enumerate(buses):
            extra = f",{self.options}" if self.options else ""
            wire = f"tap,id=wire{i},ifname=wire{i},queues={max(self.workers)},script=no,downscript=no,vhost=off"
            cards += ["-netdev", wire if self.network else f"hubport,id=wire{i},hubid=0",
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
            if stopping.is_set():
                raise Failed("stopped")
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

    def cases(self, which, limit_s):
        """What the guest said, in `limit_s` at most. `which`: as CASES of cases.sh."""
        workers = " ".join(str(number) for number in self.workers)
        script = (f"export MTU={self.mtu} WORKERS='{workers}' CASES={which} NO_LINK='{self.no_link}' "
                  "BASE=/data MEMORY_MIB=512 MONITOR=/host/out\n. /cases.sh\n")  # fmt: skip
        (self.share / "in/cases.new").write_text(script)
        (self.share / "in/cases.new").rename(self.share / "in/cases.sh")
        log = self.share / "out/cases.log"
        late = ""
        try:
            self._wait(lambda: (self.share / "out/cases.rc").exists(), limit_s, "the cases have ended")
        except Failed as error:
            late = f"\nCASE to_the_end fail 0 {error}\n"
        return (log.read_text(errors="replace") if log.exists() else "") + late
