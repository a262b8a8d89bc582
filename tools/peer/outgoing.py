# A file of a source. docs/WIRE.md, 2.1 and 2.10.
# SPDX-License-Identifier: Apache-2.0
import os

from . import packs


class Outgoing:
    """One file, and what is known of it at both ends."""

    def __init__(self, path, kind=packs.FILE, members=0, content=None):
        self.path, self.kind, self.members = path, kind, members
        self.fd = os.open(path, os.O_RDONLY) if content is None else os.memfd_create("pack")
        if content is not None:
            os.write(self.fd, content)
        self.stat = os.fstat(self.fd)
        self.size = self.stat.st_size
        self.crcs = {}  # extent -> CRC of what we read there
        self.held = set()  # extents that the destination has, as it or a status of a lane has said
        self.told = set()  # of these, what the destination has said
        self.sent = {}  # extent whose first pass has left -> number of its lane
        self.digest_told = self.done = False

    def holes(self, extent_bytes):
        """Of whole extents (2.10)."""
        found, at = [], 0
        while self.kind == packs.FILE and at < self.size:
            try:
                data = os.lseek(self.fd, at, os.SEEK_DATA)
            except OSError:  # none up to the end
                data = self.size
            begin = -(-at // extent_bytes) * extent_bytes
            end = data if data == self.size else data // extent_bytes * extent_bytes
            if begin < end:
                found.append({"offset": begin, "length": end - begin})
            at = self.size if data == self.size else os.lseek(self.fd, data, os.SEEK_HOLE)
        return sorted(sorted(found, key=lambda hole: -hole["length"])[:64], key=lambda hole: hole["offset"])

    def unchanged(self):
        now = os.fstat(self.fd)
        return (now.st_size, now.st_mtime_ns) == (self.stat.st_size, self.stat.st_mtime_ns)
