# `sluice verify --against` and `--write-manifest`, beside the programs whose lists they are: coreutils, and bags and
# hashdeep's files made by hand. No node runs.
# SPDX-License-Identifier: Apache-2.0
import hashlib
import json
import os
import signal
import subprocess

import pytest
from harness import find_binaries, wait_until
from transfers import CANCELLED, EXISTS, INTEGRITY, SOURCE, USAGE

FILES = {b"plain": b"abc", b"sub/with space": b"x" * 3_000_000, b"sub/deep/new\nline": b"", b"back\\slash": b"1",
         b"\xff\xfe": b"2", b"*star": b"3"}  # fmt: skip


def sluice(*words, **options):
    return subprocess.run([find_binaries() / "sluice", "verify", *words], capture_output=True, timeout=240, **options)


def said(*words):
    """The exit code, and what --json says."""
    ended = sluice(*words, "--json")
    return ended.returncode, json.loads(ended.stdout), ended.stderr.decode()


def problems(report):
    return [(one["problem"], one["name"]) for one in report["problems"]]


@pytest.fixture
def tree(tmp_path):
    top = tmp_path / "tree"
    for name, content in FILES.items():
        path = os.path.join(os.fsencode(top), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
    return top


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def listed(tree, *command):
    """What such a program writes of the whole tree."""
    found = subprocess.run(["find", ".", "-type", "f", "-print0"], cwd=tree, capture_output=True, check=True).stdout
    return subprocess.run(["xargs", "-0", *command], cwd=tree, input=found, capture_output=True, check=True).stdout


@pytest.mark.parametrize("command", [("sha256sum",), ("md5sum", "--binary"), ("sha512sum", "--tag"), ("sha1sum",)])
def test_a_list_of_coreutils(tree, tmp_path, command):
    sums = tmp_path / "sums"
    sums.write_bytes(listed(tree, *command))
    code, report, _ = said(tree, "--against", sums, "--extra")
    assert (code, report["good"], report["problems"]) == (0, len(FILES), [])
    with open(tree / "sub/with space", "r+b") as file:
        file.seek(2_999_999)
        file.write(b"y")
    (tree / "plain").unlink()
    (tree / "more").touch()
    code, report, error = said(tree, "--against", sums, "--extra", "--jobs", "2")
    assert code == INTEGRITY and "RUNBOOK" in error
    assert sorted(problems(report)) == [("differs", "./sub/with space"), ("extra", "more"), ("missing", "./plain")]
    assert report["good"] == len(FILES) - 2


def test_names_that_begin_above_the_directory_are_told(tree, tmp_path):
    sums = tmp_path / "sums"
    with open(sums, "wb") as file:
        subprocess.run(["sha256sum", f"{tree.name}/plain"], cwd=tree.parent, stdout=file, check=True)
    code, _, error = said(tree, "--against", sums)
    assert code == INTEGRITY and "--strip-prefix" in error
    assert said(tree, "--against", sums, "--strip-prefix", tree.name)[0] == 0


def test_coreutils_read_what_was_written(tree, tmp_path):
    for digest, program in (("sha256", "sha256sum"), ("md5", "md5sum")):
        assert sluice(tree, "--write-manifest", tmp_path / digest, "--digest", digest).returncode == 0
        checked = subprocess.run([program, "--check", "--strict", "--quiet", tmp_path / digest], cwd=tree)
        assert checked.returncode == 0
    assert sluice(tree, "--write-manifest", tmp_path / "md5").returncode == EXISTS
    both = tmp_path / "both"
    assert sluice(tree, "--write-manifest", both, "--digest", "blake3,crc32c", "--overwrite").returncode == 0
    assert b"BLAKE3 (plain) = 6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85\n" in both.read_bytes()
    assert said(tree, "--against", both)[1]["good"] == len(FILES)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_bag(tmp_path):
    bag = tmp_path / "bag"
    (bag / "data").mkdir(parents=True)
    (bag / "bagit.txt").write_text("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
    (bag / "data/odd\nname%").write_bytes(b"abc")
    manifest = bag / "manifest-sha512.txt"
    manifest.write_text(f"{hashlib.sha512(b'abc').hexdigest()}  data/odd%0Aname%25\n")
    assert said(bag, "--against", manifest, "--extra")[:2][0] == 0
    (bag / "data/not-listed").touch()
    code, report, _ = said(bag, "--against", manifest, "--extra")
    assert (code, problems(report)) == (INTEGRITY, [("extra", "data/not-listed")])


def test_hashdeep_elsewhere_and_one_file(tree, tmp_path):
    audit = tmp_path / "audit"
    lines = ["%%%% HASHDEEP-1.0", "%%%% size,md5,sha256,filename", "## Invoked from: /old", "##"]
    for name, content in ((b"plain", b"abc"), (b"*star", b"3")):
        lines.append(f"{len(content)},{hashlib.md5(content).hexdigest()},{hashlib.sha256(content).hexdigest()},/old/{name.decode()}")
    audit.write_text("\n".join(lines) + "\n")
    assert said(tree, "--against", audit)[1]["refused"] == 2
    assert said(tree, "--against", audit, "--strip-prefix", "/old")[1]["good"] == 2
    code, report, _ = said(tree / "plain", "--against", audit, "--strip-prefix", "/old")
    assert (code, report["good"]) == (0, 1)
    piped = sluice(tree, "--against", "-", "--strip-prefix", "/old", stdin=audit.open())
    assert piped.returncode == 0 and b"2 files good" in piped.stdout


def test_a_list_leads_nowhere_else(tree, tmp_path):
    (tmp_path / "secret").write_bytes(b"abc")
    (tree / "link").symlink_to("../secret")
    os.mkfifo(tree / "pipe")
    names = ["../secret", str(tmp_path / "secret"), "link", "pipe", "sub/../plain"]
    sums = tmp_path / "sums"
    sums.write_text("".join(f"{hashlib.md5(b'abc').hexdigest()}  {name}\n" for name in names))
    code, report, _ = said(tree, "--against", sums)
    assert (code, problems(report), report["bytes_read"]) == (INTEGRITY, [("refused", name) for name in names], 0)


def test_interrupted_and_resumed(tree, tmp_path, state):
    big = tree / "sub/with space"
    os.truncate(big, 1 << 42)  # holes: no end of it is near
    sums = tmp_path / "sums"
    sums.write_text(f"{hashlib.sha256(b'abc').hexdigest()}  plain\n{hashlib.sha256(b'small').hexdigest()}  sub/with space\n")
    words = [tree, "--against", sums, "--resume", state, "--jobs", "2"]
    running = subprocess.Popen([find_binaries() / "sluice", "verify", *words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    wait_until(lambda: state.exists() and state.read_text().count("\n") == 2, 60, "the first file is kept as good")
    assert sluice(*words).returncode == EXISTS, "one check at a time"
    running.send_signal(signal.SIGINT)
    _, error = running.communicate(timeout=60)
    assert running.returncode == CANCELLED and b"resumes" in error
    big.write_bytes(b"small")
    code, report, _ = said(*words)
    assert (code, report["good"], report["good_before"], report["bytes_read"]) == (0, 2, 1, len(b"small"))
    assert not state.exists()


def test_what_is_wrong_with_the_question(tree, tmp_path):
    sums = tmp_path / "sums"
    sums.write_text("hello\n")
    for words, code in (([tree, "--against", sums], USAGE), ([tree, "--against", tmp_path / "none"], USAGE),
                        ([tmp_path / "none", "--against", sums], SOURCE), ([tree, "--extra"], USAGE),
                        ([tree, "--write-manifest", sums, "--digest", "sha3"], USAGE),
                        ([tree, "--against", sums, "--write-manifest", sums], USAGE)):  # fmt: skip
        ended = sluice(*words)
        assert ended.returncode == code and ended.stderr.startswith(b"sluice: "), ended
        assert ended.stderr.count(b"\n") == 1


def test_a_dash_is_the_standard_output_and_a_list_of_it_the_standard_input(tree, tmp_path):
    written = sluice(tree, "--write-manifest", "-", cwd=tmp_path)
    assert written.returncode == 0
    assert written.stdout.count(b"\n") == len(FILES), "the list alone"
    assert f"{len(FILES)} files".encode() in written.stderr
    assert not (tmp_path / "-").exists()
    checked = sluice(tree, "--against", "-", "--extra", input=written.stdout)
    assert checked.returncode == 0, checked.stderr
    refused = sluice(tree, "--write-manifest", "-", "--json")
    assert (refused.returncode, refused.stdout.count(b"sluice.error.v1")) == (USAGE, 1)
