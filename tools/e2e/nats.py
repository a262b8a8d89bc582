# A node that only calls, behind a NAT and a firewall, and the node outside that it calls.
# SPDX-License-Identifier: Apache-2.0
from harness import NatWire

LANES = 2
OUTSIDE = {"sockets": (0, 1), "frames": (0,)}  # the node outside is on sockets, or on a device of frames


def pair_with_nat(make_pair, sockets, stall_s):
    """sockets: the sides that are on them."""
    wire = NatWire(sockets=sockets)
    return make_pair(wire=wire, prefix=wire.enter, prepare=lambda pair: wire.introduce(*pair.nodes),
                     settings={"control": {"stall_timeout_s": stall_s}},
                     settings_a=wire.node_settings(0), settings_b=wire.node_settings(1), bytes_needed=1 << 30)  # fmt: skip
