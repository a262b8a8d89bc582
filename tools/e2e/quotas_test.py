# Quotas: what the sessions that a peer begins may take beneath an export. Nodes a and c use the exports of b; a is
# limited there, and c is not. All on sockets, of one interface in a namespace of their own.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import tempfile
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness import Node, find_binaries, veth_missing, wait_until
from harness.system import free_ports, run, same_bytes, scratch_parent
from held import held
from transfers import MIB, QUOTA, begin, ended_session, finish, forget, make_file, nothing_temporary, refused, start_slow
from trees import forget_tree

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

LIMIT = 10 * MIB
NAMES = 20
RATE = 16_000_000
GROWN = 4400  # names: more than a pack has, and fewer than the tree that grows


def _quota(**keys):
    return [{"peer": "a", **keys}]


def _make(base, number, name, namespace):
    enter = ["nsenter", f"--net=/run/netns/{namespace}", "--"]
    run(["ip", "-n", namespace, "address", "add", f"10.77.0.{number}/24", "dev", "lo"])
    node = Node(find_binaries(), base / name, name, free_ports(1)[0], enter, settings={
        "port": {"device": "udp", "address4": f"10.77.0.{number}/24", "mtu": 9000, "rate": "4G"},
        "transfer": {"rate": "2G"},
        "dataplane": {"memory": "no-huge", "memory_mib": 128},
        "control": {"metrics_listen": f"127.0.0.1:{free_ports(1)[0]}"},
    })  # fmt: skip
    node.add_export("data", base / f"{name}-data")
    return node


@pytest.fixture(scope="module")
def namespace():
    name = f"sl{os.getpid()}q"
    run(["ip", "netns", "add", name])
    run(["ip", "-n", name, "link", "set", "lo", "up"])
    yield name
    run(["ip", "netns", "del", name])


@pytest.fixture(scope="module")
def nodes(namespace):
    with tempfile.TemporaryDirectory(prefix="sluice-", dir=scratch_parent(1 << 30, in_memory=True)) as folder:
        base = Path(folder)
        a, b, c = (_make(base, number, name, namespace) for number, name in enumerate("abc", start=1))
        b.add_export("drop", base / "drop", quotas=_quota(session_bytes="10MiB", session_files=NAMES))
        b.add_export("outer", base / "outer")
        b.add_export("inner", base / "outer" / "inner", quotas=_quota(session_bytes="1MiB"))
        b.add_export("one", base / "one", quotas=_quota(sessions_max=1))
        b.add_export("slow", base / "slow", quotas=[{"rate": RATE}, {"peer": "c", "session_files": 1}])
        b.add_export("grows", base / "grows", quotas=_quota(session_files=GROWN))
        three = SimpleNamespace(a=a, b=b, c=c, all=(a, b, c))
        try:
            for node in three.all:
                node.create()
            for node, other in ((a, b), (b, a), (c, b), (b, c)):
                node.trust(other)
            for node in three.all:
                node.start()
            yield three
        finally:
            ends = [node.stop() for node in three.all]
        assert ends == [(0, 0)] * 3


def audited(node, event, result):
    path = node.directory / "audit.ndjson"
    if not path.exists():
        return []
    return [line for line in map(json.loads, path.read_text().splitlines())
            if line["event"] == event and line.get("result") == result]  # fmt: skip


def metrics(node):
    with urllib.request.urlopen(f"http://{node.settings['control']['metrics_listen']}/metrics", timeout=30) as answer:
        return answer.read().decode().splitlines()


@pytest.fixture
def clean(nodes):
    yield
    nothing_temporary(*nodes.all)


def test_a_session_of_too_many_bytes_is_refused_before_anything_is_stored(nodes, clean):
    source = make_file(nodes.a, LIMIT + 1)
    refused(nodes.a.sluice("send", source, "b:drop/"), QUOTA, "export drop", "peer a", "session_bytes = 10MiB",
            f"{LIMIT + 1} bytes", "take less", "[[export.quota]]", "node b")  # fmt: skip
    assert not (nodes.b.export("drop") / source.name).exists()
    lines = wait_until(lambda: audited(nodes.b, "session_ended", "quota"), 30, "the audit log has it")
    assert lines[0]["peer"] == "a" and "session_bytes" in lines[0]["error"]
    series = 'sluice_sessions_ended_total{outcome="quota"} 1'
    wait_until(lambda: series in metrics(nodes.b), 30, f"{series} is told")
    forget(source)
    for node, size in ((nodes.a, LIMIT), (nodes.c, LIMIT + 1)):
        source = make_file(node, size)
        node.must("send", source, "b:drop/")
        assert same_bytes(source, nodes.b.export("drop") / source.name)
        forget(source, nodes.b.export("drop") / source.name)


def test_several_files_count_together(nodes, clean):
    sources = [make_file(nodes.a, 4 * MIB) for _ in range(3)]
    refused(nodes.a.sluice("send", *sources, "b:drop/"), QUOTA, f"{12 * MIB} bytes")
    assert not any((nodes.b.export("drop") / source.name).exists() for source in sources)
    forget(*sources)


def test_a_tree_of_too_many_names_is_refused(nodes, clean):
    for node in (nodes.a, nodes.c):
        tree = node.export() / f"tree-{node.name}"
        tree.mkdir()
        for number in range(NAMES + 1):
            (tree / str(number)).write_text("x")
        result = node.sluice("send", tree, "b:drop/")
        if node is nodes.a:
            refused(result, QUOTA, "export drop", f"session_files = {NAMES}")
        else:
            assert result.returncode == 0, result.stderr
        arrived = nodes.b.export("drop") / tree.name
        assert arrived.exists() == (node is nodes.c)
        forget_tree(tree)
        forget_tree(arrived)


