# Datagrams that nobody should take, as somebody makes them who has seen one of a flow go by and has no key. Pure.
# SPDX-License-Identifier: Apache-2.0
import socket

from harness.middle import sluice_header_at

STRANGERS, WRONG_TAG = "strangers", "wrong tag"
COUNTERS = {STRANGERS: "rx_drop_unknown_flow", WRONG_TAG: "rx_drop_forged"}
_AHEAD = 200_000  # numbers to which the flow does not come before a run is over
_IP_AT, _UDP_AT = 14, 34
_FLOW_ID_AT, _TX_SEQ_AT = 8, 16  # in the Sluice header (docs/WIRE.md, 1.1)


def checksum(data):
    """Of the Internet (RFC 1071)."""
    total = sum(int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def righted(frame):
    """An IPv4 frame of UDP with right checksums."""
    frame = bytearray(frame)
    frame[_IP_AT + 10 : _IP_AT + 12] = bytes(2)
    frame[_IP_AT + 10 : _IP_AT + 12] = checksum(frame[_IP_AT:_UDP_AT]).to_bytes(2, "big")
    frame[_UDP_AT + 6 : _UDP_AT + 8] = bytes(2)
    length = int.from_bytes(frame[_UDP_AT + 4 : _UDP_AT + 6], "big")
    pseudo = frame[_IP_AT + 12 : _UDP_AT] + bytes([0, socket.IPPROTO_UDP]) + length.to_bytes(2, "big")
    value = checksum(pseudo + frame[_UDP_AT : _UDP_AT + length]) or 0xFFFF
    frame[_UDP_AT + 6 : _UDP_AT + 8] = value.to_bytes(2, "big")
    return bytes(frame)


def made_of(frame, kind, count, source_mac):
    """So many frames as long as this one of the flow's data: of a flow and an address that nobody knows, or with
    everything of the flow, numbers that are to come, and a tag that is none. From a link address of its own: with
    that of the flow a bridge would be led elsewhere, which is another attack."""
    at = sluice_header_at(frame)
    if not at:
        raise ValueError("no datagram of a lane")
    number = int.from_bytes(frame[at + _TX_SEQ_AT : at + _TX_SEQ_AT + 8], "big")
    out = []
    for step in range(count):
        one = bytearray(frame)
        one[6:12] = source_mac
        if kind == STRANGERS:
            one[_IP_AT + 15] ^= 0x80  # another host of the network
            one[at + _FLOW_ID_AT : at + _FLOW_ID_AT + 8] = (step * 0x9E3779B97F4A7C15 % (1 << 64)).to_bytes(8, "big")
        else:
            one[at + _TX_SEQ_AT : at + _TX_SEQ_AT + 8] = (number + _AHEAD + step).to_bytes(8, "big")
        out.append(righted(one))
    return out
