# `./dev lab seeds`: every table and figure of the five papers beside ours.
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import pathlib
import sys

from harness.system import REPOSITORY

from .. import packages
from ..errors import FAILED, USAGE, LabError
from . import drawing, page, papers, rendering, results, tracing
from .exhibits import ALL
from .parts import VERDICTS

PACKAGES_OF_CHECK = ("python3-jsonschema",)
COMMITTED = REPOSITORY / "docs/papers"


def arguments(words):
    parser = argparse.ArgumentParser(prog="./dev lab seeds", description="Every table and figure of five papers (docs/SOURCES.md) beside ours: "
                                     "draws the page of what was measured.")  # fmt: skip
    parser.add_argument("--run", action="store_true", help="measure what is missing or older than the commit; goes on where a run was cut off")
    parser.add_argument("--quick", action="store_true", help="with --run: short runs, 40 minutes on two cores")
    parser.add_argument("--list", action="store_true", help="the exhibits, the experiment of each, its verdict")
    parser.add_argument("--check", action="store_true", help="fails on a missing exhibit, an unknown key, a number without a source")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE|DIR", default=results.FOLDER / "seeds.html",
                        help="the page (build/lab/seeds/seeds.html); a directory: as Markdown with an SVG a figure")  # fmt: skip
    options = parser.parse_args(words)
    if options.quick and not options.run:
        raise LabError("--quick: only with --run", USAGE)
    return options


def check():
    """Sentences of all that is wrong with the papers' numbers and with the rendering that is committed."""
    known = papers.load()
    found = papers.problems(known.document, list(ALL))
    if found:
        return found
    numbers = COMMITTED / rendering.NUMBERS
    if not numbers.exists():
        return [f"{numbers.relative_to(REPOSITORY)}: missing; ./dev lab seeds --out docs/papers"]
    return [f"docs/papers/{rendering.NUMBERS}: {each}" for each in tracing.problems(json.loads(numbers.read_text(encoding="utf-8")), known)]


def show(drawn):
    width = max(len(each.name) for each in drawn)
    for each in drawn:
        print(f"{each.name:{width}}  {each.judged.verdict:10}  {each.exhibit.experiment:9}  {each.judged.ratio or each.judged.reason}")


def write(out, known, drawn, found):
    if out.suffix == ".html":
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page.page(known, drawn, found), encoding="utf-8")
        out.with_suffix(".json").write_text(json.dumps(tracing.document(drawn, found), ensure_ascii=False) + "\n", encoding="utf-8")
        return out
    if out.suffix:
        raise LabError(f"--out {out}: neither a page (.html) nor a directory", USAGE)
    return rendering.write(out, known, drawn, found)


def needed():
    return list(dict.fromkeys(each.experiment for each in ALL.values() if not each.missing)) + list(results.BESIDE)


def main(words):
    options = arguments(words)
    if options.check:
        packages.install(PACKAGES_OF_CHECK)
        found = check()
        for each in found:
            print(f"lab: {each}", file=sys.stderr)
        if not found:
            print(f"{len(papers.load().exhibits)} exhibits, {len(papers.load().values)} numbers, each with its source")
        return FAILED if found else 0
    failed = 0
    if options.run:
        failed = results.run(needed(), results.version(), options.quick, lambda line: print(f"lab: {line}", file=sys.stderr, flush=True))
    known, found = papers.load(), results.load()
    drawn = drawing.draw(known, found, results.failures())
    show(drawn)
    if not options.list:
        print(write(options.out, known, drawn, found))
    counted = drawing.counts(drawn)
    print(json.dumps({"exhibits": len(drawn), **{name.replace(" ", "_"): counted.get(name, 0) for name in VERDICTS}}))
    return FAILED if failed else 0
