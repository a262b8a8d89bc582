# A stranger on the data network: ARP, neighbour discovery and datagrams that somebody else made. A transfer that
# runs goes on, and what came is counted.
# SPDX-License-Identifier: Apache-2.0
import json
import socket
import struct
import subprocess

import pytest
from harness import VethWire, veth_missing, wait_until
from harness.system import run, same_bytes
from transfers import MIB, ended_session, finish, forget, make_file, start_slow, still_serving

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

IP4 = [socket.inet_aton(f"10.77.0.{host}") for host in (1, 2)]
IP6 = [socket.inet_pton(socket.AF_INET6, f"fd77::{host}") for host in (1, 2)]
EVERYBODY6 = socket.inet_pton(socket.AF_INET6, "ff02::1")
STRANGER = bytes.fromhex("02deadbeef01")
SIZE = 30 * MIB
RATE = "60M"

# Sends each line of stdin, a frame in hex, out of data0.
_SENDER = """
import socket, sys
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(("data0", 0))
for line in sys.stdin:
    out.send(bytes.fromhex(line))
"""


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(wire=VethWire(), bytes_needed=1 << 30)


def mac_of(pair, side):
    (link,) = json.loads(run([*pair.wire.enter(side), "ip", "-j", "link", "show", "data0"]))
    return bytes.fromhex(link["address"].replace(":", ""))


def send_frames(pair, side, frames):
    subprocess.run([*pair.wire.enter(side), "/usr/bin/python3", "-c", _SENDER], check=True, text=True,
                   input="".join(frame.hex() + "\n" for frame in frames))  # fmt: skip


def arp(operation, to, sender_ip, target_mac, target_ip):
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + STRANGER + sender_ip + target_mac + target_ip
    return to + STRANGER + b"\x08\x06" + body + bytes(18)


def advertisement(to, source, destination, flags):
    message = struct.pack("!BBHBBH", 136, 0, 0, flags, 0, 0) + source + b"\x02\x01" + STRANGER
    total = source + destination + struct.pack("!II", len(message), 58) + message
    words = sum(struct.unpack(f"!{len(total) // 2}H", total))
    while words >> 16:
        words = (words & 0xFFFF) + (words >> 16)
    message = message[:2] + struct.pack("!H", ~words & 0xFFFF) + message[4:]
    header = struct.pack("!IHBB", 6 << 28, len(message), 58, 255) + source + destination
    return to + STRANGER + b"\x86\xdd" + header + message


@pytest.mark.parametrize("family", ["-4", "-6"])
def test_a_stranger_who_claims_the_peers_address_changes_nothing(pair, family):
    source = make_file(pair.a, SIZE)
    process, session = start_slow(pair.a, "send", source, "b:data/", family, rate=RATE)
    to = mac_of(pair, 0)
    if family == "-4":
        ours, peers = IP4
        frames = [arp(2, to, peers, to, ours), arp(1, b"\xff" * 6, peers, bytes(6), ours),
                  arp(1, b"\xff" * 6, peers, bytes(6), peers)]  # fmt: skip
    else:
        ours, peers = IP6
        frames = [advertisement(to, peers, ours, 0x60),
                  advertisement(bytes.fromhex("333300000001"), peers, EVERYBODY6, 0x20)]  # fmt: skip
    before = pair.a.counters()["neighbour_contested"]
    send_frames(pair, 1, frames * 10)
    wait_until(lambda: pair.a.counters()["neighbour_contested"] >= before + 10 * len(frames), 10, "they are counted")
    assert pair.a.counters()["neighbour_lost"] == 0
    end = ended_session(pair.a, session)
    assert (end["state"], end["attempts"]) == ("succeeded", 1), end
    assert same_bytes(source, pair.b.export() / source.name)
    finish(process)
    forget(source, pair.b.export() / source.name)
    still_serving(pair)
