# Orders: given to a source, and taken as one. docs/WIRE.md, 2.13.
# SPDX-License-Identifier: Apache-2.0
import contextlib

from . import grants
from .control import INCOMPATIBLE, Failed, Gone, connect, pb

QUEUED, TRANSFERRING, SUCCEEDED, FAILED, CANCELLED = 8, 3, 5, 6, 7
ENDED = (SUCCEEDED, FAILED, CANCELLED)


def hello(stream, session_id, version, **more):
    stream.send("hello", protocol_version_min=version, protocol_version_max=version, software="reference peer",
                session_id=session_id, orders=True, **more)  # fmt: skip


class Ordering:
    """One call of a node that orders: it says the order, then hears how it stands, and says what it wishes."""

    def __init__(self, address, identity, version, session_id, **order):
        self.stream = connect(address, identity)
        hello(self.stream, session_id, version, inquires=True)
        _, answer = self.stream.expect("hello", timeout_s=10)
        if answer.session_id != session_id or not answer.orders:
            self.stream.fail(INCOMPATIBLE, "the node is too old to take orders")
        self.stream.send("order", **order)

    def state(self, until=lambda _state: True, timeout_s=60):
        """The next state for which `until` is true."""
        while True:
            _, state = self.stream.expect("order_state", timeout_s=timeout_s)
            if until(state):
                return state

    def wish(self, kind, **more):
        self.stream.send("order_wish", kind=getattr(pb.OrderWish, kind), **more)

    def end(self):
        """The last state. The source closes after it."""
        state = self.state(lambda state: state.state in ENDED)
        self.stream.close()
        return state


class Desk:
    """Takes one order on a connection whose Hello had `orders`, and carries it out while the other hears of it."""

    def __init__(self, node, stream, greeting, version):
        self.node, self.stream, self.id = node, stream, greeting.session_id
        hello(stream, self.id, version)

    def serve(self):
        _, order = self.stream.expect("order", timeout_s=10)
        session = self.node.sessions.get(self.id)
        if session is None:
            session = self.take(order)
            self.tell(QUEUED, session)
            with contextlib.suppress(Failed):  # the state says it
                self.node.run(session, self.address)
        elif session.grant is None or grants.read(session.grant).issuer != self.stream.peer():
            self.stream.fail(INCOMPATIBLE, "that id is of another session")
        self.tell(FAILED if session.failure else SUCCEEDED, session)
        return session

    def take(self, order):
        try:
            grant = grants.check(order.grant, self.id, self.node.identity.pins, issuer=self.stream.peer(),
                                 holder=self.node.identity.pin)  # fmt: skip
        except Failed as error:
            self.stream.fail(error.code, str(error))
        if grant.sources_sha256 != grants.digest_of(order.source_paths) or grant.path != order.destination \
                or (order.options.overwrite and not grant.overwrite):  # fmt: skip
            self.stream.fail(grants.UNTRUSTED, "the order is not the one of its grant")
        if order.rules or order.names:
            self.stream.fail(INCOMPATIBLE, "cannot select: ask for files and whole directories")
        # Addresses are our own: nobody else says where we call.
        self.address = self.node.addresses.get(grant.destination)
        if self.address is None:
            self.stream.fail(grants.UNTRUSTED, "the destination is not known here")
        files = self.node.named(self.stream, order.source_paths)
        session = self.node.source(self.node, self.id, True, files, order.destination, overwrite=order.options.overwrite)
        session.grant = order.grant
        self.node.sessions[self.id] = session
        return session

    def tell(self, state, session):
        total = sum(file.size for file in session.files)
        code, text = session.failure or (0, "")
        files = [{"source": str(file.path), "size": file.size, "bytes_done": file.size if file.done else 0,
                  "done": file.done} for file in session.files]  # fmt: skip
        with contextlib.suppress(Gone):  # whoever ordered it calls again
            self.stream.send("order_state", state=state, bytes_total=total, error_code=code, error=text,
                             bytes_done=total if state == SUCCEEDED else 0, names_total=len(files), attempts=1,
                             names_done=sum(file.done for file in session.files), files=files)  # fmt: skip
