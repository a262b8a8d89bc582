# What digests that archives ask for cost a transfer: the same file without, with the session's own CRC (which is known
# without a pass), with BLAKE3 and with SHA-256; tmpfs to tmpfs, and disk to disk, cold.
#
# One file, which is the worst case: its pass has nothing to overlap with. Goodput is file bytes over the wall of the whole
# client, which ends when the file has its name. A ratio is
# taken within a round, against `none` of the same place; the summary has the median over the rounds and the extremes.
# SPDX-License-Identifier: Apache-2.0
from harness.system import is_root, random_file

from ..errors import MISSING, LabError
from ..figures import by_round, spread
from ..machine import file_system
from ..meter import drop_caches
from . import shapes

HELP = "a file with and without --digest blake3 and sha256: goodput and CPU, on tmpfs and on disk"
REAL = False
PACKAGES = ()
KINDS = ("none", "crc64", "blake3", "sha256")
PLACES = ("tmpfs", "disk")
_MARGIN_MIB = 256


def run(bench):
    if not is_root():
        raise LabError("digests: mounting a tmpfs and dropping the page cache need root", MISSING)
    size = bench.pick(512 << 20, 4 << 30)
    settings = [{"storage": place, "digest": kind} for place in PLACES for kind in KINDS]
    with bench.nodes(pinned=False, bytes_needed=2 * size + (_MARGIN_MIB << 20)) as nodes:
        mounted = nodes.pair.mount_tmpfs("memory", 2 * (size >> 20) + _MARGIN_MIB)
        for node in nodes.pair.nodes:
            node.add_export("tmpfs", mounted / node.name)
            node.write_configuration()
        sources = {"disk": random_file(nodes.a.export() / "source.bin", size),
                   "tmpfs": random_file(nodes.a.export("tmpfs") / "source.bin", size)}  # fmt: skip
        exports = {"disk": "data", "tmpfs": "tmpfs"}
        nodes.start()
        bench.describe(nodes)
        bench.described["file_system"] = file_system(nodes.pair.base)

        def measure(setting):
            export = exports[setting["storage"]]
            (nodes.b.export(export) / "source.bin").unlink(missing_ok=True)
            if setting["storage"] == "disk":
                drop_caches()
            flags = [] if setting["digest"] == "none" else ["--digest", setting["digest"]]
            return nodes.transfer(sources[setting["storage"]], f"{export}/", "--rate", shapes.RATE, *flags, by_wall=True)

        samples = bench.interleave(settings, measure)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    for row in rows:
        row["size_bytes"] = size
    return {"rows": rows, "summary": summary(settings, rows, samples)}


def summary(settings, rows, samples):
    at = {(setting["storage"], setting["digest"]): number for number, setting in enumerate(settings)}
    out = {}
    for place in PLACES:
        plain = at[place, "none"]
        for kind in KINDS:
            number = at[place, kind]
            out[f"{place}_{kind}_gbps"] = rows[number]["goodput_gbps"]
            out[f"{place}_{kind}_cpu_s_per_gb"] = rows[number].get("cpu_s_per_gb")
            if kind != "none":
                out.update(spread(f"{place}_{kind}_ratio", by_round(samples[number], samples[plain], "goodput_gbps")))
    return out


def plots(result):
    def bars(key, title):
        def draw(axes):
            rows = [{**row, "setting": f"{row['storage']} {row['digest']}"} for row in shapes.good(result["rows"])]
            shapes.bars(axes, rows, "setting", key, title)

        return draw

    return [("goodput", bars("goodput_gbps", "Gbit/s")), ("cpu", bars("cpu_s_per_gb", "CPU-s/GB"))]
