# HIPSTER: its tables by size of the file, the laws of its channel, goodput over time.
# SPDX-License-Identifier: Apache-2.0
import functools

from ..parts import Axis, Chart, Exhibit, Judged, Series, Table, by_ratios, figure, law, paper_cell

_SIZES = (500, 200, 100, 50, 10, 5, 1)
_CHANNELS = {"1": "sluice-wire", "2": "sluice-channel"}
_LENGTH, _DROP, _DELAY = Axis("packet", "bytes"), Axis("dropped"), Axis("mean delay", "ms")
_TIME_MS, _PART = Axis("delay at 1012 bytes", "ms"), Axis("part of the packets")
_TIME, _SPEED = Axis("time", "s"), Axis("goodput at the receiver", "MB/s")
_LENGTHS = tuple(range(12, 1013, 50))
_TIMES_MS = tuple(range(0, 1001, 20))
_DIFFERS = ("Two channels that share no code stand for the paper's two; emulated between two nodes of one machine, as the paper's were on localhost. "
            "Sluice enciphers.")  # fmt: skip
_LAW_DIFFERS = "Sent by the kernel's UDP through two channels that share no code; the paper sent each length ten times."


def _table(papers, table):
    return Table(["MB", "mean time", "mean goodput"],
                 [[str(size), paper_cell(papers, f"H-t{table}-{size}-s", " s"), paper_cell(papers, f"H-t{table}-{size}-g", " MB/s")]
                  for size in _SIZES])  # fmt: skip


def _our_table(result, table):
    rows = []
    for size in _SIZES:
        of = {"channel": _CHANNELS[table], "size_mb": size}
        ours, same, theirs = (result.row(**of, what="sluice", unit="MB"), result.row(**of, what="sluice", unit="MiB"),
                              result.row(**of, what="hipster", unit="MB"))  # fmt: skip
        if ours is not None:
            rows.append([str(size), "–" if same is None else same.cell("wall_s", unit=" s"), ours.cell("mb_s", unit=" MB/s"),
                         "–" if theirs is None else theirs.cell("mb_s", unit=" MB/s")])  # fmt: skip
    return Table(["MB", "time of as many MiB", "goodput", "HIPSTER's own sender here"], rows)


def _judge_table(papers, result, table):
    ratios = {size: row["mb_s"] / papers.number(f"H-t{table}-{size}-g") for size in _SIZES
              if (row := result.row(channel=_CHANNELS[table], what="sluice", unit="MB", size_mb=size)) is not None and row.get("mb_s")}  # fmt: skip
    verdict, ratio = by_ratios(list(ratios.values()), "its goodput")
    least = min(ratios, key=ratios.get)
    largest = max(ratios)
    reason = (f"{len(ratios)} of 7 sizes. The least is {figure(ratios[least])} times, with {least} MB; with {largest} MB it is "
              f"{figure(ratios[largest])} times.")  # fmt: skip
    if verdict == "worse":
        reason += " Single runs are slow: the law of the rate takes the channel's loss for a full path until it has learned it."
    return Judged(verdict, reason, ratio)


def _of_channels(result, key, factor=1.0):
    drawn = []
    for name, measured in result.document["laws"].items():
        points = [{"x": each["length"], "y": each[key] * factor, "of": f"hipster/laws/{name}/{number}/{key}"}
                  for number, each in enumerate(measured) if each[key] is not None]  # fmt: skip
        drawn.append(Series(name, points, "marks"))
    return drawn


def _judge_drop(_papers, result):
    """Within 3.5 standard deviations of what so many packets show, of the 22 that are looked at."""
    away = []
    for each in _measured(result):
        law_part = each["dropped_law"]
        away.append(abs(each["dropped"] - law_part) / (law_part * (1 - law_part) / each["sent"]) ** 0.5)
    return Judged("reproduced" if max(away) < 3.5 else "disagrees", f"At most {figure(max(away), 2)} standard deviations from the law "
                  f"1 - exp(-L/1024), with {_measured(result)[0]['sent']} packets of each length.")  # fmt: skip


