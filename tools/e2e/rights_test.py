# Who may do what: exports that are open to some peers, and sessions that belong to one. Node b trusts a and c.
# SPDX-License-Identifier: Apache-2.0
import pytest
from harness import Node, find_binaries, wait_until
from harness.system import free_ports
from hostile import Stream
from transfers import (CANCELLED, INCOMPATIBLE, MIB, OUTSIDE, UNTRUSTED, ended_session, finish, forget, make_file,
                       nothing_temporary, push, refused, start_slow, temporary_files)  # fmt: skip

import peer


def _exports(pair):
    b = pair.b
    inner = b.add_export("data", b.export(), "rwm") / "inner"
    b.add_export("inner", inner, "rw", peers=["c"])
    b.add_export("ours", pair.base / "ours", "rw", peers=["a"])
    b.add_export("theirs", pair.base / "theirs", "rwm", peers=["c"])
    b.add_export("some", pair.base / "some", "rw", peers=["a:r", "c:w"])
    b.add_export("closed", pair.base / "closed", "rw", peers=[])
    b.write_configuration()


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(prepare=_exports)


@pytest.fixture(scope="module")
def third(pair):
    """A node that b trusts, without a dataplane: enough to ask, and to speak."""
    node = Node(find_binaries(), pair.base / "c", "c", free_ports(1)[0])
    node.add_export("data", pair.base / "c-data")
    node.create()
    node.trust(pair.b)
    pair.b.trust(node)
    node.control.start()
    wait_until(lambda: node.sluice("session", "list").returncode == 0, 30, "node c's control answers")
    yield node
    assert node.control.stop() == 0


def test_a_peer_sees_only_what_is_open_to_it(pair, third):
    assert pair.a.must("ls", "b:").stdout.split() == ["data", "ours", "some"]
    assert third.must("ls", "b:").stdout.split() == ["data", "inner", "some", "theirs"]


@pytest.mark.parametrize("path", ["theirs", "closed/x", "data/inner", "data/inner/secret", "ABSOLUTE"])
def test_what_is_not_open_is_as_if_it_were_not_there(pair, path):
    path = str(pair.b.export("theirs") / "x") if path == "ABSOLUTE" else path
    refused(pair.a.sluice("ls", f"b:{path}"), OUTSIDE, "beneath no export that is open to peer a", "data, ours, some")
    refused(pair.a.sluice("mkdir", f"b:{path}/new"), OUTSIDE, "beneath no export")
    source = make_file(pair.a, 1000)
    refused(pair.a.sluice("send", source, f"b:{path}/"), OUTSIDE, "beneath no export")
    refused(pair.a.sluice("get", f"b:{path}", pair.a.export()), OUTSIDE, "beneath no export")
    forget(source)


def test_nobody_comes_to_an_inner_export_by_way_of_an_outer_one(pair):
    inner = pair.b.export("inner")
    (inner / "secret").write_text("for c")
    (pair.b.export() / "plain").write_text("for all")
    listed = pair.a.sluice("ls", "-R", "b:data")
    assert "secret" not in listed.stdout and "plain" in listed.stdout
    (pair.a.export() / "got").mkdir()
    result = pair.a.sluice("get", "b:data/", f"{pair.a.export()}/got/")
    assert "secret" not in {path.name for path in pair.a.export().rglob("*")}, result.stderr
    refused(pair.a.sluice("rm", "-r", "--yes", "b:data/inner"), OUTSIDE)
    assert (inner / "secret").read_text() == "for c"


def test_a_peer_may_have_fewer_rights_than_another(pair):
    some = pair.b.export("some")
    (some / "file").write_text("read me")
    assert pair.a.must("get", "b:some/file", pair.a.export() / "read").returncode == 0
    source = make_file(pair.a, 1000)
    refused(pair.a.sluice("send", source, "b:some/"), OUTSIDE, "export some")
    assert push(pair, source, to="ours/").exists()
    forget(source, some / "file")


def test_the_other_side_is_bound_as_well(pair):
    """What b's operator asks for is judged by the same list."""
    source = make_file(pair.b, 1000, export="theirs")
    refused(pair.b.sluice("send", source, "a:data/"), OUTSIDE, "open to peer a")
    refused(pair.b.sluice("send", "--dry-run", source, "a:data/"), OUTSIDE, "open to peer a")
    wanted = make_file(pair.a, 1000)
    refused(pair.b.sluice("get", f"a:{wanted}", pair.b.export("theirs")), OUTSIDE, "open to peer a")
    assert temporary_files(pair.b) == []  # nothing had begun
    forget(source, wanted)


