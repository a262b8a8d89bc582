# The packaged tools again, for whole trees: each with what its own users would write. Whatever is in the folder `source`
# comes into the folder `target`, which is there and empty.
# SPDX-License-Identifier: Apache-2.0
import os
import shlex
import subprocess
import sys

from . import forests, tools
from .ends import ADDRESSES

_A, _B = ADDRESSES


class RsyncTree(tools.Rsync):
    name = "rsync"

    def command(self, source, target):
        there = target.relative_to(self._root)
        return ["rsync", "-a", "-W", f"{source}/", f"rsync://{_B}:8730/t/{there}/"]


class Tar(tools.Socat):
    name = "tar-socat"
    packages = ("socat", "tar")

    def copy(self, source, target, timeout_s, after):
        into = f"tar -x -C {shlex.quote(str(target))} -f -"
        out = f"tar -c -C {shlex.quote(str(source))} -f - . | socat -u -b 1048576 - TCP:{_B}:5001"
        return self.through(["sh", "-c", out], f"SYSTEM:{into}", timeout_s, after)


class ScpTree(tools.Scp):
    def command(self, source, target):
        # `.` as the last component: what is in it, not the folder itself.
        return ["scp", "-q", "-r", "-F", self._config, "-c", "aes128-gcm@openssh.com", f"{source}/.", f"{_B}:{target}"]


class GridFtpTree(tools.GridFtp):
    name = "gridftp-cc8-pp"
    port = 2813

    def copy(self, source, target, timeout_s, after):
        return self.copy_with(["-r", "-cd", "-cc", "8", "-pp"], f"{source}/", f"{target}/", timeout_s, after)


class HttpTree(tools.Http):
    """curl has no way to look for files: it is given the list, which took no time."""

    name = "nginx-curl-parallel"

    def copy(self, source, target, timeout_s, after):
        there = source.relative_to(self.folder.parent)
        wanted = self.folder / "wanted"
        with open(wanted, "w") as out:
            for path in sorted(path for path in source.rglob("*") if path.is_file()):
                name = path.relative_to(source)
                out.write(f'url = "http://{_A}:8080/{there}/{name}"\noutput = "{target}/{name}"\n')
        command = ["curl", "-sS", "--fail", "--parallel", "--parallel-max", "32", "--create-dirs", "-K", wanted]
        return self.client(1, command).end(timeout_s, after)


class BareLoop(tools.Peer):
    """No network: the files are read and written by one process at the destination's end."""

    name = "bare-loop"
    tcp = False

    def copy(self, source, target, timeout_s, after):
        words = [sys.executable, "-B", "-c", _LOOP, str(forests_home()), str(source), str(target)]
        return self.client(1, words).end(timeout_s, after)


_LOOP = """
import sys
sys.path.insert(0, sys.argv[1])
sys.path.insert(0, sys.argv[1] + "/../tools")
from lab.peers.forests import bare_loop
bare_loop(sys.argv[2], sys.argv[3])
"""


def forests_home():
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(forests.__file__))))



TREE_PEERS = (RsyncTree, Tar, ScpTree, GridFtpTree, HttpTree, BareLoop)
