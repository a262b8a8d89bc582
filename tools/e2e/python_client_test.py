# The Python client (tools/python) moves files between real nodes, and hears of errors what the command says of them.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import importlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from harness import Group, group_missing
from harness.system import random_file, same_bytes
from transfers import CONFIGURATION, DAEMON, MIB, PARTIAL, SOURCE, USAGE, ended_session, forget, make_file

CLIENT = pathlib.Path(__file__).resolve().parents[1] / "python"


@pytest.fixture(scope="module")
def sluice(tmp_path_factory):
    """The package, as it is built for pip."""
    folder = tmp_path_factory.mktemp("client")
    shutil.copytree(CLIENT / "sluice", folder / "sluice")
    sys.path[:0] = [str(folder), str(CLIENT)]
    importlib.import_module("generate").generate(folder / "sluice")
    yield importlib.import_module("sluice")
    del sys.path[:2]


def _may_be_managed(pair):
    pair.b.add_export("data", pair.b.export(), "rwm")
    pair.b.write_configuration()


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30, prepare=_may_be_managed)


@pytest.fixture
def source(pair):
    path = make_file(pair.a, 3 * MIB)
    yield path
    forget(path)


def test_a_build_writes_nothing_into_the_checkout(tmp_path):
    pytest.importorskip("pip")
    pytest.importorskip("wheel")
    root = CLIENT.parents[1]
    checkout = tmp_path / "checkout"
    for part in ("tools/python", "control/proto"):
        shutil.copytree(root / part, checkout / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "CMakeLists.txt", checkout)
    before = sorted(checkout.rglob("*"))
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "--no-index",
                    "-w", tmp_path / "out", checkout / "tools/python"], check=True)  # fmt: skip
    assert sorted(checkout.rglob("*")) == before
    assert list((tmp_path / "out").glob("*.whl"))


def test_a_state_is_read_as_a_word(sluice):
    assert str(sluice.State.of(sluice.api.Session(state=3))) == "transferring"
    assert sluice.State.TRANSFERRING == sluice.api.Session.TRANSFERRING
    assert not sluice.State.PAUSED.ended and sluice.State.FAILED.ended
    assert sluice.State.of(sluice.api.Session(state=99)) is sluice.State.STATE_UNSPECIFIED, "of a newer node"
    known = {name for name in sluice.api.Session.State.keys()}
    assert known == {each.name for each in sluice.State} - {"PARTIAL"}


def test_sends_and_gets_with_progress(sluice, pair, source):
    seen = []
    with sluice.Node(pair.a.directory) as node:
        session = node.send([source], "b", "data/", sluice.Options(lanes=2, mode="fixed"))
        end = session.wait(on_progress=seen.append, timeout_s=60)
        assert end.state == sluice.api.Session.SUCCEEDED
        assert end.files[0].digest_source == end.files[0].digest_destination != ""
        assert seen[-1].bytes_done == source.stat().st_size
        assert same_bytes(source, pair.b.export() / source.name)
        back = pair.a.export() / "back"
        got = node.get("b", [f"data/{source.name}"], back)
        got.wait(timeout_s=60)
        assert same_bytes(source, back)
        assert {"opened", "completion", "closed"} <= {each.kind for each in got.log()}
        forget(back)
        assert [each.id for each in node.sessions()][0] == session.id
        assert node.session(session.id[:8]).id == session.id
        assert end.bottleneck.cause
        told = list(session.events())  # it has ended: how it stands, and that is all
        assert (told[0].event, told[0].state) == ("state", "succeeded")
        assert [each.file.done for each in told if each.event == "file"] == [True]
        assert {"opened", "closed"} <= {each.kind for each in session.log()}, "the end may come before a completion"
        assert {each.lane for each in session.log(lane=1, follow=True)} == {1}
        verdicts = [each for each in session.verify() if each.done]
        assert len(verdicts) == 1 and verdicts[0].good
        assert node.counters()["tx_frames"] > 0
        assert node.show().name == "a"
    forget(pair.b.export() / source.name)


def test_is_limited_paused_continued_and_cancelled(sluice, pair):
    with sluice.Node(pair.a.directory) as node:
        session = node.send(["memory:1000000000000"], "b", "null:", sluice.Options(rate_bps=1_000_000_000))
        for timeout_s in (0, 0.5):
            with pytest.raises(TimeoutError):
                session.wait(timeout_s=timeout_s)
        assert session.limit(500_000_000).rate_limit_bps == 500_000_000
        session.set_log_level("packets")
        assert "sent" in (each.kind for each in session.log(follow=True))
        session.pause()
        state = next(now.state for now in session.watch() if now.state == sluice.api.Session.PAUSED)
        assert state == sluice.api.Session.PAUSED
        session.go_on()
        session.cancel()
        with pytest.raises(sluice.SluiceError) as failed:
            session.wait(timeout_s=60)
        assert failed.value.name == "cancelled"


