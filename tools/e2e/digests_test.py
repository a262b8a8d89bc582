# Digests and lists of transfers: --digest, --manifest, --write-manifest; beside hashlib, coreutils, and what
# `sluice verify --write-manifest` reads at rest.
# SPDX-License-Identifier: Apache-2.0
import hashlib
import json
import os
import shutil
import subprocess
import zlib

import pytest
from harness import find_binaries, wait_until
from partings import begin_long
from transfers import (EXISTS, INTEGRITY, MIB, PARTIAL, STORAGE, USAGE, as_before, ended_session, finish, forget,
                       make_file, refused)  # fmt: skip

KINDS = ["adler32", "crc32c", "crc64", "blake3", "md5", "sha1", "sha256", "sha512"]
ALL = ",".join(KINDS)
JOINED = "blake3,adler32,crc32c,crc64"  # while data move: the destination reads nothing for them


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30, settings={"control": {"stall_timeout_s": 5, "sync_lag_ms": 100}})


@pytest.fixture(autouse=True)
def clean(pair):
    yield
    as_before(pair)


def at_rest(path, tmp_path, digests=ALL):
    """What `sluice verify` reads: name -> kind -> digits."""
    out = tmp_path / "at-rest"
    subprocess.run([find_binaries() / "sluice", "verify", path, "--write-manifest", out, "--digest", digests, "--overwrite",
                    "--manifest-format", "tag"], check=True, capture_output=True)  # fmt: skip
    found = {}
    for line in out.read_text().splitlines():
        kind, _, rest = line.partition(" (")
        name, _, digits = rest.rpartition(") = ")
        found.setdefault(name, {})[kind.lower()] = digits
    return found


def sums(path):
    content = path.read_bytes()
    made = {kind: hashlib.new(kind, content).hexdigest() for kind in ("md5", "sha1", "sha256", "sha512")}
    return {**made, "adler32": f"{zlib.adler32(content):08x}"}


def told(node, session):
    """As JSON of `session show` has it: of each file that came by itself."""
    return [file["digests"] for file in node.json("session", "show", session)[1]["files"]]


def write_list(path, tree, program="sha256sum"):
    names = sorted(str(each.relative_to(tree)) for each in tree.rglob("*") if each.is_file() and not each.is_symlink())
    path.write_bytes(subprocess.run([program, *names], cwd=tree, check=True, capture_output=True).stdout)


def make_tree(folder, name="run"):
    """Large files, small ones, which travel in packs, odd names, an empty file, a link and a hard link."""
    top = folder / name
    (top / "sub/deep").mkdir(parents=True)
    for at in range(40):
        (top / f"sub/small{at}").write_bytes(os.urandom(at * 97))
    (top / "sub/deep/odd\nname").write_bytes(b"odd")
    (top / "large.bin").write_bytes(os.urandom(3 * MIB + 17))
    (top / "other.bin").write_bytes(os.urandom(2 * MIB))
    (top / "empty").touch()
    os.link(top / "large.bin", top / "sub/hard")
    (top / "link").symlink_to("large.bin")
    return top


# ---- digests -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("push_it", [True, False], ids=["send", "get"])
@pytest.mark.parametrize("size", [0, 5 * MIB + 321])
def test_each_kind_of_a_file(pair, tmp_path, push_it, size):
    source = make_file(pair.a if push_it else pair.b, size)
    target = (pair.b if push_it else pair.a).export() / "got.bin"
    words = ("send", source, "b:data/got.bin") if push_it else ("get", f"b:{source}", target)
    code, session, error = pair.a.json(*words, "--digest", ALL)
    assert code == 0, error
    (found,) = [file["digests"] for file in session["files"]]
    assert set(found) == set(KINDS)
    assert {kind: found[kind] for kind in sums(target)} == sums(target)
    assert at_rest(target, tmp_path) == {"got.bin": found}
    destination = pair.b if push_it else pair.a
    assert told(destination, session["id"]) == [found]
    assert size == 0 or session["digest_s"] > 0
    statement = json.loads(json.loads(pair.a.must("receipt", session["id"]).stdout)["statement"])
    assert statement["files"][0]["digests"] == found
    text = pair.a.must("session", "show", session["id"]).stdout
    assert all(f"{kind} {found[kind]}" in text for kind in KINDS)
    forget(source, target)


