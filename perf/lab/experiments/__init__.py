# The experiments, by name. Each module has: HELP, one line; REAL, whether --node is possible; PACKAGES, what apt
# must have installed; run(bench) -> {"rows", "summary"}; plots(result) -> [(name, draw(axes))].
# SPDX-License-Identifier: Apache-2.0
import importlib

NAMES = ("wire", "socket", "crc", "crypto", "mtu", "scaling", "pacing", "lanes", "netlog", "start", "disk", "exports", "digests", "compress", "trees", "users", "peers", "cores", "path", "steps",
         "fairness", "flood", "hipster", "stall", "verdict", "tcp", "laws", "fmft", "mcdtp", "aliasing", "integrity", "sessions", "servers", "fleet", "scale", "fec", "tornado")  # fmt: skip


def load(name):
    return importlib.import_module(f".{name}", __name__)
