# Which files travel in one session, and what the end of a session means for each: neither Rucio nor a node is needed.
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from sluice_rucio import grouping, outcome, places  # noqa: E402
from sluice_rucio.grouping import File, group, queue_priority  # noqa: E402
from sluice_rucio.outcome import Ended, Verdict, of_file, of_size, told  # noqa: E402


def file(source, destination=None, *, floor=2, size=1000, **more):
    source = places.components(source)
    destination = places.components(destination) if destination else ("data", "rse2", *source[2:])
    return File("alpha", source, "beta", destination, size, source_floor=floor, destination_floor=floor, **more)


def shape(jobs):
    return [(job.source, job.destination, job.names) for job in jobs]


def test_files_of_one_pair_of_rses_share_a_session_whatever_their_directories():
    jobs = group([file("data/rse1/s/aa/f1"), file("data/rse1/s/aa/f2"), file("data/rse1/s/bb/f3")])
    assert shape(jobs) == [("data/rse1/", "data/rse2/", ["s/aa/f1", "s/aa/f2", "s/bb/f3"])]
    assert [len(job.files) for job in jobs] == [3]
    assert json.loads(json.dumps(jobs[0].order()))["names"] == jobs[0].names


def test_no_session_reaches_above_a_prefix():
    same = file("data/rucio/s/f", "data/rucio/s/f")
    assert shape(group([same])) == [("data/rucio/", "data/rucio/", ["s/f"])]
    assert shape(group([file("data/rucio/s/f", "data/rucio/s/f", floor=1)])) == [("data/", "data/", ["rucio/s/f"])]


def test_paths_that_differ_in_part_share_what_they_have_in_common():
    jobs = group([file("data/rse1/s/aa/f1", "data/rse2/flat/f1"), file("data/rse1/s/aa/f2", "data/rse2/flat/f2"),
                  file("data/rse1/s/bb/f3", "data/rse2/flat/f3")])  # fmt: skip
    assert shape(jobs) == [("data/rse1/s/aa/", "data/rse2/flat/", ["f1", "f2"]), ("data/rse1/s/bb/", "data/rse2/flat/", ["f3"])]


def test_a_file_that_gets_another_name_travels_alone():
    jobs = group([file("data/rse1/s/f1", "data/rse2/s/g1"), file("data/rse1/s/f2")])
    assert shape(jobs) == [("data/rse1/s/f1", "data/rse2/s/g1", []), ("data/rse1/", "data/rse2/", ["s/f2"])]


@pytest.mark.parametrize("more", [{"overwrite": True}, {"priority": -10}, {"rule": "another"}])
def test_what_is_asked_otherwise_travels_apart(more):
    assert len(group([file("data/rse1/s/f1"), file("data/rse1/s/f2", **more)])) == 2


def test_a_session_takes_no_more_than_a_node_does(monkeypatch):
    many = [file(f"data/rse1/s/f{at}") for at in range(25)]
    assert [len(job.names) for job in group(many, 10)] == [10, 10, 5]
    large = [file(f"data/rse1/s/f{at}", size=grouping.LARGE_BYTES + (at % 2)) for at in range(20)]
    monkeypatch.setattr(grouping, "LARGE_MAX", 4)
    assert [len(job.names) for job in group(large)] == [9, 8, 3]
    monkeypatch.setattr(grouping, "NAMES_BYTES_MAX", 50)
    assert all(sum(len(name) + 1 for name in job.names) <= 50 for job in group(many))
    assert sum(len(job.names) for job in group(many)) == 25


def test_in_one_session_no_name_ends_with_another():
    names = ["s/f", "f", "t/s/f", "s/g"]
    jobs = group([file(f"data/rse1/{name}") for name in names])
    assert [job.names for job in jobs] == [["s/f"], ["f"], ["t/s/f", "s/g"]]


def test_what_is_no_place_of_the_export_is_refused():
    assert places.path_of("sluice://alpha:7400/data/rse1//s/a#b?c%20", "data") == ("data", "rse1", "s", "a#b?c%20")
    for url, says in (("root://alpha//data/f", "scheme"), ("sluice://alpha:7400/other/f", "export 'data'"),
                      ("sluice://alpha:7400/data/../f", "'..'"), ("sluice://alpha:7400/data/", "itself")):  # fmt: skip
        with pytest.raises(ValueError, match=says):
            places.path_of(url, "data")


def test_the_host_of_a_request_names_the_node_that_orders():
    assert places.directory_of(places.host_of("/etc/sluice")) == "/etc/sluice"
    for other in ("https://fts.example:8446", "", None, "sluice:etc"):
        with pytest.raises(ValueError, match="sluice:/etc/sluice"):
            places.directory_of(other)


def test_priorities_of_rucio_are_those_of_the_queue():
    assert [queue_priority(each) for each in (1, 2, 3, 4, 5, None, 9, -4)] == [-40, -30, -20, -10, 0, -20, 0, -40]


@pytest.mark.parametrize("state", ["queued", "connecting", "negotiating", "transferring", "finishing", "waiting", "paused", "unknown"])
def test_before_its_end_a_session_says_nothing_of_a_file(state):
    assert of_file(Ended(state), "data/f").verdict is Verdict.PENDING


def test_an_end_is_that_of_each_file():
    assert of_file(Ended("succeeded"), "data/f") == outcome.DONE
    lost = of_file(Ended("failed", "beta: no answer", "peer_unreachable", 6), "data/f")
    assert (lost.verdict, lost.reason, lost.in_the_way) == (Verdict.FAILED, "beta: no answer (peer_unreachable, 6)", False)
    assert of_file(Ended("failed", "exists", "destination_exists", 9), "data/f").in_the_way
    assert of_file(Ended("cancelled"), "data/f").reason == "the session was cancelled"


def test_of_a_partial_session_each_file_has_its_own_end():
    end = Ended("partial", "2 of 4", "partial", 21, (("s/f1", "was not there"), ("s/f2", "exists at the destination; replace it")))
    assert of_file(end, "data/rse2/s/f1").reason == "s/f1: was not there"
    assert of_file(end, "data/rse2/s/f2").in_the_way and not of_file(end, "data/rse2/s/f1").in_the_way
    assert of_file(end, "data/rse2/s/f3") == outcome.DONE
    assert of_file(end, "data/rse2/s/of1") == outcome.DONE


def test_where_not_all_that_failed_are_told_no_other_file_is_done():
    end = Ended("partial", "2000 of 4000", "partial", 21, (("s/f1", "was not there"),), cut=True)
    assert of_file(end, "data/rse2/s/f3").verdict is Verdict.FAILED
    assert told([("a", "gone", False), ("b", "another time", True)], 2) == ((("a", "gone"),), False)
    assert told([("a", "gone", False)], 2) == ((("a", "gone"),), True)


def test_a_file_of_another_size_is_not_the_replica():
    assert of_size("data/f", 10, 10) == outcome.DONE == of_size("data/f", 10, None)
    wrong = of_size("data/f", 10, 11)
    assert wrong.verdict is Verdict.FAILED and "10 bytes" in wrong.reason and "11" in wrong.reason and wrong.in_the_way
    assert of_size("data/f", None, 11).verdict is Verdict.FAILED