def test_a_session_moves_to_another_node(sluice):
    """alpha and gamma have one storage between them; beta is the other end."""
    if (reason := group_missing()) is not None:
        pytest.skip(reason)
    with Group(["alpha", "gamma", "beta"], bytes_needed=1 << 28) as group:
        site = group.base / "site"
        for name in ("alpha", "gamma"):
            group[name].add_export("site", site)
            group[name].write_configuration()
        group.start()
        source = random_file(site / "work", 8 * MIB, seed=1)
        with sluice.Node(group["alpha"].directory) as alpha, sluice.Node(group["gamma"].directory) as gamma:
            session = alpha.send([source], "beta", "data/", sluice.Options(rate_bps=20_000_000))
            next(now for now in session.watch() if now.bytes_done)
            bundle = session.export_to("gamma")
            assert session.export_to("gamma") == bundle
            with pytest.raises(sluice.SluiceError) as refused:
                gamma.import_session(b"no bundle")
            assert refused.value.code == USAGE
            moved = gamma.import_session(bundle)
            with pytest.raises(sluice.SluiceError):
                gamma.session(session.id).withdraw()  # it is here
            assert moved.id == session.id and moved.wait(timeout_s=100).peer == "beta"
        assert same_bytes(source, group["beta"].export() / source.name)


def test_names_of_the_other_node_are_listed_and_changed(sluice, pair):
    with sluice.Node(pair.a.directory) as node:
        assert [each.path for each in node.names("b")] == [b"data"]
        assert node.make_directory("b", "data/run/1", parents=True).entries == 2
        node.make_directory("b", b"data/run/\xff")
        node.move("b", b"data/run/\xff", "data/run/2")
        entries = list(node.names("b", "data/r*", glob=True, recursive=True))
        assert [each.path for each in entries] == [b"run", b"run/1", b"run/2"]
        assert entries[0].type == sluice.api.NameEntry.DIRECTORY
        assert node.remove("b", "data/run", recursive=True).entries == 3
        with pytest.raises(sluice.SluiceError, match="data/run") as failed:
            list(node.names("b", "data/run"))
        assert failed.value.code == SOURCE


def test_directories_are_compared_and_own_names_removed(sluice, pair):
    own = pair.a.export() / "compared"
    own.mkdir()
    for name in (b"one", b"two.tmp", b"\xff"):
        (own / os.fsdecode(name)).write_bytes(b"x")
    with sluice.Node(pair.a.directory) as node:
        node.make_directory("b", "data/compared/extra", parents=True)
        parts = list(node.compare(own, "b", "data/compared", rules=["- *.tmp"]))
        found = {each.path: each.kind for part in parts for each in part.differences}
        kinds = sluice.api.NameDifference
        assert found == {b"one": kinds.MISSING, b"\xff": kinds.MISSING, b"extra": kinds.EXTRA}
        assert parts[-1].totals.missing == 2 and parts[-1].totals.destination_found
        assert node.remove("", own, recursive=True).entries == 4
        assert not own.exists()
        node.remove("b", "data/compared", recursive=True)


def test_whoever_makes_the_id_of_a_session_finds_it_and_never_begins_two(sluice, pair):
    id = os.urandom(16).hex()

    def ask(node, id):
        request = sluice.api.SendRequest(sources=["memory:1000"], peer="b", destination="null:", id=id)
        return node.call("Send", request, sluice.api.SessionRef).id

    with sluice.Node(pair.a.directory) as node:
        assert ask(node, id) == id
        with pytest.raises(sluice.SluiceError):
            ask(node, id[:8])
    for restarted in (False, True):
        ended_session(pair.a, id)
        with sluice.Node(pair.a.directory) as node, pytest.raises(sluice.SluiceError) as error:
            ask(node, id)
        assert (error.value.code, id in str(error.value)) == (USAGE, True)
        if not restarted:
            pair.a.control.kill()
            pair.a.start_control()


