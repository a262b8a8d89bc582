# Phatpackets: size of the datagram, scaling, throughput over time, several servers, experiments with real damage.
# SPDX-License-Identifier: Apache-2.0
from ..parts import Axis, Chart, Exhibit, Judged, Series, Table, by_ratios, figure, paper_cell, paper_point, points, times

_MTU = Axis("MTU", "bytes")
_GAIN = Axis("speed over that of 1500 bytes", "x")
_TIME = Axis("time to download 10 MB", "s")
_BYTES = 10_000_000
_WAYS = (("sluice", "Sluice"), ("tcp", "kernel TCP, finite queue"), ("sluice-queue", "Sluice, the same queue"))


def _of(result, what):
    return result.rows(size_bytes=_BYTES, what=what)


def _figure_1(papers):
    low = paper_point(papers, "P-mtu-gain", 15000)
    high = papers.values["P-mtu-gain"]["value_high"]
    return Chart(_MTU, _GAIN, [Series("ns2, TCP: 8 to 9", [{**low, "low": low["y"], "high": high}], "marks")])


def _our_figure_1(result):
    return Chart(_MTU, _GAIN, [Series(name, points(_of(result, what), "datagram_bytes", "over_1500"))
                               for what, name in _WAYS
                               if points(_of(result, what), "datagram_bytes", "over_1500")])  # fmt: skip


def _judge_figure_1(papers, result):
    low, high = papers.number("P-mtu-gain"), papers.values["P-mtu-gain"]["value_high"]
    ours, tcp = (_at(result, what, 15000, "over_1500") for what in ("sluice", "tcp"))
    text = f"Larger datagrams bring {figure(ours)} times the speed of 1500 bytes here"
    if tcp is None:
        return Judged("not run", text + "; the kernel's TCP beside it was not measured.")
    text += f", and the kernel's TCP through a finite queue {figure(tcp)} times; the paper's simulated TCP {figure(low)} to {figure(high)}."
    if low * 0.8 <= tcp <= high * 1.25:
        return Judged("reproduced", text, f"{times(tcp / low)} its gain")
    return Judged("disagrees", text + " Today's TCP starts with ten segments (RFC 6928) and grows by bytes, so that the size of a segment "
                  "counts for less; the paper's link and queue are not given.", f"{times(tcp / low)} its gain")  # fmt: skip


def _at(result, what, size, key):
    row = result.row(size_bytes=_BYTES, what=what, datagram_bytes=size)
    return None if row is None else row.get(key)


def _figure_2(_papers):
    return Chart(_MTU, _TIME, [], "only plotted: a best MTU, beyond which larger ones are slower")


def _our_figure_2(result):
    drawn = [Series(name, points(_of(result, what), "datagram_bytes", "session_s")) for what, name in _WAYS]
    return Chart(_MTU, _TIME, [each for each in drawn if each.points])


def _judge_figure_2(_papers, result):
    def best(what):
        found = [row for row in _of(result, what) if row.get("session_s")]
        return min(found, key=lambda row: row["session_s"])["datagram_bytes"] if found else None

    queue = best("sluice-queue") or best("sluice")
    tcp = best("tcp")
    text = f"Sluice is fastest with datagrams of {queue} bytes" + (f", the kernel's TCP with {tcp}" if tcp else "") + "."
    largest = max(row["datagram_bytes"] for row in _of(result, "sluice"))
    slowest = max((row["session_s"] for row in _of(result, "sluice") if row["datagram_bytes"] >= queue), default=0)
    fastest = min(row["session_s"] for row in _of(result, "sluice"))
    if queue == largest or slowest < 1.5 * fastest:
        return Judged("better", text + " Its rate is paced, so that larger datagrams do not overrun the queue: no size beyond the best costs "
                      "half as much again, where the paper's TCP falls off \"considerably\".")  # fmt: skip
    return Judged("reproduced", text + " Beyond that it is slower, as in the paper.")


_TOOLS = ("all of the paper's", "Sluice", "gridftp", "socat", "scp")
_SLOPES = Axis("tool", names=_TOOLS)
_SLOPE = Axis("slope of log time over log size")


def _figure_3(papers):
    return Chart(_SLOPES, _SLOPE, [Series("below 1 to slightly above 1", [paper_point(papers, "P-slope", 0)], "marks")])


