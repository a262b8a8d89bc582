"""A virtual machine with two network cards of a kind, joined to each other, behind an emulated IOMMU (intel-iommu)."""
# SPDX-License-Identifier: Apache-2.0
import os

from places import HERE, ROOT, WORK
from vm import machine

BINARIES = ROOT / "build" / "release" / "bin"
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

_LIBRARIES = "/usr/lib/x86_64-linux-gnu"
OF_THE_SYSTEM = [f"{_LIBRARIES}/{name}*" for name in ("dpdk", "librte_", "libgrpc", "libprotobuf", "libprometheus", "libipsec_mb", "libisal", "libspdlog",
                                                      "libsqlite3", "libhwloc", "liburing", "libfmt", "libabsl", "libseccomp")]  # fmt: skip


def make_disk(bundle):
    """With the programs of this tree, or of a bundle."""
    built = [] if bundle else [BINARIES / name for name in ("sluice", "sluice-control", "sluice-dataplane")]
    machine.make_disk(WORK / "root.img", [*built, ROOT / "tools/package/sluice-host"], [HERE / "cases.sh"], bundle=bundle)


class Guest(machine.Machine):
    """Runs until the end of its `with`."""

    def __init__(self, kind, mtu, bundle=None):
        super().__init__(WORK / "root.img", WORK / f"{kind}-{mtu}")
        device, options, self.workers = KINDS[kind]
        options = options.format(mtu=mtu)
        self.mtu = mtu
        # What a bundle brings itself must not be found in the system.
        self.first = f"rm -rf {' '.join(OF_THE_SYSTEM)}\n" if bundle else ""
        self.no_link = NO_LINK.get(kind, "")
        self.kernel = "intel_iommu=on"
        # A card with several queues needs a wire with as many: taps on a bridge, in a network of their own.
        self.network = f"sluice-cards-{os.getpid()}" if "mq=on" in options else None
        self.inside = ["ip", "netns", "exec", self.network] if self.network else []
        self.devices = self._cards(device, options)

    def __enter__(self):
        if self.network:
            self._make_network()
        return super().__enter__()

    def __exit__(self, *_):
        super().__exit__()
        if self.network:
            machine.run("ip", "netns", "del", self.network)

    def _make_network(self):
        def ip(*words):
            machine.run("ip", "-n", self.network, *words)

        machine.run("ip", "netns", "add", self.network)
        ip("link", "add", "wire", "type", "bridge")
        for i in range(2):
            ip("tuntap", "add", f"wire{i}", "mode", "tap", "multi_queue")
            ip("link", "set", f"wire{i}", "mtu", self.mtu, "master", "wire", "up")
        ip("link", "set", "wire", "mtu", self.mtu, "up")

    def _cards(self, device, options):
        if device == "e1000":  # conventional PCI: each behind a bridge, so each has an IOMMU group with it
            buses = ["br0,addr=1", "br1,addr=1"]
            bridges = ["-device", "pcie-pci-bridge,id=br0,bus=rp0", "-device", "pcie-pci-bridge,id=br1,bus=rp1"]
        else:
            buses, bridges = ["rp0", "rp1"], []
        cards = []
        for i, bus in enumerate(buses):
            extra = f",{options}" if options else ""
            wire = f"tap,id=wire{i},ifname=wire{i},queues={max(self.workers)},script=no,downscript=no,vhost=off"
            cards += ["-netdev", wire if self.network else f"hubport,id=wire{i},hubid=0",
                      "-device", f"{device},id=card{i},netdev=wire{i},mac=52:54:00:00:00:0{i + 1},bus={bus}{extra}"]  # fmt: skip
        return ["-device", "intel-iommu,intremap=on,caching-mode=on,device-iotlb=on",
                "-device", "pcie-root-port,id=rp0,chassis=1,slot=1", "-device", "pcie-root-port,id=rp1,chassis=2,slot=2",
                *bridges, *cards]  # fmt: skip

    def cases(self, which, limit_s):
        """What the guest said, in `limit_s` at most. `which`: as CASES of cases.sh."""
        workers = " ".join(str(number) for number in self.workers)
        return self.script("cases", f"{self.first}export MTU={self.mtu} WORKERS='{workers}' CASES={which} NO_LINK='{self.no_link}' "
                           f"PATH={machine.PATH} BASE=/data MEMORY_MIB=512 MONITOR=/host/out\n. /cases.sh\n", limit_s)  # fmt: skip
