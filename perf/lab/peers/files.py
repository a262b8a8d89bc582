# The files that peers move: where they lie, how they are made stale before a run and compared after it.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import pathlib
import shutil
import tempfile

from harness.stacked import Stacked
from harness.system import random_file, run, same_bytes, scratch_parent

from ..errors import MISSING, LabError
from ..machine import file_system, memory_bytes
from ..meter import drop_caches

NEW = "tmpfs-new"  # the tmpfs once more: before each run its destination is removed
_MARK_EVERY_BYTES = 16 << 20
_MARK_BYTES = 64
_BLOCK_BYTES = 1 << 20
_MARGIN_BYTES = 64 << 20


def mount_tmpfs(stack, folder, size_bytes, spare_bytes):
    """Until `stack` ends. Refused if it could not be filled and leave `spare_bytes` of memory."""
    available = memory_bytes("MemAvailable")
    if available < size_bytes + spare_bytes:
        raise LabError(f"{size_bytes >> 20} MiB of memory are needed for a tmpfs, {available >> 20} are available; "
                       "free some, or use --quick", MISSING)  # fmt: skip
    run(["mount", "-t", "tmpfs", "-o", f"size={size_bytes},nr_inodes=0,mode=755", "sluice-lab", folder])
    stack.callback(run, ["umount", folder])


class Place:
    """One file system with a source, and a destination that peers of any user may write."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        self.source = folder / "src" / "f.bin"
        self.target = folder / "dst" / "f.bin"
        for path in (self.source.parent, self.target.parent):
            path.mkdir(exist_ok=True)
            path.chmod(0o777)

    @property
    def export(self):
        return self.folder.name

    @property
    def durable(self):
        return self.name == "disk"

    def fill(self, seed_file):
        """The source, and the destination once: its pages and blocks exist from now on."""
        if seed_file != self.source:
            shutil.copyfile(seed_file, self.source)
        self.source.chmod(0o644)
        self._write_target()

    def _write_target(self):
        block = b"\xa5" * _BLOCK_BYTES
        with open(self.target, "wb") as file:
            for _ in range(self.source.stat().st_size // _BLOCK_BYTES):
                file.write(block)
        self.target.chmod(0o666)

    def make_ready(self):
        # A tool that failed leaves its temporary file, and the next one finds no room.
        for path in self.target.parent.iterdir():
            if path.is_file() and (path != self.target or self.name == NEW):
                path.unlink()
        if self.name == NEW:
            return
        self._make_stale()
        if self.durable:
            drop_caches()

    def _make_stale(self):
        """The destination stays where it is, but is no longer what the source is: a tool that wrote nothing, or
        not all, is found out."""
        if not self.target.exists() or self.target.stat().st_size != self.source.stat().st_size:
            self._write_target()
        self.target.chmod(0o666)
        with open(self.source, "rb") as source, open(self.target, "r+b") as target:
            for offset in range(0, self.source.stat().st_size, _MARK_EVERY_BYTES):
                source.seek(offset)
                target.seek(offset)
                target.write(bytes(byte ^ 0xFF for byte in source.read(_MARK_BYTES)))

    def make_durable(self):
        """What a copy costs until it would survive: part of the time on disks."""
        if self.durable:
            with contextlib.suppress(FileNotFoundError), open(self.target, "rb") as file:
                os.fsync(file.fileno())

    def same(self):
        same = self.target.exists() and same_bytes(self.source, self.target)
        if self.durable:
            drop_caches()  # or there would be no free memory for the next
        return same


class Places(Stacked):
    """`with Places(size, names) as places:` [Place], on a tmpfs of its own and in the scratch folder."""

    def __init__(self, size, names):
        super().__init__()
        self._size = size
        self._names = names

    def _make(self):
        # Source, destination, and the temporary file of a tool that renames.
        needed = 3 * self._size + _MARGIN_BYTES
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="sluice-lab-", dir=scratch_parent(needed)))
        self._stack.callback(shutil.rmtree, self.base, ignore_errors=True)
        self.base.chmod(0o755)
        self.all = []
        seed_file = None
        for name in self._names:
            if name == NEW:
                self.all.append(Place(name, self.base / "tmpfs"))
                continue
            folder = self.base / name
            folder.mkdir()
            if name == "tmpfs":
                mount_tmpfs(self._stack, folder, needed, 1 << 30)
            place = Place(name, folder)
            seed_file = seed_file or random_file(place.source, self._size)
            place.fill(seed_file)
            self.all.append(place)


    def describe(self):
        return {place.name: file_system(place.folder) for place in self.all}
