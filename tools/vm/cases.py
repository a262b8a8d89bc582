"""What came of each case that a script of nodes.sh tried."""
# SPDX-License-Identifier: Apache-2.0
import collections
import dataclasses
import re

_CASE = re.compile(r"^CASE (\S+) (pass|fail|skip) (\d+) ?(.*)$")


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    result: str  # "pass", "fail", "skip"
    ms: int
    why: str


def cases_of(text):
    """Of what a script said, in its order."""
    matches = (_CASE.match(line) for line in text.splitlines())
    return [Case(match[1], match[2], int(match[3]), match[4].strip()) for match in matches if match]


def summary(results):
    """Of {kind: cases}, in a sentence."""
    counts = collections.Counter(case.result for cases in results.values() for case in cases)
    untried = [kind for kind, cases in results.items() if not cases]
    return (f"{counts['pass']} passed, {counts['fail']} failed, {counts['skip']} skipped"
            + (f"; nothing is known of {', '.join(untried)}" if untried else ""))  # fmt: skip


def table(results):
    """Of {kind: cases}: a line for each case, a column for each kind; what did not pass stands below."""
    names = list(dict.fromkeys(case.name for cases in results.values() for case in cases))
    width = max([len(name) for name in names] + [4]) + 2
    lines = ["".ljust(width) + "".join(kind.ljust(15) for kind in results)]
    words = {"fail": "FAIL", "skip": "skipped"}
    for name in names:
        line = name.ljust(width)
        for cases in results.values():
            one = next((case for case in cases if case.name == name), None)
            line += ("-" if one is None else words.get(one.result, f"pass {one.ms / 1000:.1f} s")).ljust(15)
        lines.append(line.rstrip())
    for kind, cases in results.items():
        lines += [f"{kind}: {case.name}: {case.why or 'failed'}" for case in cases if case.result != "pass"]
    return "\n".join(lines)
