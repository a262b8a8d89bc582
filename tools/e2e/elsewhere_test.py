# Paths that come to lead elsewhere while daemons run: directories renamed and made anew, file systems mounted
# over them. No success is told for a name under which the file is not, and what has arrived is not lost.
# SPDX-License-Identifier: Apache-2.0
import shutil
import subprocess

import pytest
from harness import is_root, wait_until
from harness.system import random_file, run, same_bytes
from transfers import (MIB, STORAGE, begin, ended_session, finish, forget, make_file, push, refused, start_slow,
                       unharmed, wait_state)  # fmt: skip

SIZE = 10 * MIB


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair()


@pytest.fixture(autouse=True)
def nothing_left_and_still_serving(pair):
    with unharmed(pair):
        yield


@pytest.fixture
def source(pair):
    path = make_file(pair.a, SIZE)
    yield path
    forget(path)


def begin_into(pair, source, folder):
    folder.mkdir()
    return start_slow(pair.a, "send", source, f"b:data/{folder.name}/")


def is_paused_for(process, session, *naming):
    ended = finish(process)
    line = ended.stderr.strip()
    assert ended.returncode == STORAGE, line
    assert len(line.splitlines()) == 1 and f"session continue {session[:8]}" in line, line
    for word in naming:
        assert str(word) in line, f"does not name {word}: {line}"


def succeeds_when_continued(pair, session, source, target):
    pair.a.must("session", "continue", session)
    waited = pair.a.sluice("session", "wait", session, "--quiet")
    assert waited.returncode == 0, waited.stderr
    assert same_bytes(source, target)
    forget(target)


def test_a_directory_that_is_renamed_and_made_anew_is_put_back(pair, source):
    folder, away = pair.b.export() / "folder", pair.b.export() / "away"
    process, session = begin_into(pair, source, folder)
    folder.rename(away)
    folder.mkdir()
    is_paused_for(process, session, folder / source.name, f"in {away}", "leads elsewhere")
    assert not list(folder.iterdir()), "nothing stands where the path leads now"
    assert not (away / source.name).exists(), "and nothing has its name elsewhere"
    folder.rmdir()
    away.rename(folder)
    succeeds_when_continued(pair, session, source, folder / source.name)
    folder.rmdir()


def test_into_a_directory_that_is_removed_and_made_again_the_file_begins_anew(pair, source):
    folder = pair.b.export() / "folder"
    process, session = begin_into(pair, source, folder)
    shutil.rmtree(folder)
    is_paused_for(process, session, folder / source.name)
    folder.mkdir()
    succeeds_when_continued(pair, session, source, folder / source.name)
    folder.rmdir()


def test_a_tree_whose_directories_are_removed_loses_no_file(pair):
    tree, there = pair.a.export() / "tree", pair.b.export() / "tree"
    (tree / "sub").mkdir(parents=True)
    source = random_file(tree / "sub" / "large.bin", SIZE, seed=12)
    process, session = start_slow(pair.a, "send", tree, "b:data/")
    shutil.rmtree(there)
    is_paused_for(process, session, there / "sub" / source.name)
    succeeds_when_continued(pair, session, source, there / "sub" / source.name)
    shutil.rmtree(tree)
    shutil.rmtree(there)


@pytest.mark.skipif(not is_root(), reason="mounting needs root")
def test_a_session_that_is_paused_at_one_node_holds_no_file_system_at_the_other(pair, source):
    folder = pair.b.export() / "folder"
    folder.mkdir()
    run(["mount", "-t", "tmpfs", "-o", "size=64M", "sluice-test", folder])
    session = begin(pair.a, "send", source, f"b:data/{folder.name}/", "--rate", "20M")
    wait_until(lambda: pair.a.json("session", "show", session)[1]["bytes_done"] > 0, 60, "first bytes")
    pair.a.must("session", "pause", session)
    unmount = lambda: subprocess.run(["umount", folder], capture_output=True, check=False).returncode == 0  # noqa: E731
    wait_until(unmount, 60, f"{folder} can be unmounted")
    pair.a.must("session", "cancel", session)
    assert ended_session(pair.b, session)["state"] == "cancelled"
    folder.rmdir()


@pytest.mark.skipif(not is_root(), reason="mounting needs root")
def test_what_is_mounted_over_a_directory_meanwhile_hides_no_file(pair, source):
    folder = pair.b.export() / "folder"
    process, session = begin_into(pair, source, folder)
    run(["mount", "-t", "tmpfs", "-o", "size=1M", "sluice-test", folder])
    try:
        is_paused_for(process, session, folder / source.name, f"beneath what was mounted over {folder}")
    finally:
        run(["umount", folder])
    succeeds_when_continued(pair, session, source, folder / source.name)
    folder.rmdir()


@pytest.mark.skipif(not is_root(), reason="mounting needs root")
def test_what_is_mounted_over_an_export_is_not_passed_by(pair, source):
    export = pair.b.export()
    run(["mount", "-t", "tmpfs", "-o", "size=1M", "sluice-test", export])
    try:
        refused(pair.a.sluice("send", source, "b:data/"), STORAGE, f"export data: {export}", "restart sluice-control")
        refused(pair.a.sluice("get", "b:data/file", pair.a.export() / "x"), STORAGE, f"export data: {export}")
        refused(pair.b.sluice("send", export / "file", "a:data/"), STORAGE, f"export data: {export}")
    finally:
        run(["umount", export])
    forget(push(pair, source))


def test_an_export_whose_directory_was_replaced_is_not_used_before_it_is_back(pair, source):
    export, away = pair.b.export(), pair.b.export().with_name("away")
    process, session = start_slow(pair.a, "send", source, "b:data/")
    export.rename(away)
    export.mkdir()
    is_paused_for(process, session, export / source.name, f"in {away}")
    refused(pair.a.sluice("send", source, "b:data/other"), STORAGE, f"export data: {export}")
    assert not list(export.iterdir())
    export.rmdir()
    away.rename(export)
    succeeds_when_continued(pair, session, source, export / source.name)


def test_a_restart_takes_the_directory_that_is_there_then(pair, source):
    export, away = pair.b.export(), pair.b.export().with_name("away")
    process, session = start_slow(pair.a, "send", source, "b:data/")
    export.rename(away)
    export.mkdir()
    is_paused_for(process, session, f"in {away}")
    pair.b.control.stop()
    pair.b.start_control()
    wait_state(pair.b, session, "waiting", "paused", "queued", "transferring")
    succeeds_when_continued(pair, session, source, export / source.name)
    for path in away.iterdir():
        path.unlink()  # what could not be found any more
    away.rmdir()
