"""Sessions: those that run, those that have ended, what changes, and what people do to them."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from . import words
from .door import Asked, StreamOf, begin_stream, call, refusal, stream
from .door import _asked as asked_of
from .errors import ConsoleError
from .messages import api_pb2 as api
from .messages import console_pb2 as console
from .messages import log_pb2 as logs

LISTED_MAX = 1000
_RIGHTS_EVERY_S = 60.0
_VERIFY_TOLD_S = 0.3


def _reference(asked: Asked) -> api.SessionRef:
    given = asked.word("id")
    if not 1 <= len(given) <= 64:
        raise ConsoleError("usage", "id: must be that of a session")
    return api.SessionRef(id=given)


async def _list(asked: Asked) -> dict[str, Any]:
    """The newest first."""
    reply = await asked.upstream.call(asked.who, "Control/ListSessions", api.ListSessionsRequest(), api.ListSessionsReply)
    newest = sorted(reply.sessions, key=lambda one: one.started_unix_ns, reverse=True)
    return {"sessions": [words.overview(one) for one in newest[:LISTED_MAX]], "all": len(newest)}


async def _show(asked: Asked) -> dict[str, Any]:
    return words.detail(await asked.upstream.call(asked.who, "Control/ShowSession", _reference(asked), api.Session))


def _order(method: str) -> Any:
    async def give(asked: Asked) -> dict[str, Any]:
        return words.overview(await asked.upstream.call(asked.who, f"Control/{method}", _reference(asked), api.Session))

    return give


async def _limit(asked: Asked) -> dict[str, Any]:
    request = api.LimitRequest(id=_reference(asked).id, rate_bps=asked.number("rate_bps", 0, 10**12))
    return words.overview(await asked.upstream.call(asked.who, "Control/LimitSession", request, api.Session))


async def _prioritize(asked: Asked) -> dict[str, Any]:
    request = api.PriorityRequest(id=_reference(asked).id, priority=asked.number("priority", -100, 100))
    return words.overview(await asked.upstream.call(asked.who, "Control/PrioritizeSession", request, api.Session))


async def _receipt(asked: Asked) -> dict[str, Any]:
    """What `sluice receipt` prints, signed with the node's key by control."""
    request = console.ReceiptRequest(id=_reference(asked).id)
    return {"receipt": (await asked.upstream.call(asked.who, "Console/Receipt", request, console.ReceiptReply)).receipt}


async def _verify(asked: Asked) -> AsyncIterator[Any]:
    told, clock = 0.0, asyncio.get_running_loop().time
    async for one in asked.upstream.stream(asked.who, "Control/VerifySession", _reference(asked), api.VerifyProgress):
        if one.done or clock() - told > _VERIFY_TOLD_S:
            told = clock()
            yield {"file": one.file, "checked": one.bytes_checked, "total": one.bytes_total, "done": one.done, "good": one.good,
                   "problem": one.problem, "digest": one.digest, "unchecked": one.names_unchecked}  # fmt: skip


async def _log(asked: Asked) -> AsyncIterator[Any]:
    request = logs.LogRequest(id=_reference(asked).id)
    async for part in asked.upstream.stream(asked.who, "Logs/Read", request, logs.LogReply):
        yield [[one.session_ns // 1000, one.lane, one.kind, one.tx_seq if one.HasField("tx_seq") else None, one.count or one.length]
               for one in part.records]  # fmt: skip


async def _while_allowed(asked: Asked, ended: asyncio.Event) -> None:
    """Ends the stream of somebody who has lost the role, or whose sign-in is over."""
    while asked.house.sign_ins.is_live(asked.sign_in):
        await asyncio.sleep(_RIGHTS_EVERY_S)
        try:
            _, roles = await asked.upstream.rights(asked.who.uid)
        except ConsoleError as error:
            if error.name == "daemon_not_running":
                continue
            roles = []
        if asked.who.role not in roles:
            asked.house.sign_ins.end(asked.sign_in)
    ended.set()


async def _followed(asked: Asked, ended: asyncio.Event) -> AsyncIterator[str]:
    watch = asyncio.create_task(_while_allowed(asked, ended))
    messages = asked.house.fan.follow(asked.who, ended)
    try:
        async for message in messages:
            yield message
    finally:
        watch.cancel()
        await messages.aclose()


async def _events(request: Request) -> Response:
    try:
        asked = asked_of(request)
        ended = begin_stream(asked)
    except ConsoleError as error:
        return refusal(error)
    return StreamOf(asked, ended, _followed(asked, ended), "text/event-stream")


def routes() -> list[Route]:
    return [call("sessions/list", _list), call("sessions/show", _show), call("sessions/pause", _order("PauseSession")),
            call("sessions/continue", _order("ContinueSession")), call("sessions/cancel", _order("CancelSession")),
            call("sessions/limit", _limit), call("sessions/prioritize", _prioritize), stream("sessions/verify", _verify), call("sessions/receipt", _receipt),
            stream("sessions/log", _log), Route("/api/events", _events, methods=["POST"])]  # fmt: skip
