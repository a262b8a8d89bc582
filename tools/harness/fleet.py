# Nodes that have one file system, a dataset on it, and a fleet that moves it to another node.
#
#   with Group([*SENDERS, ARCHIVE]) as group, ...: share(group, SENDERS); Fleet(group, slurm, DATASET, NAME).make()
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess

from .system import HarnessError

FIRST = "n1"  # where commands are typed, and where slurmctld stands
SENDERS = ["n1", "n2", "n3", "n4"]
ARCHIVE = "arc"


def make_dataset(folder, small, large, seed=1):
    """So many small files in directories, and large ones of these sizes; links, modes, times and an empty directory as well."""
    chance = random.Random(seed)
    for number in range(small):
        directory = folder / f"d{number // 500:03}" / "in"
        if number % 500 == 0:
            directory.mkdir(parents=True)
        (directory / f"f{number}").write_bytes(chance.randbytes(chance.randrange(2000)))
    for number, size in enumerate(large):
        (folder / f"large{number}").write_bytes(chance.randbytes(size))
    os.link(folder / "d000/in/f1", folder / "hard")
    os.symlink("large0", folder / "soft")
    (folder / "empty").mkdir()
    (folder / "d000").chmod(0o750)
    os.utime(folder / "d000", (1e9, 1e9))
    os.utime(folder, (1.1e9, 1.1e9))


def picture(folder):
    """Whatever two copies have to have in common: {path: (kind, mode, time, what it holds)}."""
    found = {}
    for top, directories, files in os.walk(folder):
        for name in [*directories, *files, "."]:
            path = os.path.normpath(os.path.join(top, name))
            info = os.lstat(path)
            link = os.path.islink(path)
            holds = os.readlink(path) if link else (None if os.path.isdir(path) else open(path, "rb").read())
            found[os.path.relpath(path, folder)] = (info.st_mode, None if link else info.st_mtime_ns, holds)
    return found


def same_links(one, other):
    return [os.stat(folder / "hard").st_ino == os.stat(folder / "d000/in/f1").st_ino for folder in (one, other)] == [True, True]


def share(group, senders=SENDERS):
    """Before the nodes start: an export `shared` of all senders, which is one directory; the archive's names may be managed."""
    for name in senders:
        group[name].add_export("shared", group.base / "shared", mode="rw")
        group[name].write_configuration()
    group[ARCHIVE].add_export("data", group[ARCHIVE].export(), mode="rwm")
    group[ARCHIVE].write_configuration()


def kill_slurm_at(slurm, node):
    """The slurmd of this node, each slurmstepd, then each task: none can tell slurmctld of another's end."""
    net = os.readlink(f"/proc/{slurm.slurmds[node].pid}/ns/net")
    stepds, tasks = [], []
    for pid in slurm.processes():
        with contextlib.suppress(OSError):
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            if os.readlink(f"/proc/{pid}/ns/net") == net and pid != slurm.slurmds[node].pid:
                (stepds if b"slurmstepd" in command else tasks).append(pid)
    slurm.slurmds[node].kill()
    for pid in [*stepds, *tasks]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class Fleet:
    """Commands of `sluice fleet` at FIRST, where this Slurm is the one that they find."""

    def __init__(self, group, slurm, source, name):
        self.group, self.slurm, self.source = group, slurm, source
        self.plan = group.base / "plans" / name
        self.plan.parent.mkdir(exist_ok=True)

    def call(self, verb, *words, node=FIRST, timeout_s=300):
        environment = dict(os.environ)
        if self.slurm is not None:
            environment["SLURM_CONF"] = str(self.slurm.base / "slurm.conf")
        return subprocess.run([*self.group.enter(node), *self.group[node].command("fleet", verb, self.plan, *words)], capture_output=True,
                              text=True, env=environment, timeout=timeout_s, check=False)  # fmt: skip

    def must(self, verb, *words, **options):
        result = self.call(verb, *words, **options)
        if result.returncode != 0:
            raise HarnessError(f"fleet {verb}: exit {result.returncode}: {result.stderr.strip()}\n{self.told()}")
        return result.stdout

    def json(self, verb, *words, **options):
        result = self.call(verb, *words, "--json", **options)
        return result.returncode, json.loads(result.stdout or "{}")

    def make(self, *words, node="%n", senders=SENDERS):
        self.must("plan", "--from", f"{','.join(senders)}:{self.source}", "--to", f"{ARCHIVE}:data/copy", "--node-dir",
                  f"{self.group.base}/{node}", *words)  # fmt: skip

    def status(self):
        return self.json("status")[1]

    def states(self):
        return {one["shard"]: one["state"] for one in self.status()["shards"]}

    def told(self):
        """What the jobs have printed, for whoever reads a failure."""
        return "\n".join(f"--- {path.name}\n{path.read_text()}" for path in sorted((self.plan / "log").glob("*")))[-8000:]
