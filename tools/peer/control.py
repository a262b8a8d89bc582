# The control stream: TLS with pinned keys, frames, protobuf, Heartbeats. docs/WIRE.md, section 2.
# SPDX-License-Identifier: Apache-2.0
import base64
import collections
import contextlib
import ctypes
import functools
import hashlib
import os
import pathlib
import select
import socket
import ssl
import struct
import subprocess
import tempfile
import time
import types

from google.protobuf import descriptor_pb2, message_factory

MAX_MESSAGE_BYTES = 16 << 20
SILENCE_S, HEARTBEAT_S, STEP_S, DRAIN_S = 15, 1, 5, 5
UNREACHABLE = 6
INCOMPATIBLE = 15


def _messages():
    """The messages of peer.proto and the values of its enumerations, by their names."""
    root = pathlib.Path(__file__).resolve().parents[2]
    with tempfile.NamedTemporaryFile() as made:
        # Described, not made into modules: they would be named `control`, as this one is to tools/peer/main.py.
        subprocess.run(["protoc", f"-I{root}", "--include_imports", f"--descriptor_set_out={made.name}",
                        "control/proto/peer.proto"], check=True)  # fmt: skip
        files = descriptor_pb2.FileDescriptorSet.FromString(made.read()).file
    named = {name.rpartition(".")[2]: each for name, each in message_factory.GetMessages(files).items()}
    named.update((value.name, value.number) for file in files for enum in file.enum_type for value in enum.value)
    return types.SimpleNamespace(**named)


pb = _messages()


class Gone(Exception):
    """The connection has ended, or the other side is silent. The session has not ended with it."""


class Failed(Exception):
    """The other side said Failure, or we are about to."""

    def __init__(self, code, text):
        super().__init__(f"{text} (code {code})")
        self.code = code


class Held(Exception):
    """The other side said Pause."""


# ---- identity: a key, a certificate around it, and whom we trust --------------------------------------


def make_identity(folder, kind="ec"):
    """A key and a certificate of it that nobody else has signed. kind: "ec", or "ed25519", which can sign grants."""
    os.makedirs(folder, exist_ok=True)
    curve = ["-pkeyopt", "ec_paramgen_curve:P-256"] if kind == "ec" else []
    subprocess.run(["openssl", "genpkey", "-algorithm", kind, *curve, "-out", f"{folder}/key.pem"], check=True,
                   capture_output=True)  # fmt: skip
    certify(folder)


def certify(folder):
    """A certificate of the key in this folder."""
    subprocess.run(["openssl", "req", "-x509", "-key", f"{folder}/key.pem", "-out", f"{folder}/cert.pem",
                    "-days", "3650", "-subj", "/CN=peer"], check=True, capture_output=True)  # fmt: skip


@functools.lru_cache(64)
def pin_of(certificate_der):
    """SHA-256 of the DER SubjectPublicKeyInfo: all that is ever compared."""
    command = ["openssl", "x509", "-inform", "DER", "-pubkey", "-noout"]
    text = subprocess.run(command, input=certificate_der, capture_output=True, check=True).stdout.decode()
    return hashlib.sha256(base64.b64decode("".join(text.splitlines()[1:-1]))).hexdigest()


class Identity:
    def __init__(self, folder, trusted):
        """trusted: the certificate files of the peers whose keys we accept."""
        self._folder = folder
        self._trusted = [pathlib.Path(path).read_text() for path in trusted]
        self.pins = {pin_of(ssl.PEM_cert_to_DER_cert(text)) for text in self._trusted}
        self.pin = pin_of(ssl.PEM_cert_to_DER_cert(pathlib.Path(f"{folder}/cert.pem").read_text()))

    def tls(self, tcp, called):
        """TLS over a TCP connection; then the key of the other side is judged."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if called else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(f"{self._folder}/cert.pem", f"{self._folder}/key.pem")
        context.check_hostname = False
        # This library shows an unverified certificate to clients only. As the called side we let it verify
        # against the very certificates that we trust, and compare keys all the same.
        context.verify_mode = ssl.CERT_REQUIRED if called else ssl.CERT_NONE
        if called:
            context.num_tickets = 0
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.load_verify_locations(cadata="\n".join(self._trusted))
        tls = context.wrap_socket(tcp, server_side=called)
        if pin_of(tls.getpeercert(binary_form=True)) not in self.pins:
            tls.close()
            raise Failed(5, "the peer's key is not trusted")
        return tls


def connect(address, identity):
    """The caller's side: (host, port), up to the empty frame that says that our key is trusted."""
    try:
        tcp = socket.create_connection(address, STEP_S)
        stream = Stream(identity.tls(tcp, called=False))
    except OSError as error:
        raise Gone(str(error)) from None
    stream.await_trust()
    return stream


class Listener:
    def __init__(self, address, identity):
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._socket = socket.create_server(address, family=family)
        self._identity = identity
        self.address = self._socket.getsockname()[:2]

    def accept(self, timeout_s=30):
        self._socket.settimeout(timeout_s)
        tcp, _ = self._socket.accept()
        tcp.settimeout(10)
        try:
            stream = Stream(self._identity.tls(tcp, called=True))
        except (OSError, Failed) as error:
            tcp.close()
            raise Gone(f"no handshake: {error}") from None
        stream.send_frame(b"")  # your key is trusted
        return stream

    def close(self):
        self._socket.close()


# ---- the exporter of TLS (RFC 8446, 7.5), which Python's own library does not show ---------------------


