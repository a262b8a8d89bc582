"""Who a request is of, and how an answer is given: JSON, lines of JSON as they come, or an error with its code."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, AsyncIterator, Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from . import words
from .errors import ConsoleError
from .sign_ins import STREAMS_OF_ONE, SignIn
from .upstream import For

log = logging.getLogger("sluice-console")
STREAMS_MAX = 256
KEY_HEADER = "x-sluice-key"


class Asked:
    """A request of somebody who has signed in."""

    def __init__(self, request: Request, sign_in: SignIn, given: dict[str, Any]) -> None:
        self.house = request.app.state.house
        self.upstream = self.house.upstream
        self.sign_in = sign_in
        self.who = For(sign_in.uid, sign_in.role)
        self.given = given

    def word(self, key: str, default: str | None = None) -> str:
        value = self.given.get(key, default)
        if not isinstance(value, str):
            raise ConsoleError("usage", f"{key}: must be text")
        return value

    def number(self, key: str, low: int, high: int, default: int | None = None) -> int:
        value = self.given.get(key, default)
        if type(value) is not int or not low <= value <= high:
            raise ConsoleError("usage", f"{key}: must be a number from {low} to {high}")
        return value

    def yes(self, key: str) -> bool:
        value = self.given.get(key, False)
        if type(value) is not bool:
            raise ConsoleError("usage", f"{key}: must be true or false")
        return value

    def names(self, key: str, most: int) -> list[bytes]:
        value = self.given.get(key)
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            raise ConsoleError("usage", f"{key}: must be a list of 1 to {most} names")
        return [words.one_name(one) for one in value]


Handler = Callable[[Asked], Awaitable[Any]]
Lines = Callable[[Asked], AsyncIterator[Any]]


def given_of(request: Request) -> dict[str, Any]:
    try:
        given = json.loads(request.scope["sluice.body"] or b"{}")
    except (ValueError, RecursionError):
        raise ConsoleError("usage", "the body is no JSON") from None
    if not isinstance(given, dict):
        raise ConsoleError("usage", "the body must be an object")
    return given


def _asked(request: Request) -> Asked:
    found = request.app.state.house.found(request)
    if found is None:
        raise ConsoleError("signed_out", "sign in: run 'sluice console open' on the host of this node", 3, 401)
    return Asked(request, found, given_of(request))


def refusal(error: ConsoleError) -> Response:
    return JSONResponse(error.json(), status_code=error.status)


def _reported(error: Exception) -> ConsoleError:
    log.exception("a request failed")
    return ConsoleError("internal", f"the console failed: {type(error).__name__}; its log has more")


def call(path: str, handler: Handler) -> Route:
    """One answer."""

    async def serve(request: Request) -> Response:
        try:
            return JSONResponse(await handler(_asked(request)))
        except ConsoleError as error:
            return refusal(error)
        except Exception as error:
            return refusal(_reported(error))

    return Route(f"/api/{path}", serve, methods=["POST"])


async def _until(ended: asyncio.Event, source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """What comes of it, until somebody has signed out or the console stops."""
    over = asyncio.ensure_future(ended.wait())
    try:
        while True:
            one = asyncio.ensure_future(source.__anext__())
            await asyncio.wait({one, over}, return_when=asyncio.FIRST_COMPLETED)
            if not one.done():
                one.cancel()
                await asyncio.gather(one, return_exceptions=True)
                return
            try:
                yield one.result()
            except StopAsyncIteration:
                return
    finally:
        over.cancel()
        await source.aclose()


def begin_stream(asked: Asked) -> asyncio.Event:
    if len(asked.sign_in.streams) >= STREAMS_OF_ONE or asked.house.streams >= STREAMS_MAX:
        raise ConsoleError("resources", "too many streams are open: close other pages of the console", status=429)
    ended = asyncio.Event()
    asked.sign_in.streams.add(ended)
    asked.house.streams += 1
    if asked.house.stopping:
        ended.set()
    return ended


def end_stream(asked: Asked, ended: asyncio.Event) -> None:
    if ended in asked.sign_in.streams:
        asked.sign_in.streams.discard(ended)
        asked.house.streams -= 1


async def _as_lines(asked: Asked, source: AsyncIterator[Any], ended: asyncio.Event, first: Any) -> AsyncIterator[str]:
    try:
        yield words.lines(first)
        async for one in _until(ended, source):
            yield words.lines(one)
        yield words.lines({"end": not ended.is_set()})
    except ConsoleError as error:
        yield words.lines(error.json())
    except Exception as error:
        yield words.lines(_reported(error).json())


class StreamOf(StreamingResponse):
    """Counts as one of the streams of its sign-in until it is over, however that comes."""

    def __init__(self, asked: Asked, ended: asyncio.Event, content: AsyncIterator[str], media_type: str) -> None:
        super().__init__(content, media_type=media_type)
        self._asked, self._ended = asked, ended

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            end_stream(self._asked, self._ended)


def stream(path: str, handler: Lines) -> Route:
    """Lines of JSON. An error before the first is the answer; one that comes later is the last line."""

    async def serve(request: Request) -> Response:
        try:
            asked = _asked(request)
            ended = begin_stream(asked)
        except ConsoleError as error:
            return refusal(error)
        source = handler(asked)
        try:
            first = await source.__anext__()
        except BaseException as error:
            end_stream(asked, ended)
            if isinstance(error, StopAsyncIteration):
                return Response(words.lines({"end": True}), media_type="application/x-ndjson")
            if isinstance(error, ConsoleError):
                return refusal(error)
            if isinstance(error, Exception):
                return refusal(_reported(error))
            raise
        return StreamOf(asked, ended, _as_lines(asked, source, ended, first), "application/x-ndjson")

    return Route(f"/api/{path}", serve, methods=["POST"])
