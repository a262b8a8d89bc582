# A directory that is kept the same at another node: what tests of --sync say over and over.
# SPDX-License-Identifier: Apache-2.0
import os

from trees import same, state_of


def exports(pair):
    for node in pair.nodes:
        node.add_export("data", node.export(), "rwm")
        node.add_export("plain", pair.base / f"{node.name}-plain", "rw")
        node.add_export("dropbox", pair.base / f"{node.name}-dropbox", "w")
        node.write_configuration()


class Way:
    """A tree at its source, and where it is to be the same."""

    def __init__(self, pair, direction):
        self.pair = pair
        self.pushes = direction == "push"
        source, destination = (pair.a, pair.b) if self.pushes else (pair.b, pair.a)
        self.source = source.export() / "tree"
        self.destination = destination.export() / "copies" / "tree"

    def arguments(self, *options):
        if self.pushes:
            return ("send", "--sync", *options, self.source, "b:data/copies")
        return ("get", "--sync", *options, "b:data/tree", self.destination.parent)

    def sync(self, *options):
        return self.pair.a.sluice(*self.arguments(*options))

    def report(self, *options):
        """Of one that ends well."""
        code, report, err = self.pair.a.json(*self.arguments(*options))
        assert code == 0, err
        assert report["schema"] == "sluice.sync.v1"
        return report

    def settled(self, *options):
        """Nothing is left to do, and no session is made to find that."""
        before = len(self.pair.a.sessions())
        report = self.report(*options)
        assert report["sessions"] == [] and report["sent"] == report["removed"] == report["failed"] == 0, report
        assert len(self.pair.a.sessions()) == before
        return report

    def same(self):
        same(self.source, self.destination)


def top_of(root):
    info = os.stat(root)
    return info.st_mode & 0o1777, info.st_mtime_ns
