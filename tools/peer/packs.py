# Packs: many small files as one object. docs/WIRE.md, 2.7.
# SPDX-License-Identifier: Apache-2.0
import errno
import os
import secrets
import stat
import struct

from . import digests, kept, times, wire
from .control import pb

MAGIC = b"SLUICEP1"
HEAD = struct.Struct(">8sQQ")
FILE, PACK, LAST_PACK = range(3)  # of an offer
REGULAR, DIRECTORY, SYMLINK, HARD_LINK = range(4)  # of an entry
VANISHED, FORBIDDEN, CHANGED, UNREADABLE, SPECIAL, NAME, EXISTS, UNWRITABLE, DAMAGED, OTHER = range(1, 11)
REFUSED = 14  # extended attributes, or an ACL
TOP = b"."
TOLD = 100


class Wrong(Exception):
    pass


def good_path(path):
    names = path.split(b"/")
    return len(path) <= 4096 and b"\0" not in path and all(
        name not in (b"", b".", b"..") and len(name) <= 255 for name in names)  # fmt: skip


def good_offer(file, is_last):
    """A File of an offer."""
    if file.kind == FILE:
        return good_path(file.path)
    return not file.path and file.members > 0 and (file.kind == PACK or (file.kind == LAST_PACK and is_last))


def pack(entries):
    """entries: pairs of a PackEntry and its bytes."""
    for entry, content in entries:
        entry.size, entry.digest = len(content), wire.CRC64.of(content) if content else 0
    index = pb.PackIndex(entries=[entry for entry, _ in entries]).SerializeToString()
    data_at = HEAD.size + len(index)
    return HEAD.pack(MAGIC, len(index), data_at) + index + b"".join(content for _, content in entries)


def tree(folder, keep=0):
    """A directory as (kind, names, bytes) of its objects: here one pack for all files, and the last one."""
    files, links, directories, first = [], [], [], {}
    folder, name = os.fsencode(os.path.abspath(folder)), os.fsencode(os.path.basename(os.path.abspath(folder)))
    for place, _, names in os.walk(folder, topdown=False):
        for each in names + [d for d in os.listdir(place) if os.path.islink(os.path.join(place, d)) and d not in names]:
            path = os.path.join(place, each)
            info = os.lstat(path)
            entry = pb.PackEntry(path=os.path.join(name, os.path.relpath(path, folder)), mode=info.st_mode & 0o777,
                                 **times.of(info))  # fmt: skip
            if stat.S_ISLNK(info.st_mode):
                entry.kind, entry.target = SYMLINK, os.readlink(path)
                files.append((entry, b""))
            elif not stat.S_ISREG(info.st_mode):
                entry.failure = SPECIAL
                files.append((entry, b""))
                continue
            elif first.setdefault((info.st_dev, info.st_ino), entry.path) != entry.path:
                entry.kind, entry.target = HARD_LINK, first[info.st_dev, info.st_ino]
                links.append((entry, b""))
            else:
                with open(path, "rb") as file:
                    files.append((entry, file.read()))
            if keep and entry.kind != HARD_LINK:
                entry.attributes.CopyFrom(kept.of(path, keep) or pb.Attributes())
        info = os.stat(place)
        inner = os.path.relpath(place, folder)
        path = name if inner == b"." else os.path.join(name, inner)
        directories.append((pb.PackEntry(path=path, kind=DIRECTORY, mode=info.st_mode & 0o777,
                                         attributes=kept.of(place, keep), **times.of(info)), b""))  # fmt: skip
    last = links + directories
    return ([(PACK, len(files), pack(files))] if files else []) + [(LAST_PACK, len(last), pack(last))]


