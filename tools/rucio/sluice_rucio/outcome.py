"""What the state of a session means for one file of it."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import enum
from typing import Iterable, Optional

_EXISTS_CODE = 9  # destination_exists
_EXISTS_TEXT = "exists at the destination"  # control/words: the reason of a name that stands there with other bytes


class Verdict(enum.Enum):
    """Of a file: the session goes on; it is there; it is not."""

    PENDING = 0
    DONE = 1
    FAILED = 2


@dataclasses.dataclass(frozen=True)
class Outcome:
    """`in_the_way`: the destination holds a file with other bytes, which only an overwriting session would replace."""

    verdict: Verdict
    reason: Optional[str] = None
    in_the_way: bool = False


PENDING, DONE = Outcome(Verdict.PENDING), Outcome(Verdict.DONE)


@dataclasses.dataclass(frozen=True)
class Ended:
    """The end of a session, as the node tells it. `missing`: (name from its directory on, reason) of names that did not
    arrive; `cut`: there are more than these."""

    state: str
    error: str = ""
    error_name: str = ""
    error_code: int = 0
    missing: tuple[tuple[str, str], ...] = ()
    cut: bool = False


def of_file(end: Ended, path: str) -> Outcome:
    """`path`: EXPORT/PATH of the file at the destination. States are those of docs/REFERENCE.md, "JSON"."""
    if end.state == "succeeded":
        return DONE
    if end.state == "partial":
        return _of_missing(end, path)
    if end.state == "failed":
        return Outcome(Verdict.FAILED, f"{end.error} ({end.error_name}, {end.error_code})", end.error_code == _EXISTS_CODE)
    if end.state == "cancelled":
        return Outcome(Verdict.FAILED, end.error or "the session was cancelled")
    return PENDING  # it moves, waits, or is paused until somebody lets it go on


def _of_missing(end: Ended, path: str) -> Outcome:
    for name, reason in end.missing:
        if path == name or path.endswith("/" + name):
            return Outcome(Verdict.FAILED, f"{name}: {reason}", reason.startswith(_EXISTS_TEXT))
    # If the node told not all of them, this file may be one of the others. Sent again it arrives, or is told.
    return Outcome(Verdict.FAILED, f"{end.error} ({end.error_name}, {end.error_code})") if end.cut else DONE


def of_size(path: str, found: Optional[int], expected: Optional[int]) -> Outcome:
    """A file that the session says is there. `found`: its size at the destination, None: there is no such file;
    `expected`: as Rucio knows it, None: it does not."""
    if found is None:
        return Outcome(Verdict.FAILED, f"{path}: no file at the destination after the session had ended; was it removed there?")
    if expected is not None and found != expected:
        return Outcome(Verdict.FAILED, f"{path}: has {found} bytes at the destination, and Rucio says {expected}; compare "
                       "the replica at the source", True)  # fmt: skip
    return DONE


def told(missing: Iterable[tuple[str, str, bool]], count: int) -> tuple[tuple[tuple[str, str], ...], bool]:
    """(missing, cut) of Ended, from (name, reason, arrived) of those that the node told, and from how many there are. What
    arrived, though not as it was, is not missing."""
    every = list(missing)
    return tuple((path, reason) for path, reason, arrived in every if not arrived), count > len(every)
