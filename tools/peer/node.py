# A node: who we are, the folder that we give and take files in, and the sessions that we remember.
# docs/WIRE.md, 2, and 2.1.1 to 2.1.3.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import dataclasses
import os
import pathlib
import time

from . import grants, leases, moves, names, orders, packs
from .control import INCOMPATIBLE, UNREACHABLE, Failed, Gone, Held, Identity, connect
from .destination import Destination
from .session import VERSION, Abilities, udp_socket
from .source import Source


@dataclasses.dataclass
class Node:
    identity: Identity
    abilities: Abilities
    folder: pathlib.Path
    open_socket: object = udp_socket  # (address, port); tests lose datagrams here
    source: type = Source  # tests put liars here
    destination: type = Destination
    owner: type = names.Owner  # None: one that is too old to be asked about names
    desk: type = orders.Desk  # None: one that is too old to take orders
    addresses: dict = dataclasses.field(default_factory=dict)  # of nodes that we may be told to send to, by their keys
    sessions: dict = dataclasses.field(default_factory=dict)
    kept_leases: object = dataclasses.field(default_factory=leases.Leases)

    # ---- names: EXPORT/PATH, where our folder is the export `data` ----------------------------------

    def beneath(self, stream, text):
        path = (self.folder / text.removeprefix("data").lstrip("/")).resolve()
        if text.split("/")[0] != "data" or not path.is_relative_to(self.folder.resolve()):
            stream.fail(8, f"{text}: outside of what this node shares")
        return path

    def named(self, stream, paths):
        """The files that a TransferRequest asks for, in its order."""
        found = [self.beneath(stream, each) for each in paths]
        for path in found:
            if not path.exists():
                stream.fail(7, f"{path.name}: no such file here")
        return found

    def places(self, session, offer, offered):
        """Where the files of an offer will stand. offer: its first part."""
        names = [os.fsdecode(each.path) for each in offered]
        if not names or any(not packs.good_offer(each, each is offered[-1]) for each in offered):
            session.stream.fail(INCOMPATIBLE, "an offer with a name that is none")
        if [each.object for each in offered] != list(range(len(offered))):
            session.stream.fail(INCOMPATIBLE, "files are not numbered from 0 in order")
        # Where we are the caller, what our operator asked for counts: into our folder. What is discarded has no place.
        own = session.initiator or session.terms.discard
        place = self.folder if own else self.beneath(session.stream, offer.destination)
        if offer.mkdir and not session.initiator:
            whole = offer.destination_is_directory or offer.destination.endswith("/")
            (place if whole else place.parent).mkdir(parents=True, exist_ok=True)
        if session.initiator or offer.destination_is_directory or place.is_dir():
            finals = [place / name for name in names]  # of a pack the folder itself
        elif len(names) == 1:
            finals = [place]
        else:
            session.stream.fail(INCOMPATIBLE, "several files and no directory")
        for final in finals:
            if final.exists() and final != place and not offer.overwrite and not session.initiator:
                session.stream.fail(9, f"{final.name}: exists")
        return finals

    # ---- names, at the other node ------------------------------------------------------------------

    def ask(self, address, kind, user=(b"", 0), **fields):
        """kind: list, make_directory, move, remove. user: for whom we ask. The entries, and the last word."""
        return names.ask(address, self.identity, VERSION, kind, user, **fields)

    # ---- orders, to another node -------------------------------------------------------------------

    def order(self, address, session_id, **order):
        """A call by which that node is told to send: orders.Ordering."""
        return orders.Ordering(address, self.identity, VERSION, session_id, **order)

    # ---- sessions that we begin -------------------------------------------------------------------

    def send(self, address, paths, destination, grant=None, lease=None, user=(b"", 0), **options):
        """grant: a third node has ordered it, and the session's id is the grant's. lease: its name and epoch. user: for whom
        we call, name and number."""
        session_id = grants.pb.Grant.FromString(grant.grant).id if grant else os.urandom(16)
        session = self.source(self, session_id, True, paths, destination, **options)
        session.grant, session.lease = grant, lease
        session.user, session.share = user
        return self.run(session, address)

    def get(self, address, paths, lease=None, user=(b"", 0), **selection):
        session = self.destination(self, os.urandom(16), True, paths, **selection)
        session.lease = lease
        session.user, session.share = user
        return self.run(session, address)

    def run(self, session, address, patience_s=60):
        """Calls until the session has ended. Waits between the calls: 0.2 s, doubled up to 5 s."""
        self.sessions[session.id] = session
        wait_s, end = 0.2, time.monotonic() + patience_s
        while not session.ended:
            try:
                with contextlib.closing(connect(address, self.identity)) as stream:
                    session.attempt(stream)
            except (Gone, Held):
                if time.monotonic() > end:
                    raise
                time.sleep(wait_s)
                wait_s = min(2 * wait_s, 5)
        return session

    # ---- sessions that others begin ---------------------------------------------------------------

    def serve(self, listener, given_up=lambda: False):
        """Takes calls, one after another, until a session has ended, and returns that; None if it was given up."""
        while not given_up():
            with contextlib.suppress(Gone):
                session = self.take_one(listener)
                if session and session.ended:
                    return session

    def take_one(self, listener, timeout_s=30):
        with contextlib.closing(listener.accept(timeout_s)) as stream:
            return self.take(stream)

    def take(self, stream):
        """One call: its Hello says which session. Gone leaves the session to the next call."""
        try:
            _, hello = stream.expect("hello", timeout_s=10)
        except Failed as error:
            raise Gone(f"no Hello: {error}") from None
        if stream.first != "hello":  # not even a Heartbeat may come before it
            raise Gone(f"{stream.first} came first")
        if not hello.protocol_version_min <= VERSION <= hello.protocol_version_max:
            stream.fail(INCOMPATIBLE, f"this peer speaks version {VERSION}")
        if hello.names and self.owner:
            return self.owner(self, stream, hello, VERSION).serve()
        if hello.orders and self.desk:
            return self.desk(self, stream, hello, VERSION).serve()
        session = self.sessions.get(hello.session_id)
        if hello.ended or (session and session.ended):
            self._tell_the_end(stream, hello, session)
            return session
        if not hello.inquires:
            self._judge(stream, hello, session)
            try:
                if session and not session.initiator:
                    moves.take(hello, session, stream.peer(), self.identity.pin, self.identity.pins)
                self.kept_leases.keep(hello, session, stream.peer(), self.sessions.values())
            except Failed as error:
                stream.fail(error.code, str(error))
        if hello.inquires:
            self._answer_inquiry(stream, hello, session)
        elif session is None:
            session = self._new_session(stream, hello)
        elif session.initiator:
            stream.fail(INCOMPATIBLE, "this session is ours to continue")
        else:
            session.attempt(stream, hello)
        return session

    def _judge(self, stream, hello, session):
        """A session that a third node has ordered is called for with its grant, and no other is."""
        shows = hello.HasField("grant")
        if session and shows != (session.grant is not None):
            stream.fail(grants.UNTRUSTED, "a session with a grant in one call, and without in another")
        if not shows or (session and session.grant == hello.grant):
            return
        try:
            grant = grants.check(hello.grant, hello.session_id, self.identity.pins, known=session is not None,
                                 holder=stream.peer(), destination=self.identity.pin)  # fmt: skip
        except Failed as error:
            stream.fail(error.code, str(error))
        if session and grants.read(session.grant).issuer != grant.issuer:
            stream.fail(grants.UNTRUSTED, "the session is for another node")

    def _new_session(self, stream, hello):
        """The role comes with the Specification, so R says Hello before it knows which half it is."""
        early = self.source(self, hello.session_id, False)
        early.stream = stream
        early.say_hello(granted=hello.HasField("grant"), leased=hello.HasField("lease"))
        _, asked = stream.expect("specification")
        kind = {1: self.destination, 2: self.source}.get(asked.role)
        if kind is None:
            stream.fail(INCOMPATIBLE, "a Specification without a role")
        session = self.sessions[hello.session_id] = kind(self, hello.session_id, False)
        session.specification, session.owner = asked, stream.peer()
        if hello.HasField("lease"):
            session.lease = (hello.lease.name, hello.lease.epoch)
        if hello.HasField("grant"):
            session.grant = hello.grant
            if session.role != self.destination.role:
                stream.fail(grants.UNTRUSTED, "a grant is for a source alone")
        session.attempt(stream)
        return session

    @staticmethod
    def _answer_inquiry(stream, hello, session):
        """Whoever was called asks whether we still know a session that we began. That opens nothing."""
        if session and not session.initiator:
            stream.fail(INCOMPATIBLE, "this session is yours to continue")
        stream.send("hello", protocol_version_min=VERSION, protocol_version_max=VERSION, software="reference peer",
                    session_id=hello.session_id, known=session is not None, ended=session is None)  # fmt: skip
        if session is None:
            stream.send("failure", code=UNREACHABLE, message="nothing is known of this session")

    @staticmethod
    def _tell_the_end(stream, hello, session):
        """It has ended here, or we do not know it and it has ended there: both say so."""
        stream.send("hello", protocol_version_min=VERSION, protocol_version_max=VERSION,
                    software="reference peer", session_id=hello.session_id, ended=True)  # fmt: skip
        if session is None:
            return
        if hello.ended and not session.ended:
            with contextlib.suppress(Failed, Gone):
                session.stream = stream
                session.hear_the_end()
        elif session.failure:
            stream.send("failure", code=session.failure[0], message=session.failure[1])
        else:
            session.say_the_end(stream)
