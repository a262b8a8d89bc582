"""Messages of the API as JSON for pages, and names there and back.

A name is bytes. In JSON it is text whose bytes that are no UTF-8 are lone surrogates (PEP 383), which browsers keep as
they are, so that a page gives back the very bytes that it was given. Pure.
"""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any, Iterable

from .errors import ConsoleError
from .messages import api_pb2 as api

_TYPES = "?fdlpscb"  # by NameEntry.Type
NAME_BYTES_MAX = 255
PATH_BYTES_MAX = 4096


def text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def name(given: str) -> bytes:
    try:
        return given.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ConsoleError("usage", "a name holds what no name can hold") from None


def path(given: Any) -> bytes:
    """A path within a node: EXPORT, or EXPORT/NAMES, without anything that leads up. Empty: the exports."""
    if not isinstance(given, str):
        raise ConsoleError("usage", "a path must be text")
    found = name(given)
    parts = found.split(b"/")
    if len(found) > PATH_BYTES_MAX or b"\0" in found or (found and any(part in (b"", b".", b"..") for part in parts)):
        raise ConsoleError("usage", f"{given!r}: is no path of the form EXPORT/NAME/NAME")
    return found


def one_name(given: Any) -> bytes:
    """Of one file or directory, without a slash."""
    found = path(given)
    if not found or b"/" in found or len(found) > NAME_BYTES_MAX:
        raise ConsoleError("usage", f"{given!r}: is no name; one has 1 to {NAME_BYTES_MAX} bytes and no slash")
    return found


def utf8(path: bytes, what: str) -> str:
    """Where the API takes text alone."""
    try:
        return path.decode()
    except UnicodeDecodeError:
        raise ConsoleError("usage", f"{what}: {text(path)!r} is not UTF-8, and a transfer takes no such directory; rename it first") from None


def kind(one: api.NameEntry) -> str:
    """A letter."""
    return _TYPES[one.type] if one.type < len(_TYPES) else "?"


def entries(page: Iterable[api.NameEntry]) -> str:
    """A line of NDJSON with a row for each: name, type, size, mtime in ms, mode; then target and error where there is one.

    Written by hand: of a directory of 100,000 names this takes half the time of json.dumps().
    """
    rows = []
    for one in page:
        row = f'[{_quoted(text(one.path))},"{kind(one)}",{one.size},{one.mtime_ns // 1_000_000},{one.mode}'
        target, error = one.target, one.error
        rows.append(f"{row},{_quoted(text(target))},{_quoted(error)}]" if target or error else row + "]")
    return f"[{','.join(rows)}]\n"


def lines(rows: Any) -> str:
    """A line of NDJSON; what is one already stays."""
    return rows if isinstance(rows, str) else json.dumps(rows, separators=(",", ":")) + "\n"


def cause(one: api.Bottleneck) -> dict[str, Any] | None:
    return {"cause": one.cause, "share": one.share, "evidence": list(one.evidence)} if one.cause else None


def overview(one: api.Session) -> dict[str, Any]:
    """As a table shows it: without its files and its history."""
    return {
        "id": one.id, "state": one.state_name, "direction": one.direction, "from": getattr(one, "from"),
        "peer": one.peer, "ordered_by": one.ordered_by, "total": one.bytes_total,
        "done": one.bytes_done, "listing": one.listing, "rate": one.rate_bps if one.HasField("rate_bps") else None,
        "goodput": one.goodput_bps, "limit": one.rate_limit_bps, "lost": one.lost, "retransmits": one.retransmits, "chunks": one.chunks,
        "rtt_us": one.rtt_us, "waiting": one.waiting_for, "place": one.queue_place, "queued": one.queue_length,
        "priority": one.priority, "error": one.error, "error_name": one.error_name, "started": one.started_unix_ns // 1_000_000,
        "elapsed_s": one.elapsed_s, "cause": cause(one.bottleneck), "user": one.user,
        "files": {"count": len(one.files), "first": one.files[0].source if one.files else ""},
        "names": {"total": one.names.total, "done": one.names.done, "failed": one.names.failed},
    }  # fmt: skip


def detail(one: api.Session, files_max: int = 200) -> dict[str, Any]:
    """All of it, with its history; of its files the first."""
    return {
        **overview(one), "lanes": one.lanes, "chunk_bytes": one.chunk_bytes, "crc": one.crc, "protection": one.protection,
        "wire": one.wire, "rate_mode": one.rate_mode, "rate_state": one.rate_state, "attempts": one.attempts,
        "crc_errors": one.crc_errors, "duplicates": one.duplicates, "resent": one.bytes_resent, "data_elapsed_s": one.data_elapsed_s,
        "deadline": {"at": one.deadline_unix_ns // 1_000_000, "state": one.deadline_state,
                     "end": one.expected_end_unix_ns // 1_000_000} if one.deadline_unix_ns else None,
        "causes": [cause(each) for each in one.causes],
        "history": [[round(each.seconds, 3), round(each.rate_bps), each.cause] for each in one.history],
        "lane": [[each.lane, each.bytes, each.chunks, each.retransmits, each.lost, each.rate_limit_bps, round(each.rtt_us, 1),
                  each.credit_extents] for each in one.lane_progress],
        "file": [[each.source, each.destination, each.size, each.bytes_done, each.done, each.digest_source,
                  each.digest_destination, each.names] for each in one.files[:files_max]],
        "missing": [[each.path, each.reason, each.arrived] for each in one.names.missing[:files_max]],
        "left_out": one.names.left_out,
    }  # fmt: skip


def event(one: api.SessionEvent) -> dict[str, Any]:
    """Of the stream: what a table changes by it."""
    said: dict[str, Any] = {
        "id": one.session, "event": one.event, "state": one.state, "direction": one.direction, "from": getattr(one, "from"),
        "peer": one.peer, "done": one.bytes_done, "total": one.bytes_total, "listing": one.listing, "waiting": one.waiting_for,
        "rate": one.rate_bps if one.HasField("rate_bps") else None, "limit": one.rate_limit_bps, "rate_state": one.rate_state,
        "chunks": one.chunks, "retransmits": one.retransmits, "lost": one.lost, "rtt_us": one.rtt_us,
        "place": one.queue_place, "queued": one.queue_length, "cause": cause(one.bottleneck), "error": one.error,
        "error_name": one.error_name, "user": one.user, "at": one.unix_ns // 1_000_000,
    }  # fmt: skip
    return said
