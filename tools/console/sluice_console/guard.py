"""What stands before every request: which Host, from which page, how large, how slow; and the headers of every answer.

Pure ASGI. Whatever is wrong is answered before the request is looked at.
"""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import json
import urllib.parse
from typing import Any, Callable

from .errors import ConsoleError
from .settings import Settings

BODY_BYTES_MAX = 1 << 20  # of anybody
LARGE_BYTES_MAX = 16 << 20  # of who has signed in: names that are to be synchronised, as much as control takes
LARGE_AT_ONCE = 4
DISCARDED_BYTES_MAX = 32 << 20
BODY_S = 15
CSP = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
       "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'")  # fmt: skip
_HEADERS = [
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]


def _one(scope: dict[str, Any], name: bytes) -> str | None:
    """A header that may be there once. None: it is not."""
    found = [value for key, value in scope["headers"] if key == name]
    if len(found) > 1:
        raise ConsoleError("usage", f"{name.decode()}: is there {len(found)} times", status=400)
    return found[0].decode("latin-1") if found else None


class Guard:
    """`knows(scope)`: has whoever asks signed in?"""

    def __init__(self, app: Any, settings: Settings, knows: Callable[[dict[str, Any]], bool]) -> None:
        self._app = app
        self._knows = knows
        self._large = 0
        self._origins = set(settings.origins)
        self._hosts = {urllib.parse.urlsplit(origin).netloc for origin in settings.origins}
        self._over_tls = settings.over_tls

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})

        async def guarded(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), *_HEADERS]
                if self._over_tls:
                    headers.append((b"strict-transport-security", b"max-age=31536000"))
                if not any(key == b"cache-control" for key, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                message = {**message, "headers": headers}
            await send(message)

        try:
            self._check(scope)
            body = await self._body(scope, receive) if scope["method"] == "POST" else b""
        except ConsoleError as error:
            return await _answer(guarded, error)
        scope["sluice.body"] = body
        await self._app(scope, receive, guarded)

    def _check(self, scope: dict[str, Any]) -> None:
        host = _one(scope, b"host")
        if host is None or host.lower() not in self._hosts:
            raise ConsoleError("usage", "this name is not one of the console's; see origins in console.toml", status=421)
        if scope["method"] in ("GET", "HEAD"):
            return
        if scope["method"] != "POST":
            raise ConsoleError("usage", f"{scope['method']}: not here", status=405)
        # Nothing is done for another page, and a browser says from which page it asks.
        origin = _one(scope, b"origin")
        if origin not in self._origins or urllib.parse.urlsplit(origin).netloc != host.lower():
            raise ConsoleError("usage", "a request of another page, or of none, is refused: Origin is wrong", status=403)
        if _one(scope, b"sec-fetch-site") not in (None, "same-origin"):
            raise ConsoleError("usage", "a request of another page is refused: Sec-Fetch-Site is wrong", status=403)
        if (_one(scope, b"content-type") or "").split(";")[0].strip() != "application/json":
            raise ConsoleError("usage", "the body must be application/json", status=415)

    async def _body(self, scope: dict[str, Any], receive: Any) -> bytes:
        said = _one(scope, b"content-length")
        if said is not None and not said.isdigit():
            raise ConsoleError("usage", "content-length: is no number", status=400)
        if said is None or int(said) <= BODY_BYTES_MAX:
            return await self._received(receive, BODY_BYTES_MAX)
        most = LARGE_BYTES_MAX if self._knows(scope) else BODY_BYTES_MAX
        if int(said) > most:
            await self._received(receive, DISCARDED_BYTES_MAX, keep=False)  # whoever still sends would not hear the answer
            raise _too_long(most)
        if self._large >= LARGE_AT_ONCE:
            raise ConsoleError("resources", f"{LARGE_AT_ONCE} large requests are under way: try again", status=429)
        self._large += 1
        try:
            return await self._received(receive, LARGE_BYTES_MAX)
        finally:
            self._large -= 1

    async def _received(self, receive: Any, most: int, keep: bool = True) -> bytes:
        body, length = bytearray(), 0
        try:
            async with asyncio.timeout(BODY_S):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ConsoleError("usage", "the browser left", status=400)
                    part = message.get("body", b"")
                    length += len(part)
                    if length > most:
                        raise _too_long(most)
                    if keep:
                        body += part
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            raise ConsoleError("usage", f"the body did not come within {BODY_S} s", status=408) from None


def _too_long(most: int) -> ConsoleError:
    return ConsoleError("usage", f"the body is longer than {most} bytes", status=413)


async def _answer(send: Any, error: ConsoleError) -> None:
    text = json.dumps(error.json()).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(text)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": text})
