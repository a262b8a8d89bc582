# What a node signs and shows: a grant, a move. docs/WIRE.md, 2.13 and 2.15.
# SPDX-License-Identifier: Apache-2.0
import base64
import pathlib
import ssl

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from .control import INCOMPATIBLE, Failed, pin_of

INTEGRITY = 11
SIGNED_BYTES = 3000


def signed(folder, purpose, body):
    """{signature, certificate}, by the Ed25519 key in this folder."""
    folder = pathlib.Path(folder)
    key = serialization.load_pem_private_key((folder / "key.pem").read_bytes(), None)
    return {"signature": base64.b64encode(key.sign(purpose + body)).decode(),
            "certificate": (folder / "cert.pem").read_text()}  # fmt: skip


def signer_of(what, purpose, body, shown):
    """The key that has signed the body, as a fingerprint. shown: with a signature and a certificate."""
    if len(body) + len(shown.signature) + len(shown.certificate) > SIGNED_BYTES:
        raise Failed(INCOMPATIBLE, f"a {what} that is too long")
    try:
        key = x509.load_pem_x509_certificate(shown.certificate.encode()).public_key()
        signer = pin_of(ssl.PEM_cert_to_DER_cert(shown.certificate))
    except ValueError:
        raise Failed(INCOMPATIBLE, f"a {what} without a certificate") from None
    try:
        key.verify(base64.b64decode(shown.signature), purpose + body)
    except (InvalidSignature, ValueError, TypeError):  # of a key that is not Ed25519, other arguments were due
        raise Failed(INTEGRITY, f"a {what} that is forged or damaged") from None
    return signer


def parsed(what, kind, body):
    try:
        return kind.FromString(body)
    except Exception as error:  # the library's own class differs by version
        raise Failed(INCOMPATIBLE, f"a {what} that does not parse: {error}") from None
