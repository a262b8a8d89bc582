#!/usr/bin/python3
# `./dev fuzz`: builds the libFuzzer programs with clang, and runs one or all of them for some seconds.
#
# Begins with the committed corpus (read only) and goes on from what earlier runs found, which stays in
# build/fuzz. Exit 0 only when nothing was found; a finding's file is named, with the command to run it again.
# SPDX-License-Identifier: Apache-2.0
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import seeds

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/fuzz"
CORPUS = ROOT / "tools/fuzz/corpus"
_TARGET = re.compile(r"^\s*sluice_fuzz\((\w+)\s", re.MULTILINE)
# Beyond this one input counts as a hang, and that much memory as a leak without end.
_INPUT_SECONDS_MAX = 20
_MEMORY_MIB_MAX = 2048


def fail(message):
    print(f"dev: fuzz: {message}", file=sys.stderr)
    sys.exit(2)


def targets():
    text = (ROOT / "tools/fuzz/CMakeLists.txt").read_text()
    return [name for name in _TARGET.findall(text) if name != "NAME"]


def positive(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number above 0")
    return int(text)


def run_quietly(command, what):
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        fail(f"{what} failed:\n{result.stdout}")


def build(names):
    if not shutil.which("clang++"):
        fail("clang++ is not there; run ./dev deps")
    if not (BUILD / "build.ninja").exists():
        launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        run_quietly(["cmake", "--preset", "fuzz", *launcher], "cmake --preset fuzz")
    run_quietly(["cmake", "--build", "--preset", "fuzz", "--target", *[f"{n}_fuzz" for n in names]], "the build")


def stat(output, name):
    found = re.findall(rf"^stat::{name}:\s+(\d+)", output, re.MULTILINE)
    return int(found[-1]) if found else 0


def fuzz(name, seconds):
    """True when nothing was found."""
    working, found, committed = BUILD / "corpus" / name, BUILD / "found" / name, BUILD / "seeds" / name
    seeds.unpack(CORPUS, name, committed)
    for folder in (working, found):
        folder.mkdir(parents=True, exist_ok=True)
    program = BUILD / "bin" / f"{name}_fuzz"
    before = set(found.iterdir())
    command = [str(program), f"-max_total_time={seconds}", f"-timeout={_INPUT_SECONDS_MAX}",
               f"-rss_limit_mb={_MEMORY_MIB_MAX}", "-print_final_stats=1", "-verbosity=0",
               f"-artifact_prefix={found}/", str(working), str(committed)]  # fmt: skip
    # A small quarantine: some targets free megabytes with every input, and fresh pages are slow.
    environment = dict(os.environ, ASAN_OPTIONS="quarantine_size_mb=16", UBSAN_OPTIONS="print_stacktrace=1")
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env=environment, text=True, errors="replace")  # fmt: skip
    executions, rate = stat(result.stdout, "number_of_executed_units"), stat(result.stdout, "average_exec_per_sec")
    good = result.returncode == 0
    print(f"{name}: {executions} executions, {rate} a second: {'nothing found' if good else 'FOUND'}", flush=True)
    if good:
        return True
    print(result.stdout)
    for file in sorted(set(found.iterdir()) - before):
        shown = os.path.relpath(file, ROOT)
        print(f"{name}: the input is {shown}; run it again with: {os.path.relpath(program, ROOT)} {shown}")
        print(f"{name}: once it is mended, keep it as tools/fuzz/corpus/{name}/found-WHAT, and: ./dev fuzz keep",
              flush=True)  # fmt: skip
    return False


def main():
    known = targets()
    parser = argparse.ArgumentParser(prog="./dev fuzz", description="Fuzzes what is parsed from outside.")
    parser.add_argument("name", help="'list', 'all', 'keep' (folders of the corpus go into its files), or one of: "
                        + ", ".join(known))  # fmt: skip
    parser.add_argument("--seconds", type=positive, default=60, metavar="N", help="for each target (60)")
    options = parser.parse_args()
    if options.name == "list":
        print("\n".join(known))
        return 0
    if options.name == "keep":
        for name in seeds.keep(CORPUS):
            print(f"{name}: {len(seeds.read(CORPUS, name))} inputs in {seeds.file_of(CORPUS, name).relative_to(ROOT)}")
        return 0
    if options.name != "all" and options.name not in known:
        fail(f"{options.name}: no such target; there are: all, list, keep, {', '.join(known)}")
    names = known if options.name == "all" else [options.name]
    build(names)
    results = [fuzz(name, options.seconds) for name in names]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
