# What `./dev package --bundle --try` does: in a root that has nothing but the bundle, two nodes start, send a file and verify
# it, over sockets and over shared memory (memif); as root, and as an ordinary user in a user namespace. With --rpm, also as
# `rpm` installs it into an empty root; with --oci, as the image has it.
#
#   trial_bundle.py ROOT PROGRAMS     ROOT: becomes "/"; PROGRAMS: the folder in it that has sluice, as in /bundle/bin
#
# The harness stays outside of the root: it finds scripts in place of the programs, which enter the root first. What both
# must see, the nodes' folders, lies at one path inside and outside.
# SPDX-License-Identifier: Apache-2.0
import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "e2e")]

DEVICES = ("null", "zero", "full", "random", "urandom")
NOBODY = 65534
_LIMIT_S = 600
# PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL: an ordinary user has entered the root, and keeps no right of its namespace.
_ENTER = """#!/usr/bin/python3 -IS
import ctypes, os, sys
where = os.getcwd()
os.chroot({root!r})
try:
    os.chdir(where)
except OSError:
    os.chdir("/")
ctypes.CDLL(None).prctl(47, 4, 0, 0, 0)
os.execv({program!r}, [{program!r}, *sys.argv[1:]])
"""


def prepare(root):
    """The places where the host's /proc, /sys and devices are mounted, and /tmp."""
    for name in ("proc", "sys", "dev", "tmp"):
        (root / name).mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    for name in DEVICES:
        (root / "dev" / name).touch()


def everything_in(root):
    """What stands in it besides what prepare() made."""
    return sorted(path.name for path in root.iterdir() if path.name not in ("proc", "sys", "dev", "tmp"))


def enter(root, programs, scratch):
    """In namespaces of its own: mounts, addresses, and scripts in place of the programs."""
    for name in ("proc", "sys"):
        subprocess.run(["mount", "--rbind", f"/{name}", root / name], check=True)
    for name in DEVICES:
        subprocess.run(["mount", "--bind", f"/dev/{name}", root / "dev" / name], check=True)
    inside = root / scratch.relative_to("/")
    inside.mkdir(parents=True)
    subprocess.run(["mount", "--bind", scratch, inside], check=True)
    for words in (["link", "set", "lo", "mtu", "9000", "up"], ["address", "add", "10.77.0.1/24", "dev", "lo"],
                  ["address", "add", "10.77.0.2/24", "dev", "lo"]):  # fmt: skip
        subprocess.run(["ip", *words], check=True)
    scripts = scratch / "programs"
    scripts.mkdir()
    for name in ("sluice", "sluice-control", "sluice-dataplane", "sluice-users"):
        found = [place for place in programs if os.path.lexists(root / place.lstrip("/") / name)]
        script = scripts / name
        script.write_text(_ENTER.format(root=str(root), program=f"{found[0]}/{name}"))
        script.chmod(0o755)
    return scripts


def use(scripts):
    from harness import MemifWire, Pair
    from harness.wires import Wire

    class Sockets(Wire):
        name = "sockets"
        mtu = 9000
        rate = "10G"

        def device(self, _side, _directory):
            return "udp"

    user = f"user {os.geteuid()}"
    shown = subprocess.run([scripts / "sluice", "--version"], capture_output=True, text=True, check=False)
    print(f"  {user}: {(shown.stdout or shown.stderr).strip()}", flush=True)
    for wire in (Sockets(), MemifWire()):
        settings = {"port": {"address6": ""}} if wire.name == "sockets" else None
        with Pair(wire=wire, bytes_needed=256 << 20, settings=settings) as pair:
            pair.start()
            move(pair, wire, user)


def move(pair, wire, user):
    from harness import HarnessError
    from harness.system import random_file, same_bytes

    source = random_file(pair.a.export() / "run42", (48 << 20) + 7)
    pair.a.must("send", source, "b:data/")
    pair.a.must("get", "b:data/run42", pair.a.export() / "back")
    session = pair.a.sessions()[0]["id"]
    pair.a.must("verify", session)
    pair.a.must("ls", "-l", "b:data/")
    pair.a.sluice("doctor", "b")
    for other in (pair.b.export() / "run42", pair.a.export() / "back"):
        if not same_bytes(source, other):
            raise HarnessError(f"{other}: not the same as {source}")
    for node in pair.nodes:
        for daemon in (node.control, node.dataplane):
            forbidden = daemon.log_lines("the sandbox did not allow")
            if forbidden:
                raise HarnessError(f"{daemon.name}: {forbidden[0]}")
    print(f"  {user}: two nodes over {wire.name} sent, fetched and verified {source.stat().st_size} bytes", flush=True)


def inside(root, programs):
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="sluice-alone-", dir="/tmp"))
    with contextlib.ExitStack() as stack:
        stack.callback(subprocess.run, ["rm", "-rf", "--one-file-system", scratch], check=False)
        scripts = enter(root, programs, scratch)
        os.environ.update(SLUICE_BIN=str(scripts), TMPDIR=str(scratch))
        use(scripts)


def attempt(root, programs, as_user):
    """In namespaces of mounts and of the network, and of users if it is as a user."""
    words = ["unshare", "--mount", "--net"]
    if as_user:
        words += ["--user", "--map-user=1000", "--map-group=1000", "--keep-caps"]
        if os.geteuid() == 0:
            words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--", *words]
    words += ["--", sys.executable, "-B", __file__, "--inside", root, *programs]
    subprocess.run([str(word) for word in words], check=True, timeout=_LIMIT_S, stdin=subprocess.DEVNULL)


def try_root(root, programs):
    """As root, if we are, and as an ordinary user. Raises CalledProcessError."""
    prepare(root)
    print(f"a root with {', '.join(everything_in(root))}, /proc, /sys, /tmp and {len(DEVICES)} devices", flush=True)
    if os.geteuid() == 0:
        attempt(root, programs, as_user=False)
    attempt(root, programs, as_user=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("programs", nargs="+")
    given = parser.parse_args()
    (inside if given.inside else try_root)(given.root.resolve(), given.programs)


if __name__ == "__main__":
    main()
