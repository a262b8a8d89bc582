# Tornado: a fountain code beside scp. Sluice has no code yet.
# SPDX-License-Identifier: Apache-2.0
from ..parts import Axis, Chart, Exhibit, Series, paper_point

_MISSING = "Sluice has no forward error correction yet; the experiment, with and without a code beside scp, follows when it has."
_LOSS, _TIME = Axis("loss", "%"), Axis("transfer time", "s")
_DELAY, _OVER = Axis("one-way delay", "ms"), Axis("speed of scp over Tornado", "x")
_SIZE = Axis("file", "MB")


def _figure_1(papers):
    return Chart(_LOSS, _TIME, [Series("Tornado", [paper_point(papers, "T-f1-0", 0), paper_point(papers, "T-f1-1", 1)], "marks")],
                 "above 2 % it is faster than scp")  # fmt: skip


def _figure_2(papers):
    low, high = papers.values["T-f2-range"]["value"], papers.values["T-f2-range"]["value_high"]
    return Chart(_DELAY, _OVER, [Series("about 2 throughout", [paper_point(papers, "T-f2-2x", each) for each in (low, high)])])


def _figure_3(_papers):
    return Chart(_SIZE, _TIME, [], "only plotted: 10 to 50 MB, scp faster throughout")


EXHIBITS = {
    "tornado-figure-1": Exhibit("tornado", _figure_1, None, None, "", missing=_MISSING),
    "tornado-figure-2": Exhibit("tornado", _figure_2, None, None, "", missing=_MISSING),
    "tornado-figure-3": Exhibit("tornado", _figure_3, None, None, "", missing=_MISSING),
}
