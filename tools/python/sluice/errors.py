"""What a node refuses, and what a session failed of."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from typing import Any

import grpc

_USAGE = 2
_CONFIGURATION = 3
_UNREACHABLE = 4  # daemon_not_running
_INTERNAL = 1


class SluiceError(Exception):
    """`code` and `name` are those of docs/RUNBOOK.md, "Exit codes"; str() is the message."""

    def __init__(self, code: int, name: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.name = name


class WrongValue(SluiceError, ValueError):
    """A value that no message can carry, so the node was not asked."""

    def __init__(self, message: str) -> None:
        super().__init__(_USAGE, "usage", message)


def made(message: Any, **fields: Any) -> Any:
    """A message with these fields. WrongValue names the field that cannot have its value."""
    for name, value in fields.items():
        try:
            message(**{name: value})
        except ValueError:
            raise WrongValue(f"{name} = {value!r}: is out of range; 'sluice send --help' says what is possible") from None
    return message(**fields)


def stands_still(socket: str, limit_s: float) -> SluiceError:
    return SluiceError(_UNREACHABLE, "daemon_not_running",
                       f"sluice-control on {socket} stands still: no answer within {limit_s:.0f} s; see whether it is "
                       "stopped or swapped out, and what its log says last")  # fmt: skip


def node_closed() -> SluiceError:
    return SluiceError(_USAGE, "usage", "this Node was closed: make a new one; its sessions go on")


def of_call(error: grpc.RpcError, socket: str) -> SluiceError:
    """What a call failed of."""
    said = {item.key: item.value for item in error.trailing_metadata() or ()}
    if "sluice-error-code" in said:
        return SluiceError(int(said["sluice-error-code"]), said.get("sluice-error-name", ""), error.details())
    if error.code() == grpc.StatusCode.UNAVAILABLE:
        if not os.path.isdir(os.path.dirname(os.path.dirname(socket))):
            return SluiceError(_CONFIGURATION, "configuration", f"no node in {os.path.dirname(os.path.dirname(socket))}")
        if os.path.exists(socket) and not os.access(socket, os.W_OK):
            return SluiceError(_CONFIGURATION, "configuration", f"{socket}: no right to it: ask its node's operator")
        return SluiceError(_UNREACHABLE, "daemon_not_running", f"sluice-control does not answer on {socket}: start it")
    if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
        return SluiceError(_UNREACHABLE, "daemon_not_running", f"sluice-control does not answer in time on {socket}: see its log")
    return SluiceError(_INTERNAL, "internal", f"{socket}: {error.code().name}: {error.details()}")
