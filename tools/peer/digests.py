# Digests that archives ask for, of what a destination stored. docs/WIRE.md, 2.18.
# SPDX-License-Identifier: Apache-2.0
import hashlib
import zlib

from . import wire

NOT_AS_LISTED = 24
NAMES_MAX = 1024  # of one message
ADLER32, CRC32C, CRC64, BLAKE3, MD5, SHA1, SHA256, SHA512 = range(1, 9)
OF_KIND = {
    ADLER32: lambda content: zlib.adler32(content).to_bytes(4, "big"),
    CRC32C: lambda content: wire.CRC32C.of(content).to_bytes(4, "big") if content else bytes(4),
    CRC64: lambda content: wire.CRC64.of(content).to_bytes(8, "big") if content else bytes(8),
    MD5: lambda content: hashlib.md5(content).digest(),
    SHA1: lambda content: hashlib.sha1(content).digest(),
    SHA256: lambda content: hashlib.sha256(content).digest(),
    SHA512: lambda content: hashlib.sha512(content).digest(),
}  # this peer has no BLAKE3
KNOWN = sum(1 << (kind - 1) for kind in OF_KIND)


def of(content, wanted):
    """Each as the fields of a Digest."""
    return [{"kind": kind, "value": make(content)} for kind, make in OF_KIND.items() if wanted >> (kind - 1) & 1]


def differ(expected, found):
    """Whether anything that the list wants is otherwise."""
    known = {each["kind"]: each["value"] for each in found}
    return any(known.get(each.kind) != each.value for each in expected)


def say(stream, number, names):
    """NameDigests: `names` are the fields of NamedDigests."""
    for at in range(0, max(1, len(names)), NAMES_MAX):
        stream.send("name_digests", object=number, first=at, names=names[at : at + NAMES_MAX],
                    last=at + NAMES_MAX >= len(names))  # fmt: skip
