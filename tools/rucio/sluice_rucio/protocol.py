"""The protocol `sluice` of an RSE: `impl` is sluice_rucio.protocol.Default.

It makes the URLs of replicas, and lets the reaper and consistency checks look at files and remove them, through the node
that orders transfers. Files are neither uploaded to an RSE nor downloaded by it: give the RSE another protocol for that.
"""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any, NoReturn, Optional

import sluice
from rucio.common import exception
from rucio.rse.protocols.protocol import RSEProtocol

from . import node
from .places import components

_NONE_THERE, _OUTSIDE = 7, 8  # source_unreadable, outside_exports


class Default(RSEProtocol):
    """Paths that methods take are URLs, or begin with the prefix."""

    def connect(self) -> None:
        self._node = node.node_in(node.configured())

    def close(self) -> None:
        """The connection to the node is that of the process."""

    def exists(self, path: Optional[str]) -> bool:
        return self._size(str(path)) is not None

    def stat(self, path: str) -> dict[str, Any]:
        """The size alone: for the adler32 the node would read the whole file."""
        size = self._size(path)
        if size is None:
            raise exception.SourceNotFound(f"{path}: no such file")
        return {"filesize": size}

    def delete(self, path: str) -> None:
        self._call(lambda: self._node.remove(self._peer(), _there(path)), path)

    def rename(self, path: str, new_path: str) -> None:
        self._call(lambda: self._node.move(self._peer(), _there(path), _there(new_path)), path)

    def get(self, path: str, dest: str, transfer_timeout: Optional[int] = None) -> NoReturn:
        raise exception.ServiceUnavailable(f"{path}: nothing is downloaded by this protocol; use another one of the RSE")

    def put(self, source: str, target: str, source_dir: Optional[str], transfer_timeout: Optional[int] = None) -> NoReturn:
        raise exception.ServiceUnavailable(f"{target}: nothing is uploaded by this protocol; use another one of the RSE")

    def _peer(self) -> str:
        """The name of the RSE's node. Without the attribute it is that of the protocol entry."""
        if not hasattr(self, "_name"):
            self._name = node.peer_of(self._node, _attribute_of(self.rse, "sluice_node") or self.attributes["hostname"])
        return self._name

    def _size(self, path: str) -> Optional[int]:
        return self._call(lambda: node.size_at(self._node, self._peer(), _there(path)), path)

    def _call(self, ask: Any, path: str) -> Any:
        try:
            return ask()
        except sluice.SluiceError as error:
            kind = {_NONE_THERE: exception.SourceNotFound, _OUTSIDE: exception.RSEAccessDenied}
            raise kind.get(error.code, exception.ServiceUnavailable)(f"{path}: {error}") from None


def _there(path: str) -> str:
    """EXPORT/PATH of a URL or a path."""
    head, separator, rest = path.partition("://")
    return "/".join(components(rest.partition("/")[2] if separator else head))


def _attribute_of(rse: Any, name: str) -> Optional[str]:
    from rucio.core.rse import list_rse_attributes

    return list_rse_attributes(rse["id"]).get(name)
