# Questions about names: put to a node, and answered for our folder, which is the export `data`, with all rights.
# docs/WIRE.md, 2.6. Names are bytes.
# SPDX-License-Identifier: Apache-2.0
import os
import re
import shutil
import stat
import time
import zlib

from . import times
from .control import INCOMPATIBLE, Failed, Gone, connect, pb
from .wire import CRC32C, CRC64

PAGE, PROBLEMS, PATH_BYTES, NAME_BYTES = 1024, 100, 4096, 255
AHEAD = 4  # pages that we let come
TYPES = {stat.S_IFREG: 1, stat.S_IFDIR: 2, stat.S_IFLNK: 3, stat.S_IFIFO: 4, stat.S_IFSOCK: 5, stat.S_IFCHR: 6,
         stat.S_IFBLK: 7}  # fmt: skip
DIGESTS = {0: CRC64.of, 1: zlib.adler32, 2: CRC32C.of}
SOURCE, OUTSIDE, EXISTS, USAGE, CONFIGURATION, STORAGE = 7, 8, 9, 2, 3, 16


def order(path):
    """By components: a directory before what is in it, and that before the next name."""
    return path.split(b"/")


# ---- patterns -----------------------------------------------------------------------------------------


def expression(pattern):
    """One component as a regular expression."""
    out, at = b"", 0
    while at < len(pattern):
        byte, at = pattern[at : at + 1], at + 1
        whole = re.compile(rb"([!^]?)(\]?(?:\\.|[^\]\\])*)\]", re.DOTALL).match(pattern, at)
        if byte == b"*":
            out += b".*"
        elif byte == b"?":
            out += b"."
        elif byte == b"[" and whole and whole[2]:
            inside = re.sub(rb"([\[\]^&~|])", rb"\\\1", re.sub(rb"\\(.)", rb"\1", whole[2]))
            out, at = out + b"[" + (b"^" if whole[1] else b"") + inside + b"]", whole.end()
        else:
            if byte == b"\\" and at < len(pattern):
                byte, at = pattern[at : at + 1], at + 1
            out += re.escape(byte)
    return re.compile(out, re.DOTALL)


def cut(path):
    """The directory before the first wildcard, and an expression for each component from there on."""
    parts = [each for each in path.split(b"/") if each]
    wild = [bool(re.search(rb"[*?\[]", re.sub(rb"\\.", b"", each))) for each in parts]
    first = wild.index(True) if True in wild else len(parts) - 1
    plain = [re.sub(rb"\\(.)", rb"\1", each) for each in parts[:first]]
    return b"/".join(plain), [expression(each) for each in parts[first:]]


# ---- asking -------------------------------------------------------------------------------------------


def call(address, identity, version, user=(b"", 0), changes=False):
    """A connection on which one question may be put. user: for whom we call, and a number that stands for them; of a node
    that does not go by its map nothing is changed for them (2.20)."""
    stream = connect(address, identity)
    own = os.urandom(16)
    stream.send("hello", protocol_version_min=version, protocol_version_max=version, software="reference peer",
                session_id=own, inquires=True, names=True, user=user[0], share=user[1])  # fmt: skip
    _, hello = stream.expect("hello", timeout_s=10)
    if hello.session_id != own or not hello.names:
        stream.fail(INCOMPATIBLE, "the node is too old to be asked about names")
    if changes and user[1] and not hello.by_map:
        stream.fail(CONFIGURATION, "names there are not a user's to change")
    return stream


def check(asked, before, entry):
    """Is this what may come next in such a list?"""
    names = order(entry.path)
    if len(entry.path) > PATH_BYTES or any(each in (b"", b".", b"..") or b"\0" in each or len(each) > NAME_BYTES
                                           for each in names if entry.path):  # fmt: skip
        raise Failed(INCOMPATIBLE, "a name that none can have")
    if before is not None and (not entry.path or order(before) >= names):
        raise Failed(INCOMPATIBLE, "a list that is not in order")
    expressions = cut(asked.path)[1] if asked.glob else [expression(b"*")]
    fits = all(each.fullmatch(name) for each, name in zip(expressions, names))
    deep = len(names) == len(expressions) or (len(names) > len(expressions) and asked.recursive)
    if entry.path and not (fits and deep) and not (asked.glob and entry.error_code):
        raise Failed(INCOMPATIBLE, "a name that was not asked for")


def ask(address, identity, version, kind, user=(b"", 0), **fields):
    """The entries of a list (none, for a change), and NamesDone."""
    stream = call(address, identity, version, user, kind != "list")
    if kind == "list":
        fields = {"pages": AHEAD, **fields}
    stream.send("names_request", **{kind: fields})
    entries, pages, asked = [], 0, None
    while True:
        name, word = stream.expect("names_page", "names_done")
        if name == "names_done":
            stream.close()
            if kind == "list" and word.entries != len(entries):
                raise Failed(INCOMPATIBLE, "entries were lost")
            return entries, word
        pages += 1
        asked = asked or pb.ListNames(**fields)
        if kind != "list" or not 1 <= len(word.entries) <= PAGE:
            stream.fail(INCOMPATIBLE, "a page that nobody asked for")
        for entry in word.entries:
            check(asked, entries[-1].path if entries else None, entry)
            entries.append(entry)
        stream.send("names_more", pages=pages + AHEAD)


# ---- answering ----------------------------------------------------------------------------------------