def test_a_session_belongs_to_its_peer(pair, third):
    source = make_file(pair.a, 24 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/")
    stranger = Stream(pair.b, third)
    kind, answer = stranger.open_session(bytes.fromhex(session))
    assert kind == "failure" and answer.code == INCOMPATIBLE, answer
    stranger.close()
    inquiring = Stream(pair.b, third)
    inquiring.say(hello=peer.control.pb.Hello(
        protocol_version_min=peer.session.VERSION, protocol_version_max=peer.session.VERSION,
        session_id=bytes.fromhex(session), inquires=True))  # fmt: skip
    kind, answer = inquiring.hear()
    assert kind == "hello" and answer.ended and not answer.known, "as of a session that nobody knows"
    inquiring.close()
    assert finish(process).returncode == 0
    forget(source, pair.b.export() / source.name)


@pytest.mark.parametrize("way", ["send", "get"])
def test_a_right_that_is_taken_away_ends_what_runs_when_control_comes_back(pair, way):
    giver = pair.a if way == "send" else pair.b
    source = make_file(giver, 24 * MIB, export="data" if way == "send" else "ours")
    arguments = ("send", source, "b:ours/") if way == "send" else ("get", f"b:ours/{source.name}", pair.a.export())
    process, session = start_slow(pair.a, *arguments)
    pair.b.control.stop()
    open_to = pair.b.export_peers["ours"]
    pair.b.export_peers["ours"] = []
    pair.b.write_configuration()
    pair.b.start_control()
    assert finish(process).returncode == OUTSIDE, process.stderr_text
    assert ended_session(pair.b, session)["error_code"] == OUTSIDE
    nothing_temporary(*pair.nodes)
    pair.b.control.stop()
    pair.b.export_peers["ours"] = open_to
    pair.b.write_configuration()
    pair.b.start_control()
    forget(source)


def test_an_export_that_may_only_be_read_by_now_keeps_no_unfinished_file(pair):
    source = make_file(pair.a, 24 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:ours/")
    pair.b.control.stop()
    path, mode = pair.b.exports["ours"]
    pair.b.exports["ours"] = (path, "r")
    pair.b.write_configuration()
    pair.b.start_control()
    assert finish(process).returncode == OUTSIDE, process.stderr_text
    assert ended_session(pair.b, session)["error_code"] == OUTSIDE
    nothing_temporary(*pair.nodes)
    pair.b.control.stop()
    pair.b.exports["ours"] = (path, mode)
    pair.b.write_configuration()
    pair.b.start_control()
    forget(source)


def test_an_unfinished_file_whose_export_is_gone_is_named_and_goes_when_it_is_back(pair):
    source = make_file(pair.a, 24 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:ours/")
    pair.b.control.stop()
    path, mode = pair.b.exports.pop("ours")
    pair.b.write_configuration()
    pair.b.start_control()
    assert finish(process).returncode == OUTSIDE, process.stderr_text
    wait_until(lambda: pair.b.control.log_lines("an unfinished file stays"), 30, "the log names the file")
    assert list(path.glob(".*.sluice-part"))
    pair.b.control.stop()
    pair.b.exports["ours"] = (path, mode)
    pair.b.write_configuration()
    pair.b.start_control()
    nothing_temporary(*pair.nodes)
    assert ended_session(pair.b, session)["error_code"] == OUTSIDE
    forget(source)


def test_the_list_is_shown(pair):
    _, shown, _ = pair.b.json("node", "show")
    peers = {export["name"]: export["peers"] for export in shown["exports"]}
    assert peers["data"] is None and peers["closed"] == []
    assert peers["some"] == [{"name": "a", "mode": "r"}, {"name": "c", "mode": "w"}]
    assert "some" in (text := pair.b.must("node", "show").stdout) and "rw for a:r, c:w" in text


def test_who_is_distrusted_is_a_stranger_at_once(pair, third):
    """The last test here: node b trusts a no more."""
    source = make_file(pair.a, 24 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/")
    waiting = Stream(pair.b, third)  # it was let in, and has not said what it wants
    report = pair.b.json("node", "distrust", "a")[1]
    assert report["cancelled"] == [session]
    assert finish(process).returncode == CANCELLED
    refused(pair.a.sluice("ls", "b:"), UNTRUSTED)
    refused(pair.b.sluice("node", "distrust", "a"), UNTRUSTED, "not trusted")
    pair.b.must("node", "distrust", "c")
    kind, answer = waiting.open_session()
    assert kind == "failure" and answer.code == UNTRUSTED, answer
    waiting.close()
    nothing_temporary(pair.b)
    forget(source)
