# Compression: a file of text and one of random bytes, without, with `auto` and with `zstd`, over links of 100 Mbit/s and 1 Gbit/s
# (the path emulator, 20 ms, a queue of one BDP), and over a memif between tmpfs, which is as fast as the machine.
#
# The text is this repository's own: sources and documents one behind the other, as often as it takes. An extent of 1 MiB
# holds no part of it twice. Goodput is file bytes over the wall of the whole client. A ratio is taken within a round, against `off` of the
# same link and data; the summary has the median over the rounds and the extremes.
# SPDX-License-Identifier: Apache-2.0
from harness.system import REPOSITORY, is_root, random_file, same_bytes

from ..emulated import EmulatedNodes, queue_for
from ..errors import MISSING, LabError
from ..figures import by_round, ratio, spread
from . import shapes

HELP = "text and random bytes with --compress off, auto and zstd, over slow and fast links"
REAL = False
PACKAGES = ()
CHOICES = ("off", "auto", "zstd")
LINKS = {"100M": 100e6, "1G": 1e9, "fast": None}
DATA = ("text", "random")
_SIZES = {"100M": 64 << 20, "1G": 512 << 20, "fast": 1 << 30}
_QUICK_SIZES = {"100M": 32 << 20, "1G": 128 << 20, "fast": 512 << 20}
_RTT_MS = 20
_SUFFIXES = (".cc", ".h", ".py", ".md", ".proto")
_MARGIN_MIB = 256


def text_file(path, size):
    """Returns the path."""
    folders = ("control", "dataplane", "storage", "tools", "perf", "docs")
    found = sorted(each for folder in folders for each in (REPOSITORY / folder).rglob("*")
                   if each.suffix in _SUFFIXES and each.is_file())  # fmt: skip
    text = b"".join(each.read_bytes() for each in found)
    with path.open("wb") as out:
        left = size
        while left > 0:
            left -= out.write(text[:left])
    return path


def make_files(folder, size):
    return {"text": text_file(folder / f"text-{size}", size), "random": random_file(folder / f"random-{size}", size)}


def run(bench):
    if not is_root():
        raise LabError("compress: mounting a tmpfs needs root", MISSING)
    sizes = _QUICK_SIZES if bench.quick else _SIZES
    settings = [{"link": link, "data": data, "compress": choice} for link in LINKS for data in DATA for choice in CHOICES]
    slow = [each for each in settings if LINKS[each["link"]]]
    fast = [each for each in settings if not LINKS[each["link"]]]
    repeats = bench.repeats_or(3, 5)
    with EmulatedNodes(bytes_needed=4 * (sizes["100M"] + sizes["1G"])) as nodes:
        nodes.start()
        bench.describe(nodes)
        files = {link: make_files(nodes.a.export(), sizes[link]) for link in LINKS if LINKS[link]}

        def over_link(setting):
            rate_bps = LINKS[setting["link"]]
            nodes.shape(rate_bps, _RTT_MS, queue_bytes=queue_for(rate_bps, _RTT_MS))
            return moved(nodes, files[setting["link"]][setting["data"]], "data", setting)

        samples = bench.interleave(slow, over_link, lambda _each: None, repeats=repeats)
    size = sizes["fast"]
    with bench.nodes(pinned=False, bytes_needed=_MARGIN_MIB << 20) as nodes:
        mounted = nodes.pair.mount_tmpfs("memory", 3 * (size >> 20) + _MARGIN_MIB)
        for node in nodes.pair.nodes:
            node.add_export("tmpfs", mounted / node.name)
            node.write_configuration()
        in_memory = make_files(nodes.a.export("tmpfs"), size)
        nodes.start()
        samples += bench.interleave(fast, lambda each: moved(nodes, in_memory[each["data"]], "tmpfs", each, "--rate", shapes.RATE),
                                    repeats=repeats)  # fmt: skip
    rows = bench.must_have_rows(bench.rows(settings, samples))
    for row in rows:
        row["size_bytes"] = sizes[row["link"]]
    return {"rows": rows, "summary": summary(settings, samples)}


def moved(nodes, source, export, setting, *options):
    target = nodes.b.export(export) / source.name
    target.unlink(missing_ok=True)
    sample = nodes.transfer(source, f"{export}/", "--compress", setting["compress"], *options, by_wall=True)
    if not same_bytes(source, target):
        raise LabError(f"{setting}: what arrived differs from the source")
    target.unlink()
    return sample


def summary(settings, samples):
    at = {(each["link"], each["data"], each["compress"]): number for number, each in enumerate(settings)}
    out = {}
    for link in LINKS:
        for data in DATA:
            plain = samples[at[link, data, "off"]]
            for choice in CHOICES[1:]:
                ratios = by_round(samples[at[link, data, choice]], plain, "wall_s", lambda with_it, without: ratio(without, with_it))
                out.update(spread(f"{link}_{data}_{choice}", ratios))
    return out


def plots(result):
    def panel(link):
        def draw(axes):
            rows = [{**row, "setting": f"{row['data']} {row['compress']}"} for row in shapes.good(result["rows"]) if row["link"] == link]
            shapes.bars(axes, rows, "setting", "goodput_gbps", "Gbit/s")

        return draw

    return [(link, panel(link)) for link in LINKS if any(row.get("link") == link for row in result["rows"])]
