# FMFT: what a CRC costs by the size of the chunk, and what pacing brings.
# SPDX-License-Identifier: Apache-2.0
from ..parts import Axis, Chart, Exhibit, Judged, Series, Table, by_ratios, figure, paper_point, points

_X, _Y = Axis("chunk", "bytes"), Axis("goodput", "Mbit/s")
_FIGURE_BYTES = 100_000_000
_WAYS = {"unpaced": "unpaced", "slot-1s": "1 s slots", "slot-1ms": "1 ms slots", "history": "history", "bucket": "bucket"}
_LADDER = Axis("way of pacing", names=tuple(_WAYS.values()))
_FIRST = Axis("arrive at first", "%")


def _figure_2(papers):
    plain = [paper_point(papers, "F-nocrc-800", papers.number(name)) for name in ("F-nocrc-from", "F-range-hi")]
    with_crc = [paper_point(papers, "F-crc-824", papers.number("F-crc-from"))]
    return Chart(_X, _Y, [Series("no CRC: above 800 between", plain, "marks"), Series("CRC-16", with_crc, "marks")])


def _our_figure_2(result):
    def of(crc, key, factor):
        return points(result.rows(size_bytes=_FIGURE_BYTES, crc=crc), "chunk_size", key, factor)

    return Chart(_X, _Y, [Series("no CRC", of("none", "goodput_gbps", 1e3)), Series("CRC-64", of("crc64", "goodput_gbps", 1e3)),
                          Series("CRC-16 by its table", of("none", "crc16_mbps", 1))])  # fmt: skip


def _judge_figure_2(papers, result):
    def mbps(chunk, crc):
        return result.row(size_bytes=_FIGURE_BYTES, chunk_size=chunk, crc=crc)["goodput_gbps"] * 1e3

    checked, plain = mbps(2400, "crc64"), mbps(1100, "none")
    verdict, ratio = by_ratios([checked / papers.number("F-crc-824"), plain / papers.number("F-nocrc-800")],
                               "its goodput, at 2400 bytes with a CRC and at 1100 without")  # fmt: skip
    taxes = {chunk: result.row(size_bytes=_FIGURE_BYTES, chunk_size=chunk, crc="crc64")["tax"] for chunk in (900, 2400)}
    damaged = sum(row.get("crc_errors") or 0 for row in result.rows())
    return Judged(verdict, f"With CRC-64 {figure(checked)} Mbit/s at 2400 bytes, where the paper has 824; without a sum {figure(plain)} at "
                  f"1100, above 800. The sum costs {figure(taxes[900] * 100, 2)} % at 900 bytes and {figure(taxes[2400] * 100, 2)} % at 2400 "
                  f"(the paper: up to 37 % and 5 %). Damaged chunks: {damaged}, as there.", ratio)  # fmt: skip


def _section_4(papers):
    unpaced = [paper_point(papers, name, 0) for name in ("F-sr-java", "F-sr-cpp")]
    return Chart(_LADDER, _FIRST, [Series("Java and C++, unpaced", unpaced, "marks"),
                                   Series("C++, capped", [paper_point(papers, "F-sr-1s", 1)], "marks")],
                 "1 ms and history: in words only")  # fmt: skip


def _our_section_4(result):
    rate = _rate(result)
    ladder = []
    for number, way in enumerate(_WAYS):
        row = result.row(what="pace", policy=way, target_gbps=rate)
        if row is not None and row.get("first_pass") is not None:
            ladder.append(row.point("first_pass", number, 100))
    nodes = [row.point("first_pass", len(_WAYS) - 1, 100) for row in result.rows(what="node", target_gbps=rate, chunk_size=8192)]
    whole = [Series(f"whole transfers, a queue of {frames}", [row.point("first_pass", list(_WAYS).index(row["policy"]), 100)
                                                             for row in result.rows(what="whole", queue_frames=frames)])
             for frames in (256, 8192)]  # fmt: skip
    measured = [Series("the probe, a queue of 256", ladder, "marks"), Series("nodes", nodes, "marks")]
    return Chart(_LADDER, _FIRST, [*whole, *(each for each in measured if each.points)])


def _rate(result):
    rates = [row["target_gbps"] for row in result.rows(what="pace", policy="unpaced")]
    return min(rates, default=None)


def _judge_section_4(papers, result):
    def whole(policy, frames):
        return result.row(what="whole", policy=policy, queue_frames=frames)["first_pass"] * 100

    probe = result.row(what="pace", policy="bucket", target_gbps=_rate(result))
    ours = min(whole("bucket", 256), probe["first_pass"] * 100 if probe else 100)
    verdict, ratio = by_ratios([ours / papers.number("F-sr-java")], "its best", even=0.02)
    return Judged(verdict, f"With the product's pacing {figure(ours, 4)} % of the frames arrive at first, where the paper's best is 92.6 %. Of whole "
                  "transfers, in virtual time through a queue of 256 frames, by a sender that could send 1.2 times what the link carries, as the "
                  f"paper's 83.3 % without pacing implies: {figure(whole('unpaced', 256))} % without pacing, "
                  f"{figure(whole('slot-1s', 256))} % in slots of a second (above 90 there) and {figure(whole('slot-1s', 8192))} % with a queue of "
                  f"8192; the paper does not say how long its queue was. With slots of a millisecond {figure(whole('slot-1ms', 256))} %, by history "
                  f"{figure(whole('history', 256))} %: it has words for both, and no number.", ratio)  # fmt: skip


def _by_size(result):
    rows = []
    for row in result.rows(crc="crc64"):
        plain = result.row(size_bytes=row["size_bytes"], chunk_size=row["chunk_size"], crc="none")
        if row["chunk_size"] in (900, 2400) and plain is not None:
            rows.append([f"{figure(row['size_bytes'] / 1e6)} MB", str(row["chunk_size"]), plain.cell("goodput_gbps", 1e3), row.cell("goodput_gbps", 1e3),
                         row.cell("tax", 100, unit=" %"), plain.cell("crc16_mbps"), plain.cell("crc16_ns"), plain.cell("crc64_ns")])  # fmt: skip
    return Table(["file", "chunk", "Mbit/s without", "with CRC-64", "its cost", "with CRC-16", "ns of a CRC-16", "of a CRC-64"], rows,
                 "The cost by size of the data, and what a sum of a chunk takes a core")


EXHIBITS = {
    "fmft-figure-2": Exhibit("fmft", _figure_2, _our_figure_2, _judge_figure_2,
                             "A memif paced at 1 Gbit/s with its headers, not a network of 1 Gbit/s between two hosts; CRC-64 where the "
                             "paper has CRC-16; our least chunk is 256 bytes, not 200.", more=_by_size),
    "fmft-section-4": Exhibit("pacing", _section_4, _our_section_4, _judge_section_4,
                              "A simulated queue that drains at the target rate, not a network; transfers by all policies in virtual time, by the "
                              "last one also between nodes, and all by a probe on a real clock, which a busy machine holds up."),
}  # fmt: skip
