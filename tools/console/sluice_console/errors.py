"""What goes wrong, with the codes of docs/RUNBOOK.md, "Exit codes"."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import grpc

CODES = {"internal": 1, "usage": 2, "configuration": 3, "daemon_not_running": 4, "resources": 17}
_HTTP = {"usage": 400, "daemon_not_running": 503, "internal": 500, "resources": 503}


class ConsoleError(Exception):
    """One line that names the thing, the reason and the remedy."""

    def __init__(self, name: str, message: str, code: int = 0, status: int = 0) -> None:
        super().__init__(message)
        self.name = name
        self.code = code or CODES.get(name, 1)
        self.status = status or _HTTP.get(name, 422)  # of HTTP

    def of_command(self) -> dict[str, object]:
        """As each command prints it with --json."""
        return {"schema": "sluice.error.v1", "code": self.code, "name": self.name, "message": str(self)}

    def json(self) -> dict[str, object]:
        return {"error": {"name": self.name, "code": self.code, "message": str(self)}}


def of_call(error: grpc.RpcError, socket: object) -> ConsoleError:
    """What a call of control failed of."""
    said = {key: value for key, value in error.trailing_metadata() or ()}  # no mapping, whatever it looks like
    if "sluice-error-code" in said:
        return ConsoleError(said.get("sluice-error-name", ""), error.details(), int(said["sluice-error-code"]))
    if error.code() == grpc.StatusCode.UNAVAILABLE:
        return ConsoleError("daemon_not_running", f"sluice-control does not answer on {socket}: start it, and see "
                            "that 'sluice console setup' was run for the user of sluice-console")  # fmt: skip
    if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
        return ConsoleError("daemon_not_running", f"sluice-control does not answer in time on {socket}: see its log")
    return ConsoleError("internal", f"{error.code().name.lower()}: {error.details()}")
