# The console behind nginx, Caddy and Apache as the examples set them up: TLS, events at once, and who is believed about who
# is there. `./dev console-test` runs it; a proxy that is not installed is skipped.
# SPDX-License-Identifier: Apache-2.0
import base64
import dataclasses
import http.client
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import urllib.parse
import warnings

import browsers
import fronts
import pytest
from harness import Console, is_root
from harness.console import Browser
from harness.system import free_ports
from transfers import MIB

if not os.environ.get("SLUICE_PROXIES"):
    pytest.skip("./dev console-test runs these: they take minutes", allow_module_level=True)

FRONTS = [("nginx", False), ("nginx", True), ("caddy", False), ("caddy", True), ("apache", False), ("apache-oidc", True)]
HEADER = "X-Remote-User"


@dataclasses.dataclass
class Setting:
    console: Console
    place: pathlib.Path
    certificate: fronts.Certificate
    provider: fronts.Provider
    ports: dict


@pytest.fixture(scope="module")
def setting(make_pair):
    """A console on a unix socket, which knows two people by what a proxy says of them."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="sluice-fronts-"))
    place.chmod(0o755)
    made = []

    def prepare(pair):
        ports = dict(zip(FRONTS, free_ports(len(FRONTS))))
        origins = ", ".join(f'"https://{fronts.NAME}:{port}"' for port in ports.values())
        user = Console(pair.b).user  # who runs the tests, and is an operator
        console = Console(pair.a, f'listen = "unix:{place}/console.sock"\norigins = [{origins}]\nproxy_header = "{HEADER}"\n'
                          f'[proxy_users]\n"ada@example.org" = "{user}"\n')  # fmt: skip
        certificate = fronts.Certificate(place)
        made.append(Setting(console, place, certificate, fronts.Provider(certificate), ports))

    make_pair(bytes_needed=1 << 28, prepare=prepare)
    made[0].console.start()
    if is_root():
        shutil.chown(place / "console.sock", group=fronts.USER)  # of the group sluice-proxy, where a package made it
    yield made[0]
    made[0].provider.stop()
    assert made[0].console.stop() == 0, made[0].console.daemon.log_tail()
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module", params=FRONTS, ids=lambda one: f"{one[0]}{'-signs-in' if one[1] else ''}")
def front(request, setting):
    kind, signs_in = request.param
    if fronts.missing(kind):
        pytest.skip(fronts.missing(kind))
    made = fronts.Front(kind, signs_in, setting.ports[request.param], setting.place, setting.place / "console.sock",
                        setting.certificate, setting.provider)  # fmt: skip
    made.start()
    made.console = setting.console
    yield made
    made.stop()


class Secure(http.client.HTTPSConnection):
    """TLS to a name that no resolver knows."""

    def connect(self):
        self.sock = self._context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), self.timeout), server_hostname=self.host)


class Person(Browser):
    """A browser in front of a proxy. `says`: headers of its own, which an attacker may choose."""

    def __init__(self, front, **says):
        self.front, self.says, self.jar = front, says, {}
        super().__init__(front)

    def connection(self):
        return Secure(fronts.NAME, self.front.port, timeout=60, context=self.front.certificate.client())

    def headers(self, **other):
        found = super().headers(**{**self.says, **other})
        found["Cookie"] = "; ".join(filter(None, [self.cookie, *(f"{name}={value}" for name, value in self.jar.items())]))
        return found

    def knows_password_of(self, person):
        self.says["Authorization"] = "Basic " + base64.b64encode(f"{person}@example.org:{person}".encode()).decode()
        return self

    def look(self, url="/"):
        """Of a page, with whatever redirections lead there."""
        for _ in range(8):
            at = urllib.parse.urlsplit(url)
            other = at.hostname == "localhost"
            connection = http.client.HTTPSConnection("localhost", at.port, context=self.front.certificate.client()) if other else self.connection()
            connection.request("GET", at._replace(scheme="", netloc="").geturl() or "/", headers={} if other else {
                "Host": self.front.host, "Cookie": "; ".join(f"{name}={value}" for name, value in self.jar.items()), "Accept": "text/html",
                **self.says})  # fmt: skip
            response = connection.getresponse()
            text = response.read()
            for cookie in response.headers.get_all("Set-Cookie") or ():
                name, _, value = cookie.split(";")[0].partition("=")
                if not other:
                    self.jar[name] = value
            if response.status not in (301, 302, 303, 307):
                return response, text
            url = urllib.parse.urljoin(url, response.getheader("Location"))
        raise AssertionError("redirections without an end")


def arrives(setting, front, who, **says):
    """Somebody whom the proxy signs in, at a page; None: nobody can sign in there."""
    person = Person(front, **says)
    if front.kind == "apache-oidc":
        setting.provider.person = who and f"{who}@example.org"
        person.look()
    elif who:
        person.knows_password_of(who)
    return person


@pytest.fixture
def visitor(setting, front):
    """Who reaches the pages: anybody, or who the proxy knows."""
    return arrives(setting, front, "ada") if front.signs_in else Person(front)


def test_pages_come_over_tls_as_the_console_gives_them(front, visitor):
    response, text = visitor.look()
    assert response.status == 200 and b"app/main.js" in text
    assert response.getheader("strict-transport-security") == "max-age=31536000"
    assert "frame-ancestors 'none'" in response.getheader("content-security-policy")
    with pytest.raises(ssl.SSLError), socket.create_connection(("127.0.0.1", front.port)) as plain:
        old = front.certificate.client()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.wrap_socket(plain, server_hostname=fronts.NAME)


def test_pages_come_by_http_2(front):
    """So that a browser may have many pages of it open: of HTTP/1.1 it makes six connections."""
    if front.signs_in:
        pytest.skip("this is said of the proxy without a sign-in")
    said = subprocess.run(["curl", "--silent", "--http2", "--cacert", front.certificate.file, "--resolve", f"{front.host}:127.0.0.1",
                           "--output", os.devnull, "--write-out", "%{http_version} %{http_code}", front.origin], capture_output=True, text=True)  # fmt: skip
    assert said.stdout == "2 200", said


def test_events_come_at_once(setting, front, visitor):
    """The console says little, and now and then: a proxy that gathers it would keep the page waiting for minutes."""
    page = visitor.sign_in(setting.console.link())
    assert page.signed_in.status == 200
    cookie = page.signed_in.getheader("set-cookie")
    assert cookie.startswith("__Host-sluice=") and "Secure" in cookie and "HttpOnly" in cookie
    stream = page.open("events", {})
    assert stream.status == 200 and stream.readline() == b": here\n"
    node = setting.console.node
    (node.export() / "slow.bin").write_bytes(os.urandom(MIB))
    sides = {"from": {"node": "", "path": "data"}, "to": {"node": "b", "path": "data"}}
    id = page.ask("copy", **sides, names=["slow.bin"], options={"rate_bps": 4_000_000, "overwrite": True})["id"]
    seen = set()
    while "succeeded" not in seen:
        line = stream.readline()
        assert line, "the stream ended"
        seen.update(state for state in ("transferring", "succeeded") if f'"id":"{id}"' in line.decode() and f'"state":"{state}"' in line.decode())
    page.ask("sign-out")
    stream.read()
    assert page.refused("me")[0] == 401


def test_long_lists_and_large_requests_pass(front, visitor, setting):
    page = visitor.sign_in(setting.console.link())
    many = setting.console.node.export() / "many"
    many.mkdir(exist_ok=True)
    for number in range(3000):
        (many / f"run{number:05}").touch()
    assert len(page.names("", "data/many")) == 3000
    status, message = page.refused("names/list", {"node": "", "path": "x" * 900_000})
    assert status == 400 and "no path" in message, "it came to the console, which judged it"
    status, message = page.refused("me", b"x" * (3 << 20))
    assert status == 400 and "no JSON" in message, "and so did this: whoever has signed in may name many files"
    # Apache says of a console that hangs up meanwhile that it is a bad gateway.
    assert page.open("me", b"x" * (20 << 20)).status in (413, 502)


@pytest.mark.parametrize("name", ["X-Remote-User", "x-remote-user", "X-REMOTE-USER"])
def test_what_a_browser_says_of_itself_is_nothing(front, name):
    if front.signs_in:
        pytest.skip("this is said of the proxy without a sign-in")
    person = Person(front, **{name: "ada@example.org"})
    status, message = person.refused("sign-in", {})
    assert status == 401 and "sluice console open" in message
    for value in ("ada@example.org\t", "ada@example.org, ada@example.org"):
        assert Person(front, **{name: value}).refused("sign-in", {})[0] == 401


def test_whom_the_proxy_knows_comes_in(front, setting):
    if not front.signs_in:
        pytest.skip("this proxy knows nobody")
    ada = arrives(setting, front, "ada")
    response, said = ada.post("sign-in")
    assert response.status == 200, said
    ada.cookie, ada.key = response.getheader("set-cookie").split(";")[0], said["key"]
    assert ada.ask("me")["name"] == setting.console.user
    # Not as somebody else, by words of the browser's own: neither for less nor for more.
    liar = arrives(setting, front, "eve", **{HEADER: "ada@example.org"})
    status, message = liar.refused("sign-in", {})
    assert status == 403 and "eve@example.org: is not one of proxy_users" in message
    modest = arrives(setting, front, "ada", **{HEADER: "eve@example.org"})
    assert modest.ask("sign-in")["name"] == setting.console.user
    # Who has taken Ada's halves of the sign-in and is Eve to the proxy.
    liar.cookie, liar.key = ada.cookie, ada.key
    assert liar.post("me")[0].status == 401


def test_whom_the_proxy_does_not_know_does_not_come_to_the_console(front, setting):
    if not front.signs_in:
        pytest.skip("this proxy knows nobody")
    nobody = arrives(setting, front, None, **{HEADER: "ada@example.org"})
    response = nobody.open("sign-in", {})
    assert response.status == 401 and b"sluice" not in response.read()
    _, text = nobody.look()
    assert b"app/main.js" not in text


def test_another_name_leads_to_no_page(front, visitor):
    connection = visitor.connection()
    connection.request("GET", "/", headers={"Host": "evil.example", **visitor.says})
    assert b"app/main.js" not in connection.getresponse().read()
    for origin in ("https://evil.example", "null", f"http://{front.host}", f"https://{fronts.NAME}"):
        assert visitor.post("sign-in", {}, Origin=origin)[0].status == 403, origin


def test_people_use_it_in_a_browser(front, setting):
    """Chromium, over TLS: by a link, or by the provider's word."""
    if browsers.missing():
        pytest.skip(browsers.missing())
    if front.signs_in and front.kind != "apache-oidc":
        pytest.skip("a password is asked for by the browser itself")
    from playwright.sync_api import expect, sync_playwright

    (setting.console.node.export() / "hello.txt").write_text("hello")
    with sync_playwright() as playwright:
        browser = browsers.launch(playwright, f"--host-resolver-rules=MAP {fronts.NAME} 127.0.0.1")
        try:
            window = browsers.Window(browser, front, ignore_https_errors=True)
            page = window.page
            if front.signs_in:
                setting.provider.person = "ada@example.org"
                page.goto(front.origin)
            else:
                page.goto(f"{front.origin}/#{setting.console.link().split('#')[1]}")
            page.get_by_role("navigation", name="Pages").wait_for()
            window.show("left", "", "data")
            expect(window.row("left", "hello.txt")).to_be_visible(timeout=60_000)
            page.get_by_role("button", name=re.compile("operator")).click()
            page.get_by_role("menuitem", name="Sign out").click()
            expect(page.get_by_role("heading", name="Sign in to Sluice")).to_be_visible(timeout=60_000)
            window.close()
        finally:
            browser.close()
