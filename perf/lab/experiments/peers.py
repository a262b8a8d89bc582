# Sluice beside the packaged tools, tmpfs to tmpfs and disk to disk. docs/performance/programs.md has the rules.
#
# Data goes from end a to end b, everything of an end on one core. goodput is file bytes over the wall of the whole
# client process, with an fsync of the destination inside for disk; CPU is that of all processes of both ends, by
# cgroup. Every destination is written once before anything is timed, and stays in place; before each run marks
# that differ from the source are put into it, and after it cmp compares all of it. A tool that writes over what is
# there has its pages for nothing, and loses the old file when it breaks off: for tmpfs-new the destination is removed
# before each run, so each tool makes a new file. For disk the page cache is dropped before each run. TCP tools run with cubic and with bbr, and the better counts.
# SPDX-License-Identifier: Apache-2.0
from ..errors import MISSING, USAGE, LabError
from ..figures import by_round, interval, narrow
from ..peers import ceilings, contest, ends, files, tools
from ..peers.ours import IN_THE_CLEAR
from . import shapes

HELP = "Sluice beside GridFTP, rsync, scp, socat, HTTP, UFTP, XRootD and iperf3; --loss for a lossy wire"
REAL = False
_PEERS = (*tools.FILE_PEERS, ceilings.Iperf3Tcp, ceilings.Iperf3Udp)
PACKAGES = ()
RATIOS = ("ratio", "disk_ratio")  # what --budget makes sure of


def run(bench):
    reason = ends.missing()
    if reason:
        raise LabError(f"peers: {reason}", MISSING)
    with contest.Contest(bench, _PEERS) as game:
        rows = bench.must_have_rows(game.run(lambda rows: _sure(rows, bench)))
    if not rows:
        raise LabError(f"peers: nothing has the words of --only; there are {', '.join(kind.name for kind in _PEERS)}", USAGE)
    return {"rows": rows, "summary": summary(rows, disk=not bench.loss_percent)}


def _sure(rows, bench):
    known = summary(rows, disk=not bench.loss_percent)
    return all(narrow(known, name, bench.budget.within) for name in RATIOS if known.get(name) is not None)


def summary(rows, disk):
    out = {}
    for place, prefix in (("tmpfs", ""), (files.NEW, "new_"), ("disk", "disk_")):
        if place == "tmpfs" or disk:
            out.update({prefix + key: value for key, value in of_place(rows, place).items()})
    return out


def of_place(rows, place):
    best, ours = None, None
    for row in rows:
        if row["storage"] != place or row["goodput_gbps"] is None:
            continue
        if row["peer"] == IN_THE_CLEAR:
            continue  # a row beside the others: Sluice seals its data unless it is told not to
        if row["peer"].startswith("sluice-"):
            ours = max(ours or row, row, key=_speed)
        else:
            best = max(best or row, row, key=_speed)
    tcp = [row["goodput_gbps"] for row in rows if row["peer"] == "iperf3-tcp" and row["goodput_gbps"] is not None]

    def of(row, key):
        return row[key] if row else None

    return {
        "sluice_gbps": of(ours, "goodput_gbps"),
        "sluice_cpu_s_per_gb": of(ours, "cpu_s_per_gb"),
        "sluice_wire": of(ours, "peer"),
        "best_file_peer": of(best, "peer"),
        "best_file_peer_gbps": of(best, "goodput_gbps"),
        "best_file_peer_cpu_s_per_gb": of(best, "cpu_s_per_gb"),
        # Both by the wall of the whole command; beside it what of it is the session's own time.
        **interval("ratio", by_round(ours["runs"], best["runs"], "goodput_gbps") if ours and best else []),
        "sluice_session_gbps": (ours or {}).get("session_gbps"),
        "iperf3_tcp_gbps": max(tcp, default=None),
    }


def _speed(row):
    return row["goodput_gbps"]


def plots(result):
    def panel(place, key, unit):
        def draw(axes):
            rows = [row for row in result["rows"] if row["storage"] in (place, "none") and row.get("counts")]
            rows = sorted(rows, key=lambda row: -(row["goodput_gbps"] or 0))
            shapes.bars(axes, [{**row, "name": _name(row)} for row in rows], "name", key, unit)

        return draw

    places = dict.fromkeys(row["storage"] for row in result["rows"] if row["storage"] != "none")
    return [(f"{place}-{what}", panel(place, key, unit)) for place in places
            for what, key, unit in (("goodput", "goodput_gbps", "Gbit/s"), ("cpu", "cpu_s_per_gb", "CPU-s/GB"))]  # fmt: skip


def _name(row):
    return row["peer"] + (f" ({row['congestion_control']})" if row["congestion_control"] else "")
