# Daemons that may have few files open: a session has more files than that, and arrives.
# SPDX-License-Identifier: Apache-2.0
import filecmp
import shutil

import pytest
from harness import VethWire, veth_missing
from transfers import MIB, ended_session, make_file, start_slow

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

_OPEN_FILES = 128  # hard: nobody can raise it
_LARGE = 150


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(wire=VethWire(sockets=(0, 1)), prefix=lambda _side: ["prlimit", f"--nofile={_OPEN_FILES}"],
                     bytes_needed=4 * _LARGE * MIB)  # fmt: skip


@pytest.fixture(scope="module")
def tree(pair):
    """Large files, each an object of its own, among small ones that travel in packs."""
    top = pair.a.export() / "tree"
    for number in range(_LARGE):
        (top / str(number % 3)).mkdir(parents=True, exist_ok=True)
        make_file(pair.a, MIB + 4097 + number, name=f"tree/{number % 3}/large{number}")
        (top / str(number % 3) / f"small{number}").write_bytes(bytes([number]) * 500)
    return top


def same(one, other):
    names = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(other) for path in other.rglob("*") if path.is_file())
    assert len(names) == 2 * _LARGE
    _, differ, wrong = filecmp.cmpfiles(one, other, names, shallow=False)
    assert not differ and not wrong


def test_a_tree_of_more_files_than_may_be_open_arrives(pair, tree):
    pair.a.must("send", tree, "b:data/", timeout_s=400)
    same(tree, pair.b.export() / "tree")
    shutil.rmtree(pair.b.export() / "tree")


def test_and_is_fetched(pair, tree):
    pair.b.must("get", "a:data/tree", f"{pair.b.export()}/back/", "--mkdir", timeout_s=400)
    same(tree, pair.b.export() / "back" / "tree")


def test_and_goes_on_after_the_death_of_either_control(pair, tree):
    process, session = start_slow(pair.a, "send", tree, "b:data/", rate="400M")
    for node in (pair.b, pair.a):
        node.control.kill()
        node.start_control()
    process.communicate(timeout=60)
    assert ended_session(pair.a, session, deadline_s=200)["state"] == "succeeded"
    same(tree, pair.b.export() / "tree")
