# Tornado: a fountain code beside scp.
# SPDX-License-Identifier: Apache-2.0
from ..parts import Axis, Chart, Exhibit, Judged, Series, figure, paper_point, points

_LOSS, _TIME = Axis("loss", "%"), Axis("transfer time", "s")
_DELAY, _OVER = Axis("one-way delay", "ms"), Axis("speed of scp over the coded transfer", "x")
_SIZE = Axis("file", "MB")
_WHATS = ("fec-auto", "fec-off", "fec-rs", "fec-raptorq", "scp-cubic", "scp-bbr")
_EVEN = 1.02
_DIFFERS = ("An emulator of our own stands for Mahimahi. Sluice enciphers, and its control connection does not feel the delay; a file of 10 MB is "
            "assumed where the paper names none. Of a packet of 1500 bytes Sluice spends 100 on headers and the seal, TCP 52: where nothing is lost, "
            "0.967 times the speed of scp is what is possible.")  # fmt: skip


def _figure_1(papers):
    return Chart(_LOSS, _TIME, [Series("Tornado", [paper_point(papers, "T-f1-0", 0), paper_point(papers, "T-f1-1", 1)], "marks")],
                 "above 2 % it is faster than scp")  # fmt: skip


def _figure_2(papers):
    low, high = papers.values["T-f2-range"]["value"], papers.values["T-f2-range"]["value_high"]
    return Chart(_DELAY, _OVER, [Series("about 2 throughout", [paper_point(papers, "T-f2-2x", each) for each in (low, high)])])


def _figure_3(_papers):
    return Chart(_SIZE, _TIME, [], "only plotted: 10 to 50 MB, scp faster throughout")


def _ours(number, axis, key):
    def draw(result):
        found = {what: points(result.rows(figure=number, what=what), key, "wall_s") for what in _WHATS}
        return Chart(axis, _TIME, [Series(what, drawn) for what, drawn in found.items() if drawn])

    return draw


def _our_figure_2(result):
    """Of scp in CUBIC; each point's extremes are those of the code's time."""
    scp = {row["delay_ms"]: row["wall_s"] for row in result.rows(figure=2, what="scp-cubic")}
    series = []
    for what in _WHATS[:4]:
        drawn = [row.point("wall_s", row["delay_ms"], 1 / scp[row["delay_ms"]]) for row in result.rows(figure=2, what=what)
                 if row["delay_ms"] in scp]  # fmt: skip
        series.append(Series(what, sorted(filter(None, drawn), key=lambda each: each["x"])))
    return Chart(_DELAY, _OVER, [each for each in series if each.points])


def _judge(number, key, may_be_even):
    """By auto against the faster scp of each point; even is enough where the paper's code was slower than scp."""

    def judge(_papers, result):
        ours = {row[key]: row["wall_s"] for row in result.rows(figure=number, what="fec-auto")}
        scp = {}
        for row in [*result.rows(figure=number, what="scp-cubic"), *result.rows(figure=number, what="scp-bbr")]:
            scp[row[key]] = min(row["wall_s"], scp.get(row[key], row["wall_s"]))
        ratios = {at: scp[at] / ours[at] for at in sorted(ours) if at in scp}
        slower = [at for at, ratio in ratios.items() if ratio < (1 / _EVEN if may_be_even(at) else 1)]
        least = min(ratios, key=ratios.get)
        reason = f"Where it is least, at {figure(least)}, the faster scp takes {figure(ratios[least])} times as long as --fec auto"
        reason += f"; slower than scp at {', '.join(map(figure, slower))}." if slower else "; it is slower than scp nowhere."
        return Judged("worse" if slower else "better", reason, f"{figure(ratios[least])}x the speed of scp at the least")

    return judge


EXHIBITS = {
    "tornado-figure-1": Exhibit("tornado", _figure_1, _ours(1, _LOSS, "loss_percent"), _judge(1, "loss_percent", lambda loss: loss < 2), _DIFFERS),
    "tornado-figure-2": Exhibit("tornado", _figure_2, _our_figure_2, _judge(2, "delay_ms", lambda _: True), _DIFFERS),
    "tornado-figure-3": Exhibit("tornado", _figure_3, _ours(3, _SIZE, "size_mb"), _judge(3, "size_mb", lambda _: True), _DIFFERS),
}
