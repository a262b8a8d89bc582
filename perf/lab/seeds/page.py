# The page: a head table, each exhibit with its two panels, every number of the papers. One file that needs no other.
#
# It is written as well-formed XML, which a browser reads as HTML, so that a test can parse all of it.
# SPDX-License-Identifier: Apache-2.0
import html

from . import charts
from .drawing import counts, remarks
from .parts import Chart, Table, figure

_STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:1100px;padding:0 1em;color:#222}
h1{font-size:1.7em}h2{border-top:2px solid #ccc;padding-top:.8em;margin-top:2em}h3{margin-bottom:.2em}
table{border-collapse:collapse;font-size:.86em;margin:.4em 0}td,th{border:1px solid #ddd;padding:.25em .5em;text-align:left;vertical-align:top}
th{background:#f4f4f4}.pair{display:flex;gap:1em;flex-wrap:wrap}.pair>div{flex:1 1 460px;overflow-x:auto}svg{max-width:100%;height:auto}
.v{font-weight:bold;white-space:nowrap}.reproduced{color:#1d6b2f}.better{color:#1d6b2f}.worse{color:#a11}.disagrees{color:#8a5a00}.not-run{color:#666}
.how{color:#555;font-size:.86em}.doubt{color:#8a5a00}summary{cursor:pointer;color:#20639b}.wide{overflow-x:auto}"""


def text(value):
    return html.escape(str(value))


def verdict(judged):
    return f'<span class="v {judged.verdict.replace(" ", "-")}">{text(judged.verdict)}</span>'


def table(head, rows):
    top = "".join(f"<th>{text(each)}</th>" for each in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _panel_table(panel, title):
    if panel is None:
        return f"<div><p><b>{title}</b>: not run</p></div>"
    rows = [[text(cell if isinstance(cell, str) else cell["text"]) for cell in row] for row in panel.rows]
    note = f'<p class="how">{text(panel.note)}</p>' if panel.note and panel.note != title else ""
    return f"<div><p><b>{text(title)}</b></p>{table(panel.head, rows)}{note}</div>"


def alternative(each):
    """(title, description) of an image, for who does not see it: what is on its two sides, and the verdict."""
    def names(panel):
        return "nothing" if panel is None else "; ".join(series.name for series in panel.series) or "no numbers, only a plot"

    return (f"{each.about['paper']}, {each.about['label']}: {each.about['title']}",
            f"Left, the paper: {names(each.left)}. Right, Sluice: {names(each.right)}. {each.judged.verdict}: {each.judged.reason}")  # fmt: skip


def picture(each):
    """Its SVG, or None where it is a table."""
    if not isinstance(each.left, Chart):
        return None
    return charts.pair(each.left, each.right, each.name.replace(".", "-"), alternative(each))


def panels(each):
    if isinstance(each.left, Table):
        return f'<div class="pair">{_panel_table(each.left, "the paper")}{_panel_table(each.right, "Sluice")}</div>'
    return picture(each)


def source(each):
    """How it was measured, in words."""
    if each.source is None:
        return ""
    machine = each.source["machine"]
    parts = [each.source["version"], f"{machine['cpu']}, {machine['cpus']} CPUs", machine["system"], each.source["started"], *remarks(each.source)]
    return "; ".join(map(str, parts))


def value_text(value):
    if "values" in value:
        return ", ".join(map(figure, value["values"]))
    if "value" not in value:
        return value.get("formula") or value["status"]
    high = f" to {figure(value['value_high'], 6)}" if "value_high" in value else ""
    return f"{value.get('bound', '')} {figure(value['value'], 6)}{high} {value['unit']}".strip()


def values_table(values):
    rows = []
    for value in values:
        known = value["status"] + (f": {value['arithmetic']}" if "arithmetic" in value else "")
        doubt = "; ".join(value[key] for key in ("doubt", "note") if key in value)
        rows.append([text(value["id"]), text(value["section"]), text(value["quantity"]), text(value_text(value)), text(value["conditions"]),
                     text(known), f'<span class="doubt">{text(doubt)}</span>'])  # fmt: skip
    return table(["id", "section", "quantity", "value", "conditions", "how known", "doubt"], rows)


def _section(papers, each):
    about = each.about
    doubts = "".join(f'<li class="doubt">{text(doubt)}</li>' for doubt in about.get("doubts", ()))
    ratio = f"<p><b>Ratio:</b> {text(each.judged.ratio)}</p>" if each.judged.ratio else ""
    differs = f"<p><b>What differs:</b> {text(each.exhibit.differs)}</p>" if each.exhibit.differs else ""
    how = f'<p class="how"><code>{text(each.command())}</code> · {text(source(each))}</p>' if each.source else ""
    values = papers.of_exhibit(each.name)
    more = _panel_table(each.more, each.more.note) if each.more else ""
    return (
        f'<section id="{text(each.name)}"><h3>{text(about["paper"])}, {text(about["label"])}: {text(about["title"])}</h3>'
        f"<p>{verdict(each.judged)} {text(each.judged.reason)}</p>{panels(each)}{more}{ratio}{differs}"
        + (f"<p><b>Doubts about the paper:</b></p><ul>{doubts}</ul>" if doubts else "")
        + f"{how}<details><summary>{len(values)} numbers of the paper</summary>{values_table(values)}</details></section>"
    )


def head_table(drawn):
    rows = [[f'<a href="#{text(each.name)}">{text(each.about["paper"])}, {text(each.about["label"])}</a>', text(each.about["title"]),
             verdict(each.judged), text(each.judged.ratio), f"<code>{text(each.exhibit.experiment)}</code>",
             text("; ".join(remarks(each.source)) if each.source else "")] for each in drawn]  # fmt: skip
    return table(["exhibit", "what", "verdict", "ours over the paper's", "experiment", "remarks"], rows)


def lead(drawn):
    return ", ".join(f"{count} {name}" for name, count in sorted(counts(drawn).items()))


def beside(results):
    """What no exhibit shows and the papers ask for: many sessions at once."""
    result = results.get("sessions")
    if result is None:
        return ""
    rows = [[text(row["sessions"]), text(figure(row["goodput_gbps"])), text(figure(row["jain"])), text(row["crc_errors"])]
            for row in result["rows"] if row.get("goodput_gbps")]  # fmt: skip
    return ("<h2>Sessions at once</h2><p>FMFT (section 5) wanted a thread for each session. Here the workers serve all of them in turn.</p>"
            + table(["sessions", "goodput of all, Gbit/s", "Jain's index", "damaged chunks"], rows))  # fmt: skip


def page(papers, drawn, results):
    sections = []
    for name, about in papers.names.items():
        who = f" {text(about['authors'])}, {about['year']}." if "year" in about else ""
        sections.append(f'<h2>{text(name)}</h2><p class="how">{text(about["title"])}.{who}</p>')
        sections += [_section(papers, each) for each in drawn if each.about["paper"] == name]
    diagrams = [[text(each["paper"]), text(each["label"]), text(each["what"]), text(each["ours"])] for each in papers.document["diagrams"]]
    others = [value for value in papers.values.values() if not value["exhibits"]]
    return (
        '<!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml" lang="en"><head><meta charset="utf-8"/>'
        f'<title>The papers beside Sluice</title><meta name="viewport" content="width=device-width"/><style>{_STYLE}</style></head><body>'
        f"<h1>The papers beside Sluice</h1><p>{len(drawn)} tables and figures of five papers: {text(lead(drawn))}. Left what the paper prints, "
        "right what was measured here, in the same axes. Marks of ours are medians; bars reach from the least to the most of the runs. "
        "A number that a paper only plots is not here: nobody read it off a picture.</p>"
        f"{head_table(drawn)}{''.join(sections)}{beside(results)}"
        f"<h2>Diagrams and screenshots</h2>{table(['paper', 'figure', 'what', 'ours'], diagrams)}"
        f"<h2>Numbers of no exhibit</h2>{values_table(others)}</body></html>\n"
    )
