# A fleet whose hosts die: a slurmd and its task, a slurmd alone, a whole host. What arrives is the same, and no byte is sent twice but what
# a session had unfinished. Slurm needs its time to believe that a host is dead, so `./dev slurm-test` runs these, and `./dev test` does not.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil

import pytest
from harness.fleet import ARCHIVE, SENDERS, Fleet, kill_slurm_at, make_dataset, picture, same_links, share
from harness import Group, HarnessError, Slurm, group_missing, slurm_missing, wait_until
from transfers import ENDED, MIB, nothing_temporary

SUPERSEDED = 24
_reason = group_missing() or slurm_missing() or (None if os.environ.get("SLUICE_SLURM_KILLS") else "for ./dev slurm-test")
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

SMALL = int(os.environ.get("SLUICE_SLURM_KILLS_SMALL", "20000"))
LARGE = [24 * MIB, 16 * MIB, 12 * MIB, 8 * MIB]
SHARDS = 12


@pytest.fixture(scope="module")
def group():
    # Slow enough that a shard is hit while it moves data.
    with Group([*SENDERS, ARCHIVE], settings={"port": {"rate": "30M"}}, of_node={ARCHIVE: {"port": {"rate": "1G"}}}) as group:
        make_dataset(group.base / "shared/data", SMALL, LARGE)
        share(group)
        group.start()
        yield group


@pytest.fixture(scope="module")
def slurm(group):
    with Slurm(group=group, at=SENDERS, user="root", settings={"SlurmdTimeout": "10"}) as cluster:
        yield cluster


@pytest.fixture
def fleet(group, slurm, request):
    shutil.rmtree(group[ARCHIVE].export() / "copy", ignore_errors=True)
    fleet = Fleet(group, slurm, group.base / "shared/data", request.node.name)
    fleet.make("--shards", str(SHARDS))
    fleet.must("submit")
    yield fleet
    fleet.call("cancel")
    for name in SENDERS:
        for daemon, start in ((group[name].dataplane, group[name].start_dataplane), (group[name].control, group[name].start_control)):
            if not daemon.running():
                start()
    for node, daemon in slurm.slurmds.items():
        if not daemon.running():
            daemon.start()
    wait_until(slurm.idle, 120, "Slurm is ready again")
    for node in group.nodes:
        wait_until(lambda node=node: all(one["state"] in ENDED for one in node.sessions()), 120, f"no session is left at {node.name}")


def moving(fleet, node):
    """A shard that moves data at this node, has more than half of it before it, and is large."""
    def found():
        for one in fleet.status()["shards"]:
            attempt = one.get("try", {})
            if one["state"] == "running" and attempt.get("node") == node and 0 < one["bytes_done"] < one["bytes"] / 2:
                return one["shard"]
        return None

    return wait_until(found, 120, f"a shard moves data at {node}")


def end_well(fleet, group, deadline_s=400):
    code, status = fleet.json("wait", "--quiet", "--timeout", str(deadline_s), timeout_s=deadline_s + 60)
    if (code, status.get("state")) != (0, "succeeded"):
        raise HarnessError(f"exit {code}: {status}\n{fleet.told()}\n{fleet.slurm.tails()}")
    copy = group[ARCHIVE].export() / "copy"
    assert picture(copy) == picture(fleet.source)
    assert same_links(fleet.source, copy)
    nothing_temporary(group[ARCHIVE])
    return status


def sent_once(status, but_for):
    """But for what the tries that were ended had unfinished: at most this."""
    assert status["bytes_sent"] <= 1.05 * status["bytes"] + but_for + MIB, (status["bytes_sent"], status["bytes"], but_for)


def tries_of(fleet, shard):
    return sorted(fleet.plan.glob(f"tries/shard-{shard:04}.*.json"))


def test_a_slurmd_and_its_task_are_killed(group, slurm, fleet):
    shard = moving(fleet, "n2")
    kill_slurm_at(slurm, "n2")
    status = end_well(fleet, group)
    assert len(tries_of(fleet, shard)) == 2
    sent_once(status, max(LARGE))


def test_a_task_that_outlives_its_slurmd_never_writes_beside_its_successor(group, slurm, fleet):
    shard = moving(fleet, "n3")
    slurm.slurmds["n3"].kill()
    # It takes longer than Slurm needs to give it up.
    for one in group["n3"].sessions():
        if one["state"] not in ENDED:
            group["n3"].must("session", "limit", one["id"], "--rate", "1M")
    status = end_well(fleet, group)
    first, second = (json.loads(path.read_text()) for path in tries_of(fleet, shard))
    assert (first["state"], first["exit_code"], second["state"]) == ("failed", SUPERSEDED, "succeeded"), (first, second)
    assert second["node"] != "n3"
    sent_once(status, max(LARGE))


def test_a_whole_host_is_killed(group, slurm, fleet):
    shard = moving(fleet, "n4")
    group["n4"].control.kill()
    group["n4"].dataplane.kill()
    kill_slurm_at(slurm, "n4")
    status = end_well(fleet, group)
    assert len(tries_of(fleet, shard)) == 2
    assert status["shards"][shard - 1]["try"]["node"] != "n4"
    sent_once(status, max(LARGE))


def test_cancelled_in_the_middle_and_retried(group, slurm, fleet):
    moving(fleet, "n1")
    fleet.must("cancel")
    code, status = fleet.json("wait", "--quiet", "--timeout", "120")
    assert code != 0 and status["counts"].get("cancelled", 0) >= 1, status
    nothing_temporary(group[ARCHIVE])
    done = {one["shard"] for one in status["shards"] if one["state"] == "succeeded"}
    fleet.must("retry")
    status = end_well(fleet, group)
    assert all(len(tries_of(fleet, shard)) == 1 for shard in done)
    sent_once(status, len(SENDERS) * max(LARGE))