def test_errors_are_those_of_the_command(sluice, pair, tmp_path):
    with sluice.Node(pair.a.directory) as node:
        with pytest.raises(sluice.SluiceError, match="no-such-file") as failed:
            node.send([pair.a.export() / "no-such-file"], "b", "data/")
        assert (failed.value.code, failed.value.name) == (SOURCE, "source_unreadable")
        with pytest.raises(sluice.SluiceError) as failed:
            node.session("nonsense")
        assert failed.value.code == USAGE
        with pytest.raises(sluice.SluiceError, match="recursive") as failed:
            node.make_directory("b", "data/full/more", parents=True)
            node.remove("b", "data/full")
        assert failed.value.code == USAGE
        node.remove("b", "data/full", recursive=True)
        unread = (session := node.send(["memory:1000000000"], "b", "null:", sluice.Options(rate_bps=1_000_000))).watch()
        next(unread)
    for ask in (node.show, node.sessions, lambda: list(node.names("b")), lambda: list(unread), lambda: node.import_session(b"x")):
        with pytest.raises(sluice.SluiceError, match="was closed") as failed:
            ask()
        assert failed.value.code == USAGE
    node.close()
    with sluice.Node(pair.a.directory) as node:
        node.session(session.id).cancel()
    with sluice.Node(tmp_path) as nobody:
        with pytest.raises(sluice.SluiceError, match="start it") as failed:
            nobody.show()
        assert failed.value.code == DAEMON
    with sluice.Node(tmp_path / "no-such") as nowhere:
        with pytest.raises(sluice.SluiceError, match="no node in") as failed:
            nowhere.show()
        assert failed.value.code == CONFIGURATION


def test_selects_and_previews(sluice, pair):
    folder = pair.a.export() / "folder"
    folder.mkdir()
    for name in ("a.h5", "b.tmp", "c.h5"):
        (folder / name).write_bytes(b"x")
    with sluice.Node(pair.a.directory) as node:
        options = sluice.Options(rules=["+ *.h5", b"- *"])
        shown = list(node.preview([f"{folder}/"], "b", "data/", options))
        assert [(entry.path, entry.size, entry.missing) for entry in shown] == [(b"a.h5", 1, ""), (b"c.h5", 1, "")]
        node.send([f"{folder}/"], "b", "data/", options).wait(timeout_s=60)
        node.get("b", ["data"], f"{pair.a.export()}/", sluice.Options(names=["c.h5"])).wait(timeout_s=60)
        with pytest.raises(sluice.SluiceError) as wrong:
            node.send([folder], "b", "data/", sluice.Options(names=["../c.h5"]))
        assert wrong.value.code == USAGE and "without .." in str(wrong.value)
        with pytest.raises(ValueError, match="PATTERN"):
            sluice.Options(rules=["a"]).message()
        for rate_bps, said in ((-5, "rate_bps = -5"), (5, "100 kbit/s is the least")):
            with pytest.raises(sluice.SluiceError, match=said) as wrong:
                node.send([folder], "b", "data/", sluice.Options(rate_bps=rate_bps))
            assert (wrong.value.code, wrong.value.name) == (USAGE, "usage")
    assert sorted(path.name for path in pair.b.export().iterdir()) == ["a.h5", "c.h5"]
    assert (pair.a.export() / "c.h5").exists()
    shutil.rmtree(folder)
    forget(pair.a.export() / "c.h5", pair.b.export() / "a.h5", pair.b.export() / "c.h5")


def test_control_that_stands_still_is_an_error(sluice, pair, monkeypatch):
    """Stopped: a call and a stream end by themselves. The real limits are those of the command."""
    for name, seconds in (("_FIRST_S", 0.1), ("_BETWEEN_S", 0.1), ("_STILL_S", 1.0)):
        monkeypatch.setattr(sluice.node, name, seconds)
    with sluice.Node(pair.a.directory) as node, contextlib.ExitStack() as stack:
        node.counters()
        os.kill(pair.a.control.pid, signal.SIGSTOP)
        stack.callback(os.kill, pair.a.control.pid, signal.SIGCONT)
        for ask in (node.counters, lambda: list(node.events()), lambda: list(node.names("b", "data"))):
            with pytest.raises(sluice.SluiceError, match="stands still") as caught:
                ask()
            assert caught.value.code == DAEMON
    with sluice.Node(pair.a.directory) as node:
        node.counters()


def test_what_lacks_names_is_partial(sluice, pair):
    tree = pair.a.export() / "lacking"
    tree.mkdir()
    (tree / "file").write_text("x")
    os.mkfifo(tree / "pipe")
    there = pair.b.export() / "lacking"
    there.mkdir()
    (there / "file").write_text("another")
    with sluice.Node(pair.a.directory) as node:
        session = node.send([tree], "b", "data/")
        with pytest.raises(sluice.SluiceError) as caught:
            session.wait(timeout_s=60)
        assert caught.value.code == PARTIAL
        shown = session.show()
        assert sluice.State.of(shown) is sluice.State.PARTIAL and sluice.State.of(shown).ended
        assert shown.state == sluice.api.Session.SUCCEEDED and shown.state_name == "partial"
        assert [event.state for event in session.events()][-1] == "partial"
    for other in pair.nodes:
        status, reply, _ = other.json("session", "show", session.id)
        assert status == 0 and reply["state"] == "partial"
        assert "partial" in other.must("session", "list", "--state", "partial").stdout
        assert session.id[:8] not in other.must("session", "list", "--state", "succeeded").stdout
    shutil.rmtree(tree)
    shutil.rmtree(there)
