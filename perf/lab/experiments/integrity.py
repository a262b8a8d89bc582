# Whether what is sent arrives unchanged, and whether damage is found: Phatpackets (docs/SOURCES.md), section 3.5, by
# `sluice probe integrity` between two nodes with the path emulator between them, over memif.
#
#   what      transfers   files of 4 MB, another one each time, whose digests are compared
#             packets     datagrams that the other node reflects, without a UDP checksum. They are as long as the paper's on the
#                         average: 748 bytes of IP
#   path      sound       nothing is damaged
#             damaged     in so many frames of a way (`damage`) the emulator inverts one bit of the UDP payload. Transfers are
#                         under `crc`, so that what is damaged is counted and repaired; datagrams go there unharmed, and are hit on
#                         their way back
#
# injected: frames that the emulator has damaged on that way, of all kinds. found_share: echoes that came back wrong, and those that
# did not (their header was hit), over injected. Statuses and data of the sessions are among the injected, some of a hundred.
# A quick run has some thousands of datagrams and some tens of transfers; a full one the paper's 313,985, and as many transfers as
# take half an hour, about.
# SPDX-License-Identifier: Apache-2.0
import json
import tempfile

from ..emulated import EmulatedNodes
from ..errors import LabError
from ..figures import ratio, rounded
from ..stopwatch import timed
from . import shapes

HELP = "4 MB again and again, and datagrams that the peer reflects: sound over a sound path, and every flipped bit found"
REAL = False
PACKAGES = ()
TRANSFERS, PACKETS, SOUND, DAMAGED = "transfers", "packets", "sound", "damaged"
_TRANSFER_BYTES = 4_000_000
_PACKET_BYTES = 748 - 20 - 8 - 72
_PACKETS_PAPER = 313_985
_RATE = "200M"
_TIMEOUT_S = 7200
_INTEGRITY = 11


def cells(quick):
    asked = {TRANSFERS: (30, 4000), PACKETS: (6000, _PACKETS_PAPER)}
    damage = {TRANSFERS: 1e-3, PACKETS: 0.01 if quick else 1e-3}
    return [{"what": what, "path": path, "asked": asked[what][not quick] // (1 if path == SOUND or quick else 10),
             "damage": damage[what] if path == DAMAGED else 0.0}
            for what in (TRANSFERS, PACKETS) for path in (SOUND, DAMAGED)]  # fmt: skip


def run(bench):
    with EmulatedNodes(memory_mib=256) as nodes:
        for node in nodes.pair.nodes:
            node.settings.setdefault("transfer", {})["protection"] = "crc"
            node.write_configuration()
        nodes.start()
        bench.describe(nodes)
        settings = cells(bench.quick)
        samples = bench.interleave(settings, lambda each: measure(nodes, each), lambda _each: None, repeats=1)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": rows, "summary": summary(rows)}


def measure(nodes, setting):
    direction = "b_to_a" if setting["what"] == PACKETS else "a_to_b"
    nodes.wire.clear()
    if setting["damage"]:
        nodes.wire.set(direction, corrupt={"bits_repaired": setting["damage"]})
    before = injected(nodes, direction)
    said = probe(nodes, setting)
    hit = injected(nodes, direction) - before
    out = {key: said[key] for key in ("done", "wrong", "lost", "crc_errors", "resent", "copies", "wrong_bytes", "bits_set", "bits_cleared",
                                      "bytes_moved", "tbit_moved", "wrong_share_at_most", "wrong_bit_share_at_most", "elapsed_s", "positions")}  # fmt: skip
    found = said["wrong"] + said["lost"] if setting["what"] == PACKETS else said["crc_errors"]
    return {**out, "goodput_gbps": rounded(said["bytes_moved"] * 8e-9 / said["elapsed_s"]), "packet_bytes": _PACKET_BYTES + 100,
            "injected": hit, "found_share": ratio(found, hit)}  # fmt: skip


def probe(nodes, setting):
    size = ("--size", _PACKET_BYTES, "--rate", _RATE) if setting["what"] == PACKETS else ("--bytes", _TRANSFER_BYTES)
    with tempfile.TemporaryDirectory() as place:
        finished = timed(nodes.a.command("probe", "integrity", nodes.peer, f"--{setting['what']}", setting["asked"], *size, "--quiet",
                                         "--json", "--state", f"{place}/state"), _TIMEOUT_S)  # fmt: skip
    if finished.timed_out or finished.status not in (0, _INTEGRITY):
        raise LabError(f"sluice probe integrity --{setting['what']}: exit {finished.status}: {finished.reason()}")
    return json.loads(finished.stdout.strip().splitlines()[-1])


def injected(nodes, direction):
    return nodes.wire.counters()[direction]["corrupted"]["bits_repaired"]


def summary(rows):
    def of(what, path, key):
        found = [row for row in rows if row["what"] == what and row["path"] == path and row.get("n")]
        return found[0][key] if found else None

    return {
        "transfers": of(TRANSFERS, SOUND, "done"), "transfers_wrong": of(TRANSFERS, SOUND, "wrong"),
        "tbit_moved": of(TRANSFERS, SOUND, "tbit_moved"),
        "transfers_wrong_damaged_path": of(TRANSFERS, DAMAGED, "wrong"), "repaired": of(TRANSFERS, DAMAGED, "crc_errors"),
        "packets": of(PACKETS, SOUND, "done"), "packets_wrong": of(PACKETS, SOUND, "wrong"), "packets_lost": of(PACKETS, SOUND, "lost"),
        "packets_wrong_damaged_path": of(PACKETS, DAMAGED, "wrong"), "found_share": of(PACKETS, DAMAGED, "found_share"),
    }  # fmt: skip


def plots(result):
    """Where in the payload the bytes stood that came back wrong."""

    def draw(axes):
        for row in result["rows"]:
            places = [offset for offset, count in row.get("positions") or () for _ in range(count)]
            if places:
                axes.hist(places, bins=min(40, _PACKET_BYTES // 8), label=f"{row['what']}, {row['path']}: {len(places)} bytes")
        axes.set_xlabel("place in the payload, bytes")
        axes.set_ylabel("bytes that came back wrong")
        shapes.legend(axes)

    return [("positions", draw)]
