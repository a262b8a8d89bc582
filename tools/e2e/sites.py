# A site's authority as its holder has it, and nodes that it has enrolled, on the sockets of this host.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

from harness import find_binaries, wait_until
from harness.node import Node
from harness.process import Daemon
from harness.system import free_ports, run, scratch_parent

DOMAIN = "dtn.example.org"
DATA_ADDRESSES = ["10.77.8.1", "10.77.8.2", "10.77.8.9"]
_CLONE_NEWNET = 0x40000000


@contextlib.contextmanager
def own_network(addresses):
    """This process and its children see a loopback of their own, with these addresses besides."""
    libc = ctypes.CDLL(None, use_errno=True)
    name = f"sl{os.getpid()}e"
    run(["ip", "netns", "add", name])
    before = os.open("/proc/self/ns/net", os.O_RDONLY)
    inside = os.open(f"/run/netns/{name}", os.O_RDONLY)
    try:
        run(["ip", "-n", name, "link", "set", "lo", "up"])
        for address in addresses:
            run(["ip", "-n", name, "address", "add", f"{address}/24", "dev", "lo"])
        assert libc.setns(inside, _CLONE_NEWNET) == 0
        yield
    finally:
        libc.setns(before, _CLONE_NEWNET)
        os.close(before)
        os.close(inside)
        run(["ip", "netns", "del", name])


class Site:
    """Its directory, `sluice authority serve`, and where its nodes listen: one file for all of them."""

    def __init__(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="sluice-", dir=scratch_parent(1 << 28)))
        self.binaries = find_binaries()
        self.directory = self.base / "ca"
        self.addresses_file = self.base / "peers"
        port, *self._control_ports = free_ports(3)
        self.at = f"127.0.0.1:{port}"
        self.server = Daemon(
            "sluice authority serve",
            [self.binaries / "sluice", "authority", "serve", self.directory, "--listen", self.at],
            self.base / "serve.log",
        )
        self.nodes = []
        self.addresses = {f"n{number}": f"10.9.{number // 250}.{number % 250 + 1}" for number in range(1000)}
        self.must("init", self.directory, "--domain", DOMAIN)

    def must(self, *words):
        return subprocess.run(
            [self.binaries / "sluice", "--json", "authority", *words], capture_output=True, text=True, check=True
        ).stdout

    def token(self, *words):
        """A token's text and its id."""
        made = json.loads(self.must("token", self.directory, "--at", self.at, *words))
        return made["token"], made["id"]

    def tokens(self):
        return {one["id"]: one for one in json.loads(self.must("tokens", self.directory))["tokens"]}

    def audit(self):
        return [json.loads(line) for line in (self.directory / "audit.ndjson").read_text().splitlines()]

    def start(self):
        self.server.start()

        def serves():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(self.at.split(":")[1]))):
                return True

        wait_until(serves, 30, "the authority serves")

    def write_addresses(self):
        text = "".join(f"{name} {address}\n" for name, address in self.addresses.items())
        made = self.addresses_file.with_suffix(".new")
        made.write_text(text)
        made.chmod(0o644)
        made.rename(self.addresses_file)

    def enrol(self, name, token, *words):
        """`sluice node init --enrol`: what came of it, and its directory."""
        directory = self.base / name
        return directory, subprocess.run(
            [self.binaries / "sluice", "node", "init", directory, "--name", name, "--enrol", token, *words],
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def node(self, name, token):
        """An enrolled node with an export `data`, not started."""
        port = self._control_ports.pop()
        data = self.base / f"{name}-data"
        data.mkdir()
        place = len(self.nodes)
        directory, made = self.enrol(
            name, token, "--listen", f"127.0.0.1:{port}", "--address", f"{DATA_ADDRESSES[place]}/24",
            "--memory-mib", "64", "--addresses-file", self.addresses_file, "--export", f"data={data}:rw")  # fmt: skip
        assert made.returncode == 0, made.stderr
        node = Node(self.binaries, directory, name, port)
        node.exports["data"] = (data, "rw")
        self.nodes.append(node)
        self.addresses[name] = node.address
        return node

    def stop(self):
        for node in self.nodes:
            node.stop()
        self.server.stop()
        shutil.rmtree(self.base, ignore_errors=True)
