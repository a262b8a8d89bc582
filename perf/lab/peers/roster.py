# Those that take part. One that cannot be installed or started is no end of the others: its error is kept and told
# where it would have been measured.
# SPDX-License-Identifier: Apache-2.0
from harness import HarnessError

from .. import packages
from ..errors import LabError


class Roster:
    """Peers are stopped when `stack`, an ExitStack, ends."""

    def __init__(self, stack):
        self.peers = {}
        self._stack = stack
        self._errors = {}

    def start(self, peer):
        self.peers[peer.name] = peer
        try:
            packages.install(getattr(peer, "packages", ()))
            self._stack.callback(peer.stop)
            peer.start()
        except (HarnessError, OSError) as error:
            self._errors[peer.name] = str(error).splitlines()[0]

    def start_kind(self, kind, ends, base):
        """Of a packaged tool, which gets a folder of its own in `base`."""
        folder = base / kind.name
        folder.mkdir()
        self.start(kind(ends, folder))

    def must_have_started(self, name):
        if name in self._errors:
            raise LabError(self._errors[name])
