# What is kept of a name on request: owner, group, extended attributes, ACLs. docs/WIRE.md, 2.12.
# SPDX-License-Identifier: Apache-2.0
import grp
import os
import pwd
import struct

from .control import INCOMPATIBLE, pb

OWNER, GROUP, NUMERIC, XATTRS, ACLS, TOP = (1 << bit for bit in range(6))
KNOWN = 2 * TOP - 1
NAMED = (2, 8)  # tags of an ACL that have an id
NO_ID = 0xFFFFFFFF
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def agree(stream, said, wanted=None):
    """wanted: None where it is the other node's wish."""
    if said & ~KNOWN or (wanted is not None and said != wanted):
        stream.fail(INCOMPATIBLE, f"of each name {said} is kept, and not {wanted}")
    return said


def _name(look_up, number, keep):
    try:
        return b"" if keep & NUMERIC or number == 0 else os.fsencode(look_up(number)[0])
    except KeyError:
        return b""


def _number(look_up, name, otherwise):
    try:
        return look_up(os.fsdecode(name))[2] if name and otherwise else otherwise
    except KeyError:
        return otherwise


def _entries(value, keep):
    for at in range(4, len(value), 8):
        tag, perm, number = struct.unpack_from("<HHI", value, at)
        look_up = pwd.getpwuid if tag == 2 else grp.getgrgid
        yield pb.AclEntry(tag=tag, perm=perm, id=number, name=_name(look_up, number, keep)) if tag in NAMED \
            else pb.AclEntry(tag=tag, perm=perm)  # fmt: skip


def _acl(entries):
    value = struct.pack("<I", 2)
    for each in entries:
        look_up = pwd.getpwnam if each.tag == 2 else grp.getgrnam
        number = _number(look_up, each.name, each.id) if each.tag in NAMED else NO_ID
        value += struct.pack("<HHI", each.tag, each.perm, number)
    return value


def of(path, keep):
    """The Attributes of what stands there; None where nothing is kept."""
    if not keep & ~TOP:
        return None
    info, found = os.lstat(path), pb.Attributes()
    if keep & OWNER:
        found.uid, found.user = info.st_uid, _name(pwd.getpwuid, info.st_uid, keep)
    if keep & GROUP:
        found.gid, found.group = info.st_gid, _name(grp.getgrgid, info.st_gid, keep)
    names = [] if os.path.islink(path) else sorted(map(os.fsencode, os.listxattr(path)))
    for name in names:
        if keep & XATTRS and name.startswith(b"user."):
            found.xattrs.add(name=name, value=os.getxattr(path, name))
        if keep & ACLS and name in (ACCESS.encode(), DEFAULT.encode()):
            entries = found.acl if name == ACCESS.encode() else found.default_acl
            entries.extend(_entries(os.getxattr(path, name), keep))
    return found


def wrong(kept, keep, is_link=False, is_directory=False):
    """What no honest source says."""
    names = [each.name for each in kept.xattrs]
    tags = [[each.tag for each in acl] for acl in (kept.acl, kept.default_acl)]
    order = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4, 32: 5}
    return (
        bool(kept.HasField("uid") and not keep & OWNER or kept.HasField("gid") and not keep & GROUP)
        or bool(names and (not keep & XATTRS or is_link) or any(tags) and (not keep & ACLS or is_link))
        or bool(tags[1] and not is_directory or names != sorted(set(names)))
        or any(not name.startswith(b"user.") or not 5 < len(name) <= 255 or b"\0" in name for name in names)
        or any(acl != sorted(acl, key=lambda tag: order.get(tag, -1)) or not {1, 4, 32} <= set(acl) for acl in tags if acl)
    )


def give(path, kept, keep):
    """To what stands there, before its mode and its times."""
    if os.path.islink(path):
        wanted = None
    else:
        wanted = {each.name: each.value for each in kept.xattrs}
    for name in () if wanted is None or not keep & XATTRS else map(os.fsencode, os.listxattr(path)):
        if name.startswith(b"user.") and name not in wanted:
            os.removexattr(path, name)
    for name, value in (wanted or {}).items():
        os.setxattr(path, name, value)
    for name, entries in () if wanted is None or not keep & ACLS else ((ACCESS, kept.acl), (DEFAULT, kept.default_acl)):
        if entries:
            os.setxattr(path, name, _acl(entries))
        elif name in os.listxattr(path):
            os.removexattr(path, name)
    uid = _number(pwd.getpwnam, kept.user, kept.uid) if kept.HasField("uid") else -1
    gid = _number(grp.getgrnam, kept.group, kept.gid) if kept.HasField("gid") else -1
    os.chown(path, uid, gid, follow_symlinks=False)


def finish(file, keep):
    """One that is an object of its own, before it has its name."""
    give(file.temporary, file.attributes, keep)
    os.fchmod(file.fd, file.mode)
    os.utime(file.fd, ns=(file.mtime_ns, file.mtime_ns))
