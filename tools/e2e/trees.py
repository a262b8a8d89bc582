# Directories to send, and what is to be kept of them.
# SPDX-License-Identifier: Apache-2.0
import os
import random
import shutil
import stat
import struct

from transfers import MIB, forget


def state_of(root):
    """Everything beneath a directory that is to be kept, by path."""
    state = {}
    root = os.fsencode(root)
    for directory, directories, files in os.walk(root):
        for name in directories + files:
            path = os.path.join(directory, name)
            info = os.lstat(path)
            kind = stat.S_IFMT(info.st_mode)
            what = None
            if kind == stat.S_IFLNK:
                what = os.readlink(path)
            elif kind == stat.S_IFREG:
                with open(path, "rb") as file:
                    what = file.read()
            mode = None if kind == stat.S_IFLNK else info.st_mode & 0o777
            links = info.st_nlink if kind == stat.S_IFREG else None
            state[os.path.relpath(path, root)] = (kind, mode, info.st_mtime_ns, what, links)
    return state


def names_beneath(root):
    """How many names stand beneath a directory, which may still be written into: none of them is opened."""
    return sum(len(directories) + len(files) for _, directories, files in os.walk(root))


def make_tree(root, files=600, seed=1, large=1):
    """Files of many sizes, times and modes in nested directories, links of each kind, odd names, empty ones."""
    draw = random.Random(seed)
    root.mkdir()
    for i in range(files):
        directory = root / f"d{i % 7}" / f"e{i % 11}"
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"f{i}"
        path.write_bytes(draw.randbytes(draw.choice([0, 1, 100, 4096, 4097, 70_000])))
        os.chmod(path, draw.choice([0o644, 0o600, 0o755, 0o400]))
        os.utime(path, ns=(1, draw.randrange(-10**18, 2 * 10**18)))
    for i in range(large):
        (root / "d1" / f"large{i}").write_bytes(draw.randbytes(3 * MIB + 17))
    # Beyond what 64 bits of nanoseconds hold; of a file system that cannot hold them either, what it makes of them.
    for name, seconds in (("d1/large0", 10_413_792_000), ("d1/e1/f1", 13_569_465_600), ("d2/e2/f2", -10_000_000_000)):
        if (root / name).exists():
            os.utime(root / name, ns=(1, seconds * 10**9 + 7))
    os.symlink("/nowhere/at/all", root / "dangling")
    os.symlink("d1/e1", root / "within")
    os.link(root / "d0" / "e0" / "f0", root / "hard")
    (root / "nothing in it").mkdir(mode=0o500)
    with open(os.fsencode(root) + b"/\xff\xfe\n\x1b[31m", "wb") as odd:
        odd.write(b"odd")
    (root / ("n" * 255)).write_bytes(b"long")
    for i, directory in enumerate(sorted(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())):
        os.utime(directory, ns=(1, 10**18 + i))
    os.utime(root, ns=(1, 123_456_789))


def forget_tree(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists():
        forget(path)


def same(one, other):
    left, right = state_of(one), state_of(other)
    assert left.keys() == right.keys(), sorted(set(left) ^ set(right))[:20]
    differ = {path: (left[path], right[path]) for path in left if left[path] != right[path]}
    assert not differ, {path: (a[:3], b[:3]) for path, (a, b) in list(differ.items())[:3]}


def acl(user, perm=4):
    """The bytes of one that lets a user do more than the others."""
    none = 0xFFFFFFFF
    entries = [(1, 7, none), (2, perm, user), (4, 5, none), (8, 1, 4), (16, 5, none), (32, 0, none)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def kept(root, owners=False):
    """What `state_of` tells, and with each name its extended attributes of users and its ACLs."""
    found = {}
    for path, state in [*state_of(root).items(), (b".", None)]:
        whole = os.path.join(os.fsencode(root), path)
        names = os.listxattr(whole, follow_symlinks=False)
        wanted = [name for name in sorted(names) if name.startswith(("user.", "system.posix_acl"))]
        info = os.lstat(whole)
        found[path] = (state, {name: os.getxattr(whole, name, follow_symlinks=False) for name in wanted},
                       (info.st_uid, info.st_gid) if owners else None)  # fmt: skip
    return found
