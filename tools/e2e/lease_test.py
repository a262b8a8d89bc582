# Leases: two nodes that both think the work is theirs. Whoever has the higher epoch writes, at both nodes that are asked, and
# over the death of any of them.
# SPDX-License-Identifier: Apache-2.0
import itertools
import os

import pytest
from harness import Group, group_missing, wait_until
from harness.system import random_file, same_bytes
from transfers import MIB, SUPERSEDED, as_before, temporary_files, wait_state

_reason = group_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))
_serial = itertools.count(1)


@pytest.fixture(scope="module")
def group():
    with Group(["alpha", "gamma", "beta"], bytes_needed=1 << 28) as nodes:
        nodes.start()
        yield nodes


@pytest.fixture
def beta(group):
    yield group["beta"]
    as_before(group)


def fresh_lease():
    return f"{next(_serial)}.{os.urandom(16).hex()}"


def begin(node, *words, lease):
    status, reply, text = node.json(*words, "--lease", lease, "--detach")
    assert status == 0, text
    return reply["id"]


def move(node, *words, lease):
    """The exit status, and what is said."""
    result = node.sluice(*words, "--lease", lease)
    return result.returncode, result.stderr


def moving(node, session):
    wait_until(lambda: node.json("session", "show", session)[1]["bytes_done"] > 0, 60, "data move")


def test_two_nodes_that_send_the_same(group, beta):
    """Epoch 1 runs at alpha; gamma is given epoch 2. The destination dies in between."""
    alpha, gamma, name = group["alpha"], group["gamma"], fresh_lease()
    slow = random_file(alpha.export() / "work", 64 * MIB, seed=1)
    quick = random_file(gamma.export() / "work", MIB, seed=2)
    first = begin(alpha, "send", slow, "beta:data/", "--rate", "20M", lease=f"{name}:1")
    moving(alpha, first)
    assert alpha.json("session", "show", first)[1]["lease"] == f"{name[:6]}...:1"
    assert move(gamma, "send", quick, "beta:data/", lease=f"{name}:2")[0] == 0
    end = wait_state(alpha, first, "failed")
    assert end["error_code"] == SUPERSEDED and end["error_name"] == "superseded"
    assert wait_state(beta, first, "failed")["error_code"] == SUPERSEDED
    assert same_bytes(quick, beta.export() / "work")
    assert not temporary_files(beta)
    beta.control.kill()
    beta.start_control()
    for lease, node in ((f"{name}:1", alpha), (f"{name}:2", alpha), (f"{name}:1", gamma)):
        status, said = move(node, "send", quick, "beta:data/again", lease=lease)
        assert status == SUPERSEDED, said
        assert name not in said and name[:6] in said
    assert not (beta.export() / "again").exists()
    assert move(gamma, "send", quick, "beta:data/again", lease=f"{name}:2")[0] == 0
    assert move(alpha, "send", slow, "beta:data/third", "--rate", "1G", lease=f"{name}:3")[0] == 0


def test_a_session_resumes_under_its_lease_and_not_under_one_that_is_over(group, beta):
    alpha, gamma, name = group["alpha"], group["gamma"], fresh_lease()
    source = random_file(alpha.export() / "work", 24 * MIB, seed=3)
    session = begin(alpha, "send", source, "beta:data/", "--rate", "20M", lease=f"{name}:5")
    moving(alpha, session)
    for node in (alpha, beta):
        node.control.kill()
    for node in (alpha, beta):
        node.start_control()
    moving(alpha, session)
    assert alpha.json("session", "show", session)[1]["lease"] == f"{name[:6]}...:5"
    # Alpha is dead while the lease goes to somebody else.
    alpha.control.kill()
    other = random_file(gamma.export() / "other", MIB, seed=4)
    assert move(gamma, "send", other, "beta:data/", lease=f"{name}:6")[0] == 0
    alpha.start_control()
    assert wait_state(alpha, session, "failed")["error_code"] == SUPERSEDED
    assert not (beta.export() / "work").exists()


def test_two_nodes_that_get_the_same(group, beta):
    """The node that is asked is the source, and it is a destination as well for whoever is next."""
    alpha, gamma, name = group["alpha"], group["gamma"], fresh_lease()
    source = random_file(beta.export() / "work", 64 * MIB, seed=5)
    first = begin(alpha, "get", "beta:data/work", alpha.export() / "got", "--rate", "20M", lease=f"{name}:1")
    moving(alpha, first)
    (gamma.directory / "run.toml").write_text(
        f'[[get]]\nsources = "beta:data/work"\nto = "{gamma.export()}/got"\nlease = "{name}:2"\n')  # fmt: skip
    result = gamma.sluice("run", gamma.directory / "run.toml")
    assert result.returncode == 0, result.stderr
    assert wait_state(alpha, first, "failed")["error_code"] == SUPERSEDED
    assert same_bytes(source, gamma.export() / "got") and not (alpha.export() / "got").exists()
    # A node keeps to the leases of its own sessions, and ends its own, too.
    own = begin(alpha, "get", "beta:data/work", alpha.export() / "got", "--rate", "20M", lease=f"{name}:3")
    moving(alpha, own)
    assert move(alpha, "get", "beta:data/work", alpha.export() / "more", lease=f"{name}:4")[0] == 0
    assert wait_state(alpha, own, "failed")["error_code"] == SUPERSEDED
    assert move(alpha, "get", "beta:data/work", alpha.export() / "less", lease=f"{name}:3")[0] == SUPERSEDED
    assert alpha.sluice("get", "beta:data/work", alpha.export() / "less", "--lease", "short:1").returncode == 2
