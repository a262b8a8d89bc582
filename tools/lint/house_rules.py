# The house's own rules, where a program can hold them: purity, arrows, references, sizes, licence.
#
# Plain functions of (root, files), so that the tests can hand them a small tree of their own.
# SPDX-License-Identifier: Apache-2.0
import ast
import fnmatch
import pathlib
import re
import subprocess

import cxx
from arrows import ARROWS, ARROWS_OF_TESTS

LINES_MAX = 400
FUNCTION_LINES_MAX = 70  # from the first line of its head to its last brace
MEMBERS_MAX = 25  # data members of a class or struct in product code
MEMBERS_EXEMPT = {
    "dataplane/base/config/config.h:Node": "one member for each key of node.toml, read and never changed",
    "dataplane/board/board.h:FlowState": "a format: the figures of one flow in shared memory, each read by itself",
}
SOURCE_SUFFIXES = {".cc", ".h", ".def", ".proto", ".py", ".sh", ".cmake"}
SOURCE_NAMES = {"CMakeLists.txt", "dev", "run", ".clang-tidy", ".editorconfig"}
# Where a path in a document begins if it means a file of this repository.
TOP_LEVEL = ("dataplane", "storage", "control", "tools", "perf", "docs", ".ci")
# A folder that stands beside some checkouts: nobody else has what it holds, so nothing here may point at it.
NOT_OURS = ("shared",)

PRODUCT = ("control/", "dataplane/", "storage/")

_SPDX = re.compile(r"^\W*SPDX-License-Identifier: Apache-2\.0\W*$", re.MULTILINE)
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)

# dataplane/core is a function of its arguments: no device, ring, socket, thread, clock or chance.
# A test of it may be random or know the time; it may not know a device.
CORE_NEVER = ("rte_*", "liburing*", "liburing/*", "sys/socket.h", "netinet/*", "thread", "mutex",
              "shared_mutex", "condition_variable", "future", "pthread.h", "chrono", "time.h", "ctime",
              "random", "iostream", "fstream")  # fmt: skip
CORE_TEST_MAY = ("random", "chrono", "thread", "iostream", "fstream")

# What decides in control is a function of its arguments as well: the simulator and the fuzzers run it.
# dataplane/board/board.h, which it knows, is the layout of the shared memory, not the memory.
CONTROL_PURE = ("control/board/", "control/catalog/", "control/deadline/", "control/metrics/", "control/names/",
                "control/parts/", "control/rate/", "control/recovery/", "control/selection/", "control/verdict/", "control/words/",
                "control/source/", "control/destination/", "control/leg/", "control/transfer/", "control/node/queue/",
                "tools/fleet/plan/", "tools/unattended/")  # fmt: skip
CONTROL_NEVER = CORE_NEVER + ("asio.hpp", "asio/*", "spdlog/*", "google/*", "grpc*", "*.pb.h", "sqlite3.h", "openssl/*",
                              "sys/*", "unistd.h", "fcntl.h", "poll.h", "signal.h", "csignal", "filesystem", "cstdio",
                              "stdio.h", "cstdlib", "stdlib.h", "coroutine", "stop_token", "semaphore", "latch",
                              "barrier")  # fmt: skip
CONTROL_TEST_MAY = CORE_TEST_MAY + ("unistd.h", "csignal", "cstdio", "cstdlib", "filesystem")

# Of dataplane/net the lanes see datagrams, so that something else than a device can carry them. Their tests and
# fuzzers make frames.
LANE_SEES_OF_NET = {"address.h", "buffer.h", "datagram_queue.h", "port.h"}


