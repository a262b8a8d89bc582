# What a node signs so that another one goes on with its session: made, read, and judged. docs/WIRE.md, 2.15.
# SPDX-License-Identifier: Apache-2.0
import time

from . import signing
from .control import INCOMPATIBLE, Failed, pb
from .grants import APART_NS, END_WITHIN_NS, NODE, SECOND_NS, UNTRUSTED
from .signing import INTEGRITY

PURPOSE = b"sluice move v1\n"
MOVED = 25


def move_of(session_id, of, to, peer, epoch, **more):
    """A Move that counts for a day from now on. The three nodes by their keys; `more`: other fields."""
    now = time.time_ns()
    fields = {"not_before_unix_ns": now, "end_by_unix_ns": now + 86400 * SECOND_NS, **more}
    return pb.Move(session_id=session_id, **{"from": of}, to=to, peer=peer, epoch=epoch, **fields)


def signed(folder, move):
    """By the Ed25519 key in this folder. move: a Move, or the bytes of one."""
    body = move if isinstance(move, bytes) else move.SerializeToString()
    return pb.SignedMove(move=body, **signing.signed(folder, PURPOSE, body))


def read(shown):
    """The Move, once it is known that the node that it is of has signed it. Nothing else is judged."""
    signer = signing.signer_of("move", PURPOSE, shown.move, shown)
    move = signing.parsed("move", pb.Move, shown.move)
    if getattr(move, "from") != signer:
        raise Failed(INTEGRITY, "a move that another node has signed than it says")
    if (len(move.session_id) != 16 or not NODE.fullmatch(move.to) or not NODE.fullmatch(move.peer)
            or not 0 < move.epoch < 2**63 or len(move.content_sha256) not in (0, 32)
            or not 0 <= move.not_before_unix_ns <= move.end_by_unix_ns
            or move.end_by_unix_ns - move.not_before_unix_ns > END_WITHIN_NS + APART_NS):  # fmt: skip
        raise Failed(INCOMPATIBLE, "a move with a part that cannot be")
    return move


def take(hello, session, caller, own, trusted):
    """At the peer of a session: whose is it after this call? Failed: not the caller's."""
    if session.move is not None and session.move == hello.move and session.owner == caller:
        return
    if not hello.HasField("move"):
        if session.owner != caller:
            moved = session.former == caller
            raise Failed(MOVED if moved else INCOMPATIBLE, "the session is another node's")
        return
    move, now = read(hello.move), time.time_ns()
    if getattr(move, "from") not in trusted:
        raise Failed(UNTRUSTED, "nobody here trusts the node that signed the move")
    if move.session_id != session.id:
        raise Failed(UNTRUSTED, "a move of another session")
    if move.to != caller or move.peer != own:
        raise Failed(UNTRUSTED, "a move for other nodes")
    if now + APART_NS < move.not_before_unix_ns or now - APART_NS > move.end_by_unix_ns:
        raise Failed(UNTRUSTED, "a move whose time is over, or has not come")
    if getattr(move, "from") != session.owner or move.epoch <= session.epoch:
        if session.owner == caller:
            return
        raise Failed(MOVED, "the session has gone to another node since")
    session.drop_lanes()
    session.former, session.owner, session.epoch, session.move = session.owner, caller, move.epoch, hello.move
