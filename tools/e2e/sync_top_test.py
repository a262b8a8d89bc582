# --sync and the directory itself, into which all else comes.
# SPDX-License-Identifier: Apache-2.0
import os

import pytest
from syncs import Way, exports, top_of
from transfers import temporary_files
from trees import forget_tree, make_tree


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(prepare=exports, bytes_needed=1 << 30)


@pytest.fixture(params=["push", "pull"])
def way(request, pair):
    way = Way(pair, request.param)
    way.destination.parent.mkdir()
    make_tree(way.source, files=20)
    yield way
    for node in pair.nodes:
        for place in node.export().iterdir():
            forget_tree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
        assert not list(temporary_files(node))


def test_the_directory_itself_gets_mode_and_time_as_by_rsync(way):
    way.report()
    assert top_of(way.destination) == top_of(way.source)
    (way.source / "new").write_bytes(b"x")
    (way.destination / "extra").write_bytes(b"x")
    way.report("--delete")
    assert top_of(way.destination) == top_of(way.source), "what was made and removed in it changed its time"
    os.chmod(way.source, 0o710)
    os.utime(way.source, ns=(1, 5 * 10**17 + 5))
    report = way.report()
    assert len(report["sessions"]) == 1 and report["sent"] == 1 and top_of(way.destination) == top_of(way.source)
    way.settled("--delete")
    (way.source / "spool").mkdir()
    for directory in (way.source, way.source / "spool"):
        os.chmod(directory, 0o1777)
    way.report()
    assert top_of(way.destination) == top_of(way.source) and top_of(way.destination / "spool")[0] == 0o1777
    way.settled()
    for directory in (way.source, way.source / "spool"):
        os.chmod(directory, 0o777)
    way.settled()  # what is sticky stays so
    os.chmod(way.source, 0o710)
    way.report()
    for node in way.pair.nodes:
        os.chmod(node.export(), 0o750)
    if way.pushes:  # an export is its operator's
        way.pair.a.must("send", "--sync", f"{way.source}/", "b:data/")
        assert top_of(way.pair.b.export())[0] == 0o750
        assert "nothing to do" in way.pair.a.must("send", "--sync", f"{way.source}/", "b:data").stdout
    os.chmod(way.source, 0o755)
