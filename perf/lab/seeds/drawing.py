# All exhibits: of the papers' numbers and of what was measured, two panels and a verdict each.
# SPDX-License-Identifier: Apache-2.0
import dataclasses

from .exhibits import ALL
from .parts import Exhibit, Judged, Result


# What a machine at rest does of itself is less.
_BUSY_SHARE = 0.15


@dataclasses.dataclass
class Drawn:
    """One exhibit, ready to be shown. `source`: the result it is of, None where there is none."""

    about: dict  # of papers.json
    exhibit: Exhibit
    left: object
    right: object
    judged: Judged
    source: dict = None
    more: object = None

    @property
    def name(self):
        return self.about["id"]

    def command(self):
        return f"./dev lab {self.exhibit.experiment}" if not self.exhibit.missing else "–"


def draw(papers, results, failures):
    return [_one(papers, about, ALL[name], results, failures) for name, about in papers.exhibits.items() if name in ALL]


def _one(papers, about, exhibit, results, failures):
    left = exhibit.left(papers)

    def not_run(reason):
        return Drawn(about, exhibit, left, None, Judged("not run", reason))

    if exhibit.missing:
        return not_run(exhibit.missing)
    document = results.get(exhibit.experiment)
    if document is None:
        failure = failures.get(exhibit.experiment)
        return not_run(f"`{exhibit.experiment}` failed: {failure['error']}" if failure else
                       f"No result of `{exhibit.experiment}` yet: ./dev lab seeds --run")  # fmt: skip
    result = Result(document)
    try:
        right = exhibit.right(result)
        if right is None:
            return not_run(f"The run of `{exhibit.experiment}` was a short one, without what this needs.")
        judged = exhibit.judge(papers, result)
        more = exhibit.more(result) if exhibit.more else None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # Rows that failed are not there: the exhibit is not, and the page is.
        return not_run(f"The result of `{exhibit.experiment}` lacks what this needs ({type(error).__name__}: {error}).")
    return Drawn(about, exhibit, left, right, judged, document, more)


def busy_share(document):
    """Which part of the CPUs something else used before the experiment or after it."""
    machine = document["machine"]
    return max(machine.get(key) or 0 for key in ("busy_share_at_start", "busy_share_at_end"))


def remarks(document):
    """What a reader must know of how it was measured."""
    found = []
    if document.get("quick") or document.get("brief"):
        found.append("a short run")
    if document.get("only"):
        found.append(f"in part: {', '.join(document['only'])}")
    if busy_share(document) > _BUSY_SHARE:
        found.append(f"on a machine that had other work ({busy_share(document):.0%} of its CPUs)")
    return found


def counts(drawn):
    out = {}
    for each in drawn:
        out[each.judged.verdict] = out.get(each.judged.verdict, 0) + 1
    return out
