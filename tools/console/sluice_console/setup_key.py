"""`sluice console setup`: the console's key, and its certificate in the directory of the node, where control reads it."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import datetime
import os
import pathlib
import pwd

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import NameOID

from .errors import ConsoleError
from .settings import Settings

_NEVER = datetime.datetime(9999, 12, 31, 23, 59, 59)


def key_file(settings: Settings) -> pathlib.Path:
    return settings.state / "key.pem"


def _certificate(key: ed25519.Ed25519PrivateKey, user: str) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user)])  # by it control knows whom to serve
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number()).not_valid_before(datetime.datetime(2000, 1, 1))
    return made.not_valid_after(_NEVER).sign(key, None).public_bytes(serialization.Encoding.PEM)


def _write(path: pathlib.Path, text: bytes, mode: int, owner: pwd.struct_passwd | None) -> None:
    """Whole, or not at all."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        os.fchmod(descriptor, mode)
        if owner is not None:
            os.fchown(descriptor, owner.pw_uid, owner.pw_gid)
        file.flush()
        os.fsync(descriptor)
    temporary.rename(path)


def setup(settings: Settings, user: str) -> list[str]:
    """Makes the key, for this user of the host. Returns what is left to do."""
    try:
        owner = pwd.getpwnam(user)
    except KeyError:
        raise ConsoleError("configuration", f"this host has no user {user}; make it with: useradd --system {user}") from None
    if os.geteuid() not in (0, owner.pw_uid):
        raise ConsoleError("configuration", f"to give the key to user {user}: run it as root, or as {user}")
    for_other = owner if os.geteuid() != owner.pw_uid else None
    try:
        settings.state.mkdir(mode=0o711, parents=True, exist_ok=True)
        settings.state.chmod(0o711)  # people pass, to desk.sock
        if for_other is not None:
            os.chown(settings.state, owner.pw_uid, owner.pw_gid)
        key = ed25519.Ed25519PrivateKey.generate()
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        _write(key_file(settings), pem, 0o600, for_other)
        _write(settings.node / "console.pem", _certificate(key, user), 0o644, None)
    except OSError as error:
        raise ConsoleError("configuration", f"{error.filename}: {error.strerror}; run it as the owner of the node, or as root") from None
    return ["restart sluice-control", f"start sluice-console as {user}"]


def default_user() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name
