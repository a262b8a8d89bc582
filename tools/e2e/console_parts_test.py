# Parts of the console that decide by themselves: how long a sign-in lasts, what a name becomes, what the configuration may say.
# SPDX-License-Identifier: Apache-2.0
import json
import sys

import pytest
from harness import find_binaries

sys.path.insert(0, str(find_binaries().parent / "lib/sluice-console"))
from sluice_console import of_names, of_node, settings, sign_ins, words  # noqa: E402
from sluice_console.errors import ConsoleError  # noqa: E402
from sluice_console.messages import api_pb2 as api  # noqa: E402


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def made(tmp_path, clock):
    return sign_ins.SignIns(tmp_path / "sign-ins.json", 600, 3600, clock)


def test_a_link_lasts_a_minute(made, clock):
    secret = made.make_link(7, "ada", "operator")
    clock.now += sign_ins.LINK_S
    assert made.take_link(secret) is None
    secret = made.make_link(7, "ada", "operator")
    clock.now += sign_ins.LINK_S - 1
    assert made.take_link(secret)[2].name == "ada"
    assert made.take_link(secret) is None


def test_a_sign_in_ends_when_it_is_idle_and_in_any_case(made, clock):
    cookie, key, one = made.make(7, "ada", "operator")
    for _ in range(7):
        clock.now += 500
        assert made.find(cookie, key) is one, "it is used"
    clock.now += 200
    assert made.find(cookie, key) is None, "an hour is over"
    cookie, key, one = made.make(7, "ada", "operator")
    clock.now += 601
    assert made.find(cookie, key) is None, "nobody used it"
    cookie, key, one = made.make(7, "ada", "operator")
    clock.now -= 3600
    assert made.find(cookie, key) is None, "the clock was set back"


def test_who_watches_uses_it_and_is_told_of_its_end(made, clock):
    import asyncio

    cookie, key, one = made.make(7, "ada", "operator")
    stream = asyncio.Event()
    one.streams.add(stream)
    clock.now += 601
    assert made.find(cookie, key) is one
    made.end(one)
    assert stream.is_set() and made.find(cookie, key) is None


def test_sign_ins_are_known_after_a_restart_and_hold_no_secret(tmp_path, made, clock):
    cookie, key, _ = made.make(7, "ada", "viewer")
    again = sign_ins.SignIns(tmp_path / "sign-ins.json", 600, 3600, clock)
    assert again.find(cookie, key).role == "viewer"
    text = (tmp_path / "sign-ins.json").read_text()
    assert cookie not in text and key not in text
    (tmp_path / "sign-ins.json").write_text("{broken")
    assert sign_ins.SignIns(tmp_path / "sign-ins.json", 600, 3600, clock).find(cookie, key) is None


def test_one_person_has_a_bounded_number_of_them(made, clock):
    first = made.make(7, "ada", "viewer")
    for _ in range(sign_ins.SIGN_INS_OF_ONE):
        clock.now += 1
        last = made.make(7, "ada", "viewer")
    assert made.find(*first[:2]) is None and made.find(*last[:2])
    assert len(made.of(7)) == sign_ins.SIGN_INS_OF_ONE


@pytest.mark.parametrize("name", [b"plain", "é".encode(), b"\xff\xfe", b"\xed\xb2\x80", b"a\nb\"'\\<>", bytes(range(1, 47)) + bytes(range(48, 256))])
def test_any_name_goes_to_a_page_and_back(name):
    assert words.one_name(json.loads(json.dumps(words.text(name)))) == name


def test_a_page_of_names_is_a_line_of_json_whatever_the_names():
    from sluice_console.messages import api_pb2 as api

    names = [b"plain", b"\xff\xfe", b"a\nb\"'\\<>", "é\u2028".encode(), bytes(range(1, 47)) + bytes(range(48, 256))]
    page = [api.NameEntry(path=name, type=number % 9, size=2**63 + number, mtime_ns=-1_500_000, mode=0o7777) for number, name in enumerate(names)]
    page.append(api.NameEntry(path=b"link", type=api.NameEntry.LINK, target=b"\xfe\"", error='no "right"\n'))
    line = words.entries(page)
    assert line.count("\n") == 1 and line.endswith("\n")
    rows = json.loads(line)
    assert [words.name(row[0]) for row in rows] == [*names, b"link"]
    assert rows[0] == ["plain", "?", 2**63, -2, 0o7777]
    assert words.name(rows[-1][5]) == b"\xfe\"" and rows[-1][6] == 'no "right"\n'
    assert json.loads(words.entries([])) == []


@pytest.mark.parametrize("path", ["/x", "x/", "x//y", "..", "x/../y", "./x", "x\0", "\ud800", "x" * 4097, None, 1, ["x"]])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ConsoleError):
        words.path(path)


def test_a_selection_is_text_where_it_can_be_and_patterns_where_it_must():
    assert of_names.selection(b"/d", [b"a*", b"b c"], True) == (["/d/a*", "/d/b c"], [])
    sources, rules = of_names.selection(b"/d", [b"\xff[1]*", b"ok"], True)
    assert sources == ["/d/"]
    assert [(rule.include, rule.pattern) for rule in rules] == [(True, b"/\xff\\[1\\]\\*"), (True, b"/ok"), (False, b"/*")]
    _, rules = of_names.selection(b"/d", [b"\xff\\", b"\\*"], True)
    assert [rule.pattern for rule in rules[:2]] == [b"/\xff\\", b"/\\\\\\*"], "as rsync: escapes count beside wildcards alone"
    with pytest.raises(ConsoleError, match="UTF-8"):
        of_names.selection(b"/\xff", [b"a"], True)


@pytest.mark.parametrize("text, words", [
    ('listen = "0.0.0.0:7480"', "without TLS"), ('listen = "example.org:80"', "ADDRESS:PORT"), ("listen = 7", "type str"),
    ('origins = ["http://console.example"]', "use https"), ('origins = ["https://console.example/x"]', "as a browser does"),
    ('listen = "unix:/x"', "origins"), ('proxy_header = "X-Remote-User"', "unix socket only"), ('rol_max = "viewer"', "no such key"),
    ('role_max = "root"', "one of"), ("idle_s = 5", "60 to"), ('state_dir = "x"', "absolute"), ("[[", "console.toml")])  # fmt: skip
def test_an_unsafe_configuration_is_refused(tmp_path, text, words):
    (tmp_path / "console.toml").write_text(text)
    with pytest.raises(ConsoleError, match=words):
        settings.load(tmp_path)


def test_without_a_configuration_it_is_safe(tmp_path):
    chosen = settings.load(tmp_path)
    assert chosen.listen == "127.0.0.1:7480" and chosen.origins == ("http://127.0.0.1:7480", "http://localhost:7480")
    assert not chosen.proxy_header and not chosen.over_tls


def test_a_node_whose_sockets_serve_for_its_device_says_so():
    serving = api.NodeReply(device="net_udp0", falls=1, fallback=api.Fallback(device="0000:01:00.0", reason="it was unbound", since_unix_ns=7_000_000))
    assert of_node.facts(serving)["fallback"] == {"device": "0000:01:00.0", "reason": "it was unbound", "since": 7}
    back = of_node.facts(api.NodeReply(device="0000:01:00.0", falls=1))
    assert (back["fallback"], back["falls"]) == (None, 1)
