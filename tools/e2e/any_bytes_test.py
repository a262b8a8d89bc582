# Names that are no UTF-8: files of their own and in packs, as both nodes list, watch, fetch and verify them.
# SPDX-License-Identifier: Apache-2.0
import json
import os

import pytest
from transfers import MIB, last_session
from trees import forget_tree

LARGE, SMALL = b"large\xff\xfe", b"small\xff"


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 28)


@pytest.fixture
def tree(pair):
    root = pair.a.export() / "tree"
    root.mkdir()
    for name, size in ((LARGE, 2 * MIB), (SMALL, 100)):
        with open(os.path.join(os.fsencode(root), name), "wb") as file:
            file.write(os.urandom(size))
    yield root
    for node in pair.nodes:
        for path in node.export().iterdir():
            forget_tree(path)


def content(root):
    return {name: open(os.path.join(os.fsencode(root), name), "rb").read() for name in os.listdir(os.fsencode(root))}


def sessions_are_shown(pair):
    for node in pair.nodes:
        assert node.sluice("session", "list").returncode == 0
        session = last_session(node)
        assert session["state"] == "succeeded"
        shown = node.must("session", "show", session["id"], "--json").stdout
        assert json.loads(shown)["id"] == session["id"]
        assert any("large" in file["source"] for file in json.loads(shown)["files"])
        node.must("verify", session["id"])


def test_both_nodes_show_the_session_of_such_a_tree(pair, tree):
    pair.a.must("send", tree, "b:data/")
    assert content(pair.b.export() / "tree") == content(tree)
    sessions_are_shown(pair)
    for node in pair.nodes:  # as the journal has it
        node.control.kill()
        node.start_control()
    sessions_are_shown(pair)


def test_it_is_fetched_and_the_command_ends(pair, tree):
    pair.b.must("get", f"a:{tree}", f"{pair.b.export()}/")
    assert content(pair.b.export() / "tree") == content(tree)
    sessions_are_shown(pair)
