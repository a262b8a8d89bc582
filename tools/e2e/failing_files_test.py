# Large files of one session that fail, each for its own reason: all others arrive, whatever falls over meanwhile.
# SPDX-License-Identifier: Apache-2.0
import os

import pytest
from harness import is_root, wait_until
from harness.system import random_file, same_bytes
from transfers import MIB, ended_session, last_session, nothing_temporary
from trees import forget_tree

PARTIAL = 21
SMALL_MIB = 48
EXISTS = "exists at the destination; replace it with --overwrite"
CHANGED = "changed while it was read"
DAMAGED = "has other bytes than its source summed: it changed while it was sent, or was damaged between the nodes' memories; send it again"
IN_PACK = "was to be sent together with small files that changed, or were damaged, meanwhile; send it again"
UNREADABLE = "could not be read"
NO_SPACE = "did not fit into the destination's file system; free some space"


def _small_export(pair):
    pair.b.add_export("small", pair.mount_tmpfs("small", SMALL_MIB))
    pair.b.write_configuration()


@pytest.fixture(scope="module")
def pair(make_pair):
    if not is_root():
        pytest.skip("mounting a tmpfs needs root")
    return make_pair(prepare=_small_export)


@pytest.fixture
def tree(pair):
    root = pair.a.export() / "tree"
    root.mkdir()
    for number, name in enumerate(("first", "taken", "changed", "gone", "last")):
        random_file(root / name, 4 * MIB, seed=number)
    with open(root / "huge", "wb") as huge:
        os.posix_fallocate(huge.fileno(), 0, 2 * SMALL_MIB * MIB)  # no hole, which would fit
    (root / "small").write_bytes(b"in a pack")
    there = pair.b.export("small") / "tree"
    there.mkdir()
    (there / "taken").write_bytes(b"mine")
    yield root
    for place in (root, there):
        forget_tree(place)


def kill_control(node):
    node.control.kill()
    node.start_control()


@pytest.mark.parametrize("side", [None, 0, 1], ids=["nobody", "source", "destination"])
def test_each_is_named_with_its_reason_and_all_others_arrive(pair, tree, side):
    there = pair.b.export("small") / "tree"
    missing = {"tree/taken": EXISTS, "tree/huge": NO_SPACE, "tree/changed": CHANGED}
    session = pair.a.must("send", tree, "b:small/", "--rate", "30M", "--detach").stdout.split()[-1]
    wait_until(lambda: last_session(pair.a)["bytes_done"] > MIB, 30, "the first bytes")
    with open(tree / "changed", "r+b") as file:
        file.write(b"changed")
    if side == 0:
        (tree / "gone").unlink()  # who opens it once more does not find it
        missing["tree/gone"] = UNREADABLE
    if side is not None:
        kill_control(pair.nodes[side])
    waited = pair.a.sluice("session", "wait", session, "--timeout", "60")
    assert waited.returncode == PARTIAL, waited.stderr
    for node in pair.nodes:
        assert ended_session(node, session)["state"] == "partial"
        names = last_session(node)["names"]
        assert {each["path"]: each["reason"] for each in names["missing"]} == missing
        assert names["failed"] == len(missing) and names["done"] == names["total"] - len(missing)
    assert (there / "taken").read_bytes() == b"mine"
    arrived = {"first", "last", "gone", "small"} - {path.removeprefix("tree/") for path in missing}
    assert {path.name for path in there.iterdir()} == arrived | {"taken"}
    for name in arrived:
        assert same_bytes(tree / name, there / name)
    nothing_temporary(*pair.nodes)


def test_small_files_that_change_between_two_readings_of_their_pack_are_named(pair):
    """A node that was killed reads the pack anew, of which its peer has bytes; only what was whole is unpacked."""
    root = pair.a.export() / "many"
    root.mkdir()
    before = {}
    for number in range(300):
        random_file(root / f"f{number}", 16 << 10, seed=number)
        before[f"f{number}"] = (root / f"f{number}").read_bytes()
    there = pair.b.export("small") / "many"
    session = pair.a.must("send", root, "b:small/", "--rate", "4M", "--detach").stdout.split()[-1]

    def arrived_bytes():
        return sum(each["bytes_done"] for each in pair.b.sessions() if each["id"] == session)

    wait_until(lambda: arrived_bytes() > MIB // 8, 30, "a part of the first pack")
    pair.a.control.kill()
    pair.a.dataplane.kill()
    changed = [f"f{number}" for number in range(0, 300, 3)]
    for name in changed:
        (root / name).write_bytes(b"changed")
    pair.a.start()
    waited = pair.a.sluice("session", "wait", session, "--timeout", "60")
    assert waited.returncode == PARTIAL, waited.stderr
    for node in pair.nodes:
        assert ended_session(node, session)["state"] == "partial"
    names = last_session(pair.a)["names"]
    arrived = {path.name for path in there.iterdir()}
    # Of the pack that was on its way all fail, of those behind it what changed. Of those before it, which are as many
    # as came until the kill, nothing does.
    assert names["failed"] == 300 - len(arrived) >= len(set(changed) - arrived)
    assert all((there / name).read_bytes() == before[name] for name in arrived)
    reasons = {each["path"].removeprefix("many/"): each["reason"] for each in names["missing"]}
    # Where extents had come of which the source's journal did not know yet, the destination finds it, name by name.
    known = {name: (CHANGED, DAMAGED) if name in changed else (IN_PACK,) for name in reasons}
    assert all(reason in known[name] for name, reason in reasons.items()), reasons
    nothing_temporary(*pair.nodes)
    forget_tree(root)
    forget_tree(there)
