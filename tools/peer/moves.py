# What a node signs so that another one goes on with its session: made, read, and judged. docs/WIRE.md, 2.15.
# SPDX-License-Identifier: Apache-2.0
import base64
import pathlib
import ssl
import time

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from .control import INCOMPATIBLE, Failed, pb, pin_of
from .grants import APART_NS, END_WITHIN_NS, INTEGRITY, NODE, SECOND_NS, SIGNED_BYTES, UNTRUSTED

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
    folder = pathlib.Path(folder)
    key = serialization.load_pem_private_key((folder / "key.pem").read_bytes(), None)
    return pb.SignedMove(move=body, signature=base64.b64encode(key.sign(PURPOSE + body)).decode(),
                         certificate=(folder / "cert.pem").read_text())  # fmt: skip


def read(shown):
    """The Move, once it is known that the node that it is of has signed it. Nothing else is judged."""
    if len(shown.move) + len(shown.signature) + len(shown.certificate) > SIGNED_BYTES:
        raise Failed(INCOMPATIBLE, "a move that is too long")
    try:
        key = x509.load_pem_x509_certificate(shown.certificate.encode()).public_key()
        signer = pin_of(ssl.PEM_cert_to_DER_cert(shown.certificate))
    except ValueError:
        raise Failed(INCOMPATIBLE, "a move without a certificate") from None
    try:
        key.verify(base64.b64decode(shown.signature), PURPOSE + shown.move)
    except (InvalidSignature, ValueError, TypeError):
        raise Failed(INTEGRITY, "a move that is forged or damaged") from None
    try:
        move = pb.Move.FromString(shown.move)
    except Exception as error:  # the library's own class differs by version
        raise Failed(INCOMPATIBLE, f"a move that does not parse: {error}") from None
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
