# Leases: of each name the highest epoch that was seen, and who took it. docs/WIRE.md, 2.14.
# SPDX-License-Identifier: Apache-2.0
import re

from .control import INCOMPATIBLE, Failed

SUPERSEDED = 24
NAME = re.compile(r"[A-Za-z0-9._-]{16,64}")
EPOCH_MAX = 2**63 - 1


class Leases:
    """What a node keeps of them; in memory, as this peer keeps everything."""

    def __init__(self):
        self._rows = {}  # name: (epoch, who)

    def keep(self, hello, session, who, sessions):
        """A call that begins a session, or goes on with one. What runs under a lower epoch ends before it may."""
        lease = (hello.lease.name, hello.lease.epoch) if hello.HasField("lease") else None
        if lease and not (NAME.fullmatch(lease[0]) and 0 < lease[1] <= EPOCH_MAX):
            raise Failed(INCOMPATIBLE, "a lease that cannot be")
        if session is not None and session.lease != lease:
            raise Failed(INCOMPATIBLE, "a session under another lease than it began")
        if lease is None:
            return
        name, epoch = lease
        known, holder = self._rows.get(name, (0, None))
        if epoch < known:
            raise Failed(SUPERSEDED, f"epoch {known} of this lease was taken since")
        if epoch == known and who != holder and session is None:
            raise Failed(SUPERSEDED, "another node has this epoch")
        if epoch == known:
            return
        self._rows[name] = (epoch, who)
        for other in sessions:
            if other.lease and other.lease[0] == name and other.lease[1] < epoch and not other.ended:
                other.drop_lanes()
                other.failure = (SUPERSEDED, f"epoch {epoch} of this lease was taken since")
                other.ended = True
