# sluice-users of a node, which opens files as its users.
# SPDX-License-Identifier: Apache-2.0
from .process import Daemon
from .system import wait_until

_READY = "opens files as"


class UsersHelper(Daemon):
    def __init__(self, node, log_file):
        super().__init__(f"sluice-users of node {node.name}", [node.binaries / "sluice-users", "--node", node.directory], log_file)
        self.socket = node.directory / "run" / "users-helper.sock"

    def start(self):
        """Until it is ready: its log may have the words already, and its socket stand there, of a former life."""
        told = len(self.log_lines(_READY))
        super().start()
        wait_until(lambda: len(self.log_lines(_READY)) > told and self.socket.exists(), 20, f"{self.name} is ready")
