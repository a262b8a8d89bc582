# Nodes of two versions: $SLUICE_FORMER_BIN is the folder with another build's programs. They move files to each other, and either is
# upgraded in the middle of a session, whose journal the new version reads.
# SPDX-License-Identifier: Apache-2.0
import os

import pytest
from harness import find_binaries
from harness.system import same_bytes
from partings import STALLS_SOON, begin_long, succeeded
from transfers import ENDED, MIB, finish, forget, make_file

FORMER = os.environ.get("SLUICE_FORMER_BIN")
pytestmark = pytest.mark.skipif(not FORMER, reason="SLUICE_FORMER_BIN names no other build")


def may_manage(pair):
    for node in pair.nodes:
        node.exports["data"] = (node.export(), "rwm")
        node.write_configuration()


def pair_of(make_pair, *binaries):
    return make_pair(may_manage, bytes_needed=1 << 30, settings={"control": STALLS_SOON}, binaries=binaries)


@pytest.fixture(scope="module", params=["a", "b"])
def pair(request, make_pair):
    """One of both is of the former version."""
    return pair_of(make_pair, *(FORMER if name == request.param else None for name in "ab"))


@pytest.mark.parametrize("option", [[], ["--fec", "off"], ["--lanes", "2"], ["--crc", "crc32c"]], ids=lambda option: "-".join(option) or "default")
def test_a_file_passes_both_ways(pair, option):
    source = make_file(pair.a, 8 * MIB + 321)
    there, back = pair.b.export() / source.name, pair.a.export() / f"{source.name}.back"
    pair.a.must("send", *option, source, "b:data/")
    pair.a.must("get", *option, f"b:data/{source.name}", back)
    assert same_bytes(source, there) and same_bytes(source, back)
    forget(source, there, back)


def test_a_tree_and_then_what_changed_of_it(pair):
    tree = pair.a.export() / "tree"
    for number in range(30):
        (tree / f"d{number % 3}").mkdir(parents=True, exist_ok=True)
        (tree / f"d{number % 3}" / f"f{number}").write_bytes(os.urandom(number * 5000))
    pair.a.must("send", tree, "b:data/")
    (tree / "d0" / "f0").write_bytes(b"changed")
    (tree / "d1" / "f1").unlink()
    pair.a.must("send", "--sync", "--delete", f"{tree}/", "b:data/tree")

    def content(root):
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    assert content(pair.b.export() / "tree") == content(tree)
    assert "d0" in pair.a.must("ls", "b:data/tree").stdout


@pytest.mark.parametrize("upgraded", ["a", "b"])
@pytest.mark.parametrize("push_it", [True, False], ids=["push", "pull"])
def test_a_node_is_upgraded_in_the_middle_of_a_session(make_pair, push_it, upgraded):
    """Both begin with the former version; the other one stays at it."""
    pair = pair_of(make_pair, FORMER, FORMER)
    earlier = make_file(pair.a, MIB)
    pair.a.must("send", earlier, "b:data/")
    process, session, source, target = begin_long(pair, push_it)
    node = getattr(pair, upgraded)
    known = {each["id"] for each in node.sessions()}
    node.control.stop()
    node.dataplane.kill()
    node.install(find_binaries())
    node.start()
    assert known <= {each["id"] for each in node.sessions()}
    assert all(each["state"] in ENDED for each in node.sessions() if each["id"] != session)
    succeeded(pair, session, source, target)
    finish(process)
    forget(earlier, pair.b.export() / earlier.name)
