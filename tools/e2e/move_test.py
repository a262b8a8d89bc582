# A session moves to another node of the site, over the same storage: while it sends and while it gets, over deaths at any moment,
# and with a first node that is restored from a copy of its old journal.
# SPDX-License-Identifier: Apache-2.0
import shutil
import subprocess

import pytest
from harness import Group, group_missing, wait_until
from harness.system import random_file, same_bytes
from transfers import EXISTS, INTEGRITY, MIB, MOVED, UNTRUSTED, USAGE, begin, temporary_files, wait_state
from trees import make_tree, same

_reason = group_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

SLOW = "40M"


@pytest.fixture(scope="module")
def group():
    """alpha and gamma have one storage between them; beta is the other end."""
    with Group(["alpha", "gamma", "beta"], bytes_needed=1 << 29) as nodes:
        site = nodes.base / "site"
        for name in ("alpha", "gamma"):
            nodes[name].add_export("site", site)
        for node in nodes.nodes:
            node.write_configuration()
        nodes.start()
        nodes.site = site
        yield nodes


@pytest.fixture
def ends(group):
    yield group["alpha"], group["gamma"], group["beta"]
    for node in group.nodes:
        if not node.control.running():
            node.start_control()
    for folder in (group.site, group["beta"].export()):
        for path in list(folder.iterdir()):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert not temporary_files(group["beta"])


def bytes_done(node, session):
    return node.json("session", "show", session)[1].get("bytes_done", 0)


def moving(node, session, least=1):
    wait_until(lambda: bytes_done(node, session) >= least, 60, "data move")


def exported(group, node, session, to="gamma"):
    file = group.base / f"{session}.{node.name}.session"
    file.unlink(missing_ok=True)
    node.must("session", "export", session, file, "--to", to)
    return file


def test_while_it_sends(group, ends):
    alpha, gamma, beta = ends
    source = random_file(group.site / "work", 20 * MIB, seed=1)
    session = begin(alpha, "send", source, "beta:data/", "--rate", SLOW)
    moving(alpha, session, 4 * MIB)
    journal = next(alpha.directory.rglob("journal.sqlite")).parent
    before = group.base / "old-journal"
    before.mkdir()
    alpha.control.kill()
    for path in journal.glob("journal.sqlite*"):
        shutil.copy(path, before)
    alpha.start_control()
    file = exported(group, alpha, session)
    assert file.stat().st_mode & 0o777 == 0o600
    end = wait_state(alpha, session, "failed")
    assert (end["error_code"], end["error_name"]) == (MOVED, "moved")
    # It is for gamma alone, and whole.
    refusal = beta.sluice("session", "import", file)
    assert refusal.returncode == UNTRUSTED and "another node" in refusal.stderr, refusal.stderr
    broken = group.base / "broken"
    broken.write_bytes(file.read_bytes().replace(b"work", b"w0rk"))
    refusal = gamma.sluice("session", "import", broken)
    assert refusal.returncode == INTEGRITY, refusal.stderr
    broken.write_bytes(b"no bundle")
    assert gamma.sluice("session", "import", broken).returncode == USAGE
    assert alpha.sluice("session", "export", session, file, "--to", "gamma").returncode == EXISTS
    assert exported(group, alpha, session).read_bytes() and alpha.sluice("session", "continue", session).returncode == USAGE
    # Gamma dies after it has taken it, and goes on with it.
    gamma.must("session", "import", file)
    gamma.control.kill()
    gamma.start_control()
    gamma.must("session", "wait", session)
    assert same_bytes(source, beta.export() / "work")
    there = beta.json("session", "show", session)[1]
    assert (there["state"], there["peer"]) == ("succeeded", "gamma")
    # What had arrived was not sent again.
    assert gamma.json("session", "show", session)[1]["bytes_resent"] < 12 * MIB
    # Alpha is restored from an old copy of its journal, and believes that the session is its own.
    alpha.control.kill()
    for path in list(journal.glob("journal.sqlite*")):
        path.unlink()
    for path in before.iterdir():
        shutil.copy(path, journal)
    shutil.rmtree(before)
    alpha.start_control()
    end = wait_state(alpha, session, "failed")
    assert end["error_code"] == MOVED, end["error"]
    assert same_bytes(source, beta.export() / "work")


