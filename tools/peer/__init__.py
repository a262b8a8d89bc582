# A small peer of Sluice, written from docs/WIRE.md and control/proto/peer.proto alone: the second half of that
# document. It is slow and plain, and complete enough to exchange files with a node in every role.
#
# wire.py      datagrams, digests, status         session.py      what both ends of a session share
# keys.py      the keys of a flow                 source.py       the end that sends
# control.py   TLS, frames, messages              destination.py  the end that receives
# node.py      names, calls, sessions             names.py        names, asked for and answered
# main.py      a command for a person             parts.py        parts of files, wanted of a source
# leases.py    leases that it keeps               moves.py        sessions that go to another node
# digests.py   digests that archives ask for
# grants.py    grants, signed and judged          orders.py       orders, given and taken
#
# It needs python3-protobuf, python3-cryptography, protoc and openssl, and ordinary UDP and TCP sockets.
# SPDX-License-Identifier: Apache-2.0
from .control import Failed, Gone, Held, Identity, Listener, certify, connect, make_identity
from .destination import Destination
from .names import Owner
from .node import Node
from .orders import Desk
from .session import Abilities, udp_socket
from .source import Source

__all__ = [
    "Abilities",
    "Desk",
    "Destination",
    "Failed",
    "Gone",
    "Held",
    "Identity",
    "Listener",
    "Node",
    "Owner",
    "Source",
    "certify",
    "connect",
    "make_identity",
    "udp_socket",
]
