# What of a tree is sent: rules, lists of names, and what would be sent. rsync says what is right.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import random
import shutil
import subprocess

import pytest
from harness import wait_until
from transfers import MIB, USAGE, begin, last_session, nothing_temporary, temporary_files, wait_state
from trees import forget_tree, make_tree, names_beneath, same, state_of

PARTIAL = 21

if shutil.which("rsync") is None:
    pytest.skip("needs rsync", allow_module_level=True)


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30, in_memory=True, settings={"control": {"sessions_max": 1}})


@pytest.fixture
def places(pair):
    """A tree at either node, and an empty directory at each where it may arrive; of names that rules meet."""
    draw = random.Random(7)
    tree = pair.a.export() / "tree"
    tree.mkdir()
    directories = [tree]
    for i in range(150):
        path = draw.choice(directories) / draw.choice(["a", "b", "c*", "x.tmp", "y.txt", "[z]", "\\w", f"n{i % 5}", "é"])
        if os.path.lexists(path):
            continue
        if draw.random() < 0.4:
            path.mkdir()
            directories.append(path)
        elif draw.random() < 0.1:
            os.symlink(draw.choice(["a", "/nowhere"]), path)
        else:
            path.write_bytes(draw.randbytes(draw.choice([0, 1, 5000])))
    (tree / "large.tmp").write_bytes(draw.randbytes((1 << 20) + 1))
    (tree / "large.txt").write_bytes(draw.randbytes((1 << 20) + 1))
    for i, path in enumerate([*tree.rglob("*"), tree]):
        os.utime(path, ns=(1, 10**18 + i), follow_symlinks=False)
    theirs = pair.b.export() / "tree"
    subprocess.run(["rsync", "-aH", f"{tree}/", f"{theirs}/"], check=True)
    for export in (pair.a.export(), pair.b.export()):
        (export / "into").mkdir()
    by_rsync = pair.base / "by-rsync"  # of the same file system, which keeps the same times
    yield tree, theirs, by_rsync
    forget_tree(by_rsync)
    for export in (pair.a.export(), pair.b.export()):
        for name in ("tree", "into"):
            forget_tree(export / name)
    for node in pair.nodes:
        assert not list(temporary_files(node))


def emptied(place):
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    return place


def arrives_as_by_rsync(pair, places, options, source="", partial=False, **run):
    """Sent, fetched and previewed with these options, the tree is what rsync makes of it. source: behind its name."""
    tree, theirs, wanted = places
    subprocess.run(["rsync", "-aH", *options, f"{tree}{source}", f"{emptied(wanted)}/"], check=not partial,
                   stderr=subprocess.DEVNULL, **run)  # fmt: skip
    expected = state_of(wanted)
    into, back = pair.b.export() / "into", pair.a.export() / "into"
    commands = [("send", f"{tree}{source}", "b:data/into/"), ("get", f"b:data/tree{source}", f"{back}/")]
    for (command, *paths), place in zip(commands, (into, back)):
        emptied(place)
        previewed = pair.a.sluice(command, "-n", "--json", *options, *paths)
        assert not state_of(place), "a preview"
        result = pair.a.sluice(command, *options, *paths)
        if not expected and not partial:
            assert (result.returncode, previewed.returncode) == (USAGE, USAGE), result.stderr
            assert "leave nothing" in result.stderr and "leave nothing" in previewed.stderr
            continue
        assert result.returncode == previewed.returncode == (PARTIAL if partial else 0), result.stderr + previewed.stderr
        same(wanted, place)
        names = {entry["path"] for entry in json.loads(previewed.stdout)["entries"]}
        assert names == {os.fsdecode(path) for path in expected}


@pytest.mark.parametrize("rules", [
    ["--exclude", "*.tmp"],
    ["--include", "*/", "--include", "*.txt", "--exclude", "*"],
    ["--exclude", "a/"],
    ["--exclude", "/a"],
    ["--exclude", "/tree/a"],
    ["--exclude", "tree"],
    ["--exclude", "b", "--include", "b/***"],
    ["--include", "b/***", "--exclude", "b", "--include", "*/", "--exclude", "*.t*"],
    ["--exclude", "c[*]", "--exclude", "\\w", "--exclude", "[[]z]"],
    ["--exclude", "**/n?/**"],
    ["--exclude=-x", "--exclude", "é"],
])  # fmt: skip
@pytest.mark.parametrize("source", ["", "/"])
def test_what_rules_leave_is_what_rsync_takes(pair, places, rules, source):
    arrives_as_by_rsync(pair, places, rules, source)


