"""How a session stands."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import enum

from . import api_pb2 as api

_PARTIAL_CODE = 21


class State(enum.IntEnum):
    """Of a session: `State.of(session)`. str() is what `sluice` prints, such as "transferring".

    Each is the number that the message's `state` holds, but PARTIAL: there a node says SUCCEEDED with the error_code 21,
    as some names did not arrive.
    """

    STATE_UNSPECIFIED = 0  # of a node that is newer than this client
    CONNECTING = 1
    NEGOTIATING = 2
    TRANSFERRING = 3
    FINISHING = 4
    SUCCEEDED = 5
    FAILED = 6
    CANCELLED = 7
    QUEUED = 8
    WAITING = 9  # goes on by itself; `waiting_for` says what it waits for
    PAUSED = 10  # until an operator continues it; with an error_code if none paused it
    PARTIAL = 11

    @classmethod
    def of(cls, session: api.Session) -> State:
        if session.state == cls.SUCCEEDED and session.error_code == _PARTIAL_CODE:
            return cls.PARTIAL
        return cls(session.state)

    @classmethod
    def _missing_(cls, value: object) -> State:
        return cls.STATE_UNSPECIFIED

    @property
    def ended(self) -> bool:
        """For good: nothing more comes of it."""
        return self in (State.SUCCEEDED, State.PARTIAL, State.FAILED, State.CANCELLED)

    def __str__(self) -> str:
        return "unknown" if self is State.STATE_UNSPECIFIED else self.name.lower()
