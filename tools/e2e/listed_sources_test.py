# Sources whose files differ, and a list of digests (`get --from ... --manifest LIST`): the source that has what the list
# wants is believed, and the others are named and done without.
# SPDX-License-Identifier: Apache-2.0
import hashlib
import json
import shutil

import pytest
from harness import group_missing, wait_until
from harness.system import random_file, same_bytes
from sources import ALL, SOURCES, home_and_sources
from transfers import INTEGRITY, MIB, USAGE, as_before, last_session, refused

_reason = group_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

@pytest.fixture(scope="module")
def group():
    with home_and_sources() as nodes:
        yield nodes


@pytest.fixture
def home(group):
    yield group["home"]
    as_before(group)


def damage(path, offsets):
    with open(path, "r+b") as file:
        for offset in offsets:
            file.seek(offset)
            byte = file.read(1)
            file.seek(offset)
            file.write(bytes([byte[0] ^ 1]))


def replicas(group, name, size, damaged):
    """The same bytes at each source, but for `damaged`: a source, and at which offsets. The path of the right one."""
    first = random_file(group["home"].directory / name.replace("/", "-"), size, seed=size)
    for source in SOURCES:
        to = group[source].export() / name
        to.parent.mkdir(exist_ok=True)
        shutil.copy(first, to)
        damage(to, damaged.get(source, []))
    return first


def sums(home, *files):
    listed = home.directory / "sums.sha256"
    listed.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n" for name, path in files))
    return listed


def without(session):
    return {leg["peer"]: leg["error"] for leg in session["legs"] if leg["error"]}


# In an extent that is compared before a second source sends of the file; in extents of which at least one is not.
PLACES = {"compared": [5], "not compared": [extent * MIB + 77 for extent in range(1, 23, 2)]}


@pytest.mark.parametrize("liar", ["alpha", "gamma"])
@pytest.mark.parametrize("where", PLACES)
def test_the_source_that_the_list_contradicts_is_done_without(group, home, liar, where):
    source = replicas(group, "file", 24 * MIB + 1, {liar: PLACES[where]})
    target = home.export() / "got"
    listed = sums(home, ("file", source))
    result = home.sluice("get", "--from", ALL, "data/file", target, "--manifest", listed)
    assert result.returncode == 0, result.stderr
    assert same_bytes(source, target)
    session = last_session(home)
    told = without(session)
    if where == "compared":
        assert set(told) == {liar}
    assert set(told) <= {liar}, told
    if not told:
        return  # the others brought all that is damaged there
    assert "its file differs from the list" in told[liar]
    said = json.loads(json.loads(home.must("receipt", session["id"]).stdout)["statement"])["peers"]
    assert {each["name"] for each in said if "done_without" in each} == {liar}
    assert f"done without: {told[liar]}" in home.must("session", "show", session["id"]).stdout
    wait_until(lambda: last_session(group[liar])["state"] == "failed", 30, "it knows")
    home.control.kill()
    home.start_control()
    assert without(home.json("session", "show", session["id"])[1]) == told, "also after a restart"


def test_two_sources_that_differ_need_no_third(group, home):
    source = replicas(group, "file", 24 * MIB + 2, {"alpha": [extent * MIB + 9 for extent in range(24)]})
    target = home.export() / "got"
    result = home.sluice("get", "--from", "alpha,beta", "data/file", target, "--manifest", sums(home, ("file", source)))
    assert result.returncode == 0, result.stderr
    assert same_bytes(source, target)
    assert set(without(last_session(home))) == {"alpha"}


def test_the_list_outvotes_two_that_agree(group, home):
    source = replicas(group, "file", 12 * MIB + 3, {name: [MIB + 9, 11 * MIB] for name in ("alpha", "beta")})
    target = home.export() / "got"
    result = home.sluice("get", "--from", ALL, "data/file", target, "--manifest", sums(home, ("file", source)))
    assert result.returncode == 0, result.stderr
    assert same_bytes(source, target)
    assert set(without(last_session(home))) == {"alpha", "beta"}


def test_where_no_source_has_what_the_list_wants_nothing_is_stored(group, home):
    source = replicas(group, "file", 12 * MIB + 4, {name: [place * MIB] for place, name in enumerate(SOURCES)})
    target = home.export() / "got"
    result = home.sluice("get", "--from", ALL, "data/file", target, "--manifest", sums(home, ("file", source)))
    refused(result, INTEGRITY, "differs from the list")
    assert not target.exists()


def test_a_file_that_the_list_does_not_name_is_not_settled_by_it(group, home):
    source = replicas(group, "file", 12 * MIB + 5, {"gamma": [0]})
    listed = sums(home, ("another", source))
    result = home.sluice("get", "--from", ALL, "data/file", home.export() / "got", "--manifest", listed)
    refused(result, INTEGRITY, "gamma")


def test_several_files_of_a_directory(group, home):
    names = [f"many/{number}" for number in range(6)]
    rotten = [extent * MIB + 5 for extent in range(1, 7, 2)]
    sources = [(name, replicas(group, name, 8 * MIB + number, {"beta": rotten})) for number, name in enumerate(names)]
    listed = sums(home, *sources)
    result = home.sluice("get", "--from", ALL, "data/many", home.export() / "in/", "--mkdir", "--manifest", listed)
    assert result.returncode == 0, result.stderr
    for name, source in sources:
        assert same_bytes(source, home.export() / "in" / name)
    assert set(without(last_session(home))) <= {"beta"}


def test_a_receipt_of_an_earlier_session_is_a_list(group, home):
    source = replicas(group, "file", 12 * MIB + 6, {"gamma": [MIB * extent for extent in range(12)]})
    target = home.export() / "got"
    home.must("get", "alpha:data/file", target)
    receipt = home.directory / "receipt.json"
    for signer in (home, group["alpha"]):
        receipt.write_text(signer.must("receipt", last_session(signer)["id"]).stdout)
        target.unlink()
        result = home.sluice("get", "--from", ALL, "data/file", target, "--manifest", receipt)
        assert result.returncode == 0, result.stderr
        assert same_bytes(source, target)
        assert set(without(last_session(home))) <= {"gamma"}
    target.unlink()
    damage(group["alpha"].export() / "file", [3])
    refused(home.sluice("get", "alpha:data/file", target, "--manifest", receipt), INTEGRITY, "differs from the list")
    assert not target.exists()
    receipt.write_text(receipt.read_text().replace("12582918", "12582919"))
    refused(home.sluice("get", "alpha:data/file", target, "--manifest", receipt), INTEGRITY, "--manifest")
    receipt.write_text("{}")
    refused(home.sluice("get", "alpha:data/file", target, "--manifest", receipt), USAGE, "receipt")