def test_rules_by_chance(pair, places):
    draw = random.Random(11)
    parts = ["a", "b", "*", "**", "?", "n[0-2]", "*.txt", "x.*", "tree", "[!a]"]
    for _ in range(6):
        rules = []
        for _ in range(draw.randrange(1, 5)):
            pattern = draw.choice(["", "/", "**/"]) + "/".join(draw.choices(parts, k=draw.randrange(1, 3)))
            rules += [draw.choice(["--include", "--exclude", "--exclude"]), pattern + draw.choice(["", "", "/", "/***"])]
        arrives_as_by_rsync(pair, places, rules, draw.choice(["", "/"]))


def test_plain_files_are_judged_too(pair, places):
    tree, _, _ = places
    pair.a.must("send", tree / "large.tmp", tree / "large.txt", "b:data/into/", "--exclude", "*.tmp")
    pair.a.must("get", "b:data/tree/large.tmp", "b:data/tree/large.txt", pair.a.export() / "into", "--exclude", "*.tmp")
    for node in pair.nodes:
        assert [path.name for path in (node.export() / "into").iterdir()] == ["large.txt"]


def test_what_is_left_out_by_rules_is_no_failure(pair, places):
    tree, _, _ = places
    os.mkfifo(tree / "pipe")
    pair.a.must("send", f"{tree}/", "b:data/into/", "--exclude", "pipe")
    names = last_session(pair.b)["names"]
    assert names["failed"] == names["left_out"] == 0 and names["done"] == names["total"]


