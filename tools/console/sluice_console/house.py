"""All that the console is made of, and the application that serves it."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import http
import pathlib
import urllib.parse
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from . import of_names, of_node, of_sessions, pages
from .desk import Desk, choose_role
from .door import KEY_HEADER, given_of, refusal
from .errors import ConsoleError
from .fan import Fan
from .guard import Guard
from .settings import Settings
from .setup_key import key_file
from .sign_ins import SignIn, SignIns
from .upstream import Upstream


class House:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.upstream = Upstream(settings.socket, key_file(settings))
        self.sign_ins = SignIns(settings.state / "sign-ins.json", settings.idle_s, settings.absolute_s)
        self.fan = Fan(self.upstream)
        self.desk = Desk(settings, self.sign_ins, self.upstream)
        self.streams = 0
        self.stopping = False
        # Cookies know no port: of two consoles on one host each has its own name.
        port = urllib.parse.urlsplit(settings.origins[0]).port
        self.cookie = "__Host-sluice" if settings.over_tls else f"sluice-{port}"

    def end_streams(self) -> None:
        """Before the server is told to stop: it waits for what is open."""
        self.stopping = True
        self.sign_ins.end_all_streams()
        self.fan.stop()

    def proxy_user(self, request: Request) -> str:
        header = self.settings.proxy_header
        found = request.headers.getlist(header) if header else []
        if len(found) > 1:
            raise ConsoleError("usage", f"{header}: is there {len(found)} times; the proxy must replace it", status=400)
        return found[0] if found else ""

    def found(self, request: Request) -> SignIn | None:
        """Whose request it is, by both halves of the sign-in; and by the proxy, where they came in by that."""
        one = self.sign_ins.find(request.cookies.get(self.cookie, ""), request.headers.get(KEY_HEADER, ""))
        return one if one is not None and self.still_is(one, request) else None

    def still_is(self, one: SignIn, request: Request) -> bool:
        """Whom the proxy lets in now is who signed in by it."""
        return not one.proxy_user or one.proxy_user == self.proxy_user(request)

    def cookie_text(self, value: str) -> str:
        made: Any = http.cookies.SimpleCookie()
        made[self.cookie] = value
        made[self.cookie].update({"path": "/", "httponly": True, "samesite": "Strict", "secure": self.settings.over_tls})
        made[self.cookie]["max-age"] = self.settings.absolute_s
        return made[self.cookie].OutputString()


async def _by_proxy(house: House, request: Request) -> tuple[str, str, SignIn]:
    import pwd

    said = house.proxy_user(request)
    if not said:
        raise ConsoleError("signed_out", "sign in: run 'sluice console open' on the host of this node", 3, 401)
    user = house.settings.proxy_users.get(said, "")
    if not user:
        raise ConsoleError("configuration", f"{said}: is not one of proxy_users in console.toml; ask an operator of this node", status=403)
    try:
        uid = pwd.getpwnam(user).pw_uid
    except KeyError:
        raise ConsoleError("configuration", f"{said} is {user} in console.toml, whom this host does not know", status=403) from None
    name, role = await choose_role(house.settings, house.upstream, uid)
    return house.sign_ins.make(uid, name, role, proxy_user=said)


async def _sign_in(request: Request) -> Response:
    house = request.app.state.house
    try:
        secret = given_of(request).get("secret", "")
        if not isinstance(secret, str) or len(secret) > 128:
            raise ConsoleError("usage", "secret: must be that of a link")
        made = house.sign_ins.take_link(secret) if secret else await _by_proxy(house, request)
        if made is None:
            raise ConsoleError("signed_out", "this link has been used, or is older than a minute: ask for another with "
                               "'sluice console open'", 3, 401)  # fmt: skip
    except ConsoleError as error:
        return refusal(error)
    cookie, page_key, who = made
    # Whoever was signed in here before is not any more: a browser is of one person.
    before = house.sign_ins.find(request.cookies.get(house.cookie, ""), request.headers.get(KEY_HEADER, ""))
    if before is not None:
        house.sign_ins.end(before)
    headers = {"set-cookie": house.cookie_text(cookie)}
    return JSONResponse({"key": page_key, "name": who.name, "role": who.role}, headers=headers)


def application(house: House, static: pathlib.Path) -> Guard:
    routes = [*pages.routes(static), Route("/api/sign-in", _sign_in, methods=["POST"]), *of_node.routes(), *of_names.routes(),
              *of_sessions.routes()]  # fmt: skip
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False  # it would send a browser to where Host says
    app.state.house = house
    return Guard(app, house.settings, lambda scope: house.found(Request(scope)) is not None)
