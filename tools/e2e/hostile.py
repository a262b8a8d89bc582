# A trusted node that says what it likes: the control stream without any of the manners of tools/peer.
# SPDX-License-Identifier: Apache-2.0
import os
import socket
import struct

import peer
from peer.control import pb
from peer.session import VERSION


class Stream:
    """A connection to a node, with the identity of another."""

    def __init__(self, node, identity_of):
        host, _, port = node.address.rpartition(":")
        identity = peer.Identity(identity_of.directory / "identity", [node.certificate])
        self.tls = identity.tls(socket.create_connection((host, int(port)), timeout=20), called=False)
        assert self.read_frame() == b"", "our key is trusted"

    def close(self):
        self.tls.close()

    def read_exactly(self, size):
        data = b""
        while len(data) < size:
            more = self.tls.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def read_frame(self):
        return self.read_exactly(struct.unpack(">I", self.read_exactly(4))[0])

    def say(self, **body):
        message = pb.PeerMessage(**body).SerializeToString()
        self.tls.sendall(struct.pack(">I", len(message)) + message)

    def hear(self):
        """The next message but Heartbeats: (its name, itself)."""
        while True:
            message = pb.PeerMessage.FromString(self.read_frame())
            kind = message.WhichOneof("body")
            if kind != "heartbeat":
                return kind, getattr(message, kind)

    def open_session(self, session=None):
        """The answer to the Hello of a session, new or not."""
        self.session = session or os.urandom(16)
        self.say(hello=pb.Hello(protocol_version_min=VERSION, protocol_version_max=VERSION, session_id=self.session))
        return self.hear()


def specification(address=(10, 77, 0, 9)):
    """Of a node that wants to send."""
    return pb.Specification(
        role=pb.Specification.ROLE_SOURCE, lanes_max=1, data_ip4=bytes(address), chunk_bytes_max_ip4=1400,
        extent_bytes_max=1 << 20, crc_kinds=[pb.CRC_KIND_CRC64_ECMA], rate_bps_max=10**9, udp_ports=[48000],
    )  # fmt: skip