def test_the_kind_of_the_session_needs_no_pass(pair):
    source = make_file(pair.a, 4 * MIB)
    code, session, error = pair.a.json("send", source, "b:data/", "--digest", "crc64")
    assert code == 0, error
    (file,) = session["files"]
    assert file["digests"] == {"crc64": file["digest_destination"]} and session["digest_s"] == 0
    forget(source)


def joined_as_at_rest(pair, tmp_path, source, target, *options, to="b:data/"):
    """Sends it: nothing is read for its digests, and they are those of what stands there."""
    code, session, error = pair.a.json("send", source, to, "--digest", JOINED, *options)
    assert code == 0, error
    (found,) = [file["digests"] for file in session["files"]]
    assert at_rest(target, tmp_path, JOINED) == {target.name: found}
    assert session["digest_s"] == 0
    return session


@pytest.mark.parametrize("push_it", [True, False], ids=["send", "get"])
@pytest.mark.parametrize("size", [0, 1, 1024, 1025, MIB, 2 * MIB, 5 * MIB + 321, 40 * MIB + 1])
def test_those_that_are_joined_need_no_pass(pair, tmp_path, push_it, size):
    source = make_file(pair.a if push_it else pair.b, size)
    target = (pair.b if push_it else pair.a).export() / "got.bin"
    words = ("send", source, "b:data/got.bin") if push_it else ("get", f"b:{source}", target)
    code, session, error = pair.a.json(*words, "--digest", JOINED)
    assert code == 0, error
    (found,) = [file["digests"] for file in session["files"]]
    assert found["adler32"] == sums(target)["adler32"]
    assert at_rest(target, tmp_path, JOINED) == {"got.bin": found}
    assert session["digest_s"] == 0
    forget(source, target)


@pytest.mark.parametrize("options", [("--compress", "zstd"), ("--fec", "rs"), ("--protection", "aes-128-gcm"), ("--crc", "crc32c"), ("--lanes", "3")], ids=lambda words: words[0])
def test_joined_whatever_the_data_travel_as(pair, tmp_path, options):
    source = pair.a.export() / "text.txt"
    source.write_bytes(b"".join(b"line %d of many\n" % at for at in range(600_000)))
    joined_as_at_rest(pair, tmp_path, source, pair.b.export() / source.name, *options)
    forget(source, pair.b.export() / source.name)


def test_joined_of_a_sparse_file(pair, tmp_path):
    source, target = pair.a.export() / "sparse.bin", pair.b.export() / "sparse.bin"
    with open(source, "wb") as file:
        for at in (0, 17 * MIB + 5, 90 * MIB):
            file.seek(at)
            file.write(os.urandom(300_000))
        file.truncate(200 * MIB + 77)
    joined_as_at_rest(pair, tmp_path, source, target)
    assert target.stat().st_blocks * 512 < 100 * MIB, "its holes are holes"
    forget(source, target)


def test_joined_of_what_replaces_a_file(pair, tmp_path):
    source, target = make_file(pair.a, 3 * MIB + 5), pair.b.export() / "kept.bin"
    target.write_bytes(os.urandom(9 * MIB))
    joined_as_at_rest(pair, tmp_path, source, target, "--overwrite", to="b:data/kept.bin")
    forget(source, target)


def test_verified_files_are_read_for_all(pair, tmp_path):
    """From the disk: that finds what a sum of written bytes cannot."""
    source = make_file(pair.a, 3 * MIB)
    code, session, error = pair.a.json("send", source, "b:data/", "--digest", JOINED, "--verify")
    assert code == 0, error
    (found,) = [file["digests"] for file in session["files"]]
    assert at_rest(pair.b.export() / source.name, tmp_path, JOINED) == {source.name: found}
    assert session["digest_s"] > 0
    forget(source, pair.b.export() / source.name)


