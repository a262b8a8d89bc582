"""The way to sluice-control: each call says for which person it is, signed by the console's key.

On the event loop. Control believes the signature, judges the person by the groups of the host, and audits what changes
something (docs/SECURITY.md, "The console").
"""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import base64
import dataclasses
import os
import pathlib
import time
import urllib.parse
from typing import Any, AsyncIterator

import grpc
import grpc.aio
from cryptography.hazmat.primitives import serialization

from .errors import ConsoleError, of_call
from .messages import api_pb2 as api
from .messages import console_pb2 as console

PURPOSE = b"sluice console delegation v1\n"
ROLE = {"viewer": console.Delegation.VIEWER, "user": console.Delegation.USER, "operator": console.Delegation.OPERATOR,
        "": console.Delegation.NONE}  # fmt: skip
_CALL_S = 60


@dataclasses.dataclass(frozen=True)
class For:
    """A person, and as which they call."""

    uid: int
    role: str


class Upstream:
    def __init__(self, socket: pathlib.Path, key_file: pathlib.Path) -> None:
        self.socket = socket
        self._key_file = key_file
        self._key = serialization.load_pem_private_key(_private(key_file), password=None)
        self._channel: grpc.aio.Channel | None = None

    def _open(self) -> grpc.aio.Channel:
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(f"unix:{urllib.parse.quote(str(self.socket))}", [
                ("grpc.max_receive_message_length", -1), ("grpc.initial_reconnect_backoff_ms", 200),
                ("grpc.max_reconnect_backoff_ms", 2000)])  # fmt: skip
        return self._channel

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close(None)

    def _metadata(self, who: For, method: str) -> list[tuple[str, str | bytes]]:
        said = console.Delegation(method=method, unix_ns=time.time_ns(), uid=who.uid, role=ROLE[who.role]).SerializeToString()
        signature = base64.b64encode(self._key.sign(PURPOSE + said)).decode()
        return [("sluice-delegation-bin", said), ("sluice-delegation-signature", signature)]

    async def call(self, who: For, method: str, request: Any, reply: Any, timeout_s: float = _CALL_S) -> Any:
        """One answer, of "Control/Node" and its like."""
        ask = self._open().unary_unary(f"/sluice.api.{method}", request_serializer=type(request).SerializeToString,
                                       response_deserializer=reply.FromString)  # fmt: skip
        try:
            return await ask(request, timeout=timeout_s, metadata=self._metadata(who, method))
        except grpc.RpcError as error:
            raise of_call(error, self.socket) from None

    async def stream(self, who: For, method: str, request: Any, reply: Any) -> AsyncIterator[Any]:
        """All answers; whoever leaves ends the call."""
        ask = self._open().unary_stream(f"/sluice.api.{method}", request_serializer=type(request).SerializeToString,
                                        response_deserializer=reply.FromString)  # fmt: skip
        call = ask(request, metadata=self._metadata(who, method))
        try:
            async for one in call:
                yield one
        except grpc.RpcError as error:
            raise of_call(error, self.socket) from None
        finally:
            call.cancel()

    async def rights(self, uid: int) -> tuple[str, list[str]]:
        """The name of this person, and the roles that control gives them."""
        reply = await self.call(For(uid, ""), "Console/Rights", console.RightsRequest(), console.RightsReply)
        names = {value: name for name, value in ROLE.items()}
        return reply.name, [names[role] for role in reply.roles if role in names]

    async def node(self, who: For) -> api.NodeReply:
        return await self.call(who, "Control/Node", api.NodeRequest(), api.NodeReply)


def _private(path: pathlib.Path) -> bytes:
    try:
        mode = os.stat(path).st_mode
        text = path.read_bytes()
    except OSError as error:
        raise ConsoleError("configuration", f"{path}: {error.strerror}; make the key with 'sluice console setup'") from None
    if mode & 0o077:
        raise ConsoleError("configuration", f"{path}: others can read the private key; run: chmod 600 {path}")
    return text
