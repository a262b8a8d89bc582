# ./dev faults: many kills at random moments, by tools/e2e/kills_test.py.
# SPDX-License-Identifier: Apache-2.0
import argparse
import os
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(prog="./dev faults", description="Kills daemons at random moments of transfers.")
    parser.add_argument("--kills", type=int, default=200, metavar="N", help="kills on each wire (default: 200)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of transfers, victims and moments")
    options = parser.parse_args()
    if options.kills < 1:
        parser.error(f"--kills {options.kills}: at least 1")
    environment = os.environ | {
        "SLUICE_KILLS": str(options.kills),
        "SLUICE_SEED": str(options.seed),
        "SLUICE_BIN": os.environ.get("SLUICE_BIN", str(FOLDER.parents[1] / "build" / "release" / "bin")),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", str(FOLDER / "kills_test.py")]
    os.execve(sys.executable, command, environment)


if __name__ == "__main__":
    main()
