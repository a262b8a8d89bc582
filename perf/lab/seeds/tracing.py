# Where each number of a drawn exhibit comes from: the document beside the page, and whether its numbers are found there.
# SPDX-License-Identifier: Apache-2.0
import json
import math
import pathlib

from .parts import LAWS, Table

SCHEMA = pathlib.Path(__file__).with_name("page.schema.json")
_OF_RESULT = ("experiment", "version", "machine", "started", "quick", "brief", "only", "repeats", "summary")


def document(drawn, results):
    """What the page shows, as one JSON object; of the results just what is shown, so that it can be found again."""
    exhibits = [_exhibit(each) for each in drawn]
    return {"schema": "sluice.lab.seeds.v1", "exhibits": exhibits, "results": _only(results, exhibits)}


def _exhibit(each):
    return {"id": each.name, "verdict": each.judged.verdict, "reason": each.judged.reason, "ratio": each.judged.ratio,
            "experiment": each.exhibit.experiment, "left": _panel(each.left), "right": _panel(each.right), "more": _panel(each.more)}  # fmt: skip


def _panel(panel):
    if panel is None:
        return None
    if isinstance(panel, Table):
        return {"head": panel.head, "rows": [[cell if isinstance(cell, str) else _point(cell) for cell in row] for row in panel.rows]}
    return {"x": panel.x.text(), "y": panel.y.text(), "log": [panel.x.log, panel.y.log],
            "series": [{"name": each.name, **({"of": each.of} if each.of else {}), "points": [_point(point) for point in each.points]}
                       for each in panel.series]}  # fmt: skip


def _point(point):
    return {key: (float(f"{value:.6g}") if isinstance(value, float) else value) for key, value in point.items()}


def _only(results, exhibits):
    """Rows with what is shown of them and their setting; runs with what points show of them."""
    shown = {}
    for place in _places(exhibits):
        name, part, *rest = place.split("/")
        if part == "rows":
            shown.setdefault(name, {}).setdefault(int(rest[0]), set()).add(rest[1])
        elif part == "laws":
            shown.setdefault(name, {})
    out = {}
    for name, rows in shown.items():
        result = results[name]
        kept = {key: result[key] for key in _OF_RESULT if key in result}
        kept["rows"] = [_row(row, rows.get(index, set())) for index, row in enumerate(result["rows"])]
        if "laws" in result:
            kept["laws"] = result["laws"]
        out[name] = json.loads(json.dumps(kept), parse_float=lambda text: float(f"{float(text):.6g}"))
    return out


def _row(row, shown):
    """Numbers and words, and of lists those that are shown, of the last run."""
    out = {key: value for key, value in row.items() if key != "runs" and not isinstance(value, (list, dict))}
    out.update({key: row[key] for key in shown if isinstance(row.get(key), list)})
    if shown:
        out["runs"] = [{key: run[key] for key in shown if key in run} for run in row.get("runs", ())]
    return out


def _places(exhibits):
    for each in exhibits:
        for panel in (each["left"], each["right"], each["more"]):
            for point in _points(panel):
                yield from (place for place in [point.get("of")] if place and "/" in place)


def _points(panel):
    """Points, cells, and series that are of one place."""
    if panel is None:
        return
    if "rows" in panel:
        yield from (cell for row in panel["rows"] for cell in row if not isinstance(cell, str))
        return
    for series in panel["series"]:
        if "of" in series:
            yield series
        else:
            yield from series["points"]


# ---- the check ----------------------------------------------------------------------------------


def problems(page, papers):
    """Sentences: exhibits that are missing, numbers that are not found where they are said to come from."""
    import jsonschema  # only here: a page is drawn without it

    validator = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text()))
    found = [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in validator.iter_errors(page)]
    if found:
        return found
    names = [each["id"] for each in page["exhibits"]]
    found += [f"exhibit {name}: not on the page" for name in papers.exhibits if name not in names]
    for each in page["exhibits"]:
        for side in ("left", "right", "more"):
            for point in _points(each[side]):
                problem = _untraceable(point, page["results"], papers)
                if problem:
                    found.append(f"exhibit {each['id']}, {side}: {problem}")
    return found


def _untraceable(point, results, papers):
    place = point.get("of", "")
    if "points" in point:
        return None if _at(place, results) is not None else f"series {point['name']}: {place or 'no place'} is not in the results"
    if place.startswith("law:"):
        expected = LAWS[place[4:]](point["x"]) if place[4:] in LAWS else None
    elif "/" in place:
        expected = _at(place, results)
    else:
        expected = papers.values.get(place, {}).get(point.get("key", "value"))
    if not isinstance(expected, (int, float)):
        return f"{point['y']:g} has no source: {place or 'no place'}"
    expected *= point.get("factor", 1.0)
    if not math.isclose(point["y"], expected, rel_tol=1e-4, abs_tol=1e-300):
        return f"{point['y']:g} is not what {place} says: {expected:g}"
    return None


def _at(place, results):
    node = results
    for part in place.split("/"):
        try:
            node = node[int(part)] if isinstance(node, list) else node[part]
        except (LookupError, ValueError, TypeError):
            return None
    return node
