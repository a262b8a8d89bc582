# What `trees` makes and sums up, without running anybody.
# SPDX-License-Identifier: Apache-2.0
import os

import pytest
from lab import figures
from lab.errors import LabError
from lab.experiments import trees
from lab.peers import forests


def test_a_forest_is_the_same_each_time_and_no_two_files_are(tmp_path):
    forest = forests.small(250)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        forest.make(tmp_path / name)
    contents = {}
    for path, size in forest.files:
        content = (tmp_path / "one" / path).read_bytes()
        assert len(content) == size
        assert content == (tmp_path / "two" / path).read_bytes()
        contents[content] = path
    assert len(contents) == 250


def test_a_kernel_has_its_files_and_bytes():
    forest = forests.kernel_like(0.01)
    assert len(forest.files) == len({path for path, _size in forest.files}) == 800
    assert forest.size_bytes == pytest.approx(12_000_000, rel=0.01)


def test_the_bare_loop_copies_and_leaves_nothing_else(tmp_path):
    ground = forests.Ground("here", tmp_path)
    ground.target.mkdir()
    forest = forests.small(1_234)
    ground.plant_once(forest)
    forests.bare_loop(ground.source(forest), ground.target)
    ground.check(forest)
    assert sum(len(files) for _place, _folders, files in os.walk(ground.target)) == 1_234


def test_a_tree_on_a_disk_is_not_removed_right_before_the_next_run(tmp_path):
    for name, stays in (("disk", True), ("tmpfs", False)):
        (tmp_path / name).mkdir()
        ground = forests.Ground(name, tmp_path / name)
        for _ in range(3):
            ground.make_ready()
            (ground.target / "f").write_bytes(b"x")
        assert len(list((tmp_path / name).rglob("f"))) == (3 if stays else 1)


def test_a_tree_that_differs_is_found_out(tmp_path):
    ground = forests.Ground("here", tmp_path)
    ground.target.mkdir()
    forest = forests.small(3)
    ground.plant_once(forest)
    forest.make(ground.target)
    (ground.target / "d0/f1").write_bytes(b"other")
    with pytest.raises(LabError, match="f1"):
        ground.check(forest)


def test_ratios_are_to_the_best_of_the_tools_and_not_to_the_loop():
    def row(tree, peer, files_per_s, storage="disk", **more):
        return figures.row({"tree": tree, "storage": storage, "peer": peer},
                           [{"error": "no"}] if files_per_s is None else [{"files_per_s": files_per_s, **more}])  # fmt: skip

    rows = [row("small", "sluice", 8000.0), row("small", "rsync", 2000.0), row("small", "tar-socat", 4000.0),
            row("small", "bare-loop", 10_000.0), row("small", "scp", None), row("large", "sluice", 1.0, wall_s=4.0),
            row("half", "sluice", 1.0, wall_s=2.0), row("mixed", "sluice", 1.0, wall_s=4.2),
            row("unchanged", "sluice", 9.0), row("unchanged", "rsync", 3.0)]  # fmt: skip
    out = trees.summary(rows)
    assert (out["files_per_s"], out["ratio_rsync"], out["ratio_best"], out["ratio_bare_loop"]) == (8000.0, 4.0, 2.0, 0.8)
    assert out["unchanged_ratio_rsync"] == 3.0
    assert out["mixed"] == pytest.approx(1.05)
    assert out["tmpfs_ratio_rsync"] is out["kernel_tree_ratio_best"] is out["rss_mb_million"] is None