class Owner:
    """Answers one question on a connection whose Hello had `names`. Tests make liars of it."""

    def __init__(self, node, stream, hello, version):
        self.node, self.stream = node, stream
        self.top = os.fsencode(node.folder.resolve())
        stream.send("hello", protocol_version_min=version, protocol_version_max=version, software="reference peer",
                    session_id=hello.session_id, names=True)  # fmt: skip

    def serve(self):
        _, request = self.stream.expect("names_request", timeout_s=10)
        kind = request.WhichOneof("ask")
        if kind is None:
            self.stream.fail(INCOMPATIBLE, "a question that is not known here")
        try:
            getattr(self, kind)(getattr(request, kind))
        except OSError as error:
            self.stream.fail(SOURCE if isinstance(error, FileNotFoundError) else STORAGE, os.strerror(error.errno))

    def place(self, path):
        """EXPORT/PATH beneath our folder, over no link and no `..`."""
        parts = [each for each in path.split(b"/") if each not in (b"", b".")]
        if not parts or parts[0] != b"data" or b".." in parts or b"\0" in path:
            self.stream.fail(OUTSIDE, "outside of what this node shares")
        place = self.top
        for part in parts[1:]:
            if os.path.islink(place):
                self.stream.fail(OUTSIDE, "leads through a link")
            place = os.path.join(place, part)
        return place

    # ---- lists ----

    def list(self, asked):
        if not asked.path:
            return self.pages([self.entry(self.top, b"data")], asked.pages)
        base, expressions = cut(asked.path) if asked.glob else (asked.path, [expression(b"*")])
        place = self.place(base)
        if not stat.S_ISDIR(os.lstat(place).st_mode) or asked.itself:
            return self.pages([self.entry(place, b"", asked)], asked.pages)
        found = []
        self.walk(asked, place, b"", expressions, found)
        if asked.glob and not found:
            self.stream.fail(SOURCE, "nothing fits")
        self.pages(found, asked.pages)

    def walk(self, asked, place, prefix, expressions, found):
        for name in sorted(os.listdir(place)):
            hidden = name.startswith(b".") and name.endswith(b".sluice-part") and not asked.unfinished
            if hidden or (expressions and not expressions[0].fullmatch(name)):
                continue
            entry = self.entry(os.path.join(place, name), prefix + name, asked)
            if len(expressions) <= 1:
                found.append(entry)
            if entry.type == 2 and (asked.recursive or len(expressions) > 1):
                self.walk(asked, os.path.join(place, name), prefix + name + b"/", expressions[1:], found)

    def entry(self, place, path, asked=None):
        info = os.lstat(place)
        kind = TYPES[stat.S_IFMT(info.st_mode)]
        entry = pb.NameEntry(path=path, type=kind, size=info.st_size if kind in (1, 3) else 0,
                            mode=stat.S_IMODE(info.st_mode), **times.of(info), uid=info.st_uid,
                            gid=info.st_gid, links=info.st_nlink, allocated_bytes=info.st_blocks * 512,
                            target=os.readlink(place) if kind == 3 else b"")  # fmt: skip
        if asked and asked.digests and kind == 1:
            with open(place, "rb") as file:
                known = asked.digest_kind if asked.digest_kind in DIGESTS else 0
                entry.digest, entry.digest_kind = DIGESTS[known](file.read()), known
        return entry

    def pages(self, entries, granted):
        """In pages of at most 64 KiB, as many as are let come."""
        for number, first in enumerate(range(0, len(entries), 100)):
            while number >= granted:
                _, more = self.stream.expect("names_more", timeout_s=600)
                granted = max(granted, more.pages)
            self.stream.send("names_page", entries=entries[first : first + 100])
        self.done(entries=len(entries))

    def done(self, **fields):
        self.stream.send("names_done", **fields)
        try:  # more credit may be on its way
            while True:
                self.stream.expect("names_more", timeout_s=5)
        except (Failed, Gone):
            pass

    # ---- the node itself ----

    def about(self, _asked):
        read, disk = time.time_ns(), os.statvfs(self.top)
        space = pb.ExportSpace(name="data", size_bytes=disk.f_blocks * disk.f_frsize,
                               free_bytes=disk.f_bavail * disk.f_frsize)  # fmt: skip
        self.done(node=pb.NodeState(software="reference peer", asked_unix_ns=read, answered_unix_ns=time.time_ns(),
                                    spaces=[space]))  # fmt: skip

    # ---- changes ----

    def make_directory(self, asked):
        place = self.place(asked.path)
        if os.path.lexists(place) and not (asked.parents and os.path.isdir(place)):
            self.stream.fail(EXISTS, "exists already")
        (os.makedirs if asked.parents else os.mkdir)(place, **({"exist_ok": True} if asked.parents else {}))
        self.synced(os.path.dirname(place))
        self.done(entries=1)

    def move(self, asked):
        old, new = self.place(getattr(asked, "from")), self.place(asked.to)
        if os.path.isdir(new) and not os.path.islink(new):
            new = os.path.join(new, os.path.basename(old))
        if os.path.lexists(new) and not (asked.replace and os.path.isfile(new)):
            self.stream.fail(EXISTS, "exists already")
        os.rename(old, new)
        self.synced(os.path.dirname(new), os.path.dirname(old))
        self.done(entries=1)

    def remove(self, asked):
        place = self.place(asked.path)
        if place == self.top:
            self.stream.fail(OUTSIDE, "the root stays")
        if os.path.isdir(place) and not os.path.islink(place):
            if not asked.recursive and not asked.empty:
                self.stream.fail(USAGE, "is a directory")
            if asked.empty and os.listdir(place):
                self.stream.fail(USAGE, "is not empty")
            (os.rmdir if asked.empty else shutil.rmtree)(place)
        elif asked.empty:
            self.stream.fail(SOURCE, "is no directory")
        else:
            os.unlink(place)
        self.synced(os.path.dirname(place))
        self.done(entries=1)

    @staticmethod
    def synced(*folders):
        for folder in folders:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            os.fsync(fd)
            os.close(fd)
