# The console's gateway between a browser's requests and two real nodes: what people see, do and may not.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import threading

import pytest
from harness import Console, wait_until
from harness.system import same_bytes
from transfers import MIB, forget, make_file

# Bytes that a name can have and a page, a shell or JSON might take for something else.
HOSTILE = [b"<img src=x onerror=alert(1)>", b"'\"`;&|$(id)", b"a\nb", b"back\\slash", b"\xff\xfe no text", "gno.\u202etxt.exe".encode(),
           "\u200b".encode(), b" lead and trail ", b"-rf", b"[2024]*?", b"n" * 255, b"%2e%2e%2f", "é".encode(), b"\x01\x1b[31m"]  # fmt: skip


@pytest.fixture(scope="module")
def consoles():
    return []


@pytest.fixture(scope="module")
def pair(make_pair, consoles):
    def prepare(made):
        made.b.add_export("data", made.b.export(), "rwm")
        made.b.write_configuration()
        consoles.append(Console(made.a))

    made = make_pair(bytes_needed=1 << 30, prepare=prepare)
    consoles[0].start()
    yield made
    assert consoles[0].stop() == 0, consoles[0].daemon.log_tail()
    assert not consoles[0].daemon.log_lines("Traceback"), consoles[0].daemon.log_tail(60)


@pytest.fixture(scope="module")
def console(pair, consoles):
    return consoles[0]


@pytest.fixture(scope="module")
def page(console):
    return console.browser()


def ended(page, id, state="succeeded"):
    def over():
        now = page.ask("sessions/show", id=id)
        return now if now["state"] in ("succeeded", "partial", "failed", "cancelled") else None

    found = wait_until(over, 60, f"session {id} has ended")
    assert found["state"] == state, found
    return found


def test_the_node_and_its_peers_are_shown(page):
    node = page.ask("node")
    assert (node["name"], node["attached"], [peer["name"] for peer in node["peers"]]) == ("a", True, ["b"])
    assert node["exports"][0]["name"] == "data" and node["exports"][0]["path"].endswith("/a-data")
    assert node["me"]["role"] == "operator"
    about = page.ask("peer", peer="b")
    assert about["software"].startswith("sluice ") and about["spaces"][0]["name"] == "data"
    assert {row[0] for row in page.ask("counters")["counters"]} >= {"tx_frames"}


@pytest.mark.parametrize("node", ["", "b"])
def test_names_are_listed_made_moved_measured_and_deleted(page, node):
    assert [row[0] for row in page.names(node, "")] == ["data"]
    assert page.ask("names/make", node=node, path="data/tree")["entries"] == 1
    page.ask("names/make", node=node, path="data/tree/one")
    page.ask("names/move", **{"node": node, "from": "data/tree/one", "to": "data/tree/two"})
    assert [row[:2] for row in page.names(node, "data/tree")] == [["two", "d"]]
    assert page.ask("names/look", node=node, path="data/tree/two")["type"] == "d"
    assert page.lines("names/size", node=node, path="data/tree")[-1]["directories"] == 1
    said = page.lines("names/remove", node=node, path="data", names=["tree"], recursive=True)
    assert said[-1] == {"name": "tree", "entries": 2, "failed": 0, "problems": []}
    status, message = page.refused("names/look", {"node": node, "path": "data/tree"})
    assert status == 422 and "data/tree" in message


def test_hostile_names_come_back_as_they_are_and_are_copied_and_deleted(pair, page):
    there = os.fsencode(pair.a.export()) + b"/odd"
    os.mkdir(there)
    for name in HOSTILE:
        with open(there + b"/" + name, "wb") as file:
            file.write(name)
    rows = page.names("", "data/odd")
    assert sorted(row[0].encode("utf-8", "surrogateescape") for row in rows) == sorted(HOSTILE)
    page.ask("names/make", node="b", path="data/odd")
    names = [row[0] for row in rows]
    side = {"from": {"node": "", "path": "data/odd"}, "to": {"node": "b", "path": "data/odd"}}
    ended(page, page.ask("copy", **side, names=names)["id"])
    at_b = os.fsencode(pair.b.export()) + b"/odd"
    assert sorted(os.listdir(at_b)) == sorted(HOSTILE)
    for name in HOSTILE:
        with open(at_b + b"/" + name, "rb") as file:
            assert file.read() == name
    # Of those that only a pattern can say, no other goes with them.
    page.ask("names/make", node="b", path="data/odd2")
    ended(page, page.ask("copy", **{**side, "to": {"node": "b", "path": "data/odd2"}}, names=[names[i] for i, row in enumerate(rows) if "[2024]" in row[0] or row[0].startswith("\udcff")])["id"])
    assert sorted(os.listdir(os.fsencode(pair.b.export()) + b"/odd2")) == sorted([b"[2024]*?", b"\xff\xfe no text"])
    for node, path in (("b", "data/odd"), ("", "data/odd")):
        said = page.lines("names/remove", node=node, path=path, names=names, recursive=False)
        assert sum(one.get("entries", 0) for one in said) == len(HOSTILE), said
    assert os.listdir(there) == os.listdir(at_b) == []
    page.lines("names/remove", node="b", path="data", names=["odd", "odd2"], recursive=True)
    page.lines("names/remove", node="", path="data", names=["odd"], recursive=True)


