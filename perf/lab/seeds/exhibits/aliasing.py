# Phatpackets, section 3: how often damage passes a CRC or TCP's checksum.
# SPDX-License-Identifier: Apache-2.0
from ..parts import LAWS, Axis, Chart, Exhibit, Judged, Series, Table, figure, paper_cell, paper_point, points, times

LAWS["crc16-limit"] = lambda _bits: 2.0**-16
_BITS = Axis("packet", "bits", log=True)
_ALIAS = Axis("part of damaged packets that passes", log=True)
_SHOWN_FROM = 1e-12
_BYTES, _CHECKSUM = Axis("packet", "bytes"), Axis("part of damaged packets that passes")


def _figure_5(papers):
    return Table(["what", "the paper"], [["states of the register", paper_cell(papers, "P-f5")], ["the matrix", "doubly stochastic, 8 by 8"],
                                         ["each state's probability in the end", "1/8"]])  # fmt: skip


def _our_figure_5(result):
    rows = [[f"{row['bits']} bits, {row['generator']}", row.cell("states"), row.cell("p0"), row.cell("difference")]
            for row in result.rows(what="markov")]  # fmt: skip
    return Table(["register", "states", "P0 after 64 bits, BER 1e-4", "difference to the closed sum"], rows)


def _judge_figure_5(_papers, result):
    worst = max(row["difference"] for row in result.rows(what="markov"))
    return Judged("reproduced" if worst < 1e-50 else "disagrees",
                  f"The paper's iteration, for 3 and for 8 bits, and the sum that the other figures are computed by differ by {figure(worst)}.")


def _figure_6(papers):
    short = papers.values["P-64B"]
    marks = [{**paper_point(papers, "P-64B", 512, 0.01), "y": short[key] / 100, "key": key} for key in ("value", "value_high")]
    marks.append(paper_point(papers, "P-f6-5x-abs", papers.number("P-f6-bits")))
    return Chart(_BITS, _ALIAS, [Series("of its text", marks, "marks"), Series("2^-16", _limit(), "curve")],
                 "64 bytes: 0.002 % or 0.2 %, as printed")  # fmt: skip


def _limit():
    return [{"x": bits, "y": 2.0**-16, "of": "law:crc16-limit"} for bits in (24, 131072)]


def _our_figure_6(result):
    drawn = []
    for ber in (1e-4, 1e-5, 1e-6, 1e-7, 1e-8):
        found = [each for each in points(result.rows(what="crc", bits=16, ber=ber), "length_bits", "alias") if each["y"] > _SHOWN_FROM]
        if found:
            drawn.append(Series(f"BER {ber:g}", found, "curve"))
    early = points(result.rows(what="crc", bits=16, ber=1e-8), "length_bits", "early")
    return Chart(_BITS, _ALIAS, [*drawn, Series("one bit early", early, "curve"), Series("2^-16", _limit(), "curve")],
                 "exact; below 1e-12 not shown")  # fmt: skip


def _judge_figure_6(papers, result):
    model, *_rest, early = result.rows(what="reading")
    five = papers.number("P-f6-5x")
    return Judged(
        "disagrees",
        f"The paper says five times 2^-16 at 12,000 bits; its own model gives {figure(model['over_limit_1e-4'])} times at a BER of 1e-4 and "
        f"{figure(model['over_limit_1e-5'])} at 1e-5, as the row of Figure 5 and a simulation agree. Its curves lie \"on top of each other\", "
        "where the model's are decades apart. All of its numbers are those of 1/N, which comes out if P0 is taken one bit earlier than "
        f"the probability of no error: {figure(early['over_limit_1e-5'])} times at 12,000 bits (its 0.00008), "
        f"{figure(early['at_64_bytes'] * 100)} % at 64 bytes, {figure(early['over_limit_8k'])} times at 8 KB.",
        f"{times(model['over_limit_1e-4'] / five)} its value at 12,000 bits",
    )  # fmt: skip


def _readings(result):
    rows = [[row["reading"], *(row.cell(key) for key in ("over_limit_1e-4", "over_limit_1e-5", "over_limit_1e-8", "at_64_bytes", "over_limit_8k"))]
            for row in result.rows(what="reading")]  # fmt: skip
    return Table(["reading", "BER 1e-4", "1e-5", "1e-8", "64 bytes, the part", "8 KB, over 2^-16"], rows,
                 "Every reading of the paper: times 2^-16 at 12,000 bits, of which it says 5; it has 0.002 at 64 bytes, and 1 at 8 KB")


def _exabyte(result):
    rows = [[row["layer"], row.cell("passes"), row.cell("wrong_least"), row.cell("wrong_most")] for row in result.rows(what="exabyte")]
    return Table(["check", "passes of damage at random", "wrong, one chunk in 32,000 damaged", "one in 1,100"], rows,
                 "What that means for an exabyte in chunks of 8 KiB, damaged behind the link's CRC as often as Stone and Partridge saw it")


def _figure_7(_papers):
    return Chart(_BITS, _ALIAS, [], "only plotted: 20 bits \"almost identical\" to 16")


def _our_figure_7(result):
    drawn = []
    for bits in (20, 16, 8):
        found = [each for each in points(result.rows(what="crc", bits=bits, ber=1e-7), "length_bits", "alias") if each["y"] > _SHOWN_FROM]
        drawn.append(Series(f"{bits} bits", found, "curve"))
    drawn += [Series(f"{bits} bits, one bit early", points(result.rows(what="crc", bits=bits, ber=1e-7), "length_bits", "early"), "curve")
              for bits in (20, 16)]  # fmt: skip
    return Chart(_BITS, _ALIAS, drawn, "exact; below 1e-12 not shown")


