#!/usr/bin/python3
# The reference peer as a command: sends files to a node, gets some, or serves a folder as the export `data`.
#
#   tools/peer/main.py identity DIR
#   tools/peer/main.py send  COMMON NODE:PORT FILE... EXPORT/PATH/
#   tools/peer/main.py get   COMMON NODE:PORT PATH...
#   tools/peer/main.py serve COMMON ADDRESS:PORT
# SPDX-License-Identifier: Apache-2.0
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import peer  # noqa: E402

PROTECTIONS = {"crc": 0, "aes-128-gcm": 1, "aes-256-gcm": 2}


def address_of(text):
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def parsed(arguments):
    parser = argparse.ArgumentParser(description="A small peer of Sluice, written from docs/WIRE.md.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("identity", help="make a key and a certificate").add_argument("identity")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--identity", required=True, help="folder that 'identity' made")
    common.add_argument("--trust", required=True, action="append", help="certificate of the other node")
    common.add_argument("--data4", default="", help="IPv4 address for data")
    common.add_argument("--data6", default="", help="IPv6 address for data")
    common.add_argument("--ports", default="46000", help="UDP ports, one for each lane: 46000,46001")
    common.add_argument("--mtu", type=int, default=1500)
    common.add_argument("--rate", type=int, default=80_000_000, help="bit/s")
    common.add_argument("--protection", choices=list(PROTECTIONS), default="aes-128-gcm", help="the least")
    common.add_argument("--folder", default=".", help="the export `data`, and where files are put")
    for name in ("send", "get", "serve"):
        command = commands.add_parser(name, parents=[common])
        command.add_argument("address", type=address_of)
        if name != "serve":
            command.add_argument("paths", nargs="+")
    return parser.parse_args(arguments)


def main(arguments=None):
    wish = parsed(arguments)
    if wish.command == "identity":
        peer.make_identity(wish.identity)
        return 0
    ports = [int(port) for port in wish.ports.split(",")]
    abilities = peer.Abilities(wish.data4, wish.data6, ports, wish.mtu, rate_bps=wish.rate, lanes=len(ports),
                               protection=PROTECTIONS[wish.protection])  # fmt: skip
    node = peer.Node(peer.Identity(wish.identity, wish.trust), abilities, pathlib.Path(wish.folder))
    try:
        if wish.command == "send":
            node.send(wish.address, wish.paths[:-1], wish.paths[-1])
        elif wish.command == "get":
            node.get(wish.address, wish.paths)
        else:
            node.serve(peer.Listener(wish.address, node.identity))
    except (peer.Failed, peer.Gone, peer.Held) as error:
        print(f"peer: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