def test_a_directory_and_files_go_there_and_back(pair, page):
    source = make_file(pair.a, 2 * MIB)
    tree = pair.a.export() / "run/deep"
    tree.mkdir(parents=True)
    (tree / "small").write_text("x")
    sides = {"from": {"node": "", "path": "data"}, "to": {"node": "b", "path": "data"}}
    done = ended(page, page.ask("copy", **sides, names=[source.name, "run"], options={"verify": True, "rate_bps": 10**9})["id"])
    assert done["direction"] == "send" and done["names"]["done"] >= 3
    assert same_bytes(source, pair.b.export() / source.name) and (pair.b.export() / "run/deep/small").read_text() == "x"
    page.ask("names/make", node="", path="data/back")
    got = ended(page, page.ask("copy", **{"from": {"node": "b", "path": "data"}, "to": {"node": "", "path": "data/back"}}, names=["run", source.name])["id"])
    assert got["direction"] == "get"
    assert same_bytes(source, pair.a.export() / "back" / source.name)
    assert any(row["id"] == got["id"] for row in page.ask("sessions/list")["sessions"])
    assert page.lines("sessions/log", id=got["id"])[-1]
    assert all(one["good"] for one in page.lines("sessions/verify", id=got["id"]) if one["done"])
    receipt = page.ask("sessions/receipt", id=done["id"])["receipt"]
    checked = pair.b.sluice("receipt", "--check", "-", stdin=receipt)
    assert checked.returncode == 0 and "signed by peer a" in checked.stdout, checked.stderr
    for node, names in (("", ["run", "back", source.name]), ("b", ["run", source.name])):
        page.lines("names/remove", node=node, path="data", names=names, recursive=True)


@pytest.mark.parametrize("node", ["", "b"])
def test_what_a_file_holds_is_digested_when_wanted(pair, page, node):
    source = (pair.b if node else pair.a).export() / "digested"
    source.write_bytes(os.urandom(3 * MIB + 7))
    digest = page.lines("names/digest", node=node, path="data/digested")[-1]["digest"]
    source.write_bytes(source.read_bytes()[::-1])
    assert page.lines("names/digest", node=node, path="data/digested")[-1]["digest"] != digest
    if not node:  # it is that which a transfer tells
        sides = {"from": {"node": "", "path": "data"}, "to": {"node": "b", "path": "data"}}
        done = ended(page, page.ask("copy", **sides, names=["digested"])["id"])
        assert done["file"][0][6] in page.lines("names/digest", node="b", path="data/digested")[-1]["digest"]
        (pair.b.export() / "digested").unlink()
    source.unlink()
    for path in ("data/digested", "data"):
        with pytest.raises(AssertionError):
            page.lines("names/digest", node=node, path=path)


def test_the_host_is_examined_for_operators(page, console):
    checks = page.ask("doctor")["checks"]
    assert {"configuration", "export", "io_uring"} <= {check for _, check, _, _ in checks}
    assert all(level in ("pass", "warn", "fail") and bool(remedy) == (level != "pass") for level, _, _, remedy in checks)
    assert not {"control", "peer"} & {check for _, check, _, _ in checks}, "control has told these"
    assert "for operators" in console.browser(role="viewer").refused("doctor")[1]


def test_a_synchronisation_is_shown_first_and_then_done(pair, page):
    own, there = pair.a.export() / "sync", pair.b.export() / "sync"
    for folder in (own, there):
        folder.mkdir()
        (folder / "same").write_text("same")
        os.utime(folder / "same", (1, 1))
    (own / "new").write_text("new")
    (own / "changed").write_text("longer than before")
    (there / "changed").write_text("before")
    (there / "extra").write_text("extra")
    sides = {"from": {"node": "", "path": "data/sync"}, "to": {"node": "b", "path": "data/sync"}}
    said = page.lines("compare", **sides)
    rows = [row for part in said if isinstance(part, list) for row in part]
    assert sorted(row[:2] for row in rows) == [["changed", "changed"], ["extra", "extra"], ["new", "new"]]
    assert said[-1]["totals"]["same"] == 1
    ended(page, page.ask("sync", **sides, names=["new", "changed"])["id"])
    assert (there / "changed").read_text() == "longer than before" and (there / "extra").exists()
    page.lines("names/remove", node="b", path="data/sync", names=["extra"], recursive=True, deep=True)
    rows = [row for part in page.lines("compare", **sides) if isinstance(part, list) for row in part]
    assert rows == []
    for node in ("", "b"):
        page.lines("names/remove", node=node, path="data", names=["sync"], recursive=True)