def _our_figure_3(result):
    drawn = [{**result.summary_point("slope", 1)}]
    for tool in _TOOLS[2:]:
        row = result.row(what="slope", peer=tool)
        if row is not None and row.get("slope") is not None:
            drawn.append(row.point("slope", _TOOLS.index(tool)))
    return Chart(_SLOPES, _SLOPE, [Series("time beyond the start", drawn, "marks")])


def _judge_figure_3(_papers, result):
    ours = result.document["summary"]["slope"]
    text = f"Sluice's slope is {figure(ours, 4)}, up to {result.document['summary']['largest_bytes'] / 2**30:g} GiB"
    others = {tool: row["slope"] for tool in _TOOLS[2:] if (row := result.row(what="slope", peer=tool)) is not None and row.get("slope")}
    if others:
        text += "; " + ", ".join(f"{tool} {figure(value, 4)}" for tool, value in others.items())
    verdict = "reproduced" if abs(ours - 1) <= 0.05 else "disagrees"
    return Judged(verdict, text + ". The paper says that all slopes are close to 1 and approach it.", f"{figure(ours, 4)} of 1")


_HOSTS = ("herzberg", "maci", "aurora")


def _table_1(papers):
    rows = [[host, *(paper_cell(papers, f"P-t1-{host}-{what}", " s") for what in ("ftp", "single", "multiple"))] for host in _HOSTS]
    return Table(["source", "FTP", "one server", "several servers"], rows)


# The sources of the lab have the rates that the paper's servers reached alone.
_SOURCES = {"herzberg": "gamma", "maci": "alpha", "aurora": "beta"}


def _of_table_1(result):
    """The rows of the largest file of which all together were measured, by source."""
    size_mb = max((row["size_mb"] for row in result.rows(path="80ms", sources="all")), default=None)
    return {row["sources"]: row for row in result.rows(path="80ms", size_mb=size_mb)}


def _our_table_1(result):
    found = _of_table_1(result)
    rows = [[f"{name}, as {host}", found[name].cell("wall_s", unit=" s") if name in found else "–"] for host, name in _SOURCES.items()]
    if "all" in found:
        rows.append(["all three", found["all"].cell("wall_s", unit=" s")])
    return Table(["source", f"{found['all']['size_mb']} MB" if "all" in found else "time"], rows)


def _judge_table_1(papers, result):
    ours = _of_table_1(result).get("all")
    share = ours and ours.get("of_sum")
    if share is None:
        return Judged("not run", "The three sources alone and all together were not measured with the same file.")
    total = sum(papers.number(f"P-t1-{host}-single-rate") for host in _HOSTS)
    theirs = [papers.number(f"P-t1-{host}-multiple-rate") / total for host in _HOSTS]
    verdict, ratio = by_ratios([share / each for each in theirs], "its part of the sum")
    return Judged(verdict, f"All three bring {figure(share)} of the sum of what each reaches alone, and {figure(ours['of_best_single'])} of the "
                  f"best; the paper's several servers {figure(min(theirs))} to {figure(max(theirs))} of the sum.", ratio)  # fmt: skip


_SECONDS, _RATE = Axis("time", "s"), Axis("throughput", "Mbit/s")


def _figure_4(_papers):
    return Chart(_SECONDS, _RATE, [], "only plotted: 256 MB, under flow control")


def _our_figure_4(result):
    row = result.row(case="figure4")
    drawn = [{"x": each[0], "y": each[1]} for each in row["runs"][-1]["series"]]
    return Chart(_SECONDS, _RATE, [Series("what left the path: 200, 100, 200 Mbit/s", drawn, "curve", of=f"steps/rows/{row.index}/series")])


def _judge_figure_4(_papers, result):
    row = result.row(case="figure4")
    share = row["best_s"] / row["elapsed_s"]
    text = (f"256 MB take {figure(row['elapsed_s'])} s over a link of 200 Mbit/s of which half is taken away for a third of the time; "
            f"{figure(row['best_s'])} s would be the least.")  # fmt: skip
    return Judged("reproduced" if share > 0.9 else "worse", text + " The rate follows what the path has, as the paper shows of its flow control.",
                  f"{figure(share)} of what is possible")  # fmt: skip


def _section_35(papers):
    rows = [["transfers of 4 MB, compared by MD5", paper_cell(papers, "P-e1-n")], ["of these wrong", paper_cell(papers, "P-e1-fail")],
            ["datagrams reflected, no UDP checksum", paper_cell(papers, "P-e2-n")],
            ["bytes in error", paper_cell(papers, "P-e2-bytes")], ["size of the damaged datagrams", paper_cell(papers, "P-e2-pkt", " B")]]  # fmt: skip
    return Table(["what", "the paper"], rows)


