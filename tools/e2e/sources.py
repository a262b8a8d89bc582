# Three sources of the same files, and a node that gets one file from all of them.
# SPDX-License-Identifier: Apache-2.0
import contextlib

from harness import Group

SOURCES = ("alpha", "beta", "gamma")
ALL = ",".join(SOURCES)
RATE = "80M"  # of each source: a file of 24 MiB takes about a second from all of them


@contextlib.contextmanager
def home_and_sources():
    of_node = {name: {"port": {"rate": RATE}} for name in SOURCES}
    with Group(["home", *SOURCES], bytes_needed=1 << 30, of_node=of_node) as nodes:
        nodes.start()
        yield nodes
