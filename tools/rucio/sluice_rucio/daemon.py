"""sluice-rucio-daemon NAME [ARGUMENTS]: runs `rucio-NAME` in this process, with the transfertool registered."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import runpy
import shutil
import sys
from typing import NoReturn

_HELP = """usage: sluice-rucio-daemon NAME [ARGUMENTS]

Runs the Rucio daemon rucio-NAME with Sluice as one of its transfertools. ARGUMENTS are those of the daemon.

  sluice-rucio-daemon conveyor-submitter
  sluice-rucio-daemon conveyor-poller
  sluice-rucio-daemon conveyor-finisher
  sluice-rucio-daemon judge-cleaner        # cancels sessions of rules that are removed
"""


def main() -> None:
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_HELP, end="", file=sys.stdout if arguments else sys.stderr)
        sys.exit(0 if arguments else 2)
    name = "rucio-" + arguments[0].removeprefix("rucio-")
    beside = os.path.join(os.path.dirname(sys.executable), name)  # in the environment of this program
    script = beside if os.path.exists(beside) else shutil.which(name)
    if script is None:
        _fail(f"{name}: no such program beside this one or in PATH; install rucio into the same environment", 2)
    from .register import register

    register()
    sys.argv = [script, *arguments[1:]]
    runpy.run_path(script, run_name="__main__")


def _fail(text: str, code: int) -> NoReturn:
    print(f"sluice-rucio-daemon: {text}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
