# Proxies with TLS in front of the console's unix socket, of the examples in tools/console/proxies; and a provider of OpenID
# Connect, which signs in whom a test says.
# SPDX-License-Identifier: Apache-2.0
import base64
import contextlib
import datetime
import hashlib
import http.server
import ipaddress
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from harness.process import Daemon
from harness.system import REPOSITORY, is_root, wait_until

EXAMPLES = REPOSITORY / "tools/console/proxies"
NAME = "console.example"  # as the examples have it
SOCKET = "/run/sluice-console.sock"
USER = "www-data"  # as whom Debian's proxies run
MODULES = pathlib.Path("/usr/lib/apache2/modules")
_READY_S = 60

_MISSING = {"nginx": "nginx", "caddy": "caddy", "apache": "apache2"}


def missing(kind):
    """Why there is no such proxy here; empty: there is."""
    proxy = kind.split("-")[0]
    if shutil.which(_MISSING[proxy]) is None:
        return f"no {proxy} here: apt-get install {_MISSING[proxy]}"
    if kind == "apache-oidc" and not (MODULES / "mod_auth_openidc.so").exists():
        return "no mod_auth_openidc here: apt-get install libapache2-mod-auth-openidc"
    return ""


class Certificate:
    """For the proxies and the provider, of nobody but the tests."""

    def __init__(self, directory):
        self.file, self.key_file = directory / "console.pem", directory / "console.key"
        self.key = rsa.generate_private_key(65537, 2048)
        name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, NAME)])
        names = [x509.DNSName(NAME), x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        now = datetime.datetime.utcnow()
        made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(self.key.public_key())
        made = made.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
        made = made.not_valid_after(now + datetime.timedelta(days=2)).add_extension(x509.SubjectAlternativeName(names), False)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), True).sign(self.key, hashes.SHA256())
        self.file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        self.key_file.write_bytes(self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                                         serialization.NoEncryption()))  # fmt: skip
        self.key_file.chmod(0o644)  # a proxy that does not begin as root reads it

    def client(self):
        return ssl.create_default_context(cafile=self.file)

    def server(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self.key_file)
        return context


def _with(text, **changes):
    """An example with other places and ports. Each must be in it: a test of something else proves nothing."""
    for before, after in changes.values():
        assert before in text, before
        text = text.replace(before, after)
    return text


class Front:
    """One proxy of an example; `signs_in`: as the example says for a proxy that signs people in."""

    def __init__(self, kind, signs_in, port, directory, socket_path, certificate, provider=None):
        self.kind, self.signs_in, self.port = kind, signs_in, port
        self.host = f"{NAME}:{port}"
        self.origin = f"https://{self.host}"
        self.certificate = certificate
        self.speaks_http2 = True
        self._place = directory / f"{kind}-{port}"
        self._place.mkdir()
        self._socket = socket_path
        self._provider = provider
        make = {"nginx": self._nginx, "caddy": self._caddy, "apache": self._apache, "apache-oidc": self._apache}[kind]
        self.daemon = Daemon(f"{kind} on port {port}", make(), self._place / "log")

    def start(self):
        if is_root():
            for path in (self._place, *self._place.rglob("*")):
                shutil.chown(path, USER, USER)
        self.daemon.start()
        wait_until(self._answers, _READY_S, f"{self.daemon.name} answers")

    def _answers(self):
        assert self.daemon.running(), self.daemon.log_tail(40)
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5):
            return True
        return False

    def stop(self):
        self.daemon.stop()

    def _write(self, name, text):
        (self._place / name).write_text(text)
        return self._place / name

    def _places(self):
        return {"certificate": ("/etc/ssl/console.pem", str(self.certificate.file)),
                "key": ("/etc/ssl/private/console.key", str(self.certificate.key_file)),
                "socket": (SOCKET, str(self._socket))}  # fmt: skip

    def _nginx(self):
        text = _with((EXAMPLES / "nginx.conf").read_text(), port=("listen 443", f"listen 127.0.0.1:{self.port}"), **self._places())
        if self.signs_in:
            people = self._write("people", "ada@example.org:{PLAIN}ada\neve@example.org:{PLAIN}eve\n")
            text = _with(text, cleared=('proxy_set_header X-Remote-User "";', ""), signs_in=("# auth_basic", "auth_basic"),
                         people=("/etc/nginx/sluice.htpasswd", str(people)))  # fmt: skip
        self._write("site.conf", text)
        folders = "".join(f"{kind}_temp_path {self._place}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        main = self._write("nginx.conf", f"{f'user {USER};' if is_root() else ''} worker_processes 1; daemon off; "
                           f"pid {self._place}/pid; error_log stderr; events {{}} "
                           f"http {{ {folders} include {self._place}/site.conf; }}")  # fmt: skip
        return ["nginx", "-p", self._place, "-e", "stderr", "-c", main]

    def _caddy(self):
        text = _with((EXAMPLES / "Caddyfile").read_text(), socket=(SOCKET, str(self._socket)),
                     site=("console.example {", f"{self.origin} {{\n\ttls {self.certificate.file} {self.certificate.key_file}"))  # fmt: skip
        if self.signs_in:
            hashed = {who: subprocess.run(["caddy", "hash-password", "--plaintext", who], capture_output=True, text=True, check=True).stdout.strip()
                      for who in ("ada", "eve")}  # fmt: skip
            people = "".join(f"\n\t\t{who}@example.org {base64.b64encode(one.encode()).decode()}" for who, one in hashed.items())
            text = _with(text, signs_in=("# basicauth { ada HASH }", f"basicauth {{{people}\n\t}}"), cleared=("header_up -X-Remote-User", ""),
                         header=("# header_up X-Remote-User", "header_up X-Remote-User"))  # fmt: skip
        file = self._write("Caddyfile", "{\n\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n}\n" + text)
        command = ["env", f"HOME={self._place}", f"XDG_DATA_HOME={self._place}", f"XDG_CONFIG_HOME={self._place}", "caddy", "run",
                   "--config", file, "--adapter", "caddyfile"]  # fmt: skip
        return ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", *command] if is_root() else command

    def _apache(self):
        example = "apache-oidc.conf" if self.kind == "apache-oidc" else "apache.conf"
        text = _with((EXAMPLES / example).read_text(), port=("*:443", f"127.0.0.1:{self.port}"), **self._places())
        modules = ["mpm_event", "ssl", "http2", "proxy", "proxy_http", "headers", "authz_core", "authn_core", "authz_user", "socache_shmcb"]
        if self.kind == "apache-oidc":
            modules.append("auth_openidc")
            text = _with(text, provider=("https://login.example", self._provider.origin), secret=("CLIENT-SECRET", self._provider.secret),
                         passphrase=("LONG-AND-RANDOM", os.urandom(16).hex()), redirect=(f"https://{NAME}/oidc", f"{self.origin}/oidc"))  # fmt: skip
            text = text.replace("  OIDCScope", f"  OIDCCABundlePath {self.certificate.file}\n  OIDCScope")
        self._write("site.conf", text)
        (self._place / "run").mkdir()
        lines = [f"ServerRoot {self._place}", f"ServerName {NAME}", f"DefaultRuntimeDir {self._place}/run", f"PidFile {self._place}/run/pid",
                 f"Mutex file:{self._place}/run default", "ErrorLog /dev/stderr", f"Listen 127.0.0.1:{self.port}",
                 *(f"LoadModule {one}_module {MODULES}/mod_{one}.so" for one in modules if (MODULES / f"mod_{one}.so").exists())]  # fmt: skip
        if is_root():
            lines += [f"User {USER}", f"Group {USER}"]
        main = self._write("apache.conf", "\n".join([*lines, f"Include {self._place}/site.conf", ""]))
        return ["apache2", "-f", main, "-D", "FOREGROUND"]


