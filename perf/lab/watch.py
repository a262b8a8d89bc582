# A session as its node tells of it, ten times a second: WatchSession of the operator's API.
#
# The command `session show` would do, but each call is a process that takes CPU from what is measured.
# SPDX-License-Identifier: Apache-2.0
import threading
import time

from harness import operators

from .errors import LabError

PACKAGES = operators.PACKAGES
_END_DEADLINE_S = 60


class Watch:
    """From its making to the session's end: `samples`, tuples of (t_s, bytes done, rate_state), by this machine's
    monotonic clock, and `last`, the newest message. One thread, which ends with the session."""

    def __init__(self, node, session):
        import grpc  # only here: not every experiment needs it

        self._api = operators.messages()
        self.session = session
        self.samples = []
        self.last = None
        self._error = None
        self._channel = operators.channel(node.directory)
        call = self._channel.unary_stream("/sluice.api.Control/WatchSession",
                                          request_serializer=self._api.SessionRef.SerializeToString,
                                          response_deserializer=self._api.Session.FromString)  # fmt: skip
        self._thread = threading.Thread(target=self._follow, args=(call, grpc.RpcError), daemon=True)
        self._thread.start()

    def _follow(self, call, error_type):
        try:
            for message in call(self._api.SessionRef(id=self.session)):
                self.samples.append((time.monotonic(), message.bytes_done, message.rate_state))
                self.last = message
        except error_type as error:
            self._error = error

    def state(self):
        return self._api.Session.State.Name(self.last.state) if self.last else None

    def done(self):
        return not self._thread.is_alive()

    def wait(self, deadline_s):
        """Whether the session ended within this time."""
        self._thread.join(deadline_s)
        if self._error is not None:
            raise LabError(f"session {self.session}: its node no longer tells of it: {self._error.code().name}")
        return self.done()

    def close(self):
        if not self.wait(_END_DEADLINE_S):
            raise LabError(f"session {self.session}: not ended {_END_DEADLINE_S} s after it was told to")
        self._channel.close()

    def told(self):
        """What data were under, and how many datagrams came damaged: every row says so."""
        return {"protection": self.last.protection, "crc": self.last.crc, "crc_errors": self.last.crc_errors}

    def states(self):
        """Seconds in each rate_state, from the first sample to the last."""
        out = {}
        for (begin_s, _, state), (end_s, _, _) in zip(self.samples, self.samples[1:]):
            out[state] = round(out.get(state, 0.0) + end_s - begin_s, 3)
        return out
