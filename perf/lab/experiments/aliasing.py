# How often damage passes a checksum: Phatpackets (docs/SOURCES.md), section 3, computed exactly and simulated.
#
# Rows, by `what`:
#   markov    P0 by the paper's iteration over all states, and by the sum that stands for it (perf/lab/aliasing.py): `difference`
#   crc       `alias`, the part of damaged packets that passes, by `length_bits` and `ber`; `over_limit`: over 2^-n.
#             early: the same where the probability of no error is counted for one bit more than that of a rest of zero
#   reading   Figure 6 says that at 12,000 bits a CRC of 16 bits passes five times its limit. What each reading of that gives
#   checksum  TCP's, exactly and by `sluice-alias`: real packets of random data; `sigma`: how far the two are apart, in
#             standard deviations of the simulation
#   packets   errors against CRCs, by `sluice-alias`, beside what is computed; of CRC-32 and CRC-32C the weights are counted
#             (`weights`), all 2^32; of CRC-64 the average over all codes stands in, which is an assumption
#   exabyte   chunks of an exabyte that are wrong and pass, by layer; damage at random
# Nothing here is a measurement of speed, so a busy machine changes nothing but `seconds`.
# SPDX-License-Identifier: Apache-2.0
import json
import math

from .. import aliasing
from ..errors import LabError
from ..figures import rounded
from ..probe import program
from ..stopwatch import timed
from . import shapes

HELP = "undetected errors: CRCs and TCP's checksum, exactly and simulated (Phatpackets' section 3)"
REAL = False
PACKAGES = ()
LENGTHS = (24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 8192, 12000, 16384, 32768, 65536, 131072)
BERS = ("1e-4", "1e-5", "1e-6", "1e-7", "1e-8")
ASKED_BITS = 12000  # Figure 6
CHECKSUM_BER = 2.0**-16
CHECKSUM_BYTES = (64, 128, 256, 576, 1024, 1500, 3000, 4500, 9000)
_SIMULATED_BYTES = (64, 576, 1500, 9000)
_FRAME_BITS = 12144  # 1518 bytes: the largest frame of Ethernet
_CHUNK_BYTES = 8192
# J. Stone and C. Partridge (docs/SOURCES.md): of so many packets one fails TCP's checksum, the link's CRC being right.
_ONE_IN = {"least": 32000, "most": 1100}
_TIMEOUT_S = 3600
GENERATORS = {"crc16": 0x1100B, "crc16_ccitt": 0x11021, "crc32": 0x104C11DB7, "crc32c": 0x11EDC6F41}


def run(bench):
    counted = {name: weights(name, _FRAME_BITS) for name in ("crc32", "crc32c")}
    rows = [*_markov(), *_crcs(), *_readings(), *_checksums(bench), *_packets(bench, counted), *_exabyte()]
    bench.described = {"kind": "none", "frame_bits": _FRAME_BITS, "checksum_ber": CHECKSUM_BER}
    return {"rows": rows, "summary": summary(rows)}


def ask(*words):
    """What sluice-alias says, and how long it took."""
    finished = timed([program("sluice-alias"), *words], _TIMEOUT_S)
    finished.must_have_worked("sluice-alias")
    return {**json.loads(finished.stdout), "seconds": rounded(finished.wall_s, 3)}


def weights(name, bits):
    said = ask("weights", "--generator", f"{GENERATORS[name]:x}", "--bits", bits)["weights"]
    return {int(weight): count for weight, count in said.items()}


def _number(value):
    return rounded(float(value))


# ---- exact --------------------------------------------------------------------------------------


def _markov():
    for n, length in ((3, 64), (8, 64)):
        generator = aliasing.MAXIMAL[n]
        by_states = aliasing.iterate(generator, length, "1e-4")
        by_sum = aliasing.zero_rest(aliasing.spectrum(generator, length), n, "1e-4")
        yield {"what": "markov", "bits": n, "generator": f"{generator:#x}", "length_bits": length, "ber": 1e-4,
               "states": 1 << n, "p0": _number(by_states), "difference": float(abs(by_states - by_sum))}  # fmt: skip


