"""Client of a Sluice node: begins transfers, follows them, and asks for what `sluice` shows.

    import sluice

    with sluice.Node("/etc/sluice") as node:
        session = node.send(["/srv/run42.h5"], "beta", "data/", sluice.Options(rate_bps=10_000_000_000))
        end = session.wait(on_progress=lambda now: print(f"{sluice.State.of(now)}: {now.bytes_done} of {now.bytes_total}"))
        print(end.files[0].digest_destination)

A node is spoken to over the socket in its directory (docs/REFERENCE.md, "API"); whoever may open that may do all that
`sluice` does. Messages (`sluice.api`, `sluice.logs`) are those of control/proto/api.proto and log.proto, which say what their fields
mean.
"""
# SPDX-License-Identifier: Apache-2.0
from . import api_pb2 as api
from . import log_pb2 as logs
from .errors import SluiceError
from .node import Node, Options, Session
from .state import State

__all__ = ["Node", "Options", "Session", "SluiceError", "State", "api", "logs"]
