#!/usr/bin/python3
"""Prints what a reader of CI needs last: the ten slowest tests, the counts, and the last lines of each failed test.

Usage: report.py RESULTS.xml    (what `ctest --output-junit RESULTS.xml` wrote)

CI keeps only the end of its output, so the lines that explain a failure must stand there. ctest prints them where the
test ran, thousands of lines earlier.
"""
# SPDX-License-Identifier: Apache-2.0
import re
import sys
import xml.etree.ElementTree

SLOWEST = 10
LAST_LINES = 40
LINE_MAX = 400  # characters: one giant line must not push out all others
FAILED_SHOWN = 25  # with more than that, something common is broken: the first ones tell what

# XML 1.0 has no way to write these; a test may print them all the same.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read(path):
    """[(name, seconds, "run" | "fail" | "notrun" | ..., output)] in the order of the file."""
    with open(path, encoding="utf-8", errors="replace") as file:
        suite = xml.etree.ElementTree.fromstring(NOT_XML.sub("?", file.read()))
    return [(case.get("name"), float(case.get("time") or 0), case.get("status"), case.findtext("system-out") or "")
            for case in suite.iter("testcase")]  # fmt: skip


def last_lines(output):
    lines = output.rstrip().splitlines() or ["(it printed nothing)"]
    cut = [line if len(line) <= LINE_MAX else line[:LINE_MAX] + " [...]" for line in lines[-LAST_LINES:]]
    return "\n".join(f"    {line}" for line in cut)


def report(cases):
    """The text, and whether anything failed. A run without a single test is a failure, too."""
    failed = [case for case in cases if case[2] == "fail"]
    skipped = [case for case in cases if case[2] in ("notrun", "skipped", "disabled")]
    passed = len(cases) - len(failed) - len(skipped)
    parts = ["slowest tests:"]
    parts += [f"  {seconds:7.1f} s  {name}" for name, seconds, _, _ in sorted(cases, key=lambda case: -case[1])[:SLOWEST]]
    if skipped:
        parts.append("skipped: " + ", ".join(name for name, *_ in skipped))
    parts.append(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    for name, seconds, _, output in failed[:FAILED_SHOWN]:
        parts.append(f"\nFAILED {name} after {seconds:.1f} s; its last {LAST_LINES} lines:\n{last_lines(output)}")
    if len(failed) > FAILED_SHOWN:
        parts.append("\nFAILED as well: " + ", ".join(name for name, *_ in failed[FAILED_SHOWN:]))
    return "\n".join(parts), bool(failed) or not passed


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: report.py RESULTS.xml")
    try:
        text, failed = report(read(sys.argv[1]))
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        sys.exit(f"report.py: {sys.argv[1]}: {error}; the tests did not run to their end, see above")
    print(text)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
