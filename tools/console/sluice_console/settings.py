"""What `console.toml` in the directory of the node says; all of it may be left out."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import ipaddress
import pathlib
import re
import tomllib
import urllib.parse

from .errors import ConsoleError

DEFAULT_PORT = 7480
PACKAGE_NODE = pathlib.Path("/etc/sluice")  # of the package's services, which write nothing there
PACKAGE_STATE = pathlib.Path("/var/lib/sluice-console")
ROLES = ("viewer", "user", "operator")  # the least first


@dataclasses.dataclass(frozen=True)
class Settings:
    node: pathlib.Path  # directory of the node
    state: pathlib.Path  # where the key and the sign-ins are kept
    listen: str = f"127.0.0.1:{DEFAULT_PORT}"  # "ADDRESS:PORT" of this host alone, "unix:PATH", "systemd"
    origins: tuple[str, ...] = ()  # "https://console.example": as browsers see it
    role_max: str = "operator"
    idle_s: int = 30 * 60
    absolute_s: int = 12 * 3600
    proxy_header: str = ""  # which the proxy sets to who has signed in there
    proxy_users: dict[str, str] = dataclasses.field(default_factory=dict)  # as it says -> user of this host

    @property
    def socket(self) -> pathlib.Path:  # of control
        return self.node / "run/console.sock"

    @property
    def desk(self) -> pathlib.Path:  # where people of this host ask for links
        return self.state / "desk.sock"

    @property
    def over_tls(self) -> bool:
        return all(origin.startswith("https:") for origin in self.origins)

    @property
    def is_local(self) -> bool:  # a unix socket: whoever connects could open it
        return not re.fullmatch(r".*:\d+", self.listen)


_KEYS = {"listen": str, "origins": list, "role_max": str, "idle_s": int, "absolute_s": int, "proxy_header": str,
         "proxy_users": dict, "state_dir": str}  # fmt: skip


def _wrong(path: pathlib.Path, key: str, why: str) -> ConsoleError:
    return ConsoleError("configuration", f"{path}: {key}: {why}")


def load(node: pathlib.Path) -> Settings:
    path = node / "console.toml"
    try:
        given = tomllib.loads(path.read_text())
    except FileNotFoundError:
        given = {}
    except (OSError, ValueError) as error:
        raise ConsoleError("configuration", f"{path}: {error}") from None
    for key, value in given.items():
        if key not in _KEYS:
            raise _wrong(path, key, f"no such key; there are {', '.join(sorted(_KEYS))}")
        if type(value) is not _KEYS[key]:
            raise _wrong(path, key, f"must be of type {_KEYS[key].__name__}")
    state = pathlib.Path(given.pop("state_dir", "") or (PACKAGE_STATE if node == PACKAGE_NODE else node / "console"))
    if not state.is_absolute():
        raise _wrong(path, "state_dir", "must be an absolute path")
    origins = tuple(given.pop("origins", ()))
    return _checked(path, Settings(node=node, state=state, origins=origins, **given))


def _checked(path: pathlib.Path, settings: Settings) -> Settings:
    if settings.role_max not in ROLES:
        raise _wrong(path, "role_max", f"must be one of {', '.join(ROLES)}")
    for key in ("idle_s", "absolute_s"):
        if not 60 <= getattr(settings, key) <= 7 * 86400:
            raise _wrong(path, key, "must be 60 to 604800")
    for key, value in settings.proxy_users.items():
        if not isinstance(value, str) or not value:
            raise _wrong(path, f"proxy_users.{key}", "must be the name of a user of this host")
    if settings.proxy_header and not settings.is_local:
        raise _wrong(path, "proxy_header", "is believed over a unix socket only: whoever reaches a TCP port could set it; "
                     'use listen = "unix:PATH" or "systemd"')  # fmt: skip
    if settings.proxy_header and not re.fullmatch(r"[A-Za-z0-9-]+", settings.proxy_header):
        raise _wrong(path, "proxy_header", "must be the name of a header, such as X-Remote-User")
    return dataclasses.replace(settings, origins=_origins(path, settings))


def _origins(path: pathlib.Path, settings: Settings) -> tuple[str, ...]:
    for origin in settings.origins:
        parts = urllib.parse.urlsplit(origin) if isinstance(origin, str) else None
        if not parts or parts.scheme not in ("http", "https") or not parts.hostname or parts.geturl().count("/") != 2:
            raise _wrong(path, "origins", f"{origin!r}: write it as a browser does: https://console.example")
        if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise _wrong(path, "origins", f"{origin}: without TLS whoever is on the way reads and steers; use https, by a proxy")
    if settings.is_local:
        if not settings.origins:
            raise _wrong(path, "origins", "must say what browsers call the proxy: https://console.example")
        return settings.origins
    host, _, port = settings.listen.rpartition(":")
    try:
        loopback = ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        raise _wrong(path, "listen", f"{settings.listen}: must be ADDRESS:PORT, unix:PATH or systemd") from None
    if not loopback:
        raise _wrong(path, "listen", f"{settings.listen}: others than this host would reach it without TLS; listen on 127.0.0.1, or on "
                     "a unix socket behind a proxy")  # fmt: skip
    return settings.origins or (f"http://{host}:{port}", f"http://localhost:{port}")