def _rows_35(result):
    return {(row["what"], row["path"]): row for row in result.rows()}


def _our_section_35(result):
    found = _rows_35(result)
    lines = (("transfers of 4 MB, compared by CRC-64 at three places", "transfers", "sound", "done"), ("of these wrong", "transfers", "sound", "wrong"),
             ("transfers over a path that flips bits", "transfers", "damaged", "done"), ("of these wrong", "transfers", "damaged", "wrong"),
             ("datagrams that came damaged, and were repaired", "transfers", "damaged", "crc_errors"),
             ("datagrams reflected, no UDP checksum", "packets", "sound", "done"), ("bytes in error", "packets", "sound", "wrong_bytes"),
             ("datagrams reflected over a path that flips bits", "packets", "damaged", "done"),
             ("frames that the path has damaged", "packets", "damaged", "injected"), ("datagrams that came back wrong", "packets", "damaged", "wrong"),
             ("bytes in error", "packets", "damaged", "wrong_bytes"), ("did not come back", "packets", "damaged", "lost"))  # fmt: skip
    return Table(["what", "Sluice"], [[name, found[what, path].cell(key, digits=6) if (what, path) in found else "–"]
                                      for name, what, path, key in lines])  # fmt: skip


def _judge_section_35(papers, result):
    found = _rows_35(result)
    sound, sound_packets, damaged = (found.get(each) for each in (("transfers", "sound"), ("packets", "sound"), ("packets", "damaged")))
    if sound is None or sound_packets is None or damaged is None:
        return Judged("not run", "Transfers and datagrams were not both measured.")
    paper = papers.number("P-e1-n")
    hit, seen = damaged["injected"], damaged["wrong"] + damaged["lost"]
    text = (f"Of {figure(sound['done'], 6)} transfers {figure(sound['wrong'])} were wrong, and of {figure(sound_packets['done'], 6)} datagrams "
            f"over a sound path {figure(sound_packets['wrong'])}: a bound of {figure(sound['wrong_share_at_most'])} of the transfers at 95 %, "
            f"where the paper's number gives {figure(3 / paper)}. Over a path that flips bits {figure(seen, 6)} of {figure(hit, 6)} "
            f"damaged frames show as wrong or missing datagrams; the rest are frames of other kinds.")  # fmt: skip
    share = f"{figure(sound['done'] / paper)} of its transfers"
    if sound["wrong"] or sound_packets["wrong"] or found["transfers", "damaged"]["wrong"]:
        return Judged("disagrees", text + " The path here has no cause for errors: look for one.", share)
    if not hit or not 0.8 <= seen / hit <= 1.0:
        return Judged("disagrees", text + " The probe does not see what the path did.", share)
    return Judged("reproduced", text + " That its own 21 bytes came of the ADSL line the paper does not know either; it never saw them again.", share)


EXHIBITS = {
    "phatpackets-figure-1": Exhibit("mtu", _figure_1, _our_figure_1, _judge_figure_1,
                                    "The paper simulates a link that it does not describe; here memory goes over a memif, and the kernel's TCP "
                                    "over an emulated link with a queue of one BDP."),
    "phatpackets-figure-2": Exhibit("mtu", _figure_2, _our_figure_2, _judge_figure_2,
                                    "The paper simulates a link that it does not describe; ours is an emulated one."),
    "phatpackets-figure-3": Exhibit("scaling", _figure_3, _our_figure_3, _judge_figure_3,
                                    "Two nodes on one machine, not hosts across Canada; tools of today."),
    "phatpackets-table-1": Exhibit("servers", _table_1, _our_table_1, _judge_table_1,
                                   "Three emulated links of the rates that the paper's servers reached alone, at 80 ms, not hosts across Canada; the "
                                   "paper does not say how large its file was, nor why several servers were no faster than one."),
    "phatpackets-figure-4": Exhibit("steps", _figure_4, _our_figure_4, _judge_figure_4,
                                    "An emulated link whose rate is halved for a third of the time; what the paper's network did is not said."),
    "phatpackets-section-3.5": Exhibit("integrity", _section_35, _our_section_35, _judge_section_35,
                                       "Two nodes on one machine with the path emulator between them, not a wireless LAN and 36 hops of the "
                                       "Internet; CRC-64 in place of MD5; the other node's dataplane reflects, not a firewall's rule."),
}  # fmt: skip