def test_what_a_node_cannot_order_is_refused_by_name(page):
    for source, destination, words in (("b", "b", "both sides are b"), ("", "", "both sides are this node")):
        sides = {"from": {"node": source, "path": "data"}, "to": {"node": destination, "path": "data"}}
        status, message = page.refused("copy", {**sides, "names": ["x"]})
        assert status == 400 and words in message
    for path in ("data/../etc", "/etc", "data//x", "data/./x", "data/x\0", 5, "x" * 5000):
        assert page.refused("names/list", {"node": "", "path": path})[0] == 400, path
    for name in ("", ".", "..", "a/b", "x" * 256, 7):
        sides = {"from": {"node": "", "path": "data"}, "to": {"node": "b", "path": "data"}}
        assert page.refused("copy", {**sides, "names": [name]})[0] == 400, name
    assert page.refused("names/list", {"node": "nobody", "path": "data"})[0] == 422


def test_links_do_not_lead_out_of_an_export(pair, page):
    out = pair.a.export() / "out"
    out.symlink_to("/etc")
    assert page.refused("names/list", {"node": "", "path": "data/out/ssl"})[0] == 422
    assert page.names("", "data")[0][:2] == ["out", "l"]
    sides = {"from": {"node": "", "path": "data/out"}, "to": {"node": "b", "path": "data"}}
    assert page.refused("copy", {**sides, "names": ["passwd"]})[0] == 422
    said = page.lines("names/remove", node="", path="data/out", names=["passwd"])
    assert said[-1]["failed"] == 1 and os.path.exists("/etc/passwd")
    out.unlink()


def events_of(page, wanted, begin):
    """All events until `wanted(kind, what)`, of a stream that is open before begin() runs."""
    response = page.open("events", {})
    assert response.status == 200 and response.getheader("content-type").startswith("text/event-stream")
    found, begun = [], False
    while True:
        line = response.readline()
        assert line, "the stream ended"
        if not begun:
            begun = True
            begin()
        if line.startswith(b"event: "):
            kind = line[7:].strip().decode()
            what = json.loads(response.readline()[6:])
            found.append((kind, what))
            if wanted(kind, what):
                response.close()
                return found


def test_events_tell_of_a_session_from_its_begin_to_its_end(pair, page):
    id = []

    def begin():
        source = make_file(pair.a, 4 * MIB)
        sides = {"from": {"node": "", "path": "data"}, "to": {"node": "b", "path": "data"}}
        id.append(page.ask("copy", **sides, names=[source.name], options={"rate_bps": 10_000_000})["id"])

    def is_over(kind, what):
        return kind == "events" and id and any(one["id"] == id[0] and one["state"] == "succeeded" for one in what)

    found = events_of(page, is_over, begin)
    mine = [one for kind, what in found if kind == "events" for one in what if one["id"] == id[0]]
    assert any(one["event"] == "progress" and one["rate"] for one in mine), "it takes three seconds"
    assert mine[-1]["done"] == mine[-1]["total"] == 4 * MIB
    for node in pair.nodes:
        for path in node.export().glob("*.bin"):
            forget(path)


def test_a_session_is_steered(page):
    source = page.ask("node")["exports"][0]["path"] + "/slow"
    with open(source, "wb") as file:
        file.write(b"x" * 64 * MIB)
    sides = {"from": {"node": "", "path": "data"}, "to": {"node": "b", "path": "data"}}
    id = page.ask("copy", **sides, names=["slow"], options={"rate_bps": 10_000_000})["id"]
    # A session that has not begun to move data cannot be paused.
    wait_until(lambda: page.ask("sessions/show", id=id)["done"] > 0, 60, "its first bytes")
    assert page.ask("sessions/limit", id=id, rate_bps=500_000)["limit"] == 500_000
    assert page.ask("sessions/prioritize", id=id, priority=5)["priority"] == 5
    page.ask("sessions/pause", id=id)
    wait_until(lambda: page.ask("sessions/show", id=id)["state"] == "paused", 30, "it is paused")
    page.ask("sessions/continue", id=id)
    page.ask("sessions/cancel", id=id)
    ended(page, id, "cancelled")
    os.unlink(source)
    assert page.refused("sessions/limit", {"id": id, "rate_bps": -1})[0] == 400
    assert page.refused("sessions/show", {"id": "no such"})[0] == 400


def test_what_is_done_is_audited_by_name(pair, page, console):
    page.ask("names/make", node="", path="data/audited")
    page.lines("names/remove", node="", path="data", names=["audited"], recursive=True)
    lines = [json.loads(line) for line in (pair.a.directory / "audit.ndjson").read_text().splitlines()]
    mine = [line for line in lines if line["event"] == "console_asked"]
    assert [line["method"] for line in mine[-2:]] == ["Names/MakeDirectory", "Names/Remove"]
    assert mine[-1]["user"] == console.user and mine[-1]["asked_by"] == "operator" and mine[-1]["subject"] == "data/audited"


def test_control_that_is_gone_is_told_and_found_again(pair, page):
    seen = []

    def kill():
        threading.Timer(0.2, pair.a.control.kill).start()

    def is_gone(kind, what):
        seen.append(kind)
        return kind == "control" and not what["reachable"]

    events_of(page, is_gone, kill)
    assert page.refused("node")[0] == 503
    events_of(page, lambda kind, what: kind == "control" and what["reachable"], pair.a.start_control)
    assert page.ask("node")["name"] == "a"
