# What `fleet` makes of its samples, without any node.
# SPDX-License-Identifier: Apache-2.0
import pytest
from lab.experiments import fleet
from lab.figures import row


def sample(shards_s, gigabits=0.8, **more):
    return {"goodput_gbps": gigabits, "shards_s": shards_s, "wall_s": shards_s + 3, **more}


def killed(requeue_s, left_bytes, shard_bytes, shards_s):
    return sample(shards_s, event_s=10.0, left_bytes=left_bytes, shard_bytes=shard_bytes, requeue_s=requeue_s, twice=0.01)


def test_the_rest_is_what_three_nodes_need():
    # 0.8 Gbit/s are 100 MB/s a node.
    assert fleet.ideal_s(killed(1, 3e9, 1e8, 0), 0.8) == pytest.approx(10 + 10)


def test_the_killed_shard_waits_for_slurm():
    assert fleet.ideal_s(killed(30, 3e9, 5e8, 0), 0.8) == pytest.approx(10 + 30 + 5)


def test_the_summary_compares_each_case():
    rows = [row({"case": case}, [one]) for case, one in (
        (fleet.ONE, sample(10)), (fleet.FOUR, sample(10, 3.0)), (fleet.KILLED, killed(30, 3e9, 5e8, 54)),
        (fleet.FLEET, {"wall_s": 4.0}), (fleet.FPSYNC, {"wall_s": 10.0}))]  # fmt: skip
    summary = fleet.summary(rows)
    assert summary["of_four"] == pytest.approx(3.0 / 3.2)
    assert summary["killed"] == pytest.approx(54 / 45)
    assert summary["ratio_fpsync"] == pytest.approx(2.5)


def test_what_did_not_work_is_missing():
    rows = [row({"case": case}, [{"error": "no"}]) for case in (fleet.ONE, fleet.FOUR, fleet.KILLED, fleet.FLEET, fleet.FPSYNC)]
    assert fleet.summary(rows)["of_four"] is None and fleet.summary(rows)["killed"] is None