@pytest.mark.parametrize("push_it", [True, False], ids=["send", "get"])
def test_a_tree_and_the_list_of_it(pair, tmp_path, push_it):
    giver, taker = (pair.a, pair.b) if push_it else (pair.b, pair.a)
    tree = make_tree(giver.export())
    sums_file = tmp_path / "SHA256SUMS"
    words = ("send", tree, "b:data/") if push_it else ("get", f"b:{tree}", pair.a.export())
    pair.a.must(*words, "--write-manifest", sums_file)
    checked = subprocess.run(["sha256sum", "--check", "--strict", sums_file], cwd=taker.export(), capture_output=True)
    assert checked.returncode == 0, checked.stdout
    regular = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(checked.stdout.splitlines()) == len(regular) == 45
    refused(pair.a.sluice(*words, "--overwrite", "--write-manifest", sums_file, "--manifest-format", "nonsense"), USAGE, "nonsense")
    both = tmp_path / "both"
    pair.a.must(*words, "--overwrite", "--write-manifest", both, "--digest", "blake3,crc32c")
    assert subprocess.run([find_binaries() / "sluice", "verify", taker.export(), "--against", both]).returncode == 0
    assert both.read_bytes().count(b"BLAKE3 (") == 45


@pytest.mark.parametrize("push_it", [True, False], ids=["send", "get"])
def test_names_that_a_list_cannot_have(pair, tmp_path, push_it):
    giver, taker = (pair.a, pair.b) if push_it else (pair.b, pair.a)
    make_tree(giver.export())
    listed = tmp_path / "list"
    words = ("send", giver.export() / "run", "b:data/") if push_it else ("get", "b:data/run", f"{taker.export()}/")
    words += ("--digest", "sha256", "--write-manifest", listed, "--manifest-format", "hashdeep")
    if push_it:  # known before anything moves
        refused(pair.a.sluice(*words), USAGE, "name", "--manifest-format")
        assert not (taker.export() / "run").exists() and not listed.exists()
        pair.a.must(*words, "--exclude", "odd*")
        return
    code, said, err = pair.a.json(*words)
    assert code == said["error_code"] == PARTIAL and said["error_name"] == "partial" and said["state"] == "succeeded"
    assert said["write_manifest"]["left_out"] == ["run/sub/deep/odd?name"] and "not in the list" in err
    assert (taker.export() / "run/sub/deep/odd\nname").exists()
    checked = subprocess.run([find_binaries() / "sluice", "verify", taker.export(), "--against", listed, "--json"], capture_output=True)
    assert checked.returncode == 0 and json.loads(checked.stdout)["good"] == said["write_manifest"]["files"] == 44


@pytest.mark.parametrize("push_it", [True, False], ids=["send", "get"])
def test_a_bag_is_listed_as_at_rest_and_what_is_none_is_refused(pair, tmp_path, push_it):
    giver, taker = (pair.a, pair.b) if push_it else (pair.b, pair.a)
    bag = giver.export() / "bag"
    (bag / "data").mkdir(parents=True)
    (bag / "bagit.txt").write_text("BagIt-Version: 1.0\n")
    for name in (" lead", "*star", "ok", "100%", "odd\nname", "back\\slash"):
        (bag / "data" / name).write_text(name)

    def move(source, target, listed, *options):
        words = ("send", source, f"b:data/{target}") if push_it else ("get", f"b:{source}", taker.export() / target)
        return pair.a.sluice(*words, "--digest", "md5", *options, *listed)

    def written(name):
        return "--write-manifest", tmp_path / name, "--manifest-format", "bagit"

    assert move(bag, "copy", written("manifest-md5.txt")).returncode == 0
    listed = tmp_path / "manifest-md5.txt"
    at_rest_list = tmp_path / "at-rest/manifest-md5.txt"
    at_rest_list.parent.mkdir()
    subprocess.run([find_binaries() / "sluice", "verify", taker.export() / "copy", "--digest", "md5", "--write-manifest",
                    at_rest_list, "--manifest-format", "bagit"], check=True, capture_output=True)  # fmt: skip
    assert listed.read_bytes() == at_rest_list.read_bytes() and listed.read_bytes().count(b"  data/") == 6
    (taker.export() / "into").mkdir()
    again = move(bag, "into/", ("--manifest", listed))
    assert again.returncode == 0 and "6 good, 0 differ, 0 missing, 0 extra" in again.stderr, again.stderr
    # A list of another name cannot have all of these names; the files themselves make no bag.
    odd = move(bag, "odd", written("run.bagit"))
    none = move(bag / "data", "none", written("tagmanifest-md5.txt"))
    if push_it:
        refused(odd, USAGE, "RFC 8493")
        refused(none, USAGE, "no bag")
        assert not (taker.export() / "odd").exists() and not (taker.export() / "none").exists()
    else:
        assert odd.returncode == PARTIAL and odd.stderr.count("not in the list") == 2, odd.stderr
        assert none.returncode == PARTIAL and "no bag" in none.stderr, none.stderr
        assert (tmp_path / "run.bagit").read_bytes().count(b"  data/") == 4


