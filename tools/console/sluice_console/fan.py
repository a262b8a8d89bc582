"""One stream of events from control for all pages that see the same: the operators, the viewers, or one user.

On the event loop. Control tells progress once a second; what changes within half a second is told to pages once. A page
that reads too slowly is let go, and comes back by itself.
"""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import json
from typing import Any, AsyncIterator

from . import words
from .errors import ConsoleError
from .messages import api_pb2 as api
from .upstream import For, Upstream

TOLD_EVERY_S = 0.5
WAITING_MAX = 64  # messages of one page
PULSE_S = 15.0
_AGAIN_S = 1.0


class _Stream:
    """Of one kind of person. It is opened for whoever of them is there."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._pages: dict[asyncio.Queue[str | None], For] = {}
        self._changed: dict[str, dict[str, Any]] = {}
        self._known: dict[str, dict[str, Any]] = {}  # of those that have not ended, the last of each
        self._reachable: bool | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def join(self, who: For) -> asyncio.Queue[str | None]:
        page: asyncio.Queue[str | None] = asyncio.Queue(WAITING_MAX)
        if self._reachable is not None:
            page.put_nowait(_message("control", {"reachable": self._reachable}))
            page.put_nowait(_message("events", list(self._known.values())))
        self._pages[page] = who
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._tell())]
        return page

    def leave(self, page: asyncio.Queue[str | None]) -> bool:
        """True: nobody is left."""
        self._pages.pop(page, None)
        if self._pages:
            return False
        self.stop()
        return True

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    def _put(self, message: str) -> None:
        for page in list(self._pages):
            try:
                page.put_nowait(message)
            except asyncio.QueueFull:
                self._pages.pop(page, None)
                while not page.empty():
                    page.get_nowait()
                page.put_nowait(None)

    def _reach(self, reachable: bool, why: str = "") -> None:
        if self._reachable != reachable:
            self._reachable = reachable
            self._put(_message("control", {"reachable": reachable, "message": why}))

    async def _read(self) -> None:
        while True:
            try:
                who = next(reversed(self._pages.values()))
                stream = self._upstream.stream(who, "Control/SessionEvents", api.SessionRef(progress=True), api.SessionEvent)
                self._known.clear()
                # The first answer may be a long time off; that the node answers is known at once.
                await self._upstream.node(who)
                self._reach(True)
                self._put(_message("again", {}))
                async for event in stream:
                    self._take(event)
                self._reach(False, "sluice-control ended the stream")
            except (ConsoleError, StopIteration) as error:
                self._reach(False, str(error))
            await asyncio.sleep(_AGAIN_S)

    def _take(self, event: api.SessionEvent) -> None:
        if not event.session:
            self._put(_message("again", {}))  # some are missing: pages ask anew
            return
        said = words.event(event)
        self._changed[event.session] = said
        if event.state in ("succeeded", "failed", "cancelled", "partial"):
            self._known.pop(event.session, None)
        else:
            self._known[event.session] = said

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(TOLD_EVERY_S)
            if self._changed:
                changed, self._changed = self._changed, {}
                self._put(_message("events", list(changed.values())))


def _message(kind: str, what: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps(what, separators=(',', ':'))}\n\n"


class Fan:
    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._streams: dict[tuple[str, int], _Stream] = {}

    async def follow(self, who: For, ended: asyncio.Event) -> AsyncIterator[str]:
        """Messages of text/event-stream, until `ended`, or the page leaves."""
        # What operators see is the same for all of them, and so it is of viewers.
        key = (who.role, who.uid if who.role == "user" else 0)
        stream = self._streams.setdefault(key, _Stream(self._upstream))
        page = stream.join(who)
        over = asyncio.create_task(ended.wait())
        try:
            yield ": here\n\n"
            while not ended.is_set():
                next_one = asyncio.ensure_future(page.get())
                try:
                    await asyncio.wait({next_one, over}, timeout=PULSE_S, return_when=asyncio.FIRST_COMPLETED)
                    message = next_one.result() if next_one.done() else ": still here\n\n"
                finally:
                    next_one.cancel()
                if message is None or over.done():
                    return
                yield message
        finally:
            over.cancel()
            if stream.leave(page) and self._streams.get(key) is stream:
                del self._streams[key]

    def stop(self) -> None:
        for stream in self._streams.values():
            stream.stop()