def _text(value):
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


class Provider:
    """Of OpenID Connect: the flow by code with PKCE. `person` is who sits at the browser; None: who cannot sign in."""

    def __init__(self, certificate):
        self.person = None
        self.secret = os.urandom(16).hex()
        self.key = rsa.generate_private_key(65537, 2048)
        self.codes = {}
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                provider.get(self)

            def do_POST(self):
                provider.post(self)

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = certificate.server().wrap_socket(self._server.socket, server_side=True)
        self.origin = f"https://localhost:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    def _reply(self, handler, status, said=None, **headers):
        body = json.dumps(said or {}).encode()
        handler.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    def get(self, handler):
        at = urllib.parse.urlsplit(handler.path)
        asked = dict(urllib.parse.parse_qsl(at.query))
        if at.path == "/.well-known/openid-configuration":
            return self._reply(handler, 200, {
                "issuer": self.origin, "authorization_endpoint": f"{self.origin}/authorize", "token_endpoint": f"{self.origin}/token",
                "jwks_uri": f"{self.origin}/keys", "response_types_supported": ["code"], "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"], "token_endpoint_auth_methods_supported": ["client_secret_basic"],
                "code_challenge_methods_supported": ["S256"]})  # fmt: skip
        if at.path == "/keys":
            numbers = self.key.public_key().public_numbers()
            return self._reply(handler, 200, {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one", "e": "AQAB",
                                                        "n": _text(numbers.n.to_bytes(256, "big"))}]})  # fmt: skip
        if at.path == "/authorize" and self.person and asked["response_type"] == "code" and asked["client_id"] == "sluice":
            code = os.urandom(16).hex()
            self.codes[code] = {**asked, "person": self.person}
            back = f"{asked['redirect_uri']}?{urllib.parse.urlencode({'code': code, 'state': asked['state']})}"
            return self._reply(handler, 302, Location=back)
        return self._reply(handler, 403, {"error": "access_denied"})

    def post(self, handler):
        given = dict(urllib.parse.parse_qsl(handler.rfile.read(int(handler.headers["Content-Length"])).decode()))
        code = self.codes.pop(given.get("code", ""), None)
        client = base64.b64encode(f"sluice:{self.secret}".encode()).decode()
        if code is None or handler.headers["Authorization"] != f"Basic {client}" or given["redirect_uri"] != code["redirect_uri"]:
            return self._reply(handler, 400, {"error": "invalid_grant"})
        if _text(hashlib.sha256(given["code_verifier"].encode()).digest()) != code["code_challenge"]:
            return self._reply(handler, 400, {"error": "invalid_grant"})
        return self._reply(handler, 200, {"access_token": os.urandom(16).hex(), "token_type": "Bearer", "expires_in": 300,
                                          "id_token": self._token(code)})  # fmt: skip

    def _token(self, code):
        now = int(time.time())
        claims = {"iss": self.origin, "aud": "sluice", "sub": f"id-of-{code['person']}", "email": code["person"], "iat": now, "exp": now + 300,
                  "nonce": code["nonce"]}  # fmt: skip
        said = ".".join(_text(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "one"}, claims))
        return f"{said}.{_text(self.key.sign(said.encode(), padding.PKCS1v15(), hashes.SHA256()))}"
