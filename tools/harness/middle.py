# A wire with somebody in its middle, who sees every frame and may keep, alter or add what he likes.
# SPDX-License-Identifier: Apache-2.0
import collections
import errno
import selectors
import socket
import threading

from .system import run
from .wires import VethWire, inside_namespace

_ETH_P_ALL = 3
_SOL_PACKET, _PACKET_IGNORE_OUTGOING = 263, 23
_SO_RCVBUFFORCE = 33
_FRAME_BYTES_MAX = 65536
_KEPT = 64  # frames of each kind
_NO_ROOM = (errno.EAGAIN, errno.ENOBUFS, errno.ENETDOWN)  # as if the wire had lost it

DATA, STATUS, PROBE, OTHER = "data", "status", "probe", "other"
_KINDS = (DATA, STATUS, PROBE)


def sluice_header_at(frame):
    """Where the Sluice header begins in a frame of a lane, or 0."""
    at = {b"\x08\x00": 14 + 20 + 8, b"\x86\xdd": 14 + 40 + 8}.get(frame[12:14], 0)
    is_udp = at and frame[23 if at == 42 else 20] == socket.IPPROTO_UDP
    return at if is_udp and len(frame) >= at + 72 and frame[at] == 2 and frame[at + 3] == 72 else 0


def kind_of(frame):
    at = sluice_header_at(frame)
    return _KINDS[frame[at + 1]] if at and frame[at + 1] < len(_KINDS) else OTHER


class MiddleWire(VethWire):
    """Each node has a veth of its own, and a thread of ours hands frames from one to the other.

    tamper(side, frame), if set, is called in that thread with each frame that `side` (0, 1) has sent, and returns
    what arrives in its place: a list of frames. last(side, kind), first(side, kind): what such a thief has seen."""

    def __init__(self, **options):
        super().__init__(**options)
        self._has_middle = True
        self._ports = []
        self._thread = None
        self.tamper = None
        self.forget_frames()

    def forget_frames(self):
        self._last = collections.defaultdict(lambda: collections.deque(maxlen=_KEPT))
        self._first = {}

    def _make_middle(self):
        for side, namespace in enumerate(self._namespaces):
            self._make_veth(namespace, self._bridge, f"port{side}")
            self._raise(self._bridge, f"port{side}", addresses=False)
        self._ports = inside_namespace(self._bridge, lambda: [self._open(f"port{side}") for side in (0, 1)])
        self._stop = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _raise(self, namespace, device, addresses):
        if not addresses:  # the kernel would speak of its groups, and somebody listens here
            run([*self._enter(namespace), "sysctl", "-q", f"net.ipv6.conf.{device}.disable_ipv6=1"])
        super()._raise(namespace, device, addresses)

    @staticmethod
    def _open(device):
        port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
        port.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        port.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 16 << 20)
        port.bind((device, 0))
        return port

    def __exit__(self, *error):
        if self._thread:
            self._stop[1].close()
            self._thread.join()
            for each in (*self._ports, self._stop[0]):
                each.close()
            self._thread = None
        super().__exit__(*error)

    def _serve(self):
        with selectors.DefaultSelector() as selector:
            for side, port in enumerate(self._ports):
                selector.register(port, selectors.EVENT_READ, side)
            selector.register(self._stop[0], selectors.EVENT_READ, None)
            while True:
                for key, _ in selector.select():
                    if key.data is None:
                        return
                    self._forward(key.data, key.fileobj)

    def _forward(self, side, port):
        for _ in range(64):
            try:
                frame = port.recv(_FRAME_BYTES_MAX, socket.MSG_DONTWAIT)
            except OSError:  # nothing is there, or the node's end is gone
                return
            kind = kind_of(frame)
            self._last[side, kind].append(frame)
            self._first.setdefault((side, kind), frame)
            tamper = self.tamper
            for each in [frame] if tamper is None else tamper(side, frame):
                self.inject(1 - side, each)

    def inject(self, side, frame):
        """The node of this side gets it."""
        try:
            self._ports[side].send(frame)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise

    def seen(self, side, kind):
        """How many of the last frames of this kind it has kept."""
        return len(self._last[side, kind])

    def last(self, side, kind):
        return self._last[side, kind][-1]

    def earlier(self, side, kind):
        """The oldest of those that it has kept: some dozen frames ago."""
        return self._last[side, kind][0]

    def first(self, side, kind):
        return self._first[side, kind]