def listed(places):
    tree, _, _ = places
    draw = random.Random(5)
    paths = sorted(str(path.relative_to(tree)) + ("/" if path.is_dir() and not path.is_symlink() and draw.random() < 0.5 else "")
                   for path in tree.rglob("*"))  # fmt: skip
    return draw.sample(paths, len(paths) // 3)


@pytest.mark.parametrize("rules", [[], ["--exclude", "*.tmp", "--exclude", "b", "--exclude", "a/"]])
@pytest.mark.parametrize("zero", [False, True])
def test_a_list_brings_what_it_brings_by_rsync(pair, places, tmp_path, rules, zero):
    file = tmp_path / "list"
    end = "\0" if zero else "\n"
    file.write_text(end.join(["./large.txt", "/large.tmp", *listed(places)]) + end)
    arrives_as_by_rsync(pair, places, [*rules, "--files-from", str(file), *(["-0"] if zero else [])], "/")


@pytest.mark.parametrize("text", ["a\n", "a/\n", "a/.\n", ".\n", "# none\n;\n\r\nlarge.txt\r\n"])
def test_lists_of_one_name(pair, places, tmp_path, text):
    (tmp_path / "list").write_text(text)
    arrives_as_by_rsync(pair, places, ["--files-from", str(tmp_path / "list")])


def test_what_is_listed_and_not_there_is_told_and_all_else_arrives(pair, places, tmp_path):
    (tmp_path / "list").write_text("large.txt\nno/such\nlarge.tmp/of-a-file\nlarge.tmp\n")
    arrives_as_by_rsync(pair, places, ["--files-from", str(tmp_path / "list")], partial=True)
    for node in pair.nodes:
        missing = last_session(node)["names"]["missing"]
        assert all(each["reason"].startswith("was not there when it was to be read") for each in missing), "it never was"
        assert [each["path"] for each in missing] == ["large.tmp/of-a-file", "no/such"]


def test_a_list_from_stdin(pair, places):
    tree, _, _ = places
    result = pair.a.sluice("send", "--files-from", "-", tree, "b:data/into", stdin="large.txt\n")
    assert result.returncode == 0, result.stderr
    assert [path.name for path in (pair.b.export() / "into").iterdir()] == ["large.txt"]


@pytest.mark.parametrize(("text", "said"), [
    ("../etc/passwd\n", "name 1: ../etc/passwd: leads out of the directory"),
    ("a\nb/./c\n", "name 2: b/./c: has /./ in it"),
    ("", "the list names nothing"),
])  # fmt: skip
def test_a_list_that_cannot_be_is_refused(pair, places, tmp_path, text, said):
    tree, _, _ = places
    (tmp_path / "list").write_text(text)
    result = pair.a.sluice("send", "--files-from", tmp_path / "list", tree, "b:data/into/")
    assert result.returncode == USAGE and said in result.stderr, result.stderr
    result = pair.a.sluice("send", "--files-from", tmp_path / "none", tree, "b:data/into/")
    assert result.returncode == USAGE and "cannot be read" in result.stderr, result.stderr


def test_a_list_is_of_one_directory(pair, places, tmp_path):
    tree, _, _ = places
    (tmp_path / "list").write_text("a\n")
    for command in (["send", tree, tree / "a", "b:data/into/"], ["send", tree / "large.txt", "b:data/into/"],
                    ["get", "b:data/tree", "b:data/into", pair.a.export()]):  # fmt: skip
        result = pair.a.sluice(command[0], "--files-from", tmp_path / "list", *command[1:])
        assert result.returncode == USAGE, result.stderr
        assert "of one" in result.stderr


def test_a_preview_tells_what_would_be_missing(pair, places):
    tree, _, _ = places
    os.mkfifo(tree / "pipe")
    result = pair.a.sluice("send", "-n", tree, "b:data/into/")
    assert result.returncode == 0, result.stderr
    assert "tree/large.txt\n" in result.stdout and "tree/a/\n" in result.stdout
    assert "would be missing: tree/pipe: is a device, a pipe or a socket" in result.stderr
    assert "1 would be left out" in result.stderr
    assert not list((pair.b.export() / "into").iterdir())


def test_a_run_file_selects_in_the_order_of_its_lines(pair, places, tmp_path):
    tree, theirs, _ = places
    (tmp_path / "f.toml").write_text(f"""
[[send]]
sources = "{tree}/"
to = "b:data/into/"
include = ["*/", "*.txt"]
exclude = "*"
[[get]]
sources = "b:data/tree/"
to = "{pair.a.export()}/into/"
filter = ["+ */", "+ *.txt", "- *"]
""")
    pair.a.must("run", tmp_path / "f.toml")
    for node in pair.nodes:
        arrived = [path for path in (node.export() / "into").rglob("*") if not path.is_dir()]
        assert {path.suffix for path in arrived} == {".txt"}


@pytest.mark.parametrize("command", ["send", "get"])
@pytest.mark.parametrize("side", [0, 1])
def test_control_that_starts_again_goes_on_with_the_same_selection(pair, command, side):
    source, target = (pair.a, pair.b) if command == "send" else (pair.b, pair.a)
    root = source.export() / "tree"
    make_tree(root, files=3000, seed=side, large=3)
    options = ["--exclude", "e3", "--include", "*[02468]", "--exclude", "f*", "--rate", "200M", "--detach"]
    if command == "send":
        pair.a.must("send", root, "b:data/", *options)
    else:
        pair.a.must("get", "b:data/tree", f"{pair.a.export()}/", *options)
    arrived = target.export() / "tree"
    for _ in range(2):
        known = names_beneath(arrived)
        wait_until(lambda known=known: names_beneath(arrived) > known, 60, "more names")
        pair.nodes[side].control.kill()
        pair.nodes[side].start_control()
    wait_until(lambda: last_session(pair.a)["state"] == "succeeded", 120, "the end of the session")
    wanted = pair.base / "wanted"  # of the same file system, which keeps the same times
    subprocess.run(["rsync", "-aH", *options[:6], f"{root}/", f"{wanted}/"], check=True)
    same(wanted, arrived)
    nothing_temporary(*pair.nodes)
    for place in (root, arrived, wanted):
        shutil.rmtree(place)


@pytest.mark.parametrize("options", [["--exclude", "*.tmp"], ["--files-from", "LIST"]])
def test_what_waits_for_its_turn_knows_its_selection_after_a_restart(pair, places, tmp_path, options):
    """Nothing was opened yet: it is in the journal."""
    tree, _, _ = places
    (tmp_path / "list").write_text("large.txt\n")
    options = [str(tmp_path / "list") if option == "LIST" else option for option in options]
    slow = begin(pair.a, "send", f"memory:{64 * MIB}", "b:null:", "--rate", "2M")
    sessions = [begin(pair.a, "send", f"{tree}/", "b:data/into/", *options),
                begin(pair.a, "get", "b:data/tree/", f"{pair.a.export()}/into/", *options)]  # fmt: skip
    for session in sessions:
        wait_state(pair.a, session, "queued")
    pair.a.control.kill()
    pair.a.start_control()
    pair.a.must("session", "cancel", slow)
    for session in sessions:
        wait_state(pair.a, session, "succeeded")
    for node in pair.nodes:
        arrived = {path.name for path in (node.export() / "into").rglob("*")}
        assert "large.txt" in arrived and "large.tmp" not in arrived


def test_rules_that_cannot_be_are_refused(pair, places):
    tree, _, _ = places
    for rule, said in (("", "the value is empty"), ("x" * 4097, "at most 4096")):
        result = pair.a.sluice("send", tree, "b:data/into/", "--exclude", rule)
        assert result.returncode == USAGE and said in result.stderr, result.stderr
    result = pair.a.sluice("send", tree, "b:data/into/", "--filter", "! x")
    assert result.returncode == USAGE and "+ PATTERN" in result.stderr, result.stderr
