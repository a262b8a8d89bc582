# docs/papers: the exhibits for who has no build. A document of Markdown, an SVG for each figure, and the numbers as JSON.
# SPDX-License-Identifier: Apache-2.0
import json

from . import tracing
from .drawing import remarks
from .page import alternative, lead, picture, source
from .parts import Table

NUMBERS = "seeds.json"


def _cell(value):
    return str(value).replace("|", "\\|").replace("\n", " ")


def _table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _panel(panel, title):
    if panel is None:
        return f"{title}: not run."
    rows = [[cell if isinstance(cell, str) else cell["text"] for cell in row] for row in panel.rows]
    note = f"\n\n{panel.note}" if panel.note and panel.note != title else ""
    return f"{title}:\n\n{_table(panel.head, rows)}{note}"


def _section(each):
    about = each.about
    parts = [f"### {about['paper']}, {about['label']}: {about['title']}", f"**{each.judged.verdict}** {each.judged.reason}"]
    if isinstance(each.left, Table):
        parts += [_panel(each.left, "The paper"), _panel(each.right, "Sluice")]
    else:
        parts.append(f"![{alternative(each)[0].replace('[', '(').replace(']', ')')}]({each.name}.svg)")
    if each.more:
        parts.append(_panel(each.more, each.more.note))
    if each.judged.ratio:
        parts.append(f"Ratio: {each.judged.ratio}")
    if each.exhibit.differs:
        parts.append(f"What differs: {each.exhibit.differs}")
    parts += [f"Doubt about the paper: {doubt}" for doubt in about.get("doubts", ())]
    if each.source:
        parts.append(f"`{each.command()}`; {source(each)}")
    return "\n\n".join(parts)


def markdown(papers, drawn):
    rows = [[f"{each.about['paper']}, {each.about['label']}", each.about["title"], each.judged.verdict, each.judged.ratio,
             "; ".join(remarks(each.source)) if each.source else ""] for each in drawn]  # fmt: skip
    diagrams = [[each["paper"], each["label"], each["what"], each["ours"]] for each in papers.document["diagrams"]]
    return "\n\n".join([
        "# The papers beside Sluice",
        f"{len(drawn)} tables and figures of the five papers ([SOURCES](../SOURCES.md)): {lead(drawn)}. Left what the paper prints, right what "
        "was measured here, in the same axes. A number that a paper only plots is not here. `./dev lab seeds --out docs/papers` makes this "
        "page of the results of `./dev lab seeds --run`; do not edit it. Every number stands in `seeds.json` with its source.",
        _table(["exhibit", "what", "verdict", "ours over the paper's", "remarks"], rows),
        *(_section(each) for each in drawn),
        "## Diagrams and screenshots",
        _table(["paper", "figure", "what", "ours"], diagrams),
    ]) + "\n"  # fmt: skip


def write(folder, papers, drawn, results):
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("*.svg")]:
        old.unlink()
    for each in drawn:
        image = picture(each)
        if image:
            (folder / f"{each.name}.svg").write_text(image + "\n", encoding="utf-8")
    (folder / NUMBERS).write_text(json.dumps(tracing.document(drawn, results), ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(markdown(papers, drawn), encoding="utf-8")
    return folder / "README.md"
