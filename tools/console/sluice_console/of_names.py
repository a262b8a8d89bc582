"""Names at this node and at its peers: lists, sizes, changes, copies, and what a synchronisation would do."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator

from starlette.routing import Route

from . import words
from .door import Asked, call, stream
from .errors import ConsoleError
from .messages import api_pb2 as api

NAMES_MAX = 10_000  # that are copied by one order: each is a rule, or a source
SYNC_NAMES_MAX = 100_000  # of one session (docs/REFERENCE.md, "Selections")
_SIZE_TOLD_S = 0.3
_STILL_S = 10.0
_CHANGE_S = 24 * 3600.0  # to remove a tree takes what it takes; whoever leaves ends it


async def _list(asked: Asked) -> AsyncIterator[Any]:
    request = api.ListNamesRequest(peer=asked.word("node", ""), path=words.path(asked.given.get("path", "")))
    async for part in asked.upstream.stream(asked.who, "Names/List", request, api.ListNamesReply):
        yield words.entries(part.entries)


async def _look(asked: Asked) -> dict[str, Any]:
    """What is known of one name."""
    request = api.ListNamesRequest(peer=asked.word("node", ""), path=words.path(asked.given.get("path")), itself=True)
    async for part in asked.upstream.stream(asked.who, "Names/List", request, api.ListNamesReply):
        for one in part.entries:
            return {"type": words.kind(one), "size": one.size, "mode": one.mode, "mtime": one.mtime_ns // 1_000_000, "uid": one.uid,
                    "gid": one.gid, "links": one.links, "allocated": one.allocated_bytes, "target": words.text(one.target),
                    "error": one.error}  # fmt: skip
    raise ConsoleError("usage", f"{asked.given.get('path')!r}: there is no such name")


async def _digest(asked: Asked) -> AsyncIterator[Any]:
    """Of what a file holds: all of it is read. Meanwhile a line now and then says that it goes on."""
    request = api.ListNamesRequest(peer=asked.word("node", ""), path=words.path(asked.given.get("path")), itself=True, digests=True)

    async def first() -> api.NameEntry | None:
        async for part in asked.upstream.stream(asked.who, "Names/List", request, api.ListNamesReply):
            for one in part.entries:
                return one
        return None

    reading = asyncio.create_task(first())
    try:
        while not reading.done():
            yield {"reading": True}
            await asyncio.wait({reading}, timeout=_STILL_S)
        one = reading.result()
    finally:
        reading.cancel()
    if one is None or one.error:
        raise ConsoleError("source_unreadable", one.error if one else f"{asked.given.get('path')!r}: there is no such name")
    if not one.HasField("digest"):
        raise ConsoleError("usage", "that node tells no digests, or it is no file")
    yield {"digest": f"{one.digest:016x}"}


async def _size(asked: Asked) -> AsyncIterator[Any]:
    """Of a tree: how much is in it, told as it is found."""
    request = api.ListNamesRequest(peer=asked.word("node", ""), path=words.path(asked.given.get("path")), recursive=True)
    found = {"files": 0, "directories": 0, "others": 0, "bytes": 0, "allocated": 0, "problems": 0}
    told = asyncio.get_running_loop().time()
    yield dict(found)
    async for part in asked.upstream.stream(asked.who, "Names/List", request, api.ListNamesReply):
        for one in part.entries:
            kind = "files" if one.type == api.NameEntry.FILE else "directories" if one.type == api.NameEntry.DIRECTORY else "others"
            found[kind] += 1
            found["bytes"] += one.size if one.type == api.NameEntry.FILE else 0
            found["allocated"] += one.allocated_bytes
            found["problems"] += one.error_code != 0
        now = asyncio.get_running_loop().time()
        if now - told > _SIZE_TOLD_S:
            told = now
            yield dict(found)
    yield dict(found)


def _done(reply: api.NamesReply) -> dict[str, Any]:
    problems = [[words.text(one.path), one.error] for one in reply.problems]
    return {"entries": reply.entries, "failed": reply.failed, "problems": problems}


async def _make(asked: Asked) -> dict[str, Any]:
    request = api.MakeDirectoryRequest(peer=asked.word("node", ""), path=words.path(asked.given.get("path")))
    return _done(await asked.upstream.call(asked.who, "Names/MakeDirectory", request, api.NamesReply))


async def _move(asked: Asked) -> dict[str, Any]:
    request = api.MoveNameRequest(peer=asked.word("node", ""), to=words.path(asked.given.get("to")), replace=asked.yes("replace"),
                                  **{"from": words.path(asked.given.get("from"))})  # fmt: skip
    return _done(await asked.upstream.call(asked.who, "Names/Move", request, api.NamesReply))


async def _remove(asked: Asked) -> AsyncIterator[Any]:
    """Each of the names, one after the other: what became of it."""
    node, directory = asked.word("node", ""), words.path(asked.given.get("path"))
    names = asked.names("names", SYNC_NAMES_MAX) if not asked.yes("deep") else [words.path(one) for one in asked.given.get("names", ())]
    yield {"names": len(names)}
    for one in names:
        request = api.RemoveNameRequest(peer=node, path=directory + b"/" + one, recursive=asked.yes("recursive"))
        try:
            done = await asked.upstream.call(asked.who, "Names/Remove", request, api.NamesReply, _CHANGE_S)
            yield {"name": words.text(one), **_done(done)}
        except ConsoleError as error:
            yield {"name": words.text(one), "entries": 0, "failed": 1, "problems": [[words.text(one), str(error)]]}
            if error.name in ("outside_exports", "peer_unreachable", "daemon_not_running", "peer_untrusted", "configuration"):
                return  # the others would not go either


# ---- what becomes a session ----


def _literal(name: bytes) -> bytes:
    """A pattern that fits this name and no other. As with rsync, a backslash means something only beside wildcards."""
    if not any(byte in b"*?[" for byte in name):
        return name
    return b"".join(b"\\" + bytes((byte,)) if byte in b"*?[]\\" else bytes((byte,)) for byte in name)


def selection(directory: bytes, names: list[bytes], is_own: bool) -> tuple[list[str], list[api.Rule]]:
    """Sources, and rules where a name is such that only a pattern can say it: the API takes sources as text."""
    where = words.utf8(directory, "the directory")
    plain = all(_is_plain(name) for name in names)
    if plain:
        return [f"{where}/{name.decode()}" for name in names], []
    rules = [api.Rule(include=True, pattern=b"/" + _literal(name)) for name in names]
    return [f"{where}/"], [*rules, api.Rule(include=False, pattern=b"/*")]


def _is_plain(name: bytes) -> bool:
    try:
        return not any(letter in name.decode() for letter in "\r\n")
    except UnicodeDecodeError:
        return False


async def own_path(asked: Asked, path: bytes) -> bytes:
    """EXPORT/NAMES of this node as the absolute path that transfers take."""
    export, _, rest = path.partition(b"/")
    for line in (await asked.upstream.node(asked.who)).exports:
        name, _, more = line.partition(" ")
        root = more.rpartition(" ")[0]
        if name.encode() == export:
            return root.encode() + (b"/" + rest if rest else b"")
    raise ConsoleError("usage", f"{words.text(export)}: this node has no such export")


def _options(asked: Asked, **more: Any) -> api.TransferOptions:
    given = asked.given.get("options", {})
    if not isinstance(given, dict):
        raise ConsoleError("usage", "options: must be an object")
    of = Asked.__new__(Asked)
    of.given = given
    return api.TransferOptions(overwrite=of.yes("overwrite"), verify=of.yes("verify"), rate_bps=of.number("rate_bps", 0, 10**12, 0),
                               priority=of.number("priority", -100, 100, 0), mkdir=of.yes("mkdir"), **more)  # fmt: skip


def _sides(asked: Asked) -> tuple[str, bytes, str, bytes]:
    sides = asked.given.get("from"), asked.given.get("to")
    if not all(isinstance(side, dict) and isinstance(side.get("node"), str) for side in sides):
        raise ConsoleError("usage", "from and to must each have a node and a path")
    source, destination = sides
    if not words.path(source.get("path")) or not words.path(destination.get("path")):
        raise ConsoleError("usage", "choose an export at both sides first")
    if source["node"] and source["node"] == destination["node"]:
        raise ConsoleError("usage", f"both sides are {source['node']}: a transfer has two nodes; open the console of that one, "
                           "where F6 moves names within an export")  # fmt: skip
    if not source["node"] and not destination["node"]:
        raise ConsoleError("usage", "both sides are this node: a transfer has another node at one end; use cp(1), or F6 to move "
                           "names within an export")  # fmt: skip
    return source["node"], words.path(source["path"]), destination["node"], words.path(destination["path"])


async def _begin(asked: Asked, sources: list[str], peer_source: str, peer: str, destination: str, options: api.TransferOptions) -> str:
    if peer_source and peer:  # which this node only orders
        between = api.SendRequest(sources=sources, peer=peer, destination=destination, options=options, **{"from": peer_source})
        return (await asked.upstream.call(asked.who, "Control/Send", between, api.SessionRef)).id
    if peer_source:
        request: Any = api.GetRequest(peer=peer_source, sources=sources, destination=destination, options=options)
        return (await asked.upstream.call(asked.who, "Control/Get", request, api.SessionRef)).id
    request = api.SendRequest(sources=sources, peer=peer, destination=destination, options=options)
    return (await asked.upstream.call(asked.who, "Control/Send", request, api.SessionRef)).id


async def _copy(asked: Asked) -> dict[str, Any]:
    """What is selected at one side into the directory of the other: one session."""
    source_node, source, node, destination = _sides(asked)
    names = asked.names("names", NAMES_MAX)
    base = source if source_node else await own_path(asked, source)
    sources, rules = selection(base, names, not source_node)
    into = destination if node else await own_path(asked, destination)
    options = _options(asked, rules=rules)
    return {"id": await _begin(asked, sources, source_node, node, words.utf8(into, "the destination") + "/", options)}


def _compare_request(asked: Asked) -> tuple[api.CompareRequest, str, bytes, str, bytes]:
    source_node, source, node, destination = _sides(asked)
    if source_node and node:
        request = api.CompareRequest(own_node=source_node, own_path=source, peer=node, peer_path=destination, digests=asked.yes("digests"))
        return request, source_node, source, node, destination
    request = api.CompareRequest(peer=source_node or node, peer_path=source if source_node else destination, from_peer=bool(source_node),
                                 digests=asked.yes("digests"))  # fmt: skip
    return request, source_node, source, node, destination


_KINDS = {api.NameDifference.MISSING: "new", api.NameDifference.DIFFERENT: "changed", api.NameDifference.EXTRA: "extra",
          api.NameDifference.KEPT: "kept", api.NameDifference.SOURCE_PROBLEM: "problem",
          api.NameDifference.DESTINATION_PROBLEM: "problem"}  # fmt: skip


async def _compare(asked: Asked) -> AsyncIterator[Any]:
    """What a synchronisation would send, replace and leave over."""
    request, source_node, source, _, destination = _compare_request(asked)
    if not request.own_node:
        request.own_path = await own_path(asked, destination if source_node else source)
    yield {"from": words.text(source), "to": words.text(destination)}
    async for part in asked.upstream.stream(asked.who, "Names/Compare", request, api.CompareReply):
        rows = [[_KINDS.get(one.kind, "problem"), words.text(one.path), "d" if one.type == api.NameEntry.DIRECTORY else "f", one.size,
                 one.error] for one in part.differences]  # fmt: skip
        if rows:
            yield rows
        if part.HasField("totals"):
            totals = part.totals
            yield {"totals": {"same": totals.same, "new": totals.missing, "changed": totals.different, "extra": totals.extra,
                              "left_out": totals.left_out, "problems": totals.source_problems + totals.destination_problems,
                              "found": totals.destination_found}}  # fmt: skip


async def _sync(asked: Asked) -> dict[str, Any]:
    """Sends what the comparison named: a session that replaces what differs. What is extra stays."""
    source_node, source, node, destination = _sides(asked)
    given = asked.given.get("names")
    if not isinstance(given, list) or not 1 <= len(given) <= SYNC_NAMES_MAX:
        raise ConsoleError("usage", f"1 to {SYNC_NAMES_MAX} names may differ; synchronise parts of the directory by themselves")
    names = [words.path(one) for one in given]
    base = source if source_node else await own_path(asked, source)
    into = destination if node else await own_path(asked, destination)
    options = _options(asked, names=names)
    options.overwrite = True
    return {"id": await _begin(asked, [words.utf8(base, "the directory") + "/"], source_node, node,
                               words.utf8(into, "the destination"), options)}  # fmt: skip


def routes() -> list[Route]:
    return [stream("names/list", _list), call("names/look", _look), stream("names/size", _size), stream("names/digest", _digest), call("names/make", _make),
            call("names/move", _move), stream("names/remove", _remove), call("copy", _copy), stream("compare", _compare),
            call("sync", _sync)]  # fmt: skip
