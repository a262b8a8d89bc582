# A file system that does not answer holds up its export, and nothing else.
# SPDX-License-Identifier: Apache-2.0
import urllib.request

import pytest
from harness import HangingFileSystem, VethWire, hanging_missing, veth_missing, wait_until
from harness.system import free_ports
from transfers import MIB, begin, cancel_all, forget, make_file, push

_reason = hanging_missing() or veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

_PER_PEER = 4


@pytest.fixture(scope="module")
def hanging(tmp_path_factory):
    with HangingFileSystem(tmp_path_factory.mktemp("hanging")) as file_system:
        yield file_system


@pytest.fixture(scope="module")
def pair(make_pair, hanging):
    def prepare(pair):
        pair.b.add_export("data", pair.b.export(), "rwm")
        pair.b.add_export("hung", hanging.path, "rwm")
        pair.b.settings["control"]["sessions_per_peer"] = _PER_PEER
        pair.b.settings["control"]["metrics_listen"] = f"127.0.0.1:{free_ports(1)[0]}"
        pair.b.write_configuration()

    return make_pair(wire=VethWire(sockets=(0, 1)), prepare=prepare, bytes_needed=64 * MIB)


def waits(node):
    return {wait["export"] for wait in node.json("node", "show")[1]["live"]["export_waits"]}


def test_other_exports_go_on_and_the_one_that_hangs_is_named(pair, hanging):
    source = make_file(pair.a, MIB)
    hanging.hang()
    try:
        # As many as the peer has places, and as many as there are threads for files of one export.
        for number in range(_PER_PEER):
            begin(pair.a, "send", source, f"b:hung/{number}")
        wait_until(lambda: len(pair.b.sessions()) == _PER_PEER, 60, "all have come")
        forget(push(pair, source, to="data/"))
        wait_until(lambda: waits(pair.b) == {"hung"}, 60, "it is named")
        assert "waits        export hung: its file system has let a call wait for " in pair.b.must("node", "show").stdout
        named = "export hung, whose file system has let a call wait for "
        wait_until(lambda: all(named in session["waiting_for"] for session in pair.b.sessions() if session["state"] in
                               ("negotiating", "connecting", "waiting")), 60, "they say what they wait for")  # fmt: skip
        assert "hung: its file system has let a call wait" in pair.b.control.log_file.read_text()
        # Also of what is asked about all exports, or of another one.
        assert {"data", "hung"} <= set(pair.a.must("ls", "b:").stdout.split())
        pair.a.must("mkdir", "b:data/made")
        pair.a.must("rm", "-r", "--yes", "b:data/made")
        with urllib.request.urlopen(f"http://{pair.b.settings['control']['metrics_listen']}/metrics", timeout=60) as answer:
            assert b"sluice_control_turns_total" in answer.read()
        forget(push(pair, source, to="data/"))
    finally:
        hanging.answer()
    cancel_all(pair)
    wait_until(lambda: not waits(pair.b), 60, "it answers again")
    forget(push(pair, source, to="data/"), source)


def test_control_ends_and_starts_while_the_file_system_hangs(pair, hanging):
    source = make_file(pair.a, MIB)
    hanging.hang()
    try:
        begin(pair.a, "send", source, "b:hung/again")
        wait_until(lambda: waits(pair.b) == {"hung"}, 60, "it is named")
        assert pair.b.control.stop() == 0, pair.b.control.log_tail()
        assert "are left behind: hung" in pair.b.control.log_tail()
        pair.b.start_control()
        forget(push(pair, source, to="data/"))
    finally:
        hanging.answer()
    wait_until(lambda: not waits(pair.b), 60, "it answers again")
    cancel_all(pair)
    forget(source)
