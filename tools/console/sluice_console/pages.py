"""The files of the pages: read once at the start, named here one by one, each with its gzip and a tag.

No path of a request becomes a path of this host.
"""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gzip
import hashlib
import pathlib

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css",
         ".svg": "image/svg+xml", ".txt": "text/plain"}  # fmt: skip


class _File:
    def __init__(self, path: pathlib.Path) -> None:
        self.plain = path.read_bytes()
        self.packed = gzip.compress(self.plain, 9, mtime=0)
        self.type = TYPES[path.suffix]
        self.tag = f'"{hashlib.sha256(self.plain).hexdigest()[:16]}"'

    async def serve(self, request: Request) -> Response:
        headers = {"etag": self.tag, "cache-control": "no-cache", "vary": "accept-encoding"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.packed, media_type=self.type, headers={**headers, "content-encoding": "gzip"})
        return Response(self.plain, media_type=self.type, headers=headers)


def routes(directory: pathlib.Path) -> list[Route]:
    found = []
    for path in sorted(directory.rglob("*")):
        if path.suffix in TYPES:
            file = _File(path)
            found.append(Route(f"/{path.relative_to(directory).as_posix()}", file.serve, methods=["GET"]))
            if path.name == "index.html":
                found.append(Route("/", file.serve, methods=["GET"]))
    return found


def packed_bytes(directory: pathlib.Path) -> int:
    """What all of them weigh on the way."""
    return sum(len(_File(path).packed) for path in directory.rglob("*") if path.suffix in TYPES and path.suffix != ".txt")
