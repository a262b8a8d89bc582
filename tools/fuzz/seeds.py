# The committed inputs of a fuzzer: NAME.seeds in tools/fuzz/corpus, one line each, its name and its bytes in hex.
#
# "-" is the name of those that libFuzzer named, by their SHA-1. tools/fuzz/replay_main.cc reads the same.
# SPDX-License-Identifier: Apache-2.0
import hashlib
import shutil

_HEAD = "# Inputs of {name}_fuzz: name, bytes in hex. Put files into a folder {name} beside this, then: ./dev fuzz keep"


def file_of(corpus, name):
    return corpus / f"{name}.seeds"


def _digest(data):
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def read(corpus, name):
    """{name: bytes}; none where there is no such file."""
    seeds = {}
    file = file_of(corpus, name)
    for line in file.read_text().splitlines() if file.exists() else ():
        if line.startswith("#"):
            continue
        word, _, digits = line.partition(" ")
        data = bytes.fromhex(digits)
        seeds[_digest(data) if word == "-" else word] = data
    return seeds


def write(corpus, name, seeds):
    lines = sorted(f"{'-' if word == _digest(data) else word} {data.hex()}".rstrip() for word, data in seeds.items())
    file_of(corpus, name).write_text("\n".join([_HEAD.format(name=name), *lines, ""]))


def keep(corpus):
    """Every folder of the corpus goes into the file of its name; those names."""
    kept = []
    for folder in sorted(path for path in corpus.iterdir() if path.is_dir()):
        new = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        for word in new:
            if word != "".join(word.split()) or word.startswith(("#", "-")):
                raise ValueError(f"{folder / word}: a name has no white space, and begins with neither # nor -")
        write(corpus, folder.name, read(corpus, folder.name) | new)
        shutil.rmtree(folder)
        kept.append(folder.name)
    return kept


def unpack(corpus, name, folder):
    """All inputs of a fuzzer as files; the folder is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for word, data in read(corpus, name).items():
        (folder / word).write_bytes(data)
    for path in (corpus / name).iterdir() if (corpus / name).is_dir() else ():
        shutil.copyfile(path, folder / path.name)
