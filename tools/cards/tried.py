"""What was tried: tried.tsv, and its table in docs/TUTORIAL.md. `sluice doctor --report` has it compiled in."""
# SPDX-License-Identifier: Apache-2.0
import datetime
import re
import subprocess

from places import HERE, ROOT

FILE = HERE / "tried.tsv"
TUTORIAL = ROOT / "docs" / "TUTORIAL.md"
BEGIN, END = "<!-- tools/cards/tried.tsv: ./dev cards --row writes it -->", "<!-- end of tried.tsv -->"
HEAD = ("device", "driver", "DPDK", "frames", "workers", "cases passed", "did not pass", "day")


def rows():
    return [tuple(line.split("\t")) for line in FILE.read_text().splitlines() if line and not line.startswith("#")]


def markdown(all_rows):
    lines = [HEAD, tuple("---" for _ in HEAD), *all_rows]
    return "\n".join("| " + " | ".join(cell or "-" for cell in row) + " |" for row in lines)


def in_tutorial(text, all_rows):
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return f"{text[:begin]}\n{markdown(all_rows)}\n{text[end:]}"


def row_of(device, said, cases):
    """A row, of what the cases said of a device: `said` has the dataplanes' own lines."""
    driver = re.search(r"device \S+: driver ([^,]+)(, firmware [^,]+)?", said)
    frames = re.findall(r"serving device .* with (\d+) workers?, (\d+) byte frames", said)
    dpdk = subprocess.run(["pkg-config", "--modversion", "libdpdk"], capture_output=True, text=True, check=False).stdout.strip()
    failed = [case.name for case in cases if case.result == "fail"]
    passed = sum(case.result == "pass" for case in cases)
    return (device, (driver[1] + (driver[2] or "")) if driver else "", dpdk, max((f for _, f in frames), key=int, default=""),
            max((w for w, _ in frames), key=int, default=""), f"{passed} of {passed + len(failed)}", ", ".join(failed),
            datetime.date.today().isoformat())  # fmt: skip


def write(new_rows):
    """Puts them in the place of those of the same device, or at the end."""
    kept = {row[0]: row for row in rows()}
    kept.update({row[0]: row for row in new_rows})
    comment = [line for line in FILE.read_text().splitlines() if line.startswith("#")]
    FILE.write_text("\n".join([*comment, *("\t".join(row) for row in kept.values())]) + "\n")
    TUTORIAL.write_text(in_tutorial(TUTORIAL.read_text(), rows()))
