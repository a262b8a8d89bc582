# What attackers try at the console, each a bug that others have had: from another page, another name, another port, without a
# sign-in, with an old one, too much, too slowly. One real node behind it.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import http.client
import json
import os
import pwd
import signal
import socket
import subprocess
import time

import pytest
from harness import Console, wait_until
from harness.console import Browser


@pytest.fixture(scope="module")
def consoles():
    return []


@pytest.fixture(scope="module")
def pair(make_pair, consoles):
    made = make_pair(prepare=lambda pair: consoles.append(Console(pair.a)))
    consoles[0].start()
    yield made
    assert consoles[0].stop() == 0, consoles[0].daemon.log_tail()


@pytest.fixture(scope="module")
def console(pair, consoles):
    return consoles[0]


@pytest.fixture
def page(console):
    return console.browser()


def get(console, path, **headers):
    connection = http.client.HTTPConnection(console.host, timeout=60)
    connection.request("GET", path, headers={"Host": console.host, **headers})
    response = connection.getresponse()
    return response, response.read()


def test_a_link_works_once_and_only_for_a_minute(console):
    link = console.link()
    assert link.startswith(f"{console.origin}/#sign-in="), "the secret is in the fragment, which no server is sent"
    assert Browser(console).sign_in(link).signed_in.status == 200
    again = Browser(console).sign_in(link)
    assert again.signed_in.status == 401 and not again.key
    for secret in ("", "x", "x" * 43, 5, None, ["x"]):
        assert Browser(console).refused("sign-in", {"secret": secret})[0] in (400, 401), secret


def test_the_command_prints_links_and_ends_sign_ins(console):
    link = console.node.must("console", "open", "--role", "viewer").stdout.strip()
    viewer = Browser(console).sign_in(link)
    assert viewer.ask("me")["role"] == "viewer"
    listed = console.node.must("console", "sign-ins").stdout
    id = next(line.split()[0] for line in listed.splitlines() if " viewer " in line)
    assert console.node.sluice("console", "revoke", "no-such").returncode == 2
    code, said, _err = console.node.json("console", "revoke", "no-such")
    assert (code, said["schema"], said["code"]) == (2, "sluice.error.v1", 2)
    _code, said, _err = console.node.json("console", "sign-ins")
    assert said["schema"] == "sluice.console_sign_ins.v1" and any(one["id"] == id for one in said["sign_ins"])
    _code, said, _err = console.node.json("console", "revoke", id)
    assert said == {"schema": "sluice.console_revoke.v1", "revoked": 1}
    assert viewer.refused("me")[0] == 401
    _code, said, _err = console.node.json("console", "open", "--role", "viewer")
    assert (said["schema"], said["role"]) == ("sluice.console_open.v1", "viewer") and said["link"].startswith(link.partition("#")[0])
    assert console.node.sluice("console", "open", "--role", "king").returncode == 2


def test_both_halves_of_a_sign_in_are_needed(console, page):
    assert page.ask("me")["role"] == "operator"
    # A page of another port of this host sends the cookie, and has no page key; who reads the key has no cookie.
    for cookie, key in ((page.cookie, ""), (page.cookie, "x" * 43), ("", page.key), ("sluice=" + page.key, page.key),
                        (console.browser().cookie, page.key)):  # fmt: skip
        assert page.refused("me", Cookie=cookie, X_Sluice_Key=key)[0] == 401
        assert page.refused("events", Cookie=cookie, X_Sluice_Key=key)[0] == 401


def test_the_cookie_is_for_this_server_alone(page):
    cookie = page.signed_in.getheader("set-cookie")
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie and "Domain" not in cookie


def test_a_session_that_an_attacker_chose_is_none(console):
    chosen = Browser(console)
    chosen.cookie = f"sluice-{console.port}=chosen"
    assert chosen.refused("me")[0] == 401
    chosen.sign_in(console.link())
    assert "chosen" not in chosen.cookie


def test_requests_of_other_pages_are_refused(console, page):
    for origin in ("", "null", "http://evil.example", f"http://127.0.0.1.evil.example:{console.port}", f"https://{console.host}",
                   f"http://127.0.0.1:{console.port + 1}", f"http://localhost:{console.port}", f"{console.origin}/", f"{console.origin}@evil.example"):  # fmt: skip
        assert page.refused("names/make", {"node": "", "path": "data/x"}, Origin=origin)[0] == 403, origin
    assert page.refused("me", Sec_Fetch_Site="cross-site")[0] == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        assert page.refused("me", Content_Type=kind)[0] == 415, kind
    response, _ = get(console, "/api/me", Cookie=page.cookie)
    assert response.status == 405, "nothing is done by GET"
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        connection = http.client.HTTPConnection(console.host, timeout=60)
        connection.request(method, "/api/me", headers=page.headers())
        assert connection.getresponse().status == 405, method


