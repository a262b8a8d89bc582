"""Where people of this host ask for a link, by what the kernel says of them (SO_PEERCRED): a socket, a line of JSON each way.

`sluice console open` is the other side (ask()). On the event loop.
"""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from typing import Any, Awaitable, Callable

from .errors import ConsoleError
from .settings import ROLES, Settings
from .sign_ins import LINK_S, SignIns
from .upstream import Upstream

_LINE_BYTES_MAX = 4096
_WAIT_S = 5


class Desk:
    def __init__(self, settings: Settings, sign_ins: SignIns, upstream: Upstream) -> None:
        self._settings = settings
        self._sign_ins = sign_ins
        self._upstream = upstream
        self._server: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        path = self._settings.desk
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        os.chmod(path, 0o666)  # who comes is told by the kernel
        self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=_LINE_BYTES_MAX)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._settings.desk.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            credentials = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            uid = struct.unpack("3i", credentials)[1]
            try:
                async with asyncio.timeout(_WAIT_S):
                    asked = json.loads(await reader.readline())
                reply = await self.answer(uid, asked)
            except (ValueError, TimeoutError):
                reply = ConsoleError("usage", "the desk takes one line of JSON").json()
            except ConsoleError as error:
                reply = error.json()
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
        except OSError:
            pass  # they left
        finally:
            writer.close()

    async def answer(self, uid: int, asked: Any) -> dict[str, Any]:
        what: dict[str, Callable[[int, dict[str, Any]], Awaitable[dict[str, Any]]]] = {
            "open": self._open, "sign-ins": self._list, "revoke": self._revoke}  # fmt: skip
        if not isinstance(asked, dict) or asked.get("ask") not in what:
            raise ConsoleError("usage", f"the desk answers {', '.join(what)}")
        return await what[asked["ask"]](uid, asked)

    async def _open(self, uid: int, asked: dict[str, Any]) -> dict[str, Any]:
        name, role = await choose_role(self._settings, self._upstream, uid, asked.get("role"))
        secret = self._sign_ins.make_link(uid, name, role)
        return {"link": f"{self._settings.origins[0]}/#sign-in={secret}", "user": name, "role": role, "seconds": LINK_S}

    async def _seen_by(self, uid: int) -> int | None:
        _, roles = await self._upstream.rights(uid)
        return None if "operator" in roles else uid

    async def _list(self, uid: int, asked: dict[str, Any]) -> dict[str, Any]:
        found = self._sign_ins.of(await self._seen_by(uid))
        return {"sign_ins": [{"id": one.public_id, "user": one.name, "role": one.role, "made": one.made, "used": one.used,
                              "watching": len(one.streams)} for one in found]}  # fmt: skip

    async def _revoke(self, uid: int, asked: dict[str, Any]) -> dict[str, Any]:
        given = asked.get("id")
        found = [one for one in self._sign_ins.of(await self._seen_by(uid)) if given in ("all", one.public_id)]
        if not found and given != "all":
            raise ConsoleError("usage", f"{given}: no such sign-in; see 'sluice console sign-ins'")
        for one in found:
            self._sign_ins.end(one)
        return {"revoked": len(found)}


async def choose_role(settings: Settings, upstream: Upstream, uid: int, wanted: Any = None) -> tuple[str, str]:
    """The person's name, and as which they come in: as the most that control gives them and role_max lets in, or as `wanted`."""
    name, roles = await upstream.rights(uid)
    most = ROLES.index(settings.role_max)
    allowed = [role for role in ROLES if role in roles and ROLES.index(role) <= most]
    if not allowed:
        raise ConsoleError("configuration", f"{name} may be {', '.join(roles)} here, which role_max in console.toml does not let in")
    if wanted is None:
        return name, allowed[-1]
    if wanted not in allowed:
        raise ConsoleError("usage", f"{name} may come in as {' or '.join(allowed)}, not as {wanted}")
    return name, wanted


def ask(settings: Settings, asked: dict[str, Any]) -> dict[str, Any]:
    """What the desk of the running console answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(30)
        try:
            connection.connect(str(settings.desk))
            connection.sendall(json.dumps(asked).encode() + b"\n")
            with connection.makefile("rb") as answer:
                reply = json.loads(answer.readline() or b"{}")
        except (OSError, ValueError) as error:
            raise ConsoleError("daemon_not_running", f"sluice-console does not answer on {settings.desk}: {error}; start it") from None
    if "error" in reply:
        raise ConsoleError(reply["error"]["name"], reply["error"]["message"], reply["error"]["code"])
    return reply
