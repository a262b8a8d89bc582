# Trees for `trees`: made from a seed, on file systems of their own kind, emptied before a run and compared after it.
# SPDX-License-Identifier: Apache-2.0
import ctypes
import os
import pathlib
import random
import shutil
import subprocess
import tempfile

from harness.stacked import Stacked
from harness.system import run, scratch_parent

from ..errors import LabError
from ..machine import file_system
from ..meter import drop_caches
from .files import mount_tmpfs

_LIBC = ctypes.CDLL(None, use_errno=True)
_NOISE_BYTES = 8 << 20
_PER_DIRECTORY = 100
_KERNEL_FILES, _KERNEL_BYTES = 80_000, 1_200_000_000
_SPARE_BYTES = 2 << 30
_MARGIN_BYTES = 256 << 20
_ROOM_BYTES = 32 << 30


class Forest:
    """What a tree is made of: (path, size) of each file, the same ones for a seed."""

    def __init__(self, name, files):
        self.name = name
        self.files = files

    @property
    def size_bytes(self):
        return sum(size for _path, size in self.files)

    def on_disk_bytes(self):
        return sum(max(4096, -(-size // 4096) * 4096) for _path, size in self.files)

    def make(self, root, seed=1):
        """No two files hold the same, and none can be compressed."""
        noise = random.Random(seed).randbytes(_NOISE_BYTES)
        known = set()
        for number, (path, size) in enumerate(self.files):
            target = root / path
            if target.parent not in known:
                target.parent.mkdir(parents=True, exist_ok=True)
                known.add(target.parent)
            at = number * 4099 % (_NOISE_BYTES // 2)
            with open(target, "wb") as file:
                file.write(number.to_bytes(8, "big")[: min(8, size)])
                left = max(0, size - 8)
                while left > 0:
                    left -= file.write(noise[at : at + min(left, _NOISE_BYTES // 2)])


def small(files, size=4096):
    return Forest("small", [(f"d{i // _PER_DIRECTORY}/f{i}", size) for i in range(files)])


def kernel_like(share=1.0):
    """As many files, bytes and directories as a Linux kernel's sources have; most files are short."""
    draw = random.Random(6)
    count = int(_KERNEL_FILES * share)
    sizes = [draw.lognormvariate(8.6, 1.4) for _ in range(count)]
    factor = _KERNEL_BYTES * share / sum(sizes)
    directories = [f"s{draw.randrange(24)}/" + "/".join(f"t{draw.randrange(12)}" for _ in range(draw.randrange(4)))
                   for _ in range(max(1, count // 16))]  # fmt: skip
    return Forest("kernel", [(f"{draw.choice(directories)}/f{i}.c", int(size * factor)) for i, size in enumerate(sizes)])


def large(files, size):
    return Forest("large", [(f"large{i}", size) for i in range(files)])


def mixed(one, other):
    return Forest("mixed", [*one.files, *((f"beside/{path}", size) for path, size in other.files)])


class Ground:
    """One file system with sources, and a destination that peers of any user may write."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        self.target = folder / "dst"
        self.same = folder / "same"
        self._before = folder / "before"
        self._planted = set()

    def source(self, forest):
        return self.folder / "src" / forest.name

    def plant_once(self, forest):
        if forest.name not in self._planted:
            self.source(forest).mkdir(parents=True)
            forest.make(self.source(forest))
            self._planted.add(forest.name)

    def plant_same_once(self, forest):
        """Where nothing is left to do for whoever compares sizes and times."""
        if self.same not in self._planted:
            run(["cp", "-aT", self.source(forest), self.same])
            self._planted.add(self.same)

    def make_ready(self):
        self._put_aside()
        self.target.mkdir()
        self.target.chmod(0o777)
        self.make_cold()

    def _put_aside(self):
        """What is removed right before a run costs that run: ext4 without a journal gives no inode away again for a
        minute, and looks at each. So trees on a disk stay until there is no room for another one."""
        if self.target.exists() and self.name == "disk":
            self._before.mkdir(exist_ok=True)
            self.target.rename(self._before / str(len(list(self._before.iterdir()))))
        if self.name != "disk" or shutil.disk_usage(self.folder).free < _ROOM_BYTES:
            shutil.rmtree(self._before, ignore_errors=True)
            shutil.rmtree(self.target, ignore_errors=True)

    def make_cold(self):
        self.make_durable()
        if self.name == "disk":
            drop_caches()

    def make_durable(self):
        """Belongs to everybody's time."""
        run(["sync", "-f", self.folder])

    def check(self, forest, target=None):
        # Its own diff: exact, and faster than anything written here.
        differ = subprocess.run(["diff", "-rq", "--no-dereference", self.source(forest), target or self.target],
                                capture_output=True, text=True)  # fmt: skip
        if differ.returncode != 0:
            lines = (differ.stdout or differ.stderr).splitlines() or ["diff failed"]
            raise LabError(f"what arrived differs: {lines[0]}")


class Grounds(Stacked):
    """`with Grounds(needed_bytes) as grounds:` of `disk`, the scratch folder, and `tmpfs`, of which half is for each side."""

    def __init__(self, disk_bytes, tmpfs_bytes):
        super().__init__()
        self._disk_bytes, self._tmpfs_bytes = disk_bytes, tmpfs_bytes

    def _make(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="sluice-lab-",
                                                  dir=scratch_parent(2 * self._disk_bytes + _MARGIN_BYTES)))  # fmt: skip
        self._stack.callback(shutil.rmtree, self.base, ignore_errors=True)
        self.base.chmod(0o755)
        self.all = {}
        for name in ("disk", "tmpfs"):
            folder = self.base / name
            folder.mkdir()
            if name == "tmpfs":
                mount_tmpfs(self._stack, folder, 2 * self._tmpfs_bytes + _MARGIN_BYTES, _SPARE_BYTES)
            self.all[name] = Ground(name, folder)
            self.all[name].make_ready()

    def describe(self):
        return {name: file_system(ground.folder) for name, ground in self.all.items()}


def bare_loop(source, target):
    """What the file system asks of anybody: create, write, sync once a thousand, rename. One thread."""
    waiting = []

    def finish(root):
        if _LIBC.syncfs(root) != 0:
            raise LabError(f"syncfs {target}: {os.strerror(ctypes.get_errno())}")
        for temporary, final in waiting:
            os.rename(temporary, final)
        waiting.clear()

    root = os.open(target, os.O_RDONLY)
    for directory, _directories, files in os.walk(source):
        there = os.path.join(target, os.path.relpath(directory, source))
        os.makedirs(there, exist_ok=True)
        for name in files:
            with open(os.path.join(directory, name), "rb", buffering=0) as file:
                content = file.read()
            temporary = os.path.join(there, f".t{name}")
            made = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.write(made, content)
            os.close(made)
            waiting.append((temporary, os.path.join(there, name)))
            if len(waiting) == 1000:
                finish(root)
    finish(root)
    os.close(root)
