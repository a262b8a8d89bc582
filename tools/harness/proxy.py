# A TCP forwarder on loopback, so that a test can cut a control connection without touching its ends.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import socket
import threading


class Proxy:
    """`with Proxy(target_port) as proxy:` proxy.address leads to 127.0.0.1:target_port, until it is cut."""

    def __init__(self, target_port):
        self._target = ("127.0.0.1", target_port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        self._open = set()
        self._refuses = False

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_error):
        self.cut(refuse=True)
        self._listener.close()

    def cut(self, refuse=False):
        """Ends every connection; with `refuse`, later ones as well, until `mend`."""
        with self._lock:
            self._refuses = refuse
            cut, self._open = self._open, set()
        for each in cut:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def mend(self):
        with self._lock:
            self._refuses = False

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                with self._lock:
                    refuses = self._refuses
                if refuses:
                    caller.close()
                    continue
                threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller):
        with contextlib.closing(caller), contextlib.suppress(OSError):
            with socket.create_connection(self._target) as target:
                with self._lock:
                    self._open |= {caller, target}
                back = threading.Thread(target=self._copy, args=(target, caller), daemon=True)
                back.start()
                self._copy(caller, target)
                back.join()

    @staticmethod
    def _copy(giver, taker):
        with contextlib.suppress(OSError):
            while data := giver.recv(65536):
                taker.sendall(data)
        for end in (giver, taker):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
