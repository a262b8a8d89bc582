# A dataset moved by four nodes as shards of a real Slurm, or of a shell: it arrives as it is, with what comes last, what fails is retried
# alone, and what is cancelled ends. fleet_kills_test.py kills daemons and nodes.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import subprocess

import pytest
from harness.fleet import ARCHIVE, SENDERS, Fleet, make_dataset, picture, same_links, share
from harness import Group, Slurm, group_missing, slurm_missing, wait_until
from transfers import CANCELLED, CONFIGURATION, ENDED, EXISTS, MIB, PARTIAL, UNTRUSTED, USAGE, nothing_temporary

pytestmark = pytest.mark.skipif(group_missing() is not None, reason=str(group_missing()))
needs_slurm = pytest.mark.skipif(slurm_missing() is not None, reason=str(slurm_missing()))

LARGE = [6 * MIB, 2 * MIB, 4 * MIB, 3 * MIB]


@pytest.fixture(scope="module")
def group():
    with Group([*SENDERS, ARCHIVE], settings={"port": {"rate": "200M"}}) as group:
        make_dataset(group.base / "shared/data", 1500, LARGE)
        share(group)
        group.start()
        yield group


@pytest.fixture(scope="module")
def slurm(group):
    with Slurm(group=group, at=SENDERS, user="root") as cluster:
        yield cluster


@pytest.fixture
def copy(group):
    folder = group[ARCHIVE].export() / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def test_wrong_plans_are_refused_with_a_reason(group):
    source = group.base / "shared/data"
    fleet = Fleet(group, None, source, "wrong")
    right = ["--from", f"n1:{source}", "--to", "arc:data/copy"]
    for words, code, said in (
        (["--from", f"n1,n2:{source}"], USAGE, "--to is required"),
        (["--from", f"n1,n1:{source}", "--to", "arc:data/copy"], USAGE, "named twice"),
        (["--from", "n1:shared/data", "--to", "arc:data/copy"], USAGE, "one absolute path"),
        (["--from", f"n1:{source}", "--from", "n2:/elsewhere", "--to", "arc:data/copy"], USAGE, "one absolute path"),
        ([*right, "--delete"], USAGE, "only with --sync"),
        ([*right, "--option", "no_such_key=1"], USAGE, "no_such_key"),
        ([*right, "--option", "rate"], USAGE, "KEY=VALUE"),
        ([*right, "--shards", "0"], USAGE, "--shards"),
        (["--from", f"n1:{source}", "--to", "nobody:data/copy"], UNTRUSTED, "nobody"),
        (["--from", f"n1:{source}/none", "--to", "arc:data/copy"], 7, "none"),
    ):  # fmt: skip
        result = fleet.call("plan", *words)
        assert result.returncode == code and said in result.stderr, (words, result.returncode, result.stderr)
    assert list(fleet.plan.parent.iterdir()) == []
    for verb in ("submit", "status", "wait", "cancel", "retry", "receipt"):
        result = fleet.call(verb)
        assert result.returncode == CONFIGURATION and "no plan there" in result.stderr, (verb, result.stderr)


def test_a_shell_runs_the_shards_and_a_second_plan_syncs_and_deletes(group, copy):
    source = group.base / "shared/data"
    fleet = Fleet(group, None, source, "shell")
    fleet.make("--emit", "shell", "--shards", "3", "--align", "1M", "--name-cost", "0", node="n1")
    assert json.loads((fleet.plan / "plan.json").read_text())["cut_files"] > 0
    assert fleet.call("plan", "--from", f"n1:{source}", "--to", "arc:data/copy").returncode == EXISTS
    assert fleet.call("submit").returncode == USAGE
    subprocess.run([*group.enter("n1"), fleet.plan / "run.sh", "2"], check=True, capture_output=True, timeout=120)
    assert picture(copy) == picture(source)
    assert same_links(source, copy)
    assert fleet.status()["state"] == "succeeded"

    (copy / "extra").mkdir()
    (copy / "extra/gone").write_bytes(b"x")
    (copy / "d001/in/gone").write_bytes(b"y")
    (copy / "large1").write_bytes(b"another")
    second = Fleet(group, None, source, "sync")
    second.make("--emit", "shell", "--sync", "--delete", node="n1")
    plan = json.loads((second.plan / "plan.json").read_text())
    assert plan["names"] == 1, plan
    subprocess.run([*group.enter("n1"), second.plan / "run.sh"], check=True, capture_output=True, timeout=120)
    assert picture(copy) == picture(source)
    assert second.status()["bytes_sent"] < 3 * MIB


def test_shards_may_run_where_the_dataset_goes(group, copy):
    source = group.base / "shared/data/d001/in"  # without directories
    fleet = Fleet(group, None, source, "fetched")
    fleet.must("plan", "--at", "to", "--emit", "shell", "--shards", "3", "--from", "n1,n2:shared/data/d001/in", "--to", f"{ARCHIVE}:{copy}",
               "--node-dir", str(group[ARCHIVE].directory), node=ARCHIVE)  # fmt: skip
    assert fleet.call("shard", "1", node="n3").returncode == CONFIGURATION  # that node gets nothing
    subprocess.run([*group.enter(ARCHIVE), fleet.plan / "run.sh", "1", "1"], check=True, capture_output=True, timeout=120)
    assert picture(copy) == picture(source)
    assert fleet.status()["state"] == "succeeded"