def read(content, keep=0):
    """The entries and their bytes, or Wrong."""
    if len(content) < HEAD.size:
        raise Wrong("a pack that is none")
    magic, index_bytes, at = HEAD.unpack_from(content)
    if magic != MAGIC or not HEAD.size + index_bytes <= at <= len(content):
        raise Wrong("a pack that is none")
    index = pb.PackIndex.FromString(content[HEAD.size : HEAD.size + index_bytes])
    found = []
    for entry in index.entries:
        is_top = entry.path == TOP and entry.kind == DIRECTORY and keep & kept.TOP
        if (not good_path(entry.path) and not is_top) or entry.kind > HARD_LINK or (entry.kind != REGULAR and entry.size):
            raise Wrong("a pack with an entry that none can have")
        if kept.wrong(entry.attributes, keep, entry.kind in (SYMLINK, HARD_LINK), entry.kind == DIRECTORY):
            raise Wrong("a pack with attributes that none can have")
        if entry.kind == HARD_LINK and not good_path(entry.target):
            raise Wrong("a pack with a link that leads outside")
        if at + entry.size > len(content):
            raise Wrong("a pack that ends early")
        found.append((entry, content[at : at + entry.size]))
        at += entry.size
    return found


class Unpacked:
    """What became of the names of a pack, as FileDone tells it."""

    def __init__(self):
        self.failed = self.left_out = 0
        self.failures = []
        self.digests = []  # of the names that were given, as the fields of NamedDigests

    def note(self, path, failure):
        if failure == SPECIAL:
            self.left_out += 1
        else:
            self.failed += 1
        if len(self.failures) < TOLD:
            self.failures.append(pb.FailedName(path=path, failure=failure))


def safe_parent(folder, path):
    """The directory of a path, made where it is missing; a link on the way is not followed."""
    place = folder
    for name in path.split(b"/")[:-1]:
        place = os.path.join(place, name)
        if not os.path.lexists(place):
            os.mkdir(place, 0o700)
        if os.path.islink(place) or not os.path.isdir(place):
            raise FileExistsError(place)
    return place


def give(folder, entry, content, overwrite, keep=0):
    place = os.path.join(safe_parent(folder, entry.path), entry.path.rsplit(b"/", 1)[-1])
    if entry.kind == DIRECTORY:
        if os.path.islink(place) or (os.path.lexists(place) and not os.path.isdir(place)):
            raise FileExistsError(place)
        os.makedirs(place, 0o700, exist_ok=True)
        kept.give(place, entry.attributes, keep)
        os.chmod(place, entry.mode & 0o777)
        os.utime(place, ns=(times.told(entry),) * 2)
        return
    if os.path.lexists(place) and not overwrite:
        raise FileExistsError(place)
    temporary = os.path.join(os.path.dirname(place), b"." + secrets.token_hex(8).encode())
    if entry.kind == SYMLINK:
        os.symlink(entry.target, temporary)
        kept.give(temporary, entry.attributes, keep)
    elif entry.kind == HARD_LINK:
        os.link(os.path.join(folder, entry.target), temporary, follow_symlinks=False)
    else:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            kept.give(temporary, entry.attributes, keep)
            os.fchmod(file.fileno(), entry.mode & 0o777)
    if entry.kind != HARD_LINK:
        os.utime(temporary, ns=(times.told(entry),) * 2, follow_symlinks=False)
    os.rename(temporary, place)


def unpack(content, folder, overwrite=False, keep=0, wanted=0):
    """Gives each file its name; syncs. What cannot be given is told."""
    done, folder = Unpacked(), os.fsencode(folder)
    for entry, its in read(content, keep):
        failure = entry.failure
        if not failure and entry.kind == REGULAR and its and wire.CRC64.of(its) != entry.digest:
            failure = DAMAGED
        named = {"path": entry.path, "size": entry.size, "target": entry.target if entry.kind == HARD_LINK else b"",
                 "digests": digests.of(its, wanted) if entry.kind == REGULAR else []}  # fmt: skip
        if not failure and wanted and digests.differ(entry.expected, named["digests"]):
            failure = digests.NOT_AS_LISTED
        if not failure:
            try:
                give(folder, entry, its, overwrite, keep)
            except FileExistsError:
                failure = EXISTS
            except PermissionError:  # its owner, or what it is in
                failure = FORBIDDEN
            except OSError as error:
                failure = REFUSED if error.errno == errno.EOPNOTSUPP else UNWRITABLE
        if failure:
            done.note(entry.path, failure)
        elif wanted and entry.kind in (REGULAR, HARD_LINK):
            done.digests.append(named)
    os.sync()
    return done
