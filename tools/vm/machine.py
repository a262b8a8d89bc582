"""A machine of its own with a small Debian, for what needs drivers, modules or servers that the host has not.

The image is made once, with mmdebstrap; programs and scripts are put into it anew each time. The guest runs the scripts that it is
handed, one after the other, and says what came of each.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build" / "vm"
IMAGE_PACKAGES = ("mmdebstrap", "e2fsprogs")
PACKAGES = ("qemu-system-x86", "ipxe-qemu", *IMAGE_PACKAGES)
PATH = "/opt/sluice/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # in the guest
# Set when all is to end before its time: whatever waits for a guest gives up.
stopping = threading.Event()


class Failed(Exception):
    pass


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


def check_packages(packages=PACKAGES):
    missing = [name for name in packages if subprocess.run(["dpkg", "-s", name], capture_output=True, check=False).returncode != 0]
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
    print("vm: making the guest's image (about a minute)", flush=True)
    run(recipe, WORK)


def make_disk(disk, programs, scripts, modules=None, bundle=None):
    """The guest's disk: the image, `programs` in /opt/sluice/bin, `scripts` in its /; `modules` of another kernel than the image's; a
    `bundle` of `./dev package`, unpacked in /opt/sluice."""
    root = WORK / "root"
    if modules is not None:
        shutil.copytree(modules, root / "lib/modules" / modules.name, symlinks=True, dirs_exist_ok=True)
    place = root / "opt/sluice"
    shutil.rmtree(place, ignore_errors=True)
    (place / "bin").mkdir(parents=True)
    if bundle is not None:
        run("tar", "-xzf", bundle, "-C", place, "--strip-components=1")
    for program in programs:
        shutil.copy(program, place / "bin")
    run("install", "-m755", HERE / "init.sh", HERE / "nodes.sh", *scripts, root)
    disk.parent.mkdir(parents=True, exist_ok=True)
    disk.unlink(missing_ok=True)
    run("mke2fs", "-q", "-t", "ext4", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1", "-d", root, disk, "2500M")


class Machine:
    """Runs until the end of its `with`."""

    def __init__(self, disk, share, memory="5G", kvm=False, scratch_gib=6):
        self.disk = disk
        self.share = share
        self.memory = memory
        self.kvm = kvm  # else QEMU emulates a processor
        self.scratch_gib = scratch_gib
        self.devices = []  # more of QEMU's arguments
        self.kernel = ""  # more of the kernel's
        self.inside = []  # what QEMU runs in: a network namespace

    def __enter__(self):
        shutil.rmtree(self.share, ignore_errors=True)
        for folder in ("in", "out"):
            (self.share / folder).mkdir(parents=True)
        with (self.share / "scratch.img").open("wb") as file:
            file.truncate(self.scratch_gib << 30)
        with (self.share / "machine.log").open("wb") as log:
            self.process = subprocess.Popen([*self.inside, *self._command()], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self._wait(lambda: (self.share / "out/up").exists(), 300, "the guest is up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        (self.share / "scratch.img").unlink(missing_ok=True)

    def _command(self):
        accelerator = ["-accel", "kvm"] if self.kvm else ["-accel", "tcg,thread=multi,tb-size=1024"]
        return ["qemu-system-x86_64", "-machine", "q35,kernel-irqchip=split", *accelerator,
                "-cpu", "max", "-smp", "2", "-m", self.memory, "-nodefaults", "-display", "none", "-no-reboot",
                "-kernel", WORK / "vmlinuz", "-initrd", WORK / "initrd.img",
                "-append", f"root=/dev/vda rw console=ttyS0 init=/init.sh panic=-1 no_timer_check {self.kernel}",
                "-drive", f"file={self.disk},if=virtio,format=raw,snapshot=on,cache=unsafe",
                "-drive", f"file={self.share / 'scratch.img'},if=virtio,format=raw,cache=unsafe",
                "-serial", f"file:{self.share / 'serial.log'}",
                "-monitor", f"unix:{self.share / 'monitor'},server=on,wait=off",
                "-virtfs", f"local,path={self.share},mount_tag=host,security_model=none",
                *self.devices]  # fmt: skip

    def _wait(self, condition, limit_s, what):
        until = time.monotonic() + limit_s
        while not condition():
            if self.process.poll() is not None:
                raise Failed(f"the virtual machine ended: {(self.share / 'machine.log').read_text(errors='replace').strip()[-2000:]}")
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

    def script(self, name, text, limit_s):
        """What the guest's bash said to this, in `limit_s` at most."""
        (self.share / f"in/{name}.new").write_text(text)
        (self.share / f"in/{name}.new").rename(self.share / f"in/{name}.sh")
        log = self.share / f"out/{name}.log"
        late = ""
        try:
            self._wait(lambda: (self.share / f"out/{name}.rc").exists(), limit_s, "the cases have ended")
        except Failed as error:
            late = f"\nCASE to_the_end fail 0 {error}\n"
        return (log.read_text(errors="replace") if log.exists() else "") + late

    def is_idle(self, name):
        """This script has ended, and the guest waits for the next one."""
        return self.process.poll() is None and (self.share / f"out/{name}.rc").exists()