def test_a_file_that_was_cut_is_dropped_or_finished(group, copy):
    source = group.base / "shared/cut"
    (source / "in").mkdir(parents=True)
    (source / "in/big [1]").write_bytes(os.urandom(9 * MIB + 5))
    (source / "small").write_bytes(b"small")
    fleet = Fleet(group, None, source, "cut")
    fleet.must("plan", "--at", "to", "--emit", "shell", "--shards", "3", "--align", "1M", "--name-cost", "0", "--from", "n1,n2:shared/cut",
               "--to", f"{ARCHIVE}:{copy}", "--node-dir", str(group[ARCHIVE].directory), node=ARCHIVE)  # fmt: skip
    assert json.loads((fleet.plan / "plan.json").read_text())["cut_files"] == 1
    fleet.must("shard", "1", node=ARCHIVE)
    fleet.must("shard", "2", node=ARCHIVE)
    assert fleet.call("shard", "last", node=ARCHIVE).returncode == PARTIAL
    assert "1 unfinished file is dropped" in fleet.must("drop", node=ARCHIVE)
    nothing_temporary(group[ARCHIVE])
    subprocess.run([*group.enter(ARCHIVE), fleet.plan / "run.sh", "2", "1"], check=True, capture_output=True, timeout=120)
    assert picture(copy) == picture(source)
    nothing_temporary(group[ARCHIVE])
    assert fleet.status()["state"] == "succeeded"
    fleet.must("receipt", node=ARCHIVE)
    lines = [line for line in (fleet.plan / "digests.txt").read_text().splitlines() if "big" in line]
    assert len(lines) == 1 and f" {9 * MIB + 5} 1 " in lines[0], lines
    whole = Fleet(group, None, source, "uncut")
    whole.make("--emit", "shell", "--shards", "3", "--whole-files", node="n1")
    assert json.loads((whole.plan / "plan.json").read_text())["cut_files"] == 0


@needs_slurm
def test_slurm_runs_the_shards_each_at_its_own_node(group, slurm, copy):
    source = group.base / "shared/data"
    fleet = Fleet(group, slurm, source, "whole")
    fleet.make("--shards", "8", "--align", "1M", "--name-cost", "0")
    plan = json.loads((fleet.plan / "plan.json").read_text())
    assert plan["cut_files"] > 0 and plan["balance"]["worst_over_mean"] < 1.6, plan
    fleet.must("submit")
    code, status = fleet.json("wait", "--quiet", "--timeout", "240")
    assert (code, status["state"]) == (0, "succeeded"), fleet.told()
    assert picture(copy) == picture(source)
    assert same_links(source, copy)
    assert {one["try"]["node"] for one in status["shards"]} == set(SENDERS)
    assert status["names"]["done"] == status["names"]["total"]
    assert fleet.call("submit").returncode == EXISTS
    assert "nothing failed" in fleet.must("retry")
    receipt = fleet.plan / "whole.receipt"
    receipt.write_text(fleet.must("receipt"))
    checked = json.loads(group["n1"].must("receipt", "--check", receipt, "--json").stdout)
    assert checked["statement"]["bytes"] == status["bytes"]
    assert len(checked["statement"]["sessions"]) >= 9
    lines = (fleet.plan / "digests.txt").read_text().splitlines()
    for number, size in enumerate(LARGE):  # also of those that were cut, once
        assert [line.split()[1] for line in lines if line.endswith(f"/large{number}")] == [str(size)]


@needs_slurm
def test_what_failed_is_named_and_retried_alone(group, slurm, copy):
    source = group.base / "shared/data"
    fleet = Fleet(group, slurm, source, "partly")
    fleet.make("--shards", "4")
    # It stands in the way of one file.
    copy.mkdir()
    (copy / "large1").write_bytes(b"something else")
    fleet.must("submit")
    code, status = fleet.json("wait", "--quiet", "--timeout", "240")
    assert code in (EXISTS, PARTIAL) and status["state"] == "failed", (code, fleet.told())
    failed = [one for one in status["shards"] if one["state"] == "failed"]
    assert len(failed) == 1 and status["last"]["state"] != "succeeded", status
    assert "large1" in json.dumps(failed[0]["try"])
    (copy / "large1").unlink()
    others = {one["shard"]: one["try"]["epoch"] for one in status["shards"] if one["state"] == "succeeded"}
    assert "1 shard submitted" in fleet.must("retry")
    code, status = fleet.json("wait", "--quiet", "--timeout", "240")
    assert (code, status["state"]) == (0, "succeeded"), fleet.told()
    assert others == {one["shard"]: one["try"]["epoch"] for one in status["shards"] if one["shard"] in others}
    assert picture(copy) == picture(source)
    # What had arrived was not sent again.
    assert status["bytes_sent"] < 1.1 * status["bytes"] + 2 * MIB, status["bytes_sent"]


@needs_slurm
def test_cancel_ends_jobs_and_sessions(group, slurm, copy):
    fleet = Fleet(group, slurm, group.base / "shared/data", "cancelled")
    fleet.make("--shards", "4", "--option", "rate=2M", "--align", "1M", "--name-cost", "0")
    fleet.must("submit")
    wait_until(lambda: "running" in fleet.states().values() and fleet.status()["bytes_done"] > 0, 60, "a shard moves data")
    fleet.must("cancel")
    code, status = fleet.json("wait", "--quiet", "--timeout", "120")
    assert code == CANCELLED and status["state"] == "cancelled", (status, fleet.told())
    for name in SENDERS:
        wait_until(lambda name=name: all(one["state"] in ENDED for one in group[name].sessions()), 60,
                   f"no session is left at {name}")  # fmt: skip
    wait_until(slurm.idle, 120, "what was left of ranges is removed")
    nothing_temporary(group[ARCHIVE])