def tracked_files(root):
    """Files of the repository, also new ones that git does not ignore; relative, in order."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root, capture_output=True, check=True, text=True,
    ).stdout  # fmt: skip
    return sorted(name for name in set(listing.split("\0")) if name and (pathlib.Path(root) / name).is_file())


def _read(root, name):
    return (pathlib.Path(root) / name).read_text(encoding="utf-8", errors="replace")


def _is_source(name):
    path = pathlib.PurePosixPath(name)
    return path.suffix in SOURCE_SUFFIXES or path.name in SOURCE_NAMES


def _folder(name):
    """The longest folder of ARROWS that holds this path, or None."""
    best = None
    for folder in ARROWS:
        if name.startswith(folder + "/") and (best is None or len(folder) > len(best)):
            best = folder
    return best


def _line(text, position):
    return text.count("\n", 0, position) + 1


def _matches(header, patterns):
    return any(fnmatch.fnmatchcase(header, pattern) for pattern in patterns)


def _is_test(name):
    return re.search(r"_(test|fuzz|bench)\.cc$|_(for_test|for_fuzz|fixture)\.h$|_test\.py$", name) is not None


def check_includes(root, files):
    for name in files:
        if not name.endswith((".cc", ".h", ".def")):
            continue
        text = _read(root, name)
        for match in _INCLUDE.finditer(text):
            problem = _include_problem(name, match[1], match[2])
            if problem:
                yield f"{name}:{_line(text, match.start())}: {problem}"


def _include_problem(name, bracket, header):
    if name.startswith("dataplane/core/") and _matches(header, CORE_NEVER):
        if not (name.endswith("_test.cc") and header in CORE_TEST_MAY):
            return f"dataplane/core includes {header}; core is pure: pass what it needs as an argument"
    if name.startswith(CONTROL_PURE) and _matches(header, CONTROL_NEVER):
        if not (_is_test(name) and header in CONTROL_TEST_MAY):
            return f"{name.rsplit('/', 1)[0]} includes {header}; it is pure: ask with an effect, be told with an event"
    if header.startswith("rte_") and not name.startswith(("dataplane/dpdk/", "perf/")):
        return f"includes {header} outside dataplane/dpdk; use the spans of dataplane/net/frame_queue.h"
    if name.startswith("dataplane/lane/") and header.startswith("dataplane/net/") and "_test." not in name:
        if header.split("/")[-1] not in LANE_SEES_OF_NET and not re.search(r"_for_(test|fuzz)\.h$|_fuzz\.cc$", name):
            return f"dataplane/lane includes {header}; lanes know datagrams (dataplane/net/datagram_queue.h), not frames"
    here, there = _folder(name), _folder(header)
    if bracket == "<" or here is None or there is None or here == there or ARROWS[here] is None:
        return None
    if there not in ARROWS[here] and not (_is_test(name) and there in ARROWS_OF_TESTS.get(here, ())):
        return f"{here} includes {header}; arrows run one way (ARROWS in tools/lint/arrows.py)"
    return None


def check_sizes(root, files):
    """Of messages an interface has as many as it needs: each on lines of its own, rather than in fewer lines."""
    for name in files:
        if _is_source(name) and not name.endswith(".proto"):
            lines = _read(root, name).count("\n")
            if lines > LINES_MAX:
                yield f"{name}: {lines} lines, at most {LINES_MAX}; split it by what its parts do"


def check_functions(root, files):
    """A longer function has more than one job. Tests may be as long as what they tell."""
    for name in files:
        if not name.endswith((".cc", ".h", ".py")) or _is_test(name):
            continue
        text = _read(root, name)
        found = _python_functions(text) if name.endswith(".py") else (
            (_line(text, position), of, lines) for position, of, lines in cxx.functions(text))  # fmt: skip
        for line, of, lines in found:
            if lines > FUNCTION_LINES_MAX:
                yield (f"{name}:{line}: {of} has {lines} lines, at most {FUNCTION_LINES_MAX}; "
                       "give each of its jobs a function of its own")  # fmt: skip


def _python_functions(text):
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []  # lint.py reports it
    return [(node.lineno, node.name, node.end_lineno - node.lineno + 1) for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]  # fmt: skip


def check_licence(root, files):
    for name in files:
        if _is_source(name) and not _SPDX.search(_read(root, name)[:3000]):
            yield f"{name}: no SPDX line; add 'SPDX-License-Identifier: Apache-2.0' as a line of its head comment"


def check_members(root, files):
    """A class with more data than this has more than one purpose. A struct within it counts by itself."""
    for name in files:
        if not name.startswith(PRODUCT) or not name.endswith((".cc", ".h")) or _is_test(name):
            continue
        text = _read(root, name)
        for position, of, members in cxx.classes(text):
            if len(members) > MEMBERS_MAX and f"{name}:{of}" not in MEMBERS_EXEMPT:
                yield (f"{name}:{_line(text, position)}: {of} has {len(members)} data members, at most {MEMBERS_MAX}; "
                       "give those that change together a type of their own")  # fmt: skip


_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"(?<![\w./<-])(?:" + "|".join(re.escape(top) for top in TOP_LEVEL + NOT_OURS) + r")/[\w./*{},-]*[\w*}/]")
_REMARK = re.compile(r"^(?:(?!# )[^\n])*", re.MULTILINE)


def check_documents(root, files):
    """Every repository path that a document or a comment names exists."""
    known = set(files)
    known.update(str(folder) for name in files for folder in pathlib.PurePosixPath(name).parents)
    for name in files:
        if not name.endswith(".md") and not _is_source(name):
            continue
        text = _read(root, name)
        found = set()
        if name.endswith(".md"):
            text = _FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
            found.update(_named_paths(text, pathlib.PurePosixPath(name).parent))
        found.update(_paths_of(_remarks(name, text)))
        for position, path in sorted(found):
            if not _exists(path, known):
                yield f"{name}:{_line(text, position)}: names {path}, which is not there"


_CONFLICT = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)


def check_merges(root, files):
    """No mark of a merge that nobody finished, also where no compiler would see it."""
    for name in files:
        if name.endswith(".md") or _is_source(name):
            text = _read(root, name)
            for match in _CONFLICT.finditer(text):
                yield f"{name}:{_line(text, match.start())}: the mark of a merge; keep what is right of both sides"


_TESTS = re.compile(r"`([\w./]+_test\.(?:cc|py))`((?:,? `\w+`)+)")


def check_named_tests(root, files):
    """A test that a document names behind its file is there."""
    for name in files:
        text = _read(root, name) if name.endswith(".md") else ""
        for match in _TESTS.finditer(text):
            tests = _read(root, match[1]) if match[1] in files else ""
            for test in re.findall(r"\w+", match[2]):
                if not re.search(rf"\b{test}\b", tests):
                    yield f"{name}:{_line(text, match.start())}: names the test {test}, which is not in {match[1]}"


_SCHEMA = re.compile(r'"(sluice\.[a-z_]+\.v\d+)')


def check_schemas(root, files):
    """Whatever JSON a program writes, its schema stands in REFERENCE."""
    reference = _read(root, "docs/REFERENCE.md") if "docs/REFERENCE.md" in files else ""
    for name in files:
        if not _is_source(name) or _is_test(name) or name.startswith(("tools/e2e/", "tools/harness/", "tools/lint/")):
            continue
        text = _read(root, name)
        for match in _SCHEMA.finditer(text):
            if not re.search(re.escape(match[1]) + r"(?!\d)", reference):
                yield f"{name}:{_line(text, match.start())}: docs/REFERENCE.md does not name {match[1]}"


_SECTIONS = re.compile(r'\b([A-Z][A-Z-]+)(?:\.md)?`?(?:\]\([^)\s]*\))?,\s((?:"[^"]+"(?:,\s)?)+)')
_HEADING = re.compile(r"^#+ (?:[\d.]+ )?(.*)$", re.MULTILINE)


def check_cited_sections(root, files):
    """A section that is cited, as in REFERENCE, "The part", stands in that document of docs/."""
    headings = {}
    for name in files:
        # A README is that of its folder, which a citation does not name.
        if name.startswith("docs/") and name.endswith(".md") and not name.endswith("/README.md"):
            text = _FENCE.sub("", _read(root, name))
            headings[pathlib.PurePosixPath(name).stem] = {title.replace("`", "") for title in _HEADING.findall(text)}
    for name in files:
        if not name.endswith(".md") and not _is_source(name):
            continue
        text = _remarks(name, _read(root, name))
        for match in _SECTIONS.finditer(re.sub(r"(?m)^[ ]*(?://|#(?= ))", lambda mark: " " * len(mark[0]), text)):
            for title in re.findall(r'"([^"]+)"', match[2]):
                title = " ".join(title.split())
                if match[1] in headings and title not in headings[match[1]]:
                    yield f"{name}:{_line(text, match.start())}: cites {match[1]}, \"{title}\", which is not there"


def _remarks(name, text):
    """What is said in words: a document, or the comments of a source; positions stay."""
    if name.endswith(".md"):
        return text
    if name.endswith((".cc", ".h", ".def", ".proto")):
        return cxx.comments(text)
    return _REMARK.sub(lambda code: " " * len(code[0]), text)


def _paths_of(text):
    for match in _PATH.finditer(text):
        for path in _expand(match[0]):
            yield match.start(), path


def _named_paths(text, folder):
    for match in _CODE.finditer(text):
        for path in _expand(match[1].strip()):
            if path.startswith(tuple(top + "/" for top in TOP_LEVEL)) and re.fullmatch(r"[\w./*-]+", path):
                yield match.start(1), path
            elif re.fullmatch(r"[\w-]+\.md", path):
                yield match.start(1), path
    for match in _LINK.finditer(text):
        target = match[1].split("#")[0]
        if target and not re.match(r"[a-z]+:", target):
            parts = []
            for part in (folder / target).parts:
                if part == ".." and parts:
                    parts.pop()
                elif part != ".":
                    parts.append(part)
            yield match.start(), "/".join(parts)


def _expand(text):
    """`a/{b,c}.h:12` -> a/b.h, a/c.h"""
    text = re.sub(r"(:\d+)?(#.*)?$", "", text)
    match = re.search(r"\{([^{}]*)\}", text)
    if not match:
        return [text]
    return [each for word in match[1].split(",")
            for each in _expand(text[: match.start()] + word.strip() + text[match.end() :])]  # fmt: skip


def _exists(path, known):
    path = path.rstrip("/")
    if "*" in path:
        return any(fnmatch.fnmatchcase(each, path) for each in known)
    if "/" not in path:
        return any(each == path or each.endswith("/" + path) for each in known)
    return path in known


RULES = (check_includes, check_sizes, check_functions, check_members, check_licence, check_documents, check_cited_sections,
         check_named_tests, check_merges, check_schemas)  # fmt: skip


def check(root, files):
    return [problem for rule in RULES for problem in rule(root, files)]