def test_another_name_of_this_server_is_none(console, page):
    for host in ("evil.example", f"evil.example:{console.port}", "127.0.0.1", f"127.0.0.1:{console.port}.evil.example", f"[::1]:{console.port}"):
        response, text = get(console, "/", Host=host)
        assert response.status == 421 and b"evil" not in text, host
        assert page.refused("me", Host=host, Origin=f"http://{host}")[0] == 421
    with socket.create_connection(("127.0.0.1", console.port)) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: evil.example\r\nHost: " + console.host.encode() + b"\r\n\r\n")
        assert raw.recv(64).startswith(b"HTTP/1.1 400")


def test_pages_cannot_be_framed_or_made_to_run_anything(console):
    for path in ("/", "/app/main.js", "/nothing"):
        response, _ = get(console, path)
        policy = response.getheader("content-security-policy")
        for word in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'",
                     "require-trusted-types-for 'script'"):  # fmt: skip
            assert word in policy, (path, word)
        assert "unsafe" not in policy
        assert response.getheader("x-frame-options") == "DENY" and response.getheader("x-content-type-options") == "nosniff"
        assert response.getheader("referrer-policy") == "no-referrer" and response.getheader("server") is None


def test_no_path_leads_to_a_file_or_to_another_site(console):
    for path in ("/../../etc/passwd", "/..%2f..%2fetc/passwd", "/app/../../sluice_console/house.py", "/app/%2e%2e/index.html", "/%00", "/app"):
        response, text = get(console, path)
        assert response.status in (404, 405) and b"root:" not in text, path
    for path in ("//evil.example/", "/api/", "/api/me/", "/\\evil.example", "/app/", "/?next=https://evil.example"):
        response, _ = get(console, path)
        assert response.getheader("location") is None and response.status not in (301, 302, 303, 307, 308), path


def test_who_signs_out_or_is_revoked_is_out_everywhere(console):
    first, second = console.browser(), console.browser()
    streams = [first.open("events", {}) for _ in range(3)]
    assert all(stream.status == 200 and stream.readline() for stream in streams)
    first.ask("sign-out")
    for stream in streams:
        assert stream.read() is not None, "it ended"
    assert first.refused("me")[0] == 401
    assert second.ask("me")["name"], "another sign-in of the same person is another"
    stream = second.open("events", {})
    assert stream.readline()
    assert console.ask("revoke", id="all")["revoked"] >= 1
    stream.read()
    assert second.refused("me")[0] == 401


def test_a_console_that_starts_again_knows_who_had_signed_in_and_no_secret_lies_about(console, page):
    console.daemon.kill()
    console.daemon.start()
    wait_until(lambda: console.ready() and _answers(page), 30, "it serves again")
    assert page.ask("me")["role"] == "operator"
    kept = (console.node.directory / "console/sign-ins.json").read_text() + console.daemon.log_file.read_text()
    for secret in (page.cookie.split("=", 1)[1], page.key):
        assert secret not in kept
    assert os.stat(console.node.directory / "console/sign-ins.json").st_mode & 0o077 == 0
    assert os.stat(console.node.directory / "console/key.pem").st_mode & 0o077 == 0


def _answers(page):
    with contextlib.suppress(OSError, http.client.HTTPException):
        return page.post("me")[0].status == 200
    return False


def test_what_is_too_large_or_broken_is_refused(page):
    assert Browser(page.console).refused("me", b"x" * (2 << 20))[0] == 413
    assert page.refused("me", b"x" * (2 << 20))[0] == 400, "who has signed in may name many files"
    assert page.refused("me", b"x" * (17 << 20))[0] == 413
    assert page.refused("me", b"{")[0] == 400
    assert page.refused("me", b"[" * 100_000)[0] == 400
    assert page.refused("me", b"[]")[0] == 400
    assert page.refused("me", b"\xff")[0] == 400
    with socket.create_connection((page.console.host.split(":")[0], page.console.port)) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 200_000 + b"\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert raw.recv(64)[9:12] in (b"400", b"431", b"")


def test_whoever_asks_for_nothing_is_hung_up_on(console):
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", console.port))) for _ in range(50)]
        for one in silent[:25]:
            one.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert get(console, "/")[0].status == 200, "they hold nobody up"
        for one in silent:
            one.settimeout(60)
            with contextlib.suppress(ConnectionError):
                assert one.recv(16) in (b"", b"HTTP/1.1 400 Bad")


def test_a_thousand_streams_are_too_many(console, page):
    open_ones, refused = [], 0
    for _ in range(60):
        response = page.open("events", {})
        if response.status == 200:
            open_ones.append(response)
        else:
            assert response.status == 429
            refused += 1
            response.read()
    assert len(open_ones) == 12 and refused == 48
    assert console.browser().ask("me"), "others are served"
    for one in open_ones:
        one.close()
    wait_until(lambda: page.open("events", {}).status == 200, 30, "those that were left are free again")


def test_it_stops_at_once_although_streams_are_open(console, page):
    streams = [page.open("events", {}) for _ in range(3)]
    assert all(stream.readline() for stream in streams)
    begin = time.monotonic()
    os.kill(console.daemon.pid, signal.SIGTERM)
    for stream in streams:
        stream.read()
    wait_until(lambda: not console.daemon.running(), 8, "it has stopped")
    assert console.daemon.exit_status() == 0, f"after {time.monotonic() - begin:.1f} s"
    console.start()


