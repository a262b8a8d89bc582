# The console of a node (tools/console), as it is built, and a browser's side of it without a browser.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import http.client
import json
import os
import pwd
import socket
import time

from .process import Daemon
from .system import free_ports, run, wait_until

_READY_DEADLINE_S = 30


class Console:
    """Of a node whose control has not been started yet: it has to be told of the console first."""

    def __init__(self, node, settings="", user=None):
        self.node = node
        self.port = free_ports(1)[0]
        self.host = f"127.0.0.1:{self.port}"
        self.origin = f"http://{self.host}"
        self.user = user or pwd.getpwuid(os.geteuid()).pw_name
        self.program = node.binaries / "sluice-console"
        (node.directory / "console.toml").write_text(settings or f'listen = "{self.host}"\n')
        run([self.program, "--node", node.directory, "setup", "--user", self.user])
        self.daemon = Daemon(f"sluice-console of node {node.name}", [self.program, "--node", node.directory],
                             node.directory.parent / f"{node.name}-console.log")  # fmt: skip

    def start(self):
        self.daemon.start()
        wait_until(self.ready, _READY_DEADLINE_S, f"{self.daemon.name} is ready")

    def ready(self):
        if not self.daemon.running():
            raise AssertionError(f"{self.daemon.name} ended; its log ends:\n{self.daemon.log_tail()}")
        # Of a life before there are lines, too; its desk is open once anybody may connect.
        desk = self.node.directory / "console/desk.sock"
        if not self.daemon.log_lines("the console serves"):
            return False
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as caller:
            caller.connect(str(desk))
            return desk.stat().st_mode & 0o777 == 0o666
        return False

    def stop(self):
        return self.daemon.stop()

    def ask(self, what, **given):
        """As `sluice console` asks at the desk."""
        with socket.socket(socket.AF_UNIX) as desk:
            desk.connect(str(self.node.directory / "console/desk.sock"))
            desk.sendall(json.dumps({"ask": what, **given}).encode() + b"\n")
            return json.loads(desk.makefile().readline())

    def link(self, **given):
        return self.ask("open", **given)["link"]

    def browser(self, **given):
        """Signed in by a link."""
        return Browser(self).sign_in(self.link(**given))


class Browser:
    """Speaks HTTP as a page of the console does, with whatever a test wants to be otherwise."""

    def __init__(self, console):
        self.console = console
        self.cookie = self.key = ""

    def sign_in(self, link):
        response, said = self.post("sign-in", {"secret": link.split("#sign-in=")[1]})
        if response.status == 200:
            self.cookie = response.getheader("set-cookie").split(";")[0]
            self.key = said["key"]
        self.signed_in = response
        return self

    def headers(self, **other):
        found = {"Host": self.console.host, "Origin": self.console.origin, "Content-Type": "application/json",
                 "X-Sluice-Key": self.key, "Cookie": self.cookie}  # fmt: skip
        found.update({name.replace("_", "-"): value for name, value in other.items()})
        return {name: value for name, value in found.items() if value}

    def connection(self):
        return http.client.HTTPConnection(self.console.host, timeout=120)

    def open(self, call, given, **headers):
        connection = self.connection()
        body = given if isinstance(given, bytes) else json.dumps(given)
        connection.request("POST", f"/api/{call}", body, self.headers(**headers))
        return connection.getresponse()

    def _answered(self, call, given, **headers):
        """(response, text). A node answers few questions at a time, and on a slow machine former ones have not ended:
        then it is asked again."""
        until = time.monotonic() + 60
        while True:
            response = self.open(call, given, **headers)
            text = response.read()
            if b"try again when one has ended" not in text or time.monotonic() > until:
                return response, text
            time.sleep(0.2)

    def post(self, call, given=None, **headers):
        """(response, JSON)"""
        response, text = self._answered(call, {} if given is None else given, **headers)
        return response, json.loads(text) if text else None

    def ask(self, call, **given):
        response, said = self.post(call, given)
        assert response.status == 200, said
        return said

    def refused(self, call, given=None, **headers):
        """(status, message)"""
        response, said = self.post(call, given, **headers)
        assert response.status >= 400, said
        return response.status, said["error"]["message"]

    def lines(self, call, **given):
        """Each line but the last, which must say that all have come."""
        response, text = self._answered(call, given)
        found = [json.loads(line) for line in text.splitlines()]
        assert response.status == 200, found
        assert found[-1] == {"end": True}, found[-1]
        return found[:-1]

    def names(self, node, path):
        return [row for part in self.lines("names/list", node=node, path=path) for row in part]