def exported(tls, label, context, count):
    """The SSL object of OpenSSL is asked itself: CPython keeps it behind the object's head and one pointer."""
    library = ctypes.CDLL("libssl.so.3")
    library.SSL_get_fd.argtypes = [ctypes.c_void_p]
    library.SSL_export_keying_material.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p,
                                                   ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t,
                                                   ctypes.c_int]  # fmt: skip
    ssl_object = ctypes.c_void_p.from_address(id(tls._sslobj) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p))
    if library.SSL_get_fd(ssl_object) != tls.fileno():
        raise RuntimeError("this Python keeps its TLS elsewhere")
    out = ctypes.create_string_buffer(count)
    good = library.SSL_export_keying_material(ssl_object, out, count, label, len(label), context, len(context), 1)
    if good != 1:
        raise Gone("the connection gives no secret")
    return out.raw


# ---- frames and messages ------------------------------------------------------------------------------


class Stream:
    """Messages in both directions. Whoever waits here also keeps the Heartbeats going."""

    def __init__(self, tls):
        self._tls = tls
        tls.setblocking(False)
        self._bytes = bytearray()
        self._messages = collections.deque()
        self._heard = time.monotonic()
        self._beat = self._heard
        self._trusted = self._closed = False
        self.first = None  # the name of what came first

    def fileno(self):
        return self._tls.fileno()

    def peer(self):
        """Whose key the other side has shown."""
        return pin_of(self._tls.getpeercert(binary_form=True))

    def close(self):
        """Closed over bytes that nobody read, a socket sends a reset, which takes back what was said last (RFC 1122,
        4.2.2.13): so what still comes is read."""
        end = time.monotonic() + DRAIN_S
        with contextlib.suppress(OSError, ValueError):
            self._tls.shutdown(socket.SHUT_WR)
            while (left := end - time.monotonic()) > 0 and select.select([self._tls], [], [], left)[0]:
                if not self._tls.recv(1 << 16):
                    break
        self._tls.close()

    def secret(self, label, context):
        """32 bytes that both ends of this connection have, and nobody else."""
        return exported(self._tls, label, context, 32)

    def await_trust(self):
        end = time.monotonic() + STEP_S
        while not self._trusted:
            if self._closed or time.monotonic() > end:
                raise Gone("no empty frame: the peer has not said that our key is trusted")
            self._read(0.1)
        self._heard = time.monotonic()

    def send(self, name, **fields):
        message = pb.PeerMessage()
        field = getattr(message, name)
        field.SetInParent()
        field.MergeFrom(type(field)(**fields))
        self.send_frame(message.SerializeToString())

    def send_frame(self, body):
        self._tls.settimeout(SILENCE_S)
        try:
            self._tls.sendall(struct.pack(">I", len(body)) + body)
        except OSError as error:
            raise Gone(str(error)) from None
        finally:
            self._tls.setblocking(False)

    def fail(self, code, text):
        self.send("failure", code=code, message=text)
        raise Failed(code, text)

    def poll(self, timeout_s=0.0):
        """What has come: a list of (name, message). Heartbeats are kept back, Failure and Pause raised."""
        now = time.monotonic()
        if now - self._beat >= HEARTBEAT_S:
            self._beat = now
            self.send("heartbeat")
        if not self._messages:
            self._read(timeout_s)
        if self._closed and not self._messages:
            raise Gone("the peer has closed")
        if now - self._heard > SILENCE_S:
            raise Gone(f"silent for {SILENCE_S} s")
        ready = []
        while self._messages:
            name, message = self._messages.popleft()
            if name == "failure":
                raise Failed(message.code, message.message)
            if name == "pause":
                raise Held(message.node)
            ready.append((name, message))
        return ready

    def expect(self, *names, timeout_s=60):
        """The next message, which must be one of these: its name and itself. Without a limit Heartbeats are it."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            ready = self.poll(0.1)
            if ready:
                name, message = ready.pop(0)
                self._messages.extendleft(reversed(ready))
                if name not in names:
                    self.fail(INCOMPATIBLE, f"{name} where {' or '.join(names)} was due")
                return name, message
            if end is not None and time.monotonic() > end:
                self.fail(14, f"no {' or '.join(names)}")

    def _read(self, timeout_s):
        if not self._tls.pending() and not select.select([self._tls], [], [], timeout_s)[0]:
            return
        try:
            while data := self._tls.recv(1 << 16):
                self._bytes += data
            self._closed = True
            self._cut()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            self._cut()
        except OSError as error:
            raise Gone(str(error)) from None

    def _cut(self):
        """Whole frames become messages. A body that we do not know is ignored, and so is a Heartbeat."""
        while len(self._bytes) >= 4:
            length = int.from_bytes(self._bytes[:4], "big")
            if length > MAX_MESSAGE_BYTES:
                raise Gone("a message of more than 16 MiB")
            if len(self._bytes) < 4 + length:
                return
            body = bytes(self._bytes[4 : 4 + length])
            del self._bytes[: 4 + length]
            self._heard = time.monotonic()
            if not self._trusted and length == 0:
                self._trusted = True
                continue
            try:
                message = pb.PeerMessage.FromString(body)
            except Exception as error:  # the library's own class differs by version
                raise Gone(f"a message that does not parse: {error}") from None
            name = message.WhichOneof("body")
            self.first = self.first or name
            if name not in (None, "heartbeat"):
                self._messages.append((name, getattr(message, name)))
