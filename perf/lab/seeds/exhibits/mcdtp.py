# MCDTP: one file over 1, 2, 4 and 8 channels. In the paper's unit, "Kbps", whatever it means.
# SPDX-License-Identifier: Apache-2.0
import functools

from ..parts import Axis, Chart, Exhibit, Judged, Series, Table, by_ratios, figure, paper_cell, paper_point

_LANES = (1, 2, 4, 8)
_FAST_MBPS, _SLOW_MBPS = 200, 20
_KBPS_OF_GBPS, _KBPS_OF_MBPS = 1e6, 1e3
_CHANNELS = Axis("channels", names=tuple(map(str, _LANES)))
_SPEED, _LOSS = Axis("throughput", "kbit/s"), Axis("packets lost", "%")
_TIME = Axis("time", "s")
_DIFFERS = ("An emulated link of 200 Mbit/s with 80 ms and a queue of one BDP, not hosts in New York and Amsterdam; the loss of 14 % is the path's, "
            "where the paper's was of its own making.")  # fmt: skip


def _rows(result, loss, link=_FAST_MBPS):
    return {row["lanes"]: row for row in result.rows(link_mbps=link, loss_percent=loss)}


def _table(papers, table, host):
    what = {"avg": "mean", "max": "maximum"} | ({"loss": "loss"} if table == "5.1" else {})
    units = {"avg": " Kbps", "max": " Kbps", "loss": " %"}
    return Table([f"{host}, channels", *map(str, _LANES)],
                 [[name, *(paper_cell(papers, f"M-{table}-{key}-{lanes}", units[key]) for lanes in _LANES)] for key, name in what.items()])


def _our_table(result, host, key):
    rows = []
    for loss in (0.0, 14.0):
        found = _rows(result, loss)
        path = "clean" if not loss else f"{loss:g} % loss"

        def line(name, of, factor, unit=""):
            rows.append([f"{name}, {path}", *(found[lanes].cell(of, factor, 3, unit) if lanes in found else "–" for lanes in _LANES)])

        line("mean", "goodput_gbps", _KBPS_OF_GBPS, " Kbps")
        line("maximum", key, _KBPS_OF_MBPS, " Kbps")
        line("loss", "loss", 100, " %")
    return Table([f"{host}, lanes", *map(str, _LANES)], rows, "maxima of one second, those of the paper of 60")