def _crcs():
    wanted = [(16, ber) for ber in BERS] + [(n, "1e-7") for n in (20, 8)]
    for n, ber in wanted:
        generator = aliasing.MAXIMAL[n]
        for length in LENGTHS:
            if length <= n:
                continue
            alias = aliasing.crc_alias(generator, length, ber)
            yield {"what": "crc", "bits": n, "generator": f"{generator:#x}", "ber": float(ber), "length_bits": length,
                   "alias": _number(alias), "over_limit": _number(alias * (1 << n)),
                   "early": _number(aliasing.one_bit_early(generator, length, ber))}  # fmt: skip


def _readings():
    """`over_limit` of each reading, at 1e-4 and at 1e-5; `at_64_bytes`: the part, which the paper has as 0.002."""
    maximal = aliasing.MAXIMAL[16]

    def given(generator, bits=ASKED_BITS):
        return lambda ber, length=bits: aliasing.crc_alias(generator, length, ber)

    def not_given(ber, length=ASKED_BITS):
        alias = aliasing.crc_alias(maximal, length, ber)
        return alias * (1 - (1 - aliasing.decimal.Decimal(ber)) ** length)

    def with_intact(ber, length=ASKED_BITS):
        return aliasing.zero_rest(aliasing.spectrum(maximal, length), 16, ber)

    def early(ber, length=ASKED_BITS):
        return aliasing.one_bit_early(maximal, length, ber)

    # (name, of, the model's bits for a bit of the paper)
    readings = (
        ("the model: given an error, x^16+x^12+x^3+x+1", given(maximal), 1),
        ("another generator of maximal length, x^16+x^5+x^3+x^2+1", given(0x1002D), 1),
        ("CRC-16-CCITT, which is not of maximal length", given(aliasing.CCITT), 1),
        ("CRC-16-IBM, which is not of maximal length", given(aliasing.IBM), 1),
        ("12,000 bytes, not bits", given(maximal, 8 * ASKED_BITS), 8),
        ("12,000 bits of data, and the CRC behind them", given(maximal, ASKED_BITS + 16), 1),
        ("not given an error: of all packets", not_given, 1),
        ("a rest of zero, packets without an error included", with_intact, 1),
        ("the numerator one bit early: about 1/N", early, 1),
    )
    for name, of, unit in readings:
        row = {"what": "reading", "reading": name, "length_bits": ASKED_BITS}
        for ber in ("1e-4", "1e-5", "1e-8"):
            row[f"over_limit_{ber}"] = _number(of(ber) * (1 << 16))
        yield {**row, "at_64_bytes": _number(of("1e-8", 512 * unit)), "over_limit_8k": _number(of("1e-8", 65536 * unit) * (1 << 16))}


# ---- simulated ----------------------------------------------------------------------------------


def _checksums(bench):
    for size in CHECKSUM_BYTES:
        exact = aliasing.checksum_alias(size, CHECKSUM_BER)
        row = {"what": "checksum", "size_bytes": size, "ber": CHECKSUM_BER, "exact": rounded(exact),
               "damaged_part": rounded(aliasing.damaged(size, CHECKSUM_BER))}  # fmt: skip
        if size in _SIMULATED_BYTES:
            bench.say(f"checksum, {size} bytes")
            said = ask("checksum", "--bytes", size, "--ber", repr(CHECKSUM_BER), "--packets", bench.pick(10**6, 10**7))
            part = said["passed"] / said["damaged"]
            deviation = math.sqrt(exact * (1 - exact) / said["damaged"])
            row.update(packets=said["packets"], damaged=said["damaged"], passed=said["passed"], alias=rounded(part),
                       sigma=rounded((part - exact) / deviation, 3), seconds=said["seconds"])  # fmt: skip
        yield row


