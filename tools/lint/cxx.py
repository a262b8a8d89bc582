# As much of C++ as the house's rules need: where comments are, which data a class has, how long a function is.
#
# No parser: it knows comments, strings, braces and angle brackets. It relies on sources that compile and that
# clang-format has formatted. Other input may give a wrong count, nothing worse.
# SPDX-License-Identifier: Apache-2.0
import re

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<string>R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|(?<![\w])'(?:\\.|[^'\\\n])+')
      | (?P<directive>^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_CLASS = re.compile(
    r"\b(?:class|struct)\s+(?:alignas\s*\([^)]*\)\s*|\[\[[^\]]*\]\]\s*)*"
    r"((?:[A-Za-z_]\w*::)*[A-Za-z_]\w*(?:<[^;{}()]*?>)?)(?:\s+final)?\s*"
    r"(?::[^:;{}()][^;{}()]*)?\{"
)
_BRACE = re.compile(r"[;{}]|\b(?:public|private|protected)\s*:(?!:)")
_OPERATOR = re.compile(r"\boperator\s*(?:\(\s*\)|[^\s\w(]+)")
_SCOPE = re.compile(r"\b(?:namespace|class|struct|union|extern)\b")
# `: a_(a), b_` before the brace that gives b_ its first value.
_INITIALISES = re.compile(r"\)[^:]*(?<!:):(?!:).*[\w>]\s*$", re.DOTALL)
_CALLED = re.compile(r"((?:\w+\s*::\s*)*~?\w+)\s*\(")
_ENUM = re.compile(r"\benum\s+$")
_NO_DATA = re.compile(r"(?:using|typedef|friend|template|static|inline\s+static|constexpr\s+static|static_assert|enum)\b")
_TYPE_ONLY = re.compile(r"(?:class|struct|union)\b[^{]*(?:\{\})?$")


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def comments(text):
    """The text with everything but its comments blanked; positions and lines stay."""
    out, end = [], 0
    for match in _TOKEN.finditer(text):
        out.append(_blank(text[end : match.start()]))
        out.append(match[0] if match["comment"] else _blank(match[0]))
        end = match.end()
    return "".join(out) + _blank(text[end:])


def classes(text):
    """(position, name, names of its non-static data members) of each class and struct that is defined here."""
    text = _TOKEN.sub(lambda match: _blank(match[0]), text)
    for match in _CLASS.finditer(text):
        if not _ENUM.search(text[: match.start()]):
            yield match.start(), match[1], _members(_body(text, match.end()))


def functions(text):
    """(position, name, lines from the first of its head to its last brace) of each function that has a body here.

    A lambda counts in the function that holds it.
    """
    text = _TOKEN.sub(lambda match: _blank(match[0]), text)
    at = head = 0
    while brace := _BRACE.search(text, at):
        at = brace.end()
        if brace[0] != "{":
            head = at
            continue
        before = _outline(text[head : brace.start()])
        if not re.search(r"[(=]|\benum\b", before) and _SCOPE.search(before):
            head = at  # what it holds is looked at by itself
            continue
        at += len(_body(text, at)) + 1
        argument = before.count("(") > before.count(")")
        if "(" not in before or "=" in before or argument or _INITIALISES.search(before):
            continue  # data, an argument, or a part of a constructor's head
        start = head + len(before) - len(before.lstrip())
        name = _CALLED.search(before)
        yield start, re.sub(r"\s", "", name[1]) if name else "?", text.count("\n", start, at) + 1
        head = at


def _outline(text):
    """A declaration with blanks for what stands in parentheses and angle brackets; positions and lines stay."""
    text = _OPERATOR.sub(lambda match: "operator".ljust(len(match[0])), text)
    out, depth = [], 0
    for char in text:
        depth -= char in ")]"
        out.append(char if depth <= 0 or char == "\n" else " ")
        depth += char in "(["
    text, before = re.sub(r"\b(?:alignas|decltype)\s*\([^()]*\)", lambda match: _blank(match[0]), "".join(out)), None
    while text != before:
        before, text = text, re.sub(r"<[^<>;]*>", lambda match: _blank(match[0]), text)
    return text


def _body(text, start):
    depth, at = 1, start
    while at < len(text) and depth:
        depth += (text[at] == "{") - (text[at] == "}")
        at += 1
    return text[start : at - 1]


def _without_inner(text):
    out, depth = [], 0
    for char in text:
        if char == "{":
            if depth == 0:
                out.append("{}")
            depth += 1
        elif char == "}":
            depth -= 1
        elif depth == 0:
            out.append(char)
    text, before = "".join(out), None
    while text != before:
        before, text = text, re.sub(r"<[^<>;]*>", "", text)
    return text


def _members(body):
    body = re.sub(r"\b(?:public|private|protected)\s*:(?!:)", "", _without_inner(body))
    # The body of a function ends without a semicolon.
    body = re.sub(r"(\)[^;{}=]*)\{\}(?!\s*[;,\w(])", r"\1;", body)
    body = re.sub(r"(\)[^;{}=]*)\{\}(?=\s*(?!\w+\s*[;=\[{]))", r"\1;", body)
    names = []
    for statement in body.split(";"):
        statement = re.sub(r"(?:\[\[[^\]]*\]\]|\balignas\s*\([^)]*\)|\bmutable\b)\s*", "", statement).strip()
        declared = re.sub(r"=[^,]*|\{\}(?=\s*(?:,|$))", "", statement)
        if not statement or _NO_DATA.match(statement) or _TYPE_ONLY.fullmatch(declared.strip() + "{}"):
            continue
        if "(" in declared or "operator" in statement:
            continue
        names += [name for name in re.findall(r"(\w+)(?:\s*\[[^\]]*\]|\s*:\s*\d+)*\s*(?:,|$)", declared)]
    return names
