# One HTML page over all results of a folder: summaries, plots, rows. It needs no other file.
# SPDX-License-Identifier: Apache-2.0
import base64
import html
import json

from . import experiments
from .errors import MISSING, LabError
from .plots import images

_STYLE = """body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1100px;padding:0 1em;color:#222}
h1{font-size:1.6em}h2{border-top:1px solid #ccc;padding-top:1em}table{border-collapse:collapse;font-size:.85em}
td,th{border:1px solid #ddd;padding:.2em .5em;text-align:right}th{background:#f4f4f4}td.t{text-align:left}
.wide{overflow-x:auto}.error{color:#a00;text-align:left}img{max-width:49%}dt{font-weight:bold}"""
# What a table shows of a row: these if any row has them, then whatever only the experiment knows.
_HIDDEN = {"runs", "errors", "series", "done_mb", "useful_mb_s", "server_mbps", "client_mbps", "capture_mbps"}


def results(folder):
    """Every result in the folder, in the order of `list`; other JSON files are left alone."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            result = json.loads(path.read_text())
        except ValueError as error:
            raise LabError(f"{path}: no JSON: {error}; remove it or run the experiment again", MISSING) from None
        if isinstance(result, dict) and result.get("experiment") in experiments.NAMES and "rows" in result:
            found.append((path.stem, result))
    if not found:
        raise LabError(f"{folder}: no results; run an experiment first: ./dev lab list", MISSING)
    return sorted(found, key=lambda each: (experiments.NAMES.index(each[1]["experiment"]), each[0]))


def cell(value):
    if value is None:
        return "<td>–</td>"
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, float):
        return f"<td>{value:.4g}</td>"
    if isinstance(value, int):
        return f"<td>{value}</td>"
    return f'<td class="t">{html.escape(str(value))}</td>'


def table(rows):
    columns = list(dict.fromkeys(key for row in rows for key in row if key not in _HIDDEN))
    head = "".join(f"<th>{html.escape(key)}</th>" for key in columns)
    body = "".join("<tr>" + "".join(cell(row.get(key)) for key in columns) + "</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def section(stem, result):
    experiment = experiments.load(result["experiment"])
    pictures = "".join(
        f'<img alt="{html.escape(name)}" src="data:image/png;base64,{base64.b64encode(image).decode()}">'
        for name, image in images(result)
    )
    how = {key: result.get(key) for key in ("version", "started", "quick", "repeats", "nodes", "loss_percent")}
    return (
        f'<h2 id="{html.escape(stem)}">{html.escape(stem)}</h2><p>{html.escape(experiment.HELP)}</p>'
        f"{table([result['summary']])}<p>{pictures}</p>{table(result['rows'])}"
        f"<p><small>{html.escape(json.dumps(how))}<br>{html.escape(json.dumps(result['machine']))}</small></p>"
    )


def page(found):
    links = " · ".join(f'<a href="#{html.escape(stem)}">{html.escape(stem)}</a>' for stem, _ in found)
    sections = "".join(section(stem, result) for stem, result in found)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Sluice performance lab</title>'
        f"<style>{_STYLE}</style><h1>Sluice performance lab</h1><p>{links}</p>"
        "<p>Medians of interleaved runs; whiskers and _min, _max are the extremes of all runs. loss, retransmits, "
        "memory and disturbances are those of the worst run.</p>"
        f"{sections}</html>\n"
    )


def write(folder, out):
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(results(folder)))
    return out
