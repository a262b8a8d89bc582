#!/usr/bin/python3
# `./dev demo`: two nodes on this machine, joined by shared memory, move one file; everything is checked.
#
# Needs nothing from before and leaves nothing behind. Exit 0 only if cmp(1) finds both files identical.
# SPDX-License-Identifier: Apache-2.0
import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Console, HarnessError, MemifWire, Pair  # noqa: E402
from harness.system import exit_on_signals, random_file, same_bytes  # noqa: E402

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def size_of(text):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if not match:
        raise argparse.ArgumentTypeError(f"{text}: not a size; write for example 1GiB, 100M or 4096")
    return int(float(match[1]) * _UNITS[match[2]])


def arguments():
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--file", type=pathlib.Path, metavar="PATH", help="send this file")
    what.add_argument("--size", type=size_of, default=1 << 30, metavar="N", help="bytes to make and send (1GiB)")
    parser.add_argument("--lanes", type=int, default=1, metavar="N", help="UDP flows side by side (1)")
    parser.add_argument("--json", action="store_true", help="last line of stdout: one JSON object")
    parser.add_argument("--keep", action="store_true", help="keep the node directories, logs and files")
    parser.add_argument("--console", action="store_true", help="stay until Ctrl-C, with a link to the console in the browser")
    return parser.parse_args()


def say(text):
    print(text, flush=True)


def make_source(options, pair, size):
    if options.file:
        source = options.file.resolve()
        pair.a.add_export("source", source.parent, "r")
        pair.a.write_configuration()
        return source
    say(f"Making {size / (1 << 20):,.0f} MiB of incompressible data ...")
    return random_file(pair.a.export() / "demo.bin", size, seed=int.from_bytes(os.urandom(8), "big"))


def transfer(pair, source, lanes):
    """Runs `sluice send` on this terminal, so that its own progress shows; returns the session."""
    command = pair.a.command("send", source, "b:data/", "--lanes", lanes)
    say("$ sluice " + " ".join(command[3:]))
    status = subprocess.run(command, check=False).returncode
    if status != 0:
        raise HarnessError(f"sluice send: ended with status {status}; logs follow\n{logs(pair)}")
    return pair.a.sessions()[-1]


def logs(pair):
    daemons = [daemon for node in pair.nodes for daemon in (node.dataplane, node.control)]
    return "\n".join(f"--- {daemon.name}\n{daemon.log_tail(8)}" for daemon in daemons)


def run_demo(options):
    if options.file and not options.file.is_file():
        raise HarnessError(f"{options.file}: no such regular file; name an existing file, or use --size")
    size = options.file.stat().st_size if options.file else options.size
    with Pair(MemifWire(), bytes_needed=size if options.file else 2 * size, keep=options.keep) as pair:
        if not pair.pages.available:
            say(f"No hugepages ({pair.pages.reason}): running with --no-huge, which is slower.")
        console = None
        if options.console:
            pair.b.add_export("data", pair.b.export(), "rwm")
            pair.b.write_configuration()
            console = Console(pair.a)
        source = make_source(options, pair, size)
        say("Starting two nodes, a and b, joined by net_memif ...")
        pair.start()
        session = transfer(pair, source, options.lanes)
        report = {
            "bytes": size,
            "goodput_gbps": round(session["goodput_bps"] / 1e9, 3),
            "retransmits": session["retransmits"],
            "crc64_source": session["files"][0]["digest_source"],
            "crc64_destination": session["files"][0]["digest_destination"],
            "identical": same_bytes(source, pair.b.export() / source.name),
            "wire": pair.wire.name,
            "hugepages": pair.pages.available,
            "lanes": session["lanes"],
            "elapsed_s": round(session["elapsed_s"], 3),
        }
        if console:
            show_console(console, pair, report)
        if options.keep:
            say(f"Kept: {pair.base}")
    return report


def show_console(console, pair, report):
    """Stays until somebody has seen enough: Ctrl-C, or SIGTERM."""
    tell(report)
    runs = pair.a.export() / "runs"
    runs.mkdir()
    for number in range(40):
        (runs / f"run{number:03}.h5").write_bytes(os.urandom(200_000 + number * 10_000))
    console.start()
    try:
        say(f"\nThe console of node a, signed in as its operator; the link works once, within a minute:\n\n    {console.link()}\n")
        say(f"Another link: {console.program} --node {pair.a.directory} open\nCtrl-C ends the demo.")
        with contextlib.suppress(KeyboardInterrupt, SystemExit):
            signal.pause()
    finally:
        console.stop()


def main():
    options = arguments()
    exit_on_signals()
    try:
        report = run_demo(options)
    except HarnessError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    if not options.console:
        tell(report)
    if options.json:
        say(json.dumps(report))
    good = report["identical"] and report["crc64_source"] == report["crc64_destination"]
    return 0 if good else 1


def tell(report):
    say(f"goodput        {report['goodput_gbps']} Gbit/s of payload over {report['wire']}"
        f" ({report['elapsed_s']} s with handshake, sync and rename)")  # fmt: skip
    say(f"retransmitted  {report['retransmits']} chunks")
    say(f"CRC-64         {report['crc64_source']} at the source")
    say(f"               {report['crc64_destination']} at the destination")
    say(f"cmp            {'identical' if report['identical'] else 'DIFFERENT'}")


if __name__ == "__main__":
    sys.exit(main())