def test_a_session_that_reads_is_limited_as_well(nodes, clean):
    source = make_file(nodes.b, LIMIT + 1, export="drop")
    wanted = nodes.a.export() / "got"
    refused(nodes.a.sluice("get", f"b:drop/{source.name}", wanted), QUOTA, "export drop", "session_bytes")
    assert not wanted.exists()
    nodes.c.must("get", f"b:drop/{source.name}", nodes.c.export() / "got")
    forget(source, nodes.c.export() / "got")


def test_the_operator_of_the_node_is_not_bound(nodes, clean):
    source = make_file(nodes.b, LIMIT + 1, export="drop")
    nodes.b.must("send", source, "a:data/")
    target = nodes.a.export() / source.name
    forget(source)
    nodes.b.must("get", f"a:{target}", source)
    assert same_bytes(source, target)
    forget(source, target)


def test_a_tree_does_not_come_to_an_inner_export_past_its_quota(nodes, clean):
    source = make_file(nodes.a, 2 * MIB)
    refused(nodes.a.sluice("send", source, "b:outer/inner/"), QUOTA, "export inner", "session_bytes = 1MiB")
    tree = nodes.a.export() / "outer" / "inner"
    tree.mkdir(parents=True)
    source.rename(tree / "large")
    refused(nodes.a.sluice("send", f"{tree.parent}/", "b:outer/"), QUOTA, "export inner")
    assert list(nodes.b.export("inner").iterdir()) == []
    forget_tree(tree.parent)


def test_sessions_at_a_time_count_over_pauses_and_restarts(nodes, clean):
    source, other = make_file(nodes.a, 24 * MIB), make_file(nodes.a, 1000)
    process, session = start_slow(nodes.a, "send", source, "b:one/")

    def full():
        refused(nodes.a.sluice("send", other, "b:one/"), QUOTA, "export one", "peer a", "sessions_max = 1", "wait for one")
        refused(nodes.a.sluice("get", "b:one/", nodes.a.export()), QUOTA, "sessions_max = 1")

    full()
    nodes.a.must("session", "pause", session)
    full()
    nodes.b.control.stop()
    nodes.b.start_control()
    full()
    stranger = make_file(nodes.c, 1000)
    nodes.c.must("send", stranger, "b:one/")
    nodes.a.must("session", "continue", session)
    nodes.a.must("session", "limit", session, "--rate", "none")
    assert finish(process).returncode == 0, process.stderr_text
    nodes.a.must("send", other, "b:one/")
    for name in (source.name, other.name, stranger.name):
        forget(nodes.b.export("one") / name)
    forget(source, other, stranger)


def test_one_session_after_the_other_is_never_too_many(nodes, clean):
    source = make_file(nodes.a, 1000)
    for _ in range(10):
        nodes.a.must("send", "--overwrite", source, "b:one/")
        nodes.a.must("get", "--overwrite", f"b:one/{source.name}", nodes.a.export() / "back")
    forget(source, nodes.b.export("one") / source.name, nodes.a.export() / "back")


@pytest.mark.parametrize("way", ["send", "get"])
def test_the_rate_is_a_ceiling(nodes, clean, way):
    giver = nodes.a if way == "send" else nodes.b
    source = make_file(giver, 24 * MIB, export="data" if way == "send" else "slow")
    arguments = (source, "b:slow/") if way == "send" else (f"b:slow/{source.name}", nodes.a.export())
    process, session = start_slow(nodes.a, way, *arguments, rate="1G")

    def limit_is(node, rate):
        wait_until(lambda: node.json("session", "show", session)[1]["rate_limit_bps"] == rate, 30,
                   f"node {node.name} shows {rate} bit/s")  # fmt: skip

    limit_is(giver, RATE)
    nodes.b.must("session", "limit", session, "--rate", "500M")
    limit_is(giver, RATE)
    nodes.a.must("session", "cancel", session)
    process.communicate(timeout=60)
    for node in (nodes.a, nodes.b):
        ended_session(node, session)
    forget(source)
    free = make_file(nodes.c, MIB)
    nodes.c.must("send", free, "b:slow/")
    shown = nodes.c.json("session", "show", nodes.c.sessions()[-1]["id"])[1]
    assert shown["rate_limit_bps"] > RATE
    forget(free, nodes.b.export("slow") / free.name)


@pytest.mark.parametrize("way", ["send", "get"])
def test_a_list_that_grows_is_judged_as_it_grows(nodes, clean, way):
    giver = nodes.a if way == "send" else nodes.b
    root = giver.export("data" if way == "send" else "grows") / "tree"
    first, last = root / "a", root / "zz"
    for folder, count in ((first, GROWN - 100), (last, 300)):
        folder.mkdir(parents=True)
        for number in range(count):
            (folder / f"f{number:05}").write_text("x")
    target = nodes.b.export("grows") if way == "send" else nodes.a.export() / "in"
    target.mkdir(exist_ok=True)
    arguments = ("send", root, "b:grows/") if way == "send" else ("get", "b:grows/tree", target)
    with held(last) as hold:
        session = begin(nodes.a, *arguments)
        hold.wait_for(giver.control.pid)
        wait_until(lambda: (target / "tree" / "a" / "f00000").exists(), 60, "the first pack has arrived")
    for node in (nodes.a, nodes.b):
        end = ended_session(node, session)
        assert (end["state"], end["error_code"]) == ("failed", QUOTA), end
        assert f"session_files = {GROWN}" in end["error"]
    assert not (target / "tree" / "zz").exists() or not any((target / "tree" / "zz").iterdir())
    assert all(path.read_text() == "x" for path in (target / "tree" / "a").iterdir())
    forget_tree(root)
    forget_tree(target / "tree")