def _judge_figure_7(_papers, result):
    twenty, sixteen = (result.row(what="crc", bits=bits, ber=1e-7, length_bits=12000) for bits in (20, 16))
    return Judged("disagrees", f"By the model a CRC of 20 bits passes {figure(twenty['alias'])} of the damaged packets of 12,000 bits, one of "
                  f"16 bits {figure(sixteen['alias'])}: not \"almost identical\". With P0 one bit early, as in Figure 6, they are: "
                  f"{figure(twenty['early'])} and {figure(sixteen['early'])}.",
                  f"{times(twenty['alias'] / sixteen['alias'])} between the two, where the paper sees none")  # fmt: skip


def _figure_8(papers):
    return Chart(_BYTES, _CHECKSUM, [Series("45 of 16,743", [paper_point(papers, "P-tcp-p", papers.number("P-tcp-size"))], "marks")])


def _our_figure_8(result):
    rows = result.rows(what="checksum")
    tried = [row for row in rows if row.get("alias") is not None]
    return Chart(_BYTES, _CHECKSUM, [Series("exact", points(rows, "size_bytes", "exact"), "curve"),
                                     Series("simulated", points(tried, "size_bytes", "alias"), "marks")])  # fmt: skip


def _judge_figure_8(papers, result):
    row = result.row(what="checksum", size_bytes=1500)
    part = papers.number("P-tcp-alias") / papers.number("P-tcp-err")
    deviation = (row["exact"] * (1 - row["exact"]) / papers.number("P-tcp-err")) ** 0.5
    away = (part - row["exact"]) / deviation
    worst = max(abs(each["sigma"]) for each in result.rows(what="checksum") if each.get("sigma") is not None)
    return Judged("reproduced" if abs(away) < 3 and worst < 3 else "disagrees",
                  f"Exactly {figure(row['exact'], 4)} of the damaged packets of 1500 bytes pass; the paper's 45 of 16,743 are {figure(away, 2)} "
                  f"standard deviations away, our simulations {figure(worst, 2)} at most. Section 3.2 then multiplies two probabilities that hold given an "
                  "error and leaves out that of an error, 0.113: by its own numbers one packet in 4.2e7 is wrong, not one in 4.8e6.",
                  f"{times(row['exact'] / papers.number('P-tcp-p'))} its value")  # fmt: skip


def _section_33(papers):
    return Table(["what", "the paper"], [["packets", paper_cell(papers, "P-c32-n")], ["bit error rate", paper_cell(papers, "P-c32-ber")],
                                         ["passed CRC-32", paper_cell(papers, "P-c32-alias")], ["time", paper_cell(papers, "P-c32-h", " h")],
                                         ["packets a second", paper_cell(papers, "P-c32-speed")]])  # fmt: skip


_NAMES = {"crc16": "CRC-16, maximal", "crc16_ccitt": "CRC-16-CCITT", "crc32": "CRC-32", "crc32c": "CRC-32C", "crc64": "CRC-64"}


def _our_section_33(result):
    rows = [[_NAMES[row["crc"]], row.cell("packets"), row.cell("damaged"), row.cell("passed"), row.cell("expected"), row["how"]]
            for row in result.rows(what="packets")]  # fmt: skip
    row = result.row(what="packets", crc="crc32")
    return Table(["checksum", "packets", "damaged", "passed", "expected", "computed"], rows, f"{figure(row['seconds'])} s in all")


def _judge_section_33(papers, result):
    row, sixteen = (result.row(what="packets", crc=crc) for crc in ("crc32", "crc16"))
    text = (f"Of {figure(row['packets'])} packets at a BER of 1e-4 {row['passed']} passed CRC-32, in {figure(row['seconds'])} s; exactly computed, "
            f"{figure(row['expected'])} were to be expected. CRC-16 let {sixteen['passed']} pass, expected {figure(sixteen['expected'], 5)}.")  # fmt: skip
    if row["packets"] < papers.number("P-c32-n"):
        text += " A short run: the paper's had a billion."
    good = row["passed"] == papers.number("P-c32-alias") and abs(sixteen["sigma"]) < 4
    faster = row["packets_per_s"] / papers.number("P-c32-speed")
    return Judged("reproduced" if good else "disagrees", text, f"{times(faster)} its packets a second")


_EXACT = "Computed and simulated, as in the paper; no network."
EXHIBITS = {
    "phatpackets-figure-5": Exhibit("aliasing", _figure_5, _our_figure_5, _judge_figure_5, _EXACT),
    "phatpackets-figure-6": Exhibit("aliasing", _figure_6, _our_figure_6, _judge_figure_6, _EXACT, more=_readings),
    "phatpackets-figure-7": Exhibit("aliasing", _figure_7, _our_figure_7, _judge_figure_7, _EXACT),
    "phatpackets-figure-8": Exhibit("aliasing", _figure_8, _our_figure_8, _judge_figure_8,
                                    "A bit error rate of 2^-16, which its 8/2^15 a word is; packets of random data."),
    "phatpackets-section-3.3": Exhibit("aliasing", _section_33, _our_section_33, _judge_section_33,
                                       "Frames of 1518 bytes; errors only are simulated, since a CRC is linear.", more=_exabyte),
}  # fmt: skip
