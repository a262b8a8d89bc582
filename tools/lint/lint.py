#!/usr/bin/python3
# `./dev lint`: clang-format, clang-tidy and the house's own rules, over every file of the repository.
#
# clang-tidy is slow: it looks at tests and fuzzers only with --all, and a file that passed is not looked at
# again until it, one of our headers that it includes, its command line, .clang-tidy or the tool changes
# (build/lint-cache, keyed by content).
# SPDX-License-Identifier: Apache-2.0
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import house_rules

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/tidy"
CACHE = ROOT / "build/lint-cache"
# clang 14 has coroutines, but does not say so in the way that libstdc++ and asio ask.
_COROUTINES = ["--extra-arg=-D__cpp_impl_coroutine=201902L", "--extra-arg=-DASIO_HAS_CO_AWAIT=1",
               "--extra-arg=-DASIO_HAS_STD_COROUTINE=1"]  # fmt: skip
_OF_TEST = re.compile(r"(_test|_fuzz|replay_main)\.cc$")
_QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def check_format(files, fix):
    sources = [name for name in files if name.endswith((".cc", ".h"))]
    mode = ["-i"] if fix else ["--dry-run", "-Werror"]
    result = subprocess.run(["clang-format", *mode, *sources], cwd=ROOT, capture_output=True, text=True)
    wrong = sorted(set(re.findall(r"^([^:\n]+):\d+:\d+: error", result.stderr, re.MULTILINE)))
    problems = [f"{os.path.relpath(name, ROOT)}: not formatted; run ./dev lint --fix" for name in wrong]
    if result.returncode != 0 and not problems:
        problems.append(f"clang-format: {result.stderr.strip()}")
    return problems


def check_scripts(files):
    problems = []
    for name in files:
        text = (ROOT / name).read_text(errors="replace")
        if name.endswith(".py"):
            try:
                compile(text, name, "exec")
            except SyntaxError as error:
                problems.append(f"{name}:{error.lineno}: {error.msg}")
        elif text.startswith("#!/bin/bash"):
            result = subprocess.run(["bash", "-n", name], cwd=ROOT, capture_output=True, text=True)
            if result.returncode != 0:
                problems.append(result.stderr.strip())
    return problems


class Tidy:
    def __init__(self, files):
        commands = BUILD / "compile_commands.json"
        # Generated headers must be there before anything that includes them can be parsed.
        subprocess.run(["ninja", "-C", str(BUILD), "sluice_proto"], check=True, stdout=subprocess.DEVNULL)
        ours = set(files)
        self._commands = {}
        for entry in json.loads(commands.read_text()):
            name = os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT)
            if name in ours:
                self._commands[name] = entry.get("command") or " ".join(entry["arguments"])
        version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True, check=True).stdout
        self._base = (version + (ROOT / ".clang-tidy").read_text()).encode()
        self._texts = {}

    def _text(self, name):
        if name not in self._texts:
            # A generated header changes exactly when its .proto does.
            path = ROOT / re.sub(r"(\.grpc)?\.pb\.h$", ".proto", name)
            self._texts[name] = path.read_bytes() if path.is_file() else None
        return self._texts[name]

    def _closure(self, name):
        seen, todo = {}, [name]
        while todo:
            one = todo.pop()
            text = self._text(one)
            if one in seen or text is None:
                continue
            seen[one] = text
            todo += _QUOTED.findall(text.decode(errors="replace"))
        return seen

    def key(self, name):
        digest = hashlib.sha256(self._base)
        digest.update(self._commands[name].encode())
        for one, text in sorted(self._closure(name).items()):
            digest.update(f"\0{one}\0".encode() + text)
        return digest.hexdigest()

    def run(self):
        CACHE.mkdir(parents=True, exist_ok=True)
        keys = {name: self.key(name) for name in self._commands}
        stale = [name for name, key in sorted(keys.items()) if not (CACHE / key).exists()]
        print(f"clang-tidy: {len(stale)} of {len(keys)} files to look at", flush=True)
        problems = []
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for name, result in zip(stale, pool.map(self._one, stale)):
                if result.returncode == 0:
                    (CACHE / keys[name]).touch()
                else:
                    problems.append(result.stdout.strip() or f"{name}: clang-tidy: {result.stderr.strip()}")
        for old in CACHE.iterdir():
            if old.name not in keys.values() and time.time() - old.stat().st_mtime > 7 * 86400:
                old.unlink()
        return problems

    @staticmethod
    def _one(name):
        command = ["clang-tidy", "-p", str(BUILD), "--quiet", *_COROUTINES, str(ROOT / name)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev lint")
    parser.add_argument("--fix", action="store_true", help="format in place what is not formatted")
    parser.add_argument("--no-tidy", action="store_true", help="leave out clang-tidy, the slow part")
    parser.add_argument("--all", action="store_true", help="clang-tidy looks at tests and fuzzers as well")
    options = parser.parse_args()
    files = house_rules.tracked_files(ROOT)
    problems = house_rules.check(ROOT, files) + check_format(files, options.fix) + check_scripts(files)
    if not options.no_tidy:
        problems += Tidy([name for name in files if options.all or not _OF_TEST.search(name)]).run()
    for problem in problems:
        print(problem)
    print(f"lint: {len(problems)} problems" if problems else "lint: clean")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
