"""Which files travel in one session.

A session sends names beneath one directory of the source node to one directory of the destination node. Rucio gives a
whole path for each file at either end. The part that both paths have in common at their ends is the name; what stands
before it are the two directories. With Rucio's `hash` algorithm on both RSEs these directories are the prefixes of the two
RSEs, so that all files of a rule travel together. A file whose last component differs travels in a session of its own.
"""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
from typing import Any, Iterable, Optional

from .places import components

LARGE_BYTES = 1 << 20  # a file beyond this travels by itself, not in a pack
LARGE_MAX = 4096  # of a session (control/catalog/catalog.h)
NAMES_MAX = 100_000  # of a session, of NAMES_BYTES_MAX together (docs/REFERENCE.md, "Selections")
NAMES_BYTES_MAX = 8 << 20
TOLD_MAX = 1000  # a node tells so many of the names that did not arrive


@dataclasses.dataclass(frozen=True)
class File:
    """One file of one request. Paths are components from the export on; floors say how many of these belong to the prefix of
    the RSE: no session writes to a directory above it."""

    source_node: str
    source: tuple[str, ...]
    destination_node: str
    destination: tuple[str, ...]
    size: int
    overwrite: bool = False
    priority: int = 0  # in the queue of the source's node
    rule: Optional[str] = None
    source_floor: int = 1
    destination_floor: int = 1
    transfer: Any = dataclasses.field(default=None, compare=False)

    def name(self) -> tuple[str, ...]:
        """What both paths have in common at their ends, no more than what is beneath both prefixes."""
        most = min(len(self.source) - self.source_floor, len(self.destination) - self.destination_floor)
        same = 0
        while same < most and self.source[-1 - same] == self.destination[-1 - same]:
            same += 1
        return self.source[len(self.source) - same:]  # fmt: skip


@dataclasses.dataclass
class Job:
    """One session. Without `names` it is of one file, and `source` and `destination` are its whole paths."""

    source_node: str
    source: str
    destination_node: str
    destination: str
    overwrite: bool
    priority: int
    names: list[str] = dataclasses.field(default_factory=list)
    files: list[File] = dataclasses.field(default_factory=list)

    def order(self) -> dict[str, Any]:
        """What `submit` needs, in values of which JSON can be made: Rucio logs it."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "files"}


class _Open:
    """A job that still takes files."""

    def __init__(self, job: Job, files_max: int) -> None:
        self.job, self._files_max = job, files_max
        self._names: set[str] = set()
        self._ends: set[str] = set()  # of each name, what stands behind each of its slashes
        self._bytes = self._large = 0

    def takes(self, name: str, size: int) -> bool:
        return (len(self._names) < min(self._files_max, NAMES_MAX) and self._bytes + len(name.encode()) + 1 <= NAMES_BYTES_MAX
                and self._large + (size > LARGE_BYTES) <= LARGE_MAX and name not in self._names
                and name not in self._ends and self._names.isdisjoint(_ends(name)))  # fmt: skip

    def add(self, name: str, file: File) -> None:
        self.job.names.append(name)
        self.job.files.append(file)
        self._names.add(name)
        self._ends.update(_ends(name))
        self._bytes += len(name.encode()) + 1
        self._large += file.size > LARGE_BYTES


def _ends(name: str) -> Iterable[str]:
    parts = components(name)
    return ("/".join(parts[at:]) for at in range(1, len(parts)))


def group(files: Iterable[File], files_max: int = TOLD_MAX) -> list[Job]:
    """Jobs, in the order of their first files. Files of two rules never share a session: Rucio cancels by rule. In one
    session no name ends with another one, so that the end of a path alone says which name is meant (`outcome`)."""
    jobs: list[Job] = []
    still_open: dict[tuple[Any, ...], _Open] = {}
    for file in files:
        name = file.name()
        if not name:
            jobs.append(_job(file, "/".join(file.source), "/".join(file.destination)))
            jobs[-1].files.append(file)
            continue
        roots = (file.source[:-len(name)], file.destination[:-len(name)])  # fmt: skip
        key = (file.source_node, file.destination_node, *roots, file.overwrite, file.priority, file.rule)
        text = "/".join(name)
        if key not in still_open or not still_open[key].takes(text, file.size):
            jobs.append(_job(file, *("/".join(root) + "/" for root in roots)))
            still_open[key] = _Open(jobs[-1], files_max)
        still_open[key].add(text, file)
    return jobs


def _job(file: File, source: str, destination: str) -> Job:
    return Job(file.source_node, source, file.destination_node, destination, file.overwrite, file.priority)


def queue_priority(priority: Optional[int]) -> int:
    """Rucio counts from 1 to 5, without a word 3. In the queue of the source's node, where the higher goes first, an order has
    0 at most: so 5 is 0 there, and 1 is -40."""
    return 10 * (min(max(priority or 3, 1), 5) - 5)
