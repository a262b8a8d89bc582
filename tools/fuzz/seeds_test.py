# Inputs of a fuzzer as files, and as lines of one file.
# SPDX-License-Identifier: Apache-2.0
import hashlib

import pytest
import seeds


def test_what_is_kept_is_unpacked_as_it_was(tmp_path):
    corpus, out = tmp_path / "corpus", tmp_path / "out"
    inputs = {"found-what": b"a\n", "nothing": b"", hashlib.sha1(b"\x00\xff").hexdigest(): b"\x00\xff"}
    for names in (("found-what", "nothing"), tuple(inputs)):  # the second time onto what is there
        (corpus / "thing").mkdir(parents=True)
        for name in names:
            (corpus / "thing" / name).write_bytes(inputs[name])
        assert seeds.keep(corpus) == ["thing"]
        assert [path.name for path in corpus.iterdir()] == ["thing.seeds"]
    assert seeds.file_of(corpus, "thing").read_text().splitlines()[1:] == ["- 00ff", "found-what 610a", "nothing"]
    (corpus / "thing").mkdir()
    (corpus / "thing/new").write_bytes(b"n")
    seeds.unpack(corpus, "thing", out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == inputs | {"new": b"n"}


@pytest.mark.parametrize("name", ["with space", "-", "#"])
def test_a_name_that_is_none_is_refused_and_nothing_lost(tmp_path, name):
    (tmp_path / "thing").mkdir()
    (tmp_path / "thing" / name).write_bytes(b"x")
    with pytest.raises(ValueError, match="a name has no white space"):
        seeds.keep(tmp_path)
    assert (tmp_path / "thing" / name).exists()
