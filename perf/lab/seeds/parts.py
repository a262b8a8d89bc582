# What an exhibit is drawn of: panels of points, each of which says where its number comes from.
#
# `of` is a value of papers.json ("F-crc-824"), a place in a result ("hipster/rows/3/mb_s"), or a law that a paper prints
# ("law:hipster-drop"): perf/lab/seeds/tracing.py finds the number there again.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import math

VERDICTS = ("reproduced", "better", "worse", "disagrees", "not run")

# Printed as formulas; of a length in bytes.
LAWS = {
    "hipster-drop": lambda length: 1 - math.exp(-length / 1024),
    "hipster-delay": lambda length: 1024 / math.log(length),
    # Of a time in ms, at 1012 bytes.
    "hipster-cdf": lambda time_ms: 1 - math.exp(-time_ms * math.log(1012) / 1024),
}


@dataclasses.dataclass
class Axis:
    label: str
    unit: str = ""
    log: bool = False
    names: tuple = ()  # of an axis of categories: x is their number

    def text(self):
        return f"{self.label}, {self.unit}" if self.unit else self.label


@dataclasses.dataclass
class Series:
    name: str
    points: list  # {"x", "y", and of what was measured "low", "high", "n", "of"}
    kind: str = "line"  # or "marks", "curve" (without marks)
    of: str = ""  # where the whole series comes from, if its points do not say


@dataclasses.dataclass
class Chart:
    x: Axis
    y: Axis
    series: list
    note: str = ""


@dataclasses.dataclass
class Table:
    head: list
    rows: list  # of cells: a text, or a point with "text"
    note: str = ""


@dataclasses.dataclass
class Judged:
    verdict: str
    reason: str
    ratio: str = ""  # ours over the paper's, with what it is of; empty: there is none


@dataclasses.dataclass
class Exhibit:
    """left(papers) and right(result) draw the two panels; judge(papers, result) says how they compare."""

    experiment: str  # whose result it needs
    left: object
    right: object
    judge: object
    differs: str  # what differs in the conditions, in a sentence
    missing: str = ""  # why there is no such experiment yet
    more: object = None  # more(result) -> Table: what stands below the panels


class Result:
    """A result of the lab, whose numbers are taken with the place where they stand."""

    def __init__(self, document):
        self.document = document
        self.name = document["experiment"]

    def rows(self, **wanted):
        return [Row(self, index, row) for index, row in enumerate(self.document["rows"])
                if all(row.get(key) == value for key, value in wanted.items()) and "error" not in row]  # fmt: skip

    def summary_point(self, key, x=0):
        return {"x": x, "y": self.document["summary"][key], "of": f"{self.name}/summary/{key}"}

    def row(self, **wanted):
        """The first of them, or None."""
        found = self.rows(**wanted)
        return found[0] if found else None


class Row:
    def __init__(self, result, index, data):
        self.result, self.index, self.data = result, index, data

    def __getitem__(self, key):
        return self.data[key]

    def get(self, key):
        return self.data.get(key)

    def path(self, key):
        return f"{self.result.name}/rows/{self.index}/{key}"

    def point(self, key, x=0, factor=1.0):
        """The median of the runs with their extremes; None if it was not measured."""
        value = self.data.get(key)
        if value is None:
            return None
        runs = [run[key] for run in self.data.get("runs", ()) if isinstance(run.get(key), (int, float))]
        out = {"x": x, "y": value * factor, "of": self.path(key)}
        if factor != 1.0:
            out["factor"] = factor
        if len(runs) > 1:
            out.update(low=min(runs) * factor, high=max(runs) * factor, n=len(runs))
        return out

    def cell(self, key, factor=1.0, digits=3, unit=""):
        point = self.point(key, factor=factor)
        if point is None:
            return "–"
        text = figure(point["y"], digits)
        if "low" in point:
            text += f" ({figure(point['low'], digits)} to {figure(point['high'], digits)}, n = {point['n']})"
        return {**point, "text": text + unit}


def points(rows, x, key, factor=1.0):
    found = [row.point(key, row[x], factor) for row in rows]
    return sorted((each for each in found if each is not None), key=lambda each: each["x"])


def paper_point(papers, name, x, factor=1.0):
    out = {"x": x, "y": papers.number(name) * factor, "of": name}
    if factor != 1.0:
        out["factor"] = factor
    if "bound" in papers.values[name]:
        out["bound"] = papers.values[name]["bound"]
    return out


def paper_cell(papers, name, unit=""):
    value = papers.values[name]
    text = f"{value.get('bound', '')} {figure(value['value'], 6)}".strip()
    return {"x": 0, "y": value["value"], "of": name, "text": text + unit}


def law(name, xs):
    return Series("the law as printed", [{"x": x, "y": LAWS[name](x), "of": f"law:{name}"} for x in xs], "curve")


def figure(value, digits=3):
    """A number for a person."""
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e7:
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(power)}"
    text = f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def times(value):
    return f"{figure(value)} times"


def by_ratios(ratios, what, even=0.05):
    """A verdict of ratios of ours to the paper's, where more is better: the worst decides, the median is shown."""
    ordered = sorted(ratios)
    middle = ordered[len(ordered) // 2] if len(ordered) % 2 else (ordered[len(ordered) // 2 - 1] + ordered[len(ordered) // 2]) / 2
    text = f"{times(middle)} {what}" + (f" ({figure(ordered[0])} to {figure(ordered[-1])})" if len(ordered) > 1 else "")
    if ordered[0] < 1 - even:
        return "worse", text
    return ("better" if ordered[-1] > 1 + even else "reproduced"), text
