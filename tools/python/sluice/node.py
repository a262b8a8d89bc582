"""A node, and the sessions that are begun at it."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import threading
import types
import urllib.parse
from typing import Any, Callable, Iterator, Optional, Sequence, Type, Union

import grpc

from . import api_pb2 as api
from . import log_pb2 as logs
from .errors import SluiceError, WrongValue, made, node_closed, of_call, stands_still
from .options import TransferOptions
from .state import State

_CALL_S = 60  # as the command
_FIRST_S, _BETWEEN_S, _STILL_S = 3.0, 5.0, 15.0  # as control/client/liveness.h
_PART_BYTES = 1 << 20  # of a bundle
_Path = Union[str, "os.PathLike[str]"]
_Name = Union[str, bytes, "os.PathLike[Any]"]  # of the other node; there they are bytes


@dataclasses.dataclass(frozen=True)
class Options(TransferOptions):
    """Of a transfer; what is left out the node decides. Each is the option of `sluice send` of that name."""

    rules: Sequence[Union[str, bytes]] = ()  # "+ PATTERN" and "- PATTERN", as of --filter
    names: Sequence[Union[str, bytes]] = ()  # of the one source, a directory: as --files-from lists them
    lease: str = ""  # "NAME:EPOCH"; empty: none
    part: str = ""  # of one file: "SET:OFFSET+LENGTH", "SET:finish", "SET:drop"; empty: all of it

    def message(self) -> api.TransferOptions:
        given = {name: value for name, value in dataclasses.asdict(self).items() if value is not None}
        given["rules"] = [_rule(os.fsencode(rule)) for rule in self.rules]
        given["names"] = [os.fsencode(name) for name in self.names]
        return made(api.TransferOptions, **given)


def _rule(text: bytes) -> api.Rule:
    if text[:2] not in (b"+ ", b"- "):
        raise WrongValue(f"{os.fsdecode(text)}: write '+ PATTERN' or '- PATTERN'")
    return api.Rule(include=text[:1] == b"+", pattern=text[2:])


class Session:
    """A transfer of the node. It goes on without this object, and without this process."""

    def __init__(self, node: Node, id: str) -> None:
        self._node = node
        self.id = id

    def __repr__(self) -> str:
        return f"sluice.Session({self.id!r})"

    def show(self) -> api.Session:
        """As it stands now."""
        return self._node.call("ShowSession", api.SessionRef(id=self.id), api.Session)

    def watch(self, timeout_s: Optional[float] = None) -> Iterator[api.Session]:
        """At once, at each change (at most ten times a second), once a second, and last of all its end."""
        return self._node.stream("WatchSession", api.SessionRef(id=self.id), api.Session, timeout_s)

    def events(self) -> Iterator[api.SessionEvent]:
        """How it stands, and what changes, until it has ended: `sluice session events`."""
        return self._node.stream("SessionEvents", api.SessionRef(id=self.id), api.SessionEvent)

    def log(self, lane: Optional[int] = None, follow: bool = False) -> Iterator[logs.LogRecord]:
        """What its lanes noted: `sluice session log`. `follow`: also what comes, until it has ended."""
        request = logs.LogRequest(id=self.id, lane=lane, follow=follow)
        for part in self._node.stream("Read", request, logs.LogReply, service="Logs"):
            yield from part.records

    def set_log_level(self, level: str) -> None:
        """How much they note from now on: "events", "packets", "off"."""
        request = logs.SessionLogLevel(id=self.id, level=level)
        self._node.call("SetSessionLevel", request, logs.SessionLogLevel, service="Logs")

    def wait(self, on_progress: Optional[Callable[[api.Session], Any]] = None,
             timeout_s: Optional[float] = None) -> api.Session:  # fmt: skip
        """Its end, if that is a success. SluiceError with its code otherwise, also where an error holds it until an
        operator continues it; TimeoutError when it has not ended within the time, and goes on."""
        last = None
        for last in self.watch(timeout_s):
            if on_progress is not None:
                on_progress(last)
            if last.state == api.Session.PAUSED and last.error_code != 0:
                break
        if last is not None and last.error_code != 0:
            raise SluiceError(last.error_code, last.error_name, last.error)
        if last is None or not State.of(last).ended:
            if timeout_s is not None:
                raise TimeoutError(f"session {self.id} has not ended within {timeout_s} s")
            raise SluiceError(1, "internal", f"session {self.id}: its node ended the stream before its end")
        if last.state != api.Session.SUCCEEDED:
            raise SluiceError(12, "cancelled", f"session {self.id} was cancelled")
        return last

    def cancel(self) -> api.Session:
        return self._node.call("CancelSession", api.SessionRef(id=self.id), api.Session)

    def pause(self) -> api.Session:
        return self._node.call("PauseSession", api.SessionRef(id=self.id), api.Session)

    def go_on(self) -> api.Session:
        """After a pause: `sluice session continue`."""
        return self._node.call("ContinueSession", api.SessionRef(id=self.id), api.Session)

    def limit(self, rate_bps: int) -> api.Session:
        """The most that it may send from now on, in bit/s; 0: no own limit."""
        request = made(api.LimitRequest, id=self.id, rate_bps=rate_bps)
        return self._node.call("LimitSession", request, api.Session)

    def prioritize(self, priority: int) -> api.Session:
        """Where it stands among those that wait for their turn: -100 to 100, the higher goes first."""
        request = made(api.PriorityRequest, id=self.id, priority=priority)
        return self._node.call("PrioritizeSession", request, api.Session)

    def export_to(self, node: str, within_s: int = 0) -> bytes:
        """It ends here and goes on at another node of this site, over the same storage, which calls the peer within this
        time (0: a day): `sluice session export`. What that node imports; said again, the same."""
        request = api.ExportRequest(id=self.id, to=node, within_s=within_s)
        return b"".join(part.bytes for part in self._node.stream("ExportSession", request, api.BundlePart))

    def withdraw(self) -> api.Session:
        """It is to go on here after all: paused."""
        for _part in self._node.stream("ExportSession", api.ExportRequest(id=self.id, withdraw=True), api.BundlePart):
            pass
        return self.show()

    def verify(self) -> Iterator[api.VerifyProgress]:
        """Reads its files at this node back; the last message of each file has `done`, and `good` or a `problem`."""
        return self._node.stream("VerifySession", api.SessionRef(id=self.id), api.VerifyProgress)


def _socket_in(run: pathlib.Path) -> pathlib.Path:
    """That of operators; for who may not open it, that of users who send as themselves, if he is one."""
    control, users = run / "control.sock", run / "users.sock"
    return users if os.access(users, os.W_OK) and not os.access(control, os.W_OK) else control


class Node:
    """The node whose directory this is: without one $SLUICE_NODE, else /etc/sluice. A context manager; its sessions go
    on when it is closed. Any thread."""

    def __init__(self, directory: Optional[_Path] = None) -> None:
        chosen = directory if directory is not None else os.environ.get("SLUICE_NODE") or "/etc/sluice"
        self._socket = str(_socket_in(pathlib.Path(chosen).absolute() / "run"))
        # A session tells of all its files in each message.
        self._channel: Any = grpc.insecure_channel(f"unix:{urllib.parse.quote(self._socket)}", [
            ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])  # fmt: skip

    def __enter__(self) -> Node:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[types.TracebackType]) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """What is asked of it afterwards, and what it was asked and has not answered, is a SluiceError (2, usage)."""
        channel, self._channel = self._channel, _Closed()
        channel.close()

    def send(self, sources: Sequence[_Path], peer: str, destination: str, options: Options = Options(), *,
             source_node: str = "") -> Session:  # fmt: skip
        """Files of this node to another. A source is a path beneath an export, or "memory:BYTES"; the destination a path
        of the peer, which ends in "/" where it is a directory, or "null:". With `source_node` that node sends its own files
        to the peer (a third-party transfer), and sources are paths there."""
        paths = [str(each) if source_node else _local(each) for each in sources]
        request = api.SendRequest(sources=paths, peer=peer, destination=destination, options=options.message(),
                                  **{"from": source_node})  # fmt: skip
        return Session(self, self.call("Send", request, api.SessionRef).id)

    def preview(self, sources: Sequence[_Path], peer: str, destination: str,
                options: Options = Options()) -> Iterator[api.PreviewEntry]:  # fmt: skip
        """What `send` would send, and what would not arrive; nothing is sent."""
        request = api.SendRequest(sources=[_local(each) for each in sources], peer=peer, destination=destination,
                                  options=options.message())  # fmt: skip
        for part in self.stream("PreviewSend", request, api.PreviewReply):
            yield from part.entries

    def get(self, peer: str, sources: Sequence[str], destination: _Path, options: Options = Options(), *,
            more_peers: Sequence[str] = ()) -> Session:  # fmt: skip
        """Files of another node to this one. `more_peers` have the same files under the same paths: each node sends a
        part."""
        request = api.GetRequest(peer=peer, sources=sources, destination=_local(destination), options=options.message(),
                                 more_peers=more_peers)  # fmt: skip
        return Session(self, self.call("Get", request, api.SessionRef).id)

    def sessions(self) -> Sequence[api.Session]:
        """All that run, and the last that have ended; the newest last."""
        return list(self.call("ListSessions", api.ListSessionsRequest(), api.ListSessionsReply).sessions)

    def events(self) -> Iterator[api.SessionEvent]:
        """What changes at any session, until the caller has enough."""
        return self.stream("SessionEvents", api.SessionRef(), api.SessionEvent)

    def session(self, id: str) -> Session:
        """By its id, or as much of it as tells it from the others. SluiceError (2, usage) if there is none."""
        found = self.call("ShowSession", api.SessionRef(id=id), api.Session)
        return Session(self, found.id)

    def import_session(self, bundle: bytes) -> Session:
        """What `export_to` of a session of another node has returned: that session goes on here."""
        ask = self._channel.stream_unary("/sluice.api.Control/ImportSession",
                                         request_serializer=api.BundlePart.SerializeToString,
                                         response_deserializer=api.Session.FromString)  # fmt: skip
        parts = (api.BundlePart(bytes=bundle[at : at + _PART_BYTES]) for at in range(0, len(bundle), _PART_BYTES))
        return Session(self, self._answer(ask.future(parts)).id)

    def show(self) -> api.NodeReply:
        return self.call("Node", api.NodeRequest(), api.NodeReply)

    def counters(self) -> dict[str, int]:
        reply = self.call("Counters", api.CountersRequest(), api.CountersReply)
        return {counter.name: counter.value for counter in reply.counters}

    # ---- names at another node ----

    def names(self, peer: str, path: _Name = "", *, itself: bool = False, recursive: bool = False, glob: bool = False,
              unfinished: bool = False) -> Iterator[api.NameEntry]:  # fmt: skip
        """What is in a directory there, in order, as it comes; of no path, its exports. An entry that could not be looked
        at has an error_code. `itself`: of the path alone; `glob`: of what fits it."""
        request = api.ListNamesRequest(peer=peer, path=os.fsencode(path), itself=itself, recursive=recursive, glob=glob,
                                       unfinished=unfinished)  # fmt: skip
        for part in self.stream("List", request, api.ListNamesReply, service="Names"):
            yield from part.entries

    def make_directory(self, peer: str, path: _Name, parents: bool = False) -> api.NamesReply:
        request = api.MakeDirectoryRequest(peer=peer, path=os.fsencode(path), parents=parents)
        return self._change("MakeDirectory", request)

    def move(self, peer: str, old: _Name, new: _Name, replace: bool = False) -> api.NamesReply:
        request = api.MoveNameRequest(peer=peer, to=os.fsencode(new), replace=replace, **{"from": os.fsencode(old)})
        return self._change("Move", request)

    def remove(self, peer: str, path: _Name, recursive: bool = False) -> api.NamesReply:
        """What could not be removed is in the reply: `failed`, `problems`. No peer: names of this node."""
        return self._change("Remove", api.RemoveNameRequest(peer=peer, path=os.fsencode(path), recursive=recursive))

    def compare(self, own: _Path, peer: str, path: _Name, *, from_peer: bool = False, rules: Sequence[Union[str, bytes]] = (),
                top: _Name = "") -> Iterator[api.CompareReply]:  # fmt: skip
        """What differs between a directory of this node and one of a peer, in parts; the last has the totals. What the
        rules leave out, judged by names behind `top`, is neither missing nor extra."""
        request = api.CompareRequest(own_path=os.fsencode(_local(own)), peer=peer, peer_path=os.fsencode(path),
                                     from_peer=from_peer, top=os.fsencode(top),
                                     rules=[_rule(os.fsencode(rule)) for rule in rules])  # fmt: skip
        yield from self.stream("Compare", request, api.CompareReply, service="Names")

    def _change(self, method: str, request: Any) -> api.NamesReply:
        return self.call(method, request, api.NamesReply, service="Names", timeout_s=None)

    # ---- calls, also for what this class has no method for ----

    def call(self, method: str, request: Any, reply: Any, *, service: str = "Control",
             timeout_s: Optional[float] = _CALL_S) -> Any:  # fmt: skip
        """One answer, a message of the class `reply`."""
        ask = self._channel.unary_unary(f"/sluice.api.{service}/{method}",
                                        request_serializer=type(request).SerializeToString,
                                        response_deserializer=reply.FromString)  # fmt: skip
        return self._answer(ask.future(request, timeout=timeout_s))

    def _answer(self, answer: Any) -> Any:
        with contextlib.closing(self._liveness(answer)) as liveness:
            try:
                return answer.result()
            except (grpc.RpcError, grpc.FutureCancelledError) as error:
                raise self._error(error, liveness) from None

    def stream(self, method: str, request: Any, reply: Any, timeout_s: Optional[float] = None, *,
               service: str = "Control") -> Iterator[Any]:  # fmt: skip
        """Messages until the node has no more, or until the time is over."""
        ask = self._channel.unary_stream(f"/sluice.api.{service}/{method}",
                                         request_serializer=type(request).SerializeToString,
                                         response_deserializer=reply.FromString)  # fmt: skip
        answers = ask(request, timeout=timeout_s)
        with contextlib.closing(_Cancelled(answers)), contextlib.closing(self._liveness(answers)) as liveness:
            try:
                yield from answers
            except grpc.RpcError as error:
                if timeout_s is not None and error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                    return
                raise self._error(error, liveness) from None

    def _liveness(self, call: Any) -> _Liveness:
        ask = self._channel.unary_unary("/sluice.api.Control/ShowSession",
                                        request_serializer=api.SessionRef.SerializeToString,
                                        response_deserializer=api.Session.FromString)  # fmt: skip
        return _Liveness(ask, call)

    def _error(self, error: Any, liveness: _Liveness) -> SluiceError:
        if isinstance(self._channel, _Closed):
            return node_closed()
        return stands_still(self._socket, _STILL_S) if liveness.still else of_call(error, self._socket)


class _Closed:
    """In the place of a channel."""

    def close(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise node_closed()


class _Liveness:
    """Ends a call, which may take long, when control stands still: its loop is asked for something beside it."""

    def __init__(self, ask: Any, call: Any) -> None:
        self.still = False
        self._ask = ask
        self._call = call
        self._over = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        self._over.set()

    def _run(self) -> None:
        wait_s = _FIRST_S
        while not self._over.wait(wait_s):
            wait_s = _BETWEEN_S
            try:
                self._ask(api.SessionRef(id="-"), timeout=_STILL_S)
            except grpc.RpcError as error:  # a refusal is an answer
                if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED and not self._over.is_set():
                    self.still = True
                    self._call.cancel()
                    return
            except ValueError:  # the channel was closed
                return


class _Cancelled:
    """So that a stream which nobody reads to its end does not stay open."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def close(self) -> None:
        self._call.cancel()


def _local(path: _Path) -> str:
    text = os.fspath(path)
    if text.startswith("memory:") or text == "null:":
        return text
    return os.path.join(os.getcwd(), text)  # a slash at the end stays
