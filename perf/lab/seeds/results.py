# The results that the exhibits need: where they lie, which are out of date, and how they are measured anew.
#
# Each experiment is a process of its own, so that one that fails or is ended stops no other. What it had measured is kept and
# taken over by the next run of the same commit (perf/lab/kept.py).
# SPDX-License-Identifier: Apache-2.0
import datetime
import json
import re
import subprocess
import sys

from harness.system import REPOSITORY

from .. import experiments, machine
from ..errors import MISSING, LabError

FOLDER = REPOSITORY / "build/lab/seeds"
_MAIN = REPOSITORY / "perf/lab/main.py"
# HIPSTER's figures are of its larger files, which --quick leaves out: all sizes, less often.
_QUICK = {"hipster": ("--repeat", "1")}
_END_S = 120
# Beside the exhibits: many sessions at once, which FMFT wanted of its server.
BESIDE = ("sessions",)


def load(folder=FOLDER):
    """{experiment: result}"""
    found = {}
    for path in sorted(folder.glob("*.json")):
        if path.name.endswith(".failed.json"):
            continue
        try:
            result = json.loads(path.read_text())
        except ValueError as error:
            raise LabError(f"{path}: no JSON: {error}; remove it, then ./dev lab seeds --run", MISSING) from None
        if isinstance(result, dict) and result.get("experiment") in experiments.NAMES:
            found[result["experiment"]] = result
    return found


def failures(folder=FOLDER):
    """{experiment: {"error", "at"}} of runs that failed and were not repeated since."""
    return {path.name.removesuffix(".failed.json"): json.loads(path.read_text()) for path in sorted(folder.glob("*.failed.json"))}


def out_of_date(result, version, quick):
    """Why it is measured again; None: it stands."""
    if result is None:
        return "missing"
    if not same_code(result["version"], version):
        return f"of {result['version']}"
    return "quick" if result.get("brief") and not quick else None


def same_code(one, other):
    """Whether two versions (of machine.version) differ in documents at most: a rendering that is committed makes no
    result older."""
    if one == other:
        return True
    commits = [version.split()[-1] for version in (one, other)]
    if any(not re.fullmatch(r"[0-9a-f]{7,40}", commit) for commit in commits):
        return False  # with a +: of a tree that was changed
    command = ["git", "diff", "--quiet", *commits, "--", ".", ":!docs", ":!*.md"]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=False).returncode == 0


def run(names, version, quick, say, folder=FOLDER):
    """Measures what is missing or older; how many failed."""
    folder.mkdir(parents=True, exist_ok=True)
    failed, found = 0, load(folder)
    for name in names:
        reason = out_of_date(found.get(name), version, quick)
        if reason is None:
            say(f"{name}: stands")
            continue
        say(f"{name}: {reason}; measuring")
        failed += 0 if _measure(name, quick, folder) else 1
    return failed


def _measure(name, quick, folder):
    words = _QUICK.get(name, ("--quick",)) if quick else ()
    path, failure = folder / f"{name}.json", folder / f"{name}.failed.json"
    command = [sys.executable, "-B", str(_MAIN), name, *words, "--resume", "--no-plots", "--json", str(path)]
    log = folder / f"{name}.log"
    status = _status(command, log)
    if status == 0:
        failure.unlink(missing_ok=True)
        if quick:
            result = json.loads(path.read_text())
            path.write_text(json.dumps({**result, "brief": True}, indent=1) + "\n")
        return True
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    failure.write_text(json.dumps({"error": lines[-1] if lines else f"exit {status}", "status": status,
                                   "at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}) + "\n")  # fmt: skip
    return False


def _status(command, log):
    """Its exit status. If this process is told to end, so is that one, which then ends its nodes."""
    with open(log, "w") as file, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file) as process:
        try:
            return process.wait()
        except BaseException:
            process.terminate()
            process.wait(_END_S)
            raise


def version():
    from harness import find_binaries

    return machine.version(find_binaries() / "sluice")