def _packets(bench, counted):
    ber = "1e-4"
    bench.say("packets against CRCs")
    said = ask("crc", "--bits", _FRAME_BITS, "--ber", ber, "--packets", bench.pick(10**8, 10**9))
    damaged = said["damaged"]
    for name, passed in said["passed"].items():
        if name in counted:
            alias, how = aliasing.given_an_error(aliasing.zero_rest(counted[name], 32, ber), _FRAME_BITS, ber), "exact"
        elif name in GENERATORS:
            alias, how = aliasing.crc_alias(GENERATORS[name], _FRAME_BITS, ber), "exact"
        else:
            alias, how = 2.0**-64, "average over all codes of 64 bits"
        expected = float(alias) * damaged
        yield {"what": "packets", "crc": name, "length_bits": _FRAME_BITS, "ber": float(ber), "packets": said["packets"],
               "damaged": damaged, "passed": passed, "expected": rounded(expected), "alias": _number(alias), "how": how,
               "sigma": rounded((passed - expected) / math.sqrt(max(expected, 1)), 3), "seconds": said["seconds"],
               "packets_per_s": rounded(said["packets"] / said["seconds"], 3)}  # fmt: skip


def _exabyte():
    """Damage at random behind the link's CRC, in a switch, a card or a memory: each layer passes 2^-n of it."""
    chunks = 10**18 / _CHUNK_BYTES
    layers = (("TCP's or UDP's checksum", 1 / 65535), ("a CRC of 32 bits over a chunk", 2.0**-32),
              ("CRC-64 of a chunk", 2.0**-64), ("the tag of AES-GCM", 2.0**-128))  # fmt: skip
    for layer, part in layers:
        yield {"what": "exabyte", "layer": layer, "passes": part, "chunks": chunks,
               **{f"wrong_{name}": rounded(chunks / one_in * part) for name, one_in in _ONE_IN.items()}}  # fmt: skip


# ---- what it says -------------------------------------------------------------------------------


def summary(rows):
    checks = [row for row in rows if row["what"] == "checksum" and "sigma" in row]
    readings = [row for row in rows if row["what"] == "reading"]
    found = {row["crc"]: row for row in rows if row["what"] == "packets"}
    if not checks or not found:
        raise LabError("sluice-alias said nothing; see above")
    return {
        "markov_difference": max(row["difference"] for row in rows if row["what"] == "markov"),
        "checksum_sigma_worst": max(abs(row["sigma"]) for row in checks),
        "checksum_1500": next(row["exact"] for row in checks if row["size_bytes"] == 1500),
        "over_limit_12000": readings[0]["over_limit_1e-4"],
        "crc16_sigma": found["crc16"]["sigma"],
        "crc32_passed": found["crc32"]["passed"],
        "crc32_expected": found["crc32"]["expected"],
    }


def plots(result):
    rows = result["rows"]

    def crcs(axes):
        for ber in sorted({row["ber"] for row in rows if row.get("what") == "crc" and row["bits"] == 16}):
            some = [row for row in rows if row.get("what") == "crc" and row["bits"] == 16 and row["ber"] == ber]
            axes.plot([row["length_bits"] for row in some], [row["alias"] for row in some], label=f"BER {ber:g}")
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=1e-12)
        axes.set_xlabel("length, bits")
        axes.set_ylabel("part of damaged packets that passes")
        shapes.legend(axes)

    def checksum(axes):
        some = [row for row in rows if row.get("what") == "checksum"]
        axes.plot([row["size_bytes"] for row in some], [row["exact"] for row in some], label="exact")
        tried = [row for row in some if row.get("alias") is not None]
        axes.plot([row["size_bytes"] for row in tried], [row["alias"] for row in tried], "o", label="simulated")
        axes.set_xscale("log")
        axes.set_xlabel("packet, bytes")
        axes.set_ylabel("part of damaged packets that passes")
        shapes.legend(axes)

    return [("crc16", crcs), ("checksum", checksum)]
