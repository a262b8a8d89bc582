# What protecting the data costs: `crc`, AES-128-GCM and AES-256-GCM side by side, memory to discard over a memif with
# one core a side; then file to file, cold, durable at the end, by the wall of the whole client; and tmpfs to tmpfs beside
# scp with AES-128-GCM, as `peers` does it.
#
# The nodes want a CRC at least, and each session asks for more. A ratio is the median over the rounds of what one
# brought against `crc` of the same round. The CPU's flags stand in the description: without `vaes` and `avx512f` the
# cipher is slower, without `aes` it is OpenSSL's.
# SPDX-License-Identifier: Apache-2.0
from harness.system import is_root, random_file, same_bytes

from ..bench import bytes_for
from ..errors import LabError
from ..figures import by_round, spread
from ..meter import drop_caches
from ..peers import contest, ends, tools
from . import shapes

HELP = "crc, aes-128-gcm and aes-256-gcm: memory over a memif, disk to disk, and tmpfs to tmpfs beside scp"
REAL = False
PACKAGES = ()
PROTECTIONS = ("crc", "aes-128-gcm", "aes-256-gcm")
_SETTINGS = {"transfer": {"protection": "crc"}}
_OURS = "sluice-memif"  # which enciphers
_MARGIN_BYTES = 1 << 30


def run(bench):
    beside = [] if ends.missing() else _beside_scp(bench)
    memory = [{"way": "memory", "protection": each} for each in PROTECTIONS]
    disk = [{"way": "disk", "protection": each} for each in PROTECTIONS[:2]] if is_root() else []
    samples = _memory(bench, memory) + (_disk(bench, disk) if disk else [])
    rows = bench.must_have_rows(bench.rows(memory + disk, samples))
    return {"rows": rows + beside, "summary": {**summary(rows, samples), **summary_beside_scp(beside)}}


def _beside_scp(bench):
    def wanted(cell):
        return cell["storage"] == "tmpfs" and cell["peer"] in (_OURS, tools.Scp.name)

    with contest.Contest(bench, (tools.Scp,), wanted) as game:
        return [{"way": "tmpfs", **row} for row in game.run()]


def _memory(bench, settings):
    seconds = bench.pick(1.0, 4.0)
    size = {}
    with bench.nodes(settings=_SETTINGS) as nodes:
        nodes.start()
        bench.describe(nodes)

        def transfer(setting, bytes_):
            return nodes.transfer(f"memory:{bytes_}", "null:", "--rate", shapes.RATE, "--protection",
                                  setting["protection"])  # fmt: skip

        def warm_up(setting):
            size.setdefault("bytes", bytes_for(transfer(setting, 1 << 30), seconds))

        return bench.interleave(settings, lambda each: transfer(each, size["bytes"]), warm_up)


def _disk(bench, settings):
    size = bench.pick(2 << 30, 8 << 30)
    with bench.nodes(settings=_SETTINGS, pinned=False, bytes_needed=2 * size + _MARGIN_BYTES) as nodes:
        source = random_file(nodes.a.export() / "source.bin", size)
        target = nodes.b.export() / source.name
        nodes.start()

        def measure(setting):
            target.unlink(missing_ok=True)
            drop_caches()
            sample = nodes.transfer(source, "data/", "--rate", shapes.RATE, "--protection", setting["protection"],
                                    by_wall=True)  # fmt: skip
            if not same_bytes(source, target):
                raise LabError(f"{target} differs from its source")
            return sample

        return bench.interleave(settings, measure)


def summary(rows, samples):
    crc, aes128, aes256, *disk = samples
    return {"aead128_gbps": rows[1].get("goodput_gbps"),
            **spread("aead128_of_crc", by_round(aes128, crc, "goodput_gbps")),
            **spread("aead256_of_crc", by_round(aes256, crc, "goodput_gbps")),
            **spread("disk_aead_of_crc", by_round(disk[1], disk[0], "goodput_gbps") if disk else [])}  # fmt: skip


def summary_beside_scp(rows):
    ours = [row for row in rows if row["peer"] == _OURS]
    scp = [row for row in rows if row["peer"] != _OURS and row["counts"]]
    return spread("tmpfs_ratio_aes_peer", by_round(ours[0]["runs"], scp[0]["runs"], "goodput_gbps") if ours and scp else [])


def plots(result):
    def goodput(axes):
        good = shapes.good(result["rows"])
        axes.bar([f"{row['way']}\n{row.get('protection') or row['peer']}" for row in good], [row["goodput_gbps"] for row in good])
        axes.set_ylabel("goodput, Gbit/s")

    return [("goodput", goodput)]
