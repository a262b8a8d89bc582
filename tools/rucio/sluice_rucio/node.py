"""The node that orders, and the errors of it that Rucio's daemons understand."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import threading
from typing import Any, Optional

import sluice
from rucio.common.exception import TransferToolTimeout, TransferToolWrongAnswer
from sluice import api

from . import outcome
from .places import SCHEME

USAGE = 2
_AWAY = (3, 4, 6, 14, 17)  # configuration, daemon_not_running, peer_unreachable, stalled, resources: asked again later
_nodes: dict[str, sluice.Node] = {}
_lock = threading.Lock()


def configured() -> str:
    """The directory of the node that orders: [sluice] node of rucio.cfg, $SLUICE_NODE, or /etc/sluice."""
    from rucio.common.config import config_get

    chosen = config_get(SCHEME, "node", raise_exception=False, default=None)
    return os.path.abspath(chosen or os.environ.get("SLUICE_NODE") or "/etc/sluice")


def node_in(directory: str) -> sluice.Node:
    """One connection for each node, which all threads share."""
    with _lock:
        if directory not in _nodes:
            _nodes[directory] = sluice.Node(directory)
        return _nodes[directory]


def raised(error: sluice.SluiceError) -> Exception:
    """Rucio asks again after a timeout, and gives up an attempt after a wrong answer. Its logs show the text."""
    text = f"{error} ({error.name}, {error.code})"
    return TransferToolTimeout(text) if error.code in _AWAY else TransferToolWrongAnswer(text)


def passing(error: sluice.SluiceError) -> bool:
    return error.code in _AWAY


def order(node: sluice.Node, job: dict[str, Any], timeout_s: Optional[float]) -> str:
    """Begins the session of a job (`grouping.Job.order`); its id. This node orders it, or is one of the two that it is between."""
    # A stuck session ends instead of waiting for an operator: Rucio tries again by itself.
    options = sluice.Options(names=job["names"], mkdir=True, overwrite=job["overwrite"], on_error="fail",
                             priority=job["priority"]).message()  # fmt: skip
    source, destination, shown = job["source"], job["destination"], node.show()
    if job["destination_node"] == shown.name:
        got = api.GetRequest(peer=job["source_node"], sources=[source], destination=_local(shown, destination), options=options)
        return node.call("Get", got, api.SessionRef, timeout_s=timeout_s or 60).id
    request = api.SendRequest(peer=job["destination_node"], destination=destination, options=options)
    if job["source_node"] == shown.name:
        request.sources.append(_local(shown, source))
    else:
        request.sources.append(source)
        setattr(request, "from", job["source_node"])
    return node.call("Send", request, api.SessionRef, timeout_s=timeout_s or 60).id


def _local(shown: api.NodeReply, path: str) -> str:
    """The absolute path of EXPORT/PATH at the node itself."""
    name, _, rest = path.partition("/")
    for export in shown.exports:  # "NAME PATH MODE"
        known, _, place = export.partition(" ")
        if known == name:
            return os.path.join(place.rpartition(" ")[0], rest)
    raise sluice.SluiceError(8, "outside_exports", f"{path}: the node {shown.name} has no export {name!r}")


def peer_of(node: sluice.Node, name: str) -> str:
    """By which calls about names mean the node `name`: none for the node itself."""
    return "" if node.show().name == name else name


def end_of(session: api.Session) -> outcome.Ended:
    names = session.names
    missing, cut = outcome.told(((each.path, each.reason, each.arrived) for each in names.missing),
                                names.failed + names.left_out)  # fmt: skip
    return outcome.Ended(str(sluice.State.of(session)), session.error, session.error_name, session.error_code, missing, cut)


def size_at(node: sluice.Node, peer: str, path: str) -> Optional[int]:
    """Of a file there; None: there is none. SluiceError where the peer does not say."""
    try:
        entry = next(iter(node.names(peer, path, itself=True)), None)
    except sluice.SluiceError as error:
        if error.code == 7:  # source_unreadable: there is no such name
            return None
        raise
    if entry is None or entry.type != api.NameEntry.FILE:
        return None
    if entry.error_code:
        raise sluice.SluiceError(entry.error_code, "", entry.error)
    return entry.size
