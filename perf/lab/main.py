#!/usr/bin/python3
# `./dev lab NAME|list|report|seeds`: the performance lab.
#
# Exit: 0 measured; 1 something failed; 2 usage; 3 a tool, a right or room is missing; 77 not on this machine.
# SPDX-License-Identifier: Apache-2.0
import argparse
import datetime
import json
import pathlib
import re
import sys

_PERF = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_PERF), str(_PERF.parent / "tools")]

from harness import HarnessError, find_binaries  # noqa: E402
from harness.system import REPOSITORY, exit_on_signals  # noqa: E402
from lab import experiments, machine, packages, plots, report, sides  # noqa: E402
from lab.bench import Bench, Budget  # noqa: E402
from lab.errors import FAILED, MISSING, USAGE, LabError  # noqa: E402
from lab.kept import Kept  # noqa: E402
from lab.seeds import command as seeds  # noqa: E402

DEFAULT_FOLDER = REPOSITORY / "build/lab"


def arguments(words):
    parser = argparse.ArgumentParser(prog="./dev lab", description="Experiments on running nodes.",
                                     epilog="./dev lab list names the experiments; ./dev lab report [DIR] [--out FILE] "
                                            "makes one page of all results; ./dev lab seeds --help: the papers beside ours")  # fmt: skip
    parser.add_argument("name", metavar="NAME|list|report", help="an experiment, or what to do instead")
    parser.add_argument("folder", nargs="?", type=pathlib.Path, metavar="DIR", help="report: the results (build/lab)")
    parser.add_argument("--quick", action="store_true", help="small sizes, 3 repeats, less than a minute")
    parser.add_argument("--repeat", type=_positive, metavar="N", help="runs of each setting (5; 3 with --quick)")
    parser.add_argument("--only", action="append", default=[], metavar="WORDS",
                        help="settings whose line has all these words (\"mode=adaptive buffer_ms=1.0\"); may be repeated")  # fmt: skip
    parser.add_argument("--cores", type=_positive, default=1, metavar="N",
                        help="cores of each side (1): the worker of a node has the first, all else shares them")  # fmt: skip
    parser.add_argument("--resume", action="store_true",
                        help="take over what the last run, of the same commit and options, had measured before it was cut off")  # fmt: skip
    parser.add_argument("--budget", type=_seconds, metavar="TIME",
                        help="peers, trees: rounds until the ratios are sure, and no longer than so (20m, 90s; 0s with "
                             "--resume: the result of what is there)")  # fmt: skip
    parser.add_argument("--within", type=_percent, default=10.0, metavar="PERCENT",
                        help="with --budget: sure is a ratio whose 95 %% interval reaches so far from its median at most (10)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="where the result goes (build/lab/NAME.json)")
    parser.add_argument("--plots", type=pathlib.Path, metavar="DIR", help="where plots go (build/lab/plots)")
    parser.add_argument("--no-plots", action="store_true", help="measure only; needs no matplotlib")
    parser.add_argument("--node", action="append", default=[], metavar="A",
                        help="given twice: the directory of a running node here, and the name of its peer")  # fmt: skip
    parser.add_argument("--loss", type=float, default=0.0, metavar="PERCENT", help="peers: random loss, both ways")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="report: the page (DIR/report.html)")
    return parser.parse_args(words)


def _positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1")
    return value


def _seconds(text):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text}: a number and s, m or h, such as 20m")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def _percent(text):
    value = float(text)
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError(f"{text}: percent, above 0 and up to 100")
    return value


def check(options):
    if options.name not in experiments.NAMES:
        raise LabError(f"{options.name}: no such experiment; there are {', '.join(experiments.NAMES)}", USAGE)
    if options.folder is not None:
        raise LabError(f"{options.folder}: only `report` takes a folder; see ./dev lab --help", USAGE)
    experiment = experiments.load(options.name)
    if options.node and len(options.node) != 2:
        raise LabError("--node: twice, the directory of the local node and the name of its peer", USAGE)
    if options.node and not experiment.REAL:
        raise LabError(f"--node: {options.name} needs nodes of its own; leave it out", USAGE)
    if options.loss and options.name != "peers":
        raise LabError("--loss: only `peers` takes it", USAGE)
    if options.budget is not None and not hasattr(experiment, "RATIOS"):
        raise LabError(f"--budget: {options.name} does not take it, but `peers` and `trees` do; use --repeat", USAGE)
    if not 0 <= options.loss < 100:
        raise LabError(f"--loss {options.loss:g}: percent, from 0 to below 100", USAGE)
    return experiment


def programs():
    try:
        return find_binaries()
    except HarnessError as error:
        raise LabError(str(error), MISSING) from None


def measure(options):
    """The result as it is written: one JSON object."""
    experiment = check(options)
    sides.give(options.cores)
    budget = None if options.budget is None else Budget(options.budget, options.within / 100)
    binaries = programs()
    packages.install([*experiment.PACKAGES, *([] if options.no_plots else plots.PACKAGES)])
    result = {
        "experiment": options.name,
        "version": machine.version(binaries / "sluice"),
        "machine": machine.describe(),
        "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "quick": options.quick,
    }
    kept = _kept(options, result["version"])
    bench = Bench(quick=options.quick, repeats=options.repeat, nodes=options.node or None,
                  loss_percent=options.loss, only=options.only, kept=kept, budget=budget)  # fmt: skip
    result.update(repeats=bench.repeats, cores_per_side=options.cores)
    if budget:
        result.update(repeats=None, budget_s=options.budget, within_percent=options.within)
    if options.only:
        result["only"] = options.only
    if options.loss:
        result["loss_percent"] = options.loss
    outcome = experiment.run(bench)
    result["machine"]["busy_share_at_end"] = machine.busy_share()
    return {**result, "nodes": bench.described, **outcome}, kept


def _kept(options, version):
    """What the samples of this run are kept by until its result is written."""
    same = {key: getattr(options, key) for key in ("name", "quick", "repeat", "only", "cores", "node", "loss")}
    kept = Kept(_result_path(options).with_suffix(".kept"), {**same, "version": version}, options.resume)
    if kept.count():
        print(f"lab: {kept.count()} samples of {kept.path} are taken over", file=sys.stderr, flush=True)
    return kept


def _stem(options):
    return options.name + (f"-loss{options.loss:g}" if options.loss else "")


def _result_path(options):
    return options.json or DEFAULT_FOLDER / f"{_stem(options)}.json"


def run(options):
    if options.name == "list":
        for name in experiments.NAMES:
            print(f"{name:8}  {experiments.load(name).HELP}")
        return 0
    if options.name == "report":
        folder = options.folder or DEFAULT_FOLDER
        packages.install(plots.PACKAGES)
        print(report.write(folder, options.out or folder / "report.html"))
        return 0
    result, kept = measure(options)
    path = _result_path(options)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    kept.forget()
    if not options.no_plots:
        plots.save(result, options.plots or DEFAULT_FOLDER / "plots", _stem(options))
    print(json.dumps(result["summary"]))
    return 0


def main():
    words = sys.argv[1:]
    options = None if words[:1] == ["seeds"] else arguments(words)
    exit_on_signals()
    try:
        return run(options) if options else seeds.main(words[1:])
    except HarnessError as error:
        print(f"lab: {error}", file=sys.stderr)
        return getattr(error, "code", FAILED)


if __name__ == "__main__":
    sys.exit(main())