def _judge_delay(_papers, result):
    """As above; the mean of n exponential delays has a deviation of the mean over the root of n."""
    away = [abs(each["delay_ms"] / each["delay_ms_law"] - 1) * (each["sent"] * (1 - each["dropped"])) ** 0.5
            for each in _measured(result) if each["delay_ms"]]  # fmt: skip
    return Judged("reproduced" if max(away) < 3.5 else "disagrees",
                  f"Means at most {figure(max(away), 2)} standard deviations from the law 1024/ln(L) ms.")


def _measured(result):
    return [each for measured in result.document["laws"].values() for each in measured]


def _cdf(_papers):
    return Chart(_TIME_MS, _PART, [law("hipster-cdf", _TIMES_MS)])


def _our_cdf(result):
    drawn = []
    for name, measured in result.document["laws"].items():
        delays = measured[-1]["delays_ms"]
        step = max(1, len(delays) // 60)
        drawn.append(Series(name, [{"x": delays[number], "y": (number + 1) / len(delays)} for number in range(0, len(delays), step)], "curve",
                            of=f"hipster/laws/{name}/{len(measured) - 1}/delays_ms"))  # fmt: skip
    return Chart(_TIME_MS, _PART, drawn)


def _judge_cdf(_papers, result):
    worst = max(measured[-1]["distance"] for measured in result.document["laws"].values())
    return Judged("reproduced" if worst < 1.63 else "disagrees", f"Kolmogorov-Smirnov: the distance times the root of n is {figure(worst)}; of "
                  "those that follow the law one in twenty is above 1.36, one in a hundred above 1.63.")  # fmt: skip


def _over_time(_papers):
    return Chart(_TIME, _SPEED, [], "only plotted: high at first, lower at the end, sudden drops")


def _ours_over_time(size, result):
    drawn = []
    for channel in _CHANNELS.values():
        for what in ("sluice", "hipster"):
            row = result.row(channel=channel, what=what, size_mb=size, unit="MB")
            if row is not None and row.get("useful_mb_s"):
                series = row["runs"][-1]["useful_mb_s"]
                points = [{"x": 0.5 * (number + 1), "y": value} for number, value in enumerate(series)]
                drawn.append(Series(f"{what}, {channel}", points, "curve", of=row.path("useful_mb_s")))
    return Chart(_TIME, _SPEED, drawn) if drawn else None


def _judge_over_time(size, _papers, result):
    ours = [row["half_ratio"] for row in result.rows(what="sluice", size_mb=size, unit="MB") if row.get("half_ratio")]
    theirs = [row["half_ratio"] for row in result.rows(what="hipster", size_mb=size, unit="MB") if row.get("half_ratio")]
    text = f"The second half of the bytes comes {figure(min(ours))} times as fast as the first, in the slower of the two channels"
    if theirs:
        text += f"; with HIPSTER's own sender here {figure(min(theirs))} times"
    return Judged("better" if min(ours) > 0.9 else "reproduced", text + ". The paper sees goodput fall towards the end.")


def _tables(table):
    return Exhibit("hipster", lambda papers: _table(papers, table), lambda result: _our_table(result, table),
                   lambda papers, result: _judge_table(papers, result, table), _DIFFERS)  # fmt: skip


def _times(size):
    return Exhibit("hipster", _over_time, functools.partial(_ours_over_time, size), functools.partial(_judge_over_time, size), _DIFFERS)


EXHIBITS = {
    "hipster-table-1": _tables("1"),
    "hipster-table-2": _tables("2"),
    "hipster-figure-4": Exhibit("hipster", lambda _papers: Chart(_LENGTH, _DROP, [law("hipster-drop", _LENGTHS)]),
                                lambda result: Chart(_LENGTH, _DROP, _of_channels(result, "dropped")), _judge_drop, _LAW_DIFFERS),
    "hipster-figure-5": Exhibit("hipster", lambda _papers: Chart(_LENGTH, _DELAY, [law("hipster-delay", _LENGTHS)]),
                                lambda result: Chart(_LENGTH, _DELAY, _of_channels(result, "delay_ms")), _judge_delay, _LAW_DIFFERS),
    "hipster-figure-6": Exhibit("hipster", _cdf, _our_cdf, _judge_cdf, _LAW_DIFFERS),
    "hipster-figure-7": _times(200),
    "hipster-figure-8": _times(500),
}  # fmt: skip