def _judge(papers, result, table, what, key, factor):
    """By the lossy path: it is what the paper's single channel saw."""
    found = _rows(result, 14.0)
    theirs = {lanes: papers.number(f"M-{table}-{what}-{lanes}") for lanes in _LANES}
    ratios = [found[lanes][key] * factor / theirs[lanes] for lanes in _LANES if lanes in found and theirs[lanes]]
    verdict, ratio = by_ratios(ratios, "its throughput as printed, at 14 % loss")
    middle = sorted(ratios)[len(ratios) // 2]
    eight = found.get(8)
    return Judged(verdict, f"If \"Kbps\" means Mbit/s, {figure(middle / 1e3)} times. Eight lanes bring {figure(eight[key] * factor / 1e3)} Mbit/s, "
                  f"one lane {figure(found[1][key] * factor / 1e3)}; in the paper eight channels stalled, and four had a seventh of one.", ratio)  # fmt: skip


def _by_lanes(papers, what, axis, tables):
    series = [Series(name, [paper_point(papers, f"M-{table}-{what}-{lanes}", number) for number, lanes in enumerate(_LANES)])
              for table, name in tables]  # fmt: skip
    return Chart(_CHANNELS, axis, series)


def _ours_by_lanes(result, axis, keys, factor):
    drawn = []
    for loss in (0.0, 14.0):
        found = _rows(result, loss)
        for key, name in keys:
            points = [found[lanes].point(key, number, factor) for number, lanes in enumerate(_LANES) if lanes in found]
            drawn.append(Series(f"{name}{loss:g} % lost by the path", points))
    return Chart(_CHANNELS, axis, drawn)


def _over_time(_papers):
    return Chart(_TIME, _SPEED, [], "only plotted, in intervals of 60 s; eight channels \"yielded no data\"")


def _ours_over_time(key, result):
    drawn = []
    link = _SLOW_MBPS if _rows(result, 0.0, _SLOW_MBPS) else _FAST_MBPS
    for loss in (0.0, 14.0):
        for lanes, row in _rows(result, loss, link).items():
            values = row["runs"][-1][key]
            drawn.append(Series(f"{lanes}, {loss:g} %", [{"x": (number + 0.5) * row["interval_s"], "y": value * _KBPS_OF_MBPS}
                                                      for number, value in enumerate(values)], "curve", of=row.path(key)))  # fmt: skip
    note = f"lanes and loss; a link of {link} Mbit/s, intervals of {60 if link == _SLOW_MBPS else 1} s"
    return Chart(_TIME, _SPEED, drawn, note)


def _judge_over_time(papers, result, host):
    judged = _judge(papers, result, "5.1" if host == "server" else "5.2", "avg", "goodput_gbps", _KBPS_OF_GBPS)
    worst = max(row["log_error"] for row in result.rows(link_mbps=_FAST_MBPS))
    end = "source" if host == "server" else "destination"
    judged.reason = (f"From the {end}'s network log; the bytes of the logs differ from a capture between the nodes "
                     f"by {figure(worst * 100, 2)} % at most. " + judged.reason)  # fmt: skip
    return judged


def _judge_loss(papers, result):
    clean, lossy = _rows(result, 0.0), _rows(result, 14.0)
    found = ", ".join(f"{figure(lossy[lanes]['loss'] * 100)} %" for lanes in _LANES if lanes in lossy)
    own = max(row["loss"] for row in clean.values()) * 100
    verdict = "better" if own < 1 and all(abs(row["loss"] * 100 - 14) < 2 for row in lossy.values()) else "worse"
    return Judged(verdict, f"More lanes lose no more: {found} with 1, 2, 4 and 8 lanes where the path loses 14 %, at most {figure(own, 2)} % where "
                  "it loses nothing. The paper's loss grows from 14 to 100 %, by the tasks of its own runtime.",
                  f"{figure(max(row['loss'] for row in lossy.values()) * 100 / papers.number('M-5.1-loss-4'))} times its loss with four")  # fmt: skip


_BOTH = (("5.1", "server"), ("5.2", "client"))
_MAXIMA = (("max_server_mbps", "source, "), ("max_client_mbps", "destination, "))
EXHIBITS = {
    "mcdtp-table-5.1": Exhibit("mcdtp", lambda papers: _table(papers, "5.1", "server"),
                               lambda result: _our_table(result, "source", "max_server_mbps"),
                               lambda papers, result: _judge(papers, result, "5.1", "avg", "goodput_gbps", _KBPS_OF_GBPS), _DIFFERS),
    "mcdtp-table-5.2": Exhibit("mcdtp", lambda papers: _table(papers, "5.2", "client"),
                               lambda result: _our_table(result, "destination", "max_client_mbps"),
                               lambda papers, result: _judge(papers, result, "5.2", "avg", "goodput_gbps", _KBPS_OF_GBPS), _DIFFERS),
    "mcdtp-figure-5.1": Exhibit("mcdtp", _over_time, functools.partial(_ours_over_time, "client_mbps"),
                                lambda papers, result: _judge_over_time(papers, result, "client"), _DIFFERS),
    "mcdtp-figure-5.2": Exhibit("mcdtp", _over_time, functools.partial(_ours_over_time, "server_mbps"),
                                lambda papers, result: _judge_over_time(papers, result, "server"), _DIFFERS),
    "mcdtp-figure-5.3": Exhibit("mcdtp", lambda papers: _by_lanes(papers, "avg", _SPEED, _BOTH),
                                lambda result: _ours_by_lanes(result, _SPEED, (("goodput_gbps", ""),), _KBPS_OF_GBPS),
                                lambda papers, result: _judge(papers, result, "5.1", "avg", "goodput_gbps", _KBPS_OF_GBPS), _DIFFERS),
    "mcdtp-figure-5.4": Exhibit("mcdtp", lambda papers: _by_lanes(papers, "max", _SPEED, _BOTH),
                                lambda result: _ours_by_lanes(result, _SPEED, _MAXIMA, _KBPS_OF_MBPS),
                                lambda papers, result: _judge(papers, result, "5.1", "max", "max_server_mbps", _KBPS_OF_MBPS), _DIFFERS),
    "mcdtp-figure-5.5": Exhibit("mcdtp", lambda papers: _by_lanes(papers, "loss", _LOSS, (("5.1", "server"),)),
                                lambda result: _ours_by_lanes(result, _LOSS, (("loss", ""),), 100), _judge_loss, _DIFFERS),
}  # fmt: skip