def test_a_person_who_is_nobody_to_the_node_gets_no_link(console):
    if os.geteuid() != 0:
        pytest.skip("to be somebody else takes root")
    nobody = pwd.getpwnam("nobody")
    console.node.directory.parent.chmod(0o711)
    with socket.socket(socket.AF_UNIX) as desk:
        before = os.geteuid()
        os.seteuid(nobody.pw_uid)
        try:
            desk.connect(str(console.node.directory / "console/desk.sock"))
            desk.sendall(b'{"ask": "open", "role": "operator", "uid": 0}\n')
            said = json.loads(desk.makefile().readline())
        finally:
            os.seteuid(before)
    assert "may not use this node" in said["error"]["message"] and "link" not in said


def test_as_less_than_one_may(console):
    viewer = console.browser(role="viewer")
    assert viewer.ask("me")["role"] == "viewer"
    assert viewer.ask("node")["name"] == "a" and viewer.ask("sessions/list")["sessions"] == []
    for path, given in (("names/list", {"node": "", "path": ""}), ("names/make", {"node": "", "path": "data/x"}), ("sessions/cancel", {"id": "a"}),
                        ("copy", {"from": {"node": "", "path": "data"}, "to": {"node": "b", "path": "data"}, "names": ["x"]})):  # fmt: skip
        status, message = viewer.refused(path, given)
        assert status == 422 and "may only look" in message, path


def test_the_proxys_word_is_not_believed_over_tcp(pair, console, page):
    assert Browser(console).refused("sign-in", {}, X_Remote_User="root")[0] == 401
    before = (console.node.directory / "console.toml").read_text()
    (console.node.directory / "console.toml").write_text(f'listen = "{console.host}"\nproxy_header = "X-Remote-User"\n')
    try:
        said = subprocess.run([console.program, "--node", console.node.directory], capture_output=True, text=True)
    finally:
        (console.node.directory / "console.toml").write_text(before)
    assert said.returncode == 3 and "over a unix socket only" in said.stderr


class _LocalConnection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.host)


def test_behind_a_proxy_only_known_people_come_in(pair, console):
    """Over a unix socket, under TLS of the proxy: the header says who has signed in there."""
    where = console.node.directory.parent / "http.sock"
    before = (console.node.directory / "console.toml").read_text()
    console.stop()
    (console.node.directory / "console.toml").write_text(
        f'listen = "unix:{where}"\norigins = ["https://console.example"]\nproxy_header = "X-Remote-User"\n'
        f'[proxy_users]\n"ada@example.org" = "{console.user}"\n"gone@example.org" = "no-such-user"\n')  # fmt: skip
    try:
        console.start()
        assert os.stat(where).st_mode & 0o007 == 0, "others of this host cannot play the proxy"

        def ask(path, given, **headers):
            connection = _LocalConnection(str(where))
            connection.request("POST", f"/api/{path}", json.dumps(given), {
                "Host": "console.example", "Origin": "https://console.example", "Content-Type": "application/json",
                **{name.replace("_", "-"): value for name, value in headers.items()}})  # fmt: skip
            response = connection.getresponse()
            return response, json.loads(response.read())

        assert ask("sign-in", {})[0].status == 401
        for unknown in ("eve@example.org", console.user, "gone@example.org", "ada@example.org, eve@example.org"):
            assert ask("sign-in", {}, X_Remote_User=unknown)[0].status == 403, unknown
        response, said = ask("sign-in", {}, X_Remote_User="ada@example.org")
        cookie = response.getheader("set-cookie")
        assert response.status == 200 and cookie.startswith("__Host-sluice=") and "Secure" in cookie
        assert response.getheader("strict-transport-security")
        halves = {"Cookie": cookie.split(";")[0], "X_Sluice_Key": said["key"]}
        assert ask("me", {}, X_Remote_User="ada@example.org", **halves)[0].status == 200
        for other in ({}, {"X_Remote_User": "eve@example.org"}):
            assert ask("me", {}, **halves, **other)[0].status == 401, "the proxy has somebody else now"
    finally:
        console.stop()
        (console.node.directory / "console.toml").write_text(before)
        console.start()


def test_calls_past_the_console_are_refused_by_control(pair, console):
    """The console's socket is its user's alone, and takes only what its key has signed."""
    import grpc

    channel = grpc.insecure_channel(f"unix:{console.node.directory}/run/console.sock")
    for metadata in ((), (("sluice-delegation-bin", b"\x18\x00\x20\x03"), ("sluice-delegation-signature", "AAAA"))):
        with pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary("/sluice.api.Control/Node")(b"", metadata=metadata, timeout=60)
        assert "refused" in refused.value.details()
    channel.close()
    if os.geteuid() == 0:
        code = f"import grpc; grpc.insecure_channel('unix:{console.node.directory}/run/console.sock').unary_unary('/sluice.api.Control/Node')(b'', timeout=20)"
        said = subprocess.run(["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "/usr/bin/python3", "-c", code], capture_output=True, text=True)
        assert "UNAVAILABLE" in said.stderr