# ---- a list that is there --------------------------------------------------------------------------------


@pytest.mark.parametrize("push_it", [True, False], ids=["send", "get"])
def test_what_a_list_wants_otherwise_keeps_what_stood_there(pair, tmp_path, push_it):
    giver, taker = (pair.a, pair.b) if push_it else (pair.b, pair.a)
    source, target = make_file(giver, 3 * MIB), taker.export() / "kept.bin"
    target.write_bytes(b"as before")
    listed = tmp_path / "list"
    words = ("send", source, "b:data/kept.bin") if push_it else ("get", f"b:{source}", target)
    listed.write_text(f"{hashlib.sha256(b'else').hexdigest()}  {source.name}\n")
    refused(pair.a.sluice(*words, "--overwrite", "--manifest", listed), INTEGRITY, "the list has", "kept.bin")
    assert target.read_bytes() == b"as before"
    write_list(listed, source.parent)
    lines = [line for line in listed.read_text().splitlines() if line.endswith(source.name)]
    listed.write_text("\n".join(lines) + "\n")
    done = pair.a.must(*words, "--overwrite", "--manifest", listed)
    assert "1 good, 0 differ, 0 missing, 0 extra" in done.stderr
    assert target.read_bytes() == source.read_bytes()
    forget(source, target)


@pytest.mark.parametrize("push_it", [True, False], ids=["send", "get"])
def test_a_tree_against_its_list(pair, tmp_path, push_it):
    giver, taker = (pair.a, pair.b) if push_it else (pair.b, pair.a)
    tree = make_tree(giver.export())
    listed = tmp_path / "list"
    write_list(listed, tree, "md5sum")
    words = ("send", tree, "b:data/") if push_it else ("get", f"b:{tree}", pair.a.export())
    code, session, error = pair.a.json(*words, "--manifest", listed)
    assert code == 0, error
    assert (session["manifest"]["good"], session["manifest"]["problems"]) == (45, [])
    shutil.rmtree(taker.export() / tree.name)

    # Two that are otherwise than the list has them, one that it has and the tree lacks, one that it lacks.
    (tree / "large.bin").write_bytes(b"x" * (3 * MIB))
    (tree / "sub/small7").write_bytes(b"y" * 12)
    (tree / "sub/small8").unlink()
    (tree / "new").write_bytes(b"z")
    there = taker.export() / tree.name
    (there / "sub").mkdir(parents=True)
    (there / "sub/small7").write_bytes(b"old")
    code, session, error = pair.a.json(*words, "--overwrite", "--manifest", listed)
    assert code == PARTIAL, error
    found = {(one["problem"], one["name"]) for one in session["manifest"]["problems"]}
    assert {("differs", "run/large.bin"), ("differs", "run/sub/small7"), ("missing", "sub/small8"), ("extra", "run/new")} <= found
    (linked,) = [one["reason"] for one in session["manifest"]["problems"] if one["name"] == "run/sub/hard"]
    assert "hard link to a file that did not arrive" in linked
    assert (there / "sub/small7").read_bytes() == b"old" and not (there / "large.bin").exists()
    assert (there / "sub/small9").read_bytes() == (tree / "sub/small9").read_bytes()


def test_a_name_that_does_not_come_is_no_success(pair, tmp_path):
    source = make_file(pair.a, MIB)
    listed = tmp_path / "list"
    digits = hashlib.sha256(source.read_bytes()).hexdigest()
    listed.write_text(f"{digits}  {source.name}\n{digits}  other\n")
    result = pair.a.sluice("send", source, "b:data/", "--manifest", listed)
    assert result.returncode == INTEGRITY and "other: missing" in result.stderr
    forget(source)


