# What a node signs so that two others move data for it: made, read, and judged. docs/WIRE.md, 2.13.
# SPDX-License-Identifier: Apache-2.0
import hashlib
import re
import time

from . import signing
from .control import INCOMPATIBLE, Failed, pb
from .signing import INTEGRITY

PURPOSE = b"sluice grant v1\n"
UNTRUSTED = 5
PATH_BYTES = 2048
SECOND_NS = 10**9
START_WITHIN_NS, APART_NS, END_WITHIN_NS = 300 * SECOND_NS, 60 * SECOND_NS, 30 * 86400 * SECOND_NS
NODE = re.compile(r"[0-9a-f]{64}|node [a-z0-9][a-z0-9_-]{0,62}")


def digest_of(paths):
    """Of the paths at the source."""
    return hashlib.sha256(b"".join(path.encode() + b"\0" for path in paths)).digest()


def grant_of(session_id, issuer, holder, destination, paths, path, **more):
    """A Grant that counts from now on. The three nodes by their keys; `more`: other fields."""
    now = time.time_ns()
    fields = {"overwrite": False, "bytes_max": 0, "not_before_unix_ns": now, "start_by_unix_ns": now + START_WITHIN_NS,
              "end_by_unix_ns": now + END_WITHIN_NS, **more}  # fmt: skip
    return pb.Grant(id=session_id, issuer=issuer, holder=holder, destination=destination,
                    sources_sha256=digest_of(paths), path=path, **fields)  # fmt: skip


def signed(folder, grant):
    """By the Ed25519 key in this folder. grant: a Grant, or the bytes of one."""
    body = grant if isinstance(grant, bytes) else grant.SerializeToString()
    return pb.SignedGrant(grant=body, **signing.signed(folder, PURPOSE, body))


def read(shown):
    """The Grant, once it is known that its issuer has signed it. Nothing else is judged."""
    signer = signing.signer_of("grant", PURPOSE, shown.grant, shown)
    grant = signing.parsed("grant", pb.Grant, shown.grant)
    if grant.issuer != signer:
        raise Failed(INTEGRITY, "a grant that another node has signed than it says")
    not_before, start_by, end_by = grant.not_before_unix_ns, grant.start_by_unix_ns, grant.end_by_unix_ns
    if (len(grant.id) != 16 or len(grant.sources_sha256) != 32 or not 1 <= len(grant.path.encode()) <= PATH_BYTES
            or not NODE.fullmatch(grant.holder) or not NODE.fullmatch(grant.destination)
            or not 0 <= not_before <= start_by <= end_by
            or start_by - not_before > START_WITHIN_NS + APART_NS
            or end_by - not_before > END_WITHIN_NS + APART_NS):  # fmt: skip
        raise Failed(INCOMPATIBLE, "a grant with a part that cannot be")
    return grant


def check(shown, session_id, trusted, known=False, **parties):
    """The Grant, if this node may go by it. trusted: the keys of nodes that may order something here. parties: the
    keys that the grant has to name: holder and destination, or issuer and holder. known: the session is."""
    grant, now = read(shown), time.time_ns()
    if grant.issuer not in trusted:
        raise Failed(UNTRUSTED, "nobody here trusts the node that signed the grant")
    if grant.id != session_id:
        raise Failed(UNTRUSTED, "a grant for another session")
    for name, key in parties.items():
        if getattr(grant, name) != key:
            raise Failed(UNTRUSTED, f"a grant for another {name}")
    if now + APART_NS < grant.not_before_unix_ns:
        raise Failed(UNTRUSTED, "a grant that does not count yet")
    if now - APART_NS > (grant.end_by_unix_ns if known else grant.start_by_unix_ns):
        raise Failed(UNTRUSTED, "a grant whose time is over")
    return grant


def check_offer(grant, offer, bytes_total):
    """A destination: is this what was ordered?"""
    if offer.destination != grant.path:
        raise Failed(UNTRUSTED, "an offer for another place than was ordered")
    if offer.overwrite and not grant.overwrite:
        raise Failed(UNTRUSTED, "an offer that replaces files, which was not ordered")
    if grant.bytes_max and bytes_total > grant.bytes_max:
        raise Failed(UNTRUSTED, "an offer of more bytes than were ordered")
