# The #SLUICE lines of a job's script, and the commands of Sluice that they stand for. Pure: no file, no process.
#
# burst_buffer.lua has the same rules, so that sbatch refuses what is wrong; tools/slurm/directives_test.py holds both to one table.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import posixpath
import re

LINES_MAX = 64
USAGE = "write: #SLUICE stage-in|stage-out SRC DST [list=FILE] [overwrite=yes|no] [mkdir=yes|no]"
NAMES_OF_A_COMMAND = 500  # words of one command line


class Problem(Exception):
    """A line for who wrote the script."""


@dataclasses.dataclass
class Stage:
    way: str  # "in", "out"
    number: int  # from 1, of those of this way
    source: str
    destination: str
    list_file: str = ""
    overwrite: bool = False
    mkdir: bool = False


def _words(text):
    words, word, quoted = [], None, False
    for char in text:
        if char == '"':
            quoted, word = not quoted, word or ""
        elif char in " \t" and not quoted:
            if word is not None:
                words.append(word)
            word = None
        else:
            word = (word or "") + char
    if quoted:
        raise Problem("a quote has no end")
    return words if word is None else [*words, word]


def node_of(operand):
    """The node of NODE:PATH; empty of a local path."""
    match = re.match(r"([\w.-]+):.", operand, re.ASCII)
    return match[1] if match and not operand.startswith("/") else ""


def _check_operand(operand):
    stray = re.search(r"%[^ju]|%$", operand.replace("%%", ""))
    if stray:
        raise Problem(f"'{stray[0]}' in {operand} is not known: %j is the job's number, %u its user, %% a percent sign")
    if operand.startswith("/"):
        return
    if not node_of(operand):
        raise Problem(f"{operand} is neither an absolute path nor NODE:PATH")
    if node_of(operand) in ("memory", "null"):
        raise Problem(f"{operand} is no file")


def _set_option(found, key, value):
    if key in found:
        raise Problem(f"{key}= is given twice")
    if key == "list":
        if not value.startswith("/"):
            raise Problem(f"list={value}: write an absolute path of this host")
    elif key not in ("overwrite", "mkdir"):
        raise Problem(f"unknown option {key}=; {USAGE}")
    elif value not in ("yes", "no"):
        raise Problem(f"{key}={value}: yes or no")
    found[key] = value


def _stage(text):
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text):
        raise Problem("a control character")
    words = _words(text)
    if not words:
        raise Problem(f"a directive is missing; {USAGE}")
    verb = words.pop(0)
    if verb not in ("stage-in", "stage-out"):
        raise Problem(f"unknown directive {verb}; {USAGE}")
    operands, options = [], {}
    for word in words:
        match = re.match(r"([a-z]+)=(.*)$", word)
        if match:
            _set_option(options, match[1], match[2])
        else:
            operands.append(word)
    if len(operands) != 2:
        raise Problem(f"{verb} needs SRC and DST, and has {len(operands)} of them; {USAGE}")
    for operand in operands:
        _check_operand(operand)
    source, destination = operands
    if node_of(source) == node_of(destination):
        if not node_of(source):
            raise Problem(f"neither {source} nor {destination} is at another node")
        raise Problem(f"{node_of(source)} is both source and destination: copy the files there")
    return Stage(verb[len("stage-") :], 0, source, destination, options.get("list", ""),
                 options.get("overwrite") == "yes", options.get("mkdir") == "yes")  # fmt: skip


def parse(script):
    """All stages of a job's script. Raises Problem, which names the line."""
    stages, header = [], True
    for number, line in enumerate(script.split("\n"), 1):
        if line and not line.startswith("#"):
            header = False
        match = re.match(r"#SLUICE(?=[ \t\r]|$)(.*)$", line, re.DOTALL)
        if not match:
            continue
        try:
            if not header:
                raise Problem("Slurm reads directives before the first command only: move it up")
            if len(stages) == LINES_MAX:
                raise Problem(f"more than {LINES_MAX} directives; name several files by list=FILE")
            stage = _stage(match[1].removesuffix("\r"))
        except Problem as problem:
            raise Problem(f"line {number}: {problem}") from None
        stage.number = 1 + sum(one.way == stage.way for one in stages)
        stages.append(stage)
    return stages


def expand(text, job, user):
    """%j, %u and %% as Slurm has them."""
    return re.sub(r"%([ju%])", lambda match: {"j": job, "u": user, "%": "%"}[match[1]], text)


def names_of(text, list_file):
    """The names in a list, a line each, as --files-from reads it."""
    names = []
    for line in text.split("\n"):
        name = line.removesuffix("\r")
        if not name or name[0] in "#;":
            continue
        name = re.sub(r"^(\./|/)+", "", name)
        if not name or ".." in name.split("/") or re.search(r"[\x00-\x1f\x7f]", name):
            raise Problem(f"list={list_file}: '{line}' is not a name beneath the source")
        if name.endswith("/"):
            raise Problem(f"list={list_file}: {line} is a directory: name files")
        names.append(name)
    if not names:
        raise Problem(f"list={list_file}: no name in it")
    return names


@dataclasses.dataclass
class Command:
    """One session: the words behind `sluice`; directory: a local one that is made first, by the user; text: its stdin."""

    words: list
    directory: str = ""
    text: str = ""


def commands(stage, listed=None):
    """The commands of a stage whose paths are expanded. listed: the text of its list."""
    source, destination = stage.source, stage.destination
    options = ["--detach", "--on-error", "pause"] + (["--overwrite"] if stage.overwrite else [])
    local, makes = not node_of(destination), stage.mkdir
    verb = "get" if local else "send"
    if makes and not local:
        options.append("--mkdir")
    if listed is None:
        above = destination if destination.endswith("/") else posixpath.dirname(destination)
        return [Command([verb, *options, "--", source, destination], above if local and makes else "")]
    if not local and node_of(source):
        text = "".join(f"./{name}\n" for name in names_of(listed, stage.list_file))
        return [Command([verb, *options, "--files-from", "-", "--", source.rstrip("/"), destination], text=text)]
    return _of_list(stage, [verb, *options, "--"], names_of(listed, stage.list_file))


def _of_list(stage, head, names):
    """Where one side is this host, files are named one by one, those of a directory together."""
    folders = {}
    for name in dict.fromkeys(names):
        folders.setdefault(posixpath.dirname(name), []).append(name)
    found = []
    for folder, members in folders.items():
        for at in range(0, len(members), NAMES_OF_A_COMMAND):
            sources = [f"{stage.source.rstrip('/')}/{name}" for name in members[at : at + NAMES_OF_A_COMMAND]]
            target = f"{stage.destination.rstrip('/')}/{folder + '/' if folder else ''}"
            local = not node_of(stage.destination)
            found.append(Command([*head, *sources, target], target if local and (folder or stage.mkdir) else ""))
    return found