def test_lists_that_are_none_are_refused_at_once(pair, tmp_path):
    source = make_file(pair.a, 1000)
    listed = tmp_path / "list"
    listed.write_text("no list at all\n")
    words = ("send", source, "b:data/")
    refused(pair.a.sluice(*words, "--manifest", listed), USAGE, "list:1")
    refused(pair.a.sluice(*words, "--manifest", tmp_path / "none"), USAGE, "--manifest")
    refused(pair.a.sluice(*words, "--digest", "sha3"), USAGE, "sha3")
    refused(pair.a.sluice("send", source, "b:null:", "--digest", "md5"), USAGE, "null:")
    refused(pair.a.sluice(*words, "--write-manifest", listed), EXISTS, "list")
    refused(pair.a.sluice(*words, "--write-manifest", tmp_path / "none/list"), STORAGE, "none/list")
    refused(pair.a.sluice(*words, "--write-manifest", tmp_path), USAGE, "is a directory")
    refused(pair.a.sluice(*words, "--manifest", listed, "--detach"), USAGE, "--detach")
    assert list(pair.b.export().iterdir()) == []
    forget(source)


# ---- after an interruption ---------------------------------------------------------------------------------


@pytest.mark.parametrize("daemon", ["control", "dataplane"])
@pytest.mark.parametrize("victim", ["a", "b"])
def test_digests_after_a_daemon_was_killed(pair, tmp_path, victim, daemon):
    process, session, source, target = begin_long(pair, True, "--digest", "sha256,blake3")
    node = getattr(pair, victim)
    getattr(node, daemon).kill()
    if (victim, daemon) == ("a", "control"):
        finish(process)
    node.start_control() if daemon == "control" else node.start_dataplane()
    end = ended_session(pair.a, session)
    assert end["state"] == "succeeded", end["error"]
    wait_until(lambda: pair.b.json("session", "show", session)[1]["state"] == "succeeded", 30, "b knows its end")
    (found,) = at_rest(target, tmp_path, "sha256,blake3").values()
    for each in pair.nodes:
        assert told(each, session) == [found], each.name
    finish(process)
    forget(source, target)


@pytest.mark.parametrize("daemons", [("control",), ("dataplane",), ("control", "dataplane")], ids="+".join)
def test_joined_after_the_destination_was_killed(pair, tmp_path, daemons):
    """What was there is summed as its CRC is compared, and the rest as it comes: nothing is read for digests."""
    process, session, source, target = begin_long(pair, True, "--digest", JOINED)
    for daemon in daemons:
        getattr(pair.b, daemon).kill()
    if "dataplane" in daemons:
        pair.b.start_dataplane()
    if "control" in daemons:
        pair.b.start_control()
    end = ended_session(pair.a, session)
    assert end["state"] == "succeeded", end["error"]
    wait_until(lambda: pair.b.json("session", "show", session)[1]["state"] == "succeeded", 30, "b knows its end")
    (found,) = at_rest(target, tmp_path, JOINED).values()
    for each in pair.nodes:
        assert told(each, session) == [found], each.name
        assert each.json("session", "show", session)[1]["digest_s"] == 0
    finish(process)
    forget(source, target)


def test_a_control_killed_while_the_destination_reads(pair, tmp_path):
    """Whatever it was about: the digests are of what stands there."""
    source = make_file(pair.a, 96 * MIB)
    target = pair.b.export() / source.name
    process = pair.a.popen("send", source, "b:data/", "--digest", "md5,sha512")
    wait_until(lambda: pair.b.sessions() and pair.b.sessions()[-1]["bytes_done"] > 60 * MIB, 60, "most is there")
    pair.b.control.kill()
    pair.b.start_control()
    session = pair.b.sessions()[-1]["id"]
    end = ended_session(pair.a, session)
    assert end["state"] == "succeeded", end["error"]
    finish(process)
    (found,) = at_rest(target, tmp_path, "md5,sha512").values()
    assert told(pair.a, session) == [found]
    forget(source, target)