@pytest.mark.parametrize("kind", ["file", "tree"])
def test_while_it_gets(group, ends, kind):
    """Both nodes are killed in the middle: alpha while it exports, gamma while it imports."""
    alpha, gamma, beta = ends
    if kind == "file":
        source = random_file(beta.export() / "work", 20 * MIB, seed=2)
    else:
        source = beta.export() / "work"
        make_tree(source, files=300, seed=3)
        for number in range(4):
            random_file(source / f"large{number}", 4 * MIB, seed=4 + number)
    got = group.site / ("got" if kind == "file" else "work")
    session = begin(alpha, "get", "beta:data/work", got if kind == "file" else f"{group.site}/", "--rate", SLOW)
    moving(alpha, session, 4 * MIB)
    file = group.base / f"{kind}.session"
    for delay_s in (0, 0.05, 0.2):
        file.unlink(missing_ok=True)
        exporting = alpha.popen("session", "export", session, file, "--to", "gamma")
        killed_after(exporting, alpha, delay_s)
        status = alpha.json("session", "show", session)[1]
        assert status["state"] in ("transferring", "paused", "waiting", "queued", "connecting", "negotiating", "finishing", "failed"), status
        assert status["state"] != "failed" or status["error_name"] == "moved"
    file.unlink(missing_ok=True)
    alpha.must("session", "export", session, file, "--to", "gamma")
    alpha.control.kill()
    for delay_s in (0, 0.05, 0.2):
        killed_after(gamma.popen("session", "import", file), gamma, delay_s)
    gamma.must("session", "import", file)  # as often as one likes
    gamma.must("session", "wait", session)
    if kind == "file":
        assert same_bytes(source, got)
    else:
        same(source, got)
    assert not [path for path in group.site.rglob(".*.sluice-part")]
    assert gamma.json("session", "show", session)[1]["bytes_resent"] < 12 * MIB
    assert wait_state(beta, session, "succeeded")["peer"] == "gamma"
    alpha.start_control()
    assert wait_state(alpha, session, "failed")["error_code"] == MOVED
    assert gamma.sluice("session", "import", file).returncode == USAGE  # it has ended


def killed_after(process, node, delay_s):
    try:
        process.wait(delay_s)
    except subprocess.TimeoutExpired:
        pass
    node.control.kill()
    process.communicate(timeout=60)
    node.start_control()


def test_it_is_withdrawn_or_moves_and_never_both(group, ends):
    alpha, gamma, beta = ends
    source = random_file(group.site / "work", 20 * MIB, seed=9)
    session = begin(alpha, "send", source, "beta:data/", "--rate", SLOW)
    moving(alpha, session)
    file = exported(group, alpha, session).rename(group.base / "first.session")
    alpha.must("session", "export", session, "--withdraw")
    assert alpha.json("session", "show", session)[1]["state"] == "paused"
    alpha.must("session", "continue", session)
    moving(alpha, session, bytes_done(alpha, session) + MIB)
    # Beta has heard of the withdrawal: what gamma has is older.
    gamma.must("session", "import", file)
    assert wait_state(gamma, session, "failed")["error_code"] == MOVED
    moving(alpha, session, bytes_done(alpha, session) + 1)
    # Again, and gamma is first.
    again = exported(group, alpha, session)
    refusal = gamma.sluice("session", "import", file)
    assert refusal.returncode == USAGE and "old" in refusal.stderr, refusal.stderr
    gamma.must("session", "import", again)
    moving(gamma, session, bytes_done(gamma, session) + 1)
    alpha.must("session", "export", session, "--withdraw")
    alpha.must("session", "continue", session)
    assert wait_state(alpha, session, "failed")["error_code"] == MOVED
    # And back, with what gamma has signed.
    back = exported(group, gamma, session, to="alpha")
    alpha.must("session", "import", back)
    alpha.must("session", "wait", session)
    assert same_bytes(source, beta.export() / "work")
    assert wait_state(gamma, session, "failed")["error_code"] == MOVED
