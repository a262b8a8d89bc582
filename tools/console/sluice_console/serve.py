"""The server: its socket, limits of slow callers, and an end that waits for nobody."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import logging
import os
import pathlib
import signal
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from .errors import ConsoleError
from .house import House, application
from .settings import Settings

log = logging.getLogger("sluice-console")
HEAD_S = 10  # for the head of a request
CONNECTIONS_MAX = 1000
_STOP_S = 5.0


class Protocol(H11Protocol):
    """Hangs up on who connects and asks for nothing, or takes too long to ask."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._patience = self.loop.call_later(HEAD_S, self._no_head)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None:
            self._patience.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._patience.cancel()
        super().connection_lost(exc)

    def _no_head(self) -> None:
        if self.cycle is None:
            self.transport.close()


class Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, house: House) -> None:
        super().__init__(config)
        self._house = house

    def install_signal_handlers(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)

    def _stop(self) -> None:
        self._house.end_streams()
        self.should_exit = True
        _notify("STOPPING=1")
        asyncio.get_running_loop().call_later(_STOP_S, lambda: setattr(self, "force_exit", True))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            await self._house.desk.start()
            log.info("the console serves %s", " ".join(self._house.settings.origins))
            _notify("READY=1")


def _notify(text: str) -> None:
    """To the service manager (sd_notify(3))."""
    where = os.environ.get("NOTIFY_SOCKET")
    if where:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(text.encode(), "\0" + where[1:] if where[0] == "@" else where)


def listener(settings: Settings) -> socket.socket:
    where = settings.listen
    try:
        if where == "systemd":
            if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS") != "1":
                raise ConsoleError("configuration", 'listen = "systemd": no socket was handed over; start it by its socket unit')
            given = socket.socket(fileno=3)
            given.set_inheritable(False)
            if given.family != socket.AF_UNIX:
                raise ConsoleError("configuration", 'listen = "systemd": the socket unit must hand over a unix socket')
            return given
        if where.startswith("unix:"):
            path = pathlib.Path(where.removeprefix("unix:"))
            path.unlink(missing_ok=True)
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            before = os.umask(0o117)  # its owner and group: that of the proxy
            try:
                made.bind(str(path))
            finally:
                os.umask(before)
            made.listen(128)
            return made
        host, _, port = where.rpartition(":")
        host = host.strip("[]")
        made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, int(port)))
        made.listen(128)
        return made
    except OSError as error:
        raise ConsoleError("configuration", f"cannot listen on {where}: {error.strerror}; set another listen in console.toml") from None


def run(settings: Settings, static: pathlib.Path) -> None:
    house = House(settings)
    given = listener(settings)
    config = uvicorn.Config(application(house, static), http=Protocol, ws="none", lifespan="off", loop="asyncio", log_config=None,
                            access_log=False, server_header=False, date_header=False, proxy_headers=False, timeout_keep_alive=20,
                            limit_concurrency=CONNECTIONS_MAX)  # fmt: skip
    server = Server(config, house)

    async def serve() -> None:
        try:
            await server.serve(sockets=[given])
        finally:
            await house.desk.stop()
            await house.upstream.close()

    asyncio.run(serve())
