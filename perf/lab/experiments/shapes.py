# What several experiments need: memif ends for a probe, sizes in words, shapes of plots.
# SPDX-License-Identifier: Apache-2.0
import contextlib

from harness import Hugepages

from .. import sides
from ..nodes import RATE_UNLIMITED as RATE
from ..probe import MEMORY_MIB as PROBE_MEMORY_MIB
from ..probe import Place

_HUGEPAGE_MARGIN_MIB = 32
UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


@contextlib.contextmanager
def probe_place(nodes):
    """A Place for a probe where the pair's nodes are frozen: a memif like theirs, and hugepages of its own."""
    pair = nodes.pair
    # Devices of one process must have different names.
    ports = [pair.wire.device(side, pair.base).replace("net_memif0", f"net_memif{side}")
             .replace("memif.sock", "probe.sock") for side in (0, 1)]  # fmt: skip
    with Hugepages(2 * (PROBE_MEMORY_MIB + _HUGEPAGE_MARGIN_MIB)) as pages:
        yield Place(ports, (sides.cores(0)[0], sides.cores(1)[0]), "hugepages" if pages.available else "no-huge")


def size_name(size):
    for unit, factor in UNITS:
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size / 1e6:g} MB" if size >= 1e5 else f"{size} B"


# ---- plots --------------------------------------------------------------------------------------


def good(rows):
    return [row for row in rows if row.get("goodput_gbps") is not None]


def spread(row, key="goodput_gbps"):
    low, high = row.get(f"{key}_min"), row.get(f"{key}_max")
    value = row[key]
    return (0, 0) if low is None or high is None else (max(0, value - low), max(0, high - value))


def bars(axes, rows, label, key, unit):
    """Medians with whiskers from the least to the most of all runs."""
    rows = [row for row in rows if row.get(key) is not None]
    names = [str(row[label]) for row in rows]
    values = [row[key] for row in rows]
    errors = list(zip(*[spread(row, key) for row in rows])) or None
    marks = axes.barh(names, values, xerr=errors, color="#3b6ea5", ecolor="#555555", capsize=3)
    axes.bar_label(marks, [f"{value:.3g}" for value in values], padding=6)
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    axes.margins(x=0.15)


def from_zero(axes, rows, x, key, x_label, y_label):
    """A line whose height is to be compared: the axis begins at zero."""
    line(axes, rows, x, key)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)


def line(axes, rows, x, key, label=None):
    rows = sorted((row for row in rows if row.get(key) is not None), key=lambda row: row[x])
    errors = list(zip(*[spread(row, key) for row in rows])) or None
    axes.errorbar([row[x] for row in rows], [row[key] for row in rows], yerr=errors, marker="o", capsize=3,
                  label=label)  # fmt: skip


def legend(axes):
    if axes.get_legend_handles_labels()[0]:
        axes.legend()
