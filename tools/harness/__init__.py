# Makes, runs and removes Sluice nodes on one host: what `./dev demo` and the end-to-end tests share.
#
# Standard library only. Everything that is reserved, mounted, created or started is registered with
# an ExitStack, so that one way out (normal, exception, SIGINT, SIGTERM) gives all of it back.
# SPDX-License-Identifier: Apache-2.0
from .console import Console
from .group import Group, group_missing
from .hanging import HangingFileSystem, hanging_missing
from .hugepages import Hugepages
from .middle import MiddleWire
from .nat import NatWire, nat_missing
from .node import Node
from .pair import Pair
from .proxy import Proxy
from .slurm import Slurm, slurm_missing
from .system import HarnessError, find_binaries, is_root, wait_until
from .wires import EmulatedWire, FallbackWire, MemifWire, VethWire, veth_missing

__all__ = [
    "Console",
    "EmulatedWire",
    "Group",
    "HangingFileSystem",
    "HarnessError",
    "Hugepages",
    "MemifWire",
    "MiddleWire",
    "NatWire",
    "Node",
    "Pair",
    "Proxy",
    "Slurm",
    "VethWire",
    "find_binaries",
    "group_missing",
    "hanging_missing",
    "is_root",
    "nat_missing",
    "slurm_missing",
    "veth_missing",
    "wait_until",
]
