# The host as the harness sees it: commands, conditions with deadlines, cores, ports, binaries, data.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BINARY_NAMES = ("sluice-dataplane", "sluice-control", "sluice")


class HarnessError(Exception):
    """A one-line message for a person: the thing, the reason, the remedy."""


def is_root():
    return os.geteuid() == 0


def find_binaries(directory=None):
    """The folder with the three programs: the argument, $SLUICE_BIN, or the release build."""
    folder = pathlib.Path(directory or os.environ.get("SLUICE_BIN") or REPOSITORY / "build/release/bin")
    for name in BINARY_NAMES:
        if not os.access(folder / name, os.X_OK):
            raise HarnessError(f"{folder / name}: not built; run ./dev build, or set SLUICE_BIN")
    return folder.resolve()


def run(command, **options):
    """Runs a system command; a failure becomes one line that names it."""
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if result.returncode != 0:
        reason = (result.stderr.strip() or result.stdout.strip() or "no message").splitlines()[-1]
        raise HarnessError(f"{' '.join(map(str, command))}: exit {result.returncode}: {reason}")
    return result.stdout


PATIENCE = 4  # a machine that others use as well is so many times as slow


def wait_until(condition, deadline_s, what, interval_s=0.05):
    """Polls `condition` until it returns something true, and returns that. The interval only bounds how often we look:
    first every interval_s, later at every tenth of what was waited already, for each look costs the others on this
    machine. What is waited for is the condition. deadline_s is what a machine of its own may need at most; a shared
    one gets PATIENCE times as long. The condition is looked at once more after that: the machine may have stood
    still."""
    deadline_s *= PATIENCE
    begin = time.monotonic()
    while True:
        waited_s = time.monotonic() - begin
        late = waited_s > deadline_s
        value = condition()
        if value:
            return value
        if late:
            raise HarnessError(f"{what}: not so after {deadline_s:g} s")
        time.sleep(max(interval_s, min(waited_s / 10, 0.5)))


def allowed_cores():
    return sorted(os.sched_getaffinity(0))


def free_ports(count):
    """TCP ports of 127.0.0.1 that nobody has; all are held until all are known, so they differ. Where there is
    room, from below those that the kernel gives to outgoing connections: none of them takes the port of a
    daemon that is being restarted."""
    local_first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    chance = random.SystemRandom()
    sockets = []
    try:
        while len(sockets) < count:
            one = socket.socket()
            try:
                one.bind(("127.0.0.1", chance.randrange(10000, local_first) if local_first > 20000 else 0))
            except OSError:
                one.close()
            else:
                sockets.append(one)
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def scratch_parent(bytes_needed, in_memory=False):
    """A folder for temporary files with room for `bytes_needed`; short enough for unix sockets. in_memory: a tmpfs where
    there is one with room, for who makes thousands of files and does not ask what a disk does with them."""
    candidates = [os.environ.get("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"]
    if in_memory:
        candidates.insert(1, "/dev/shm")
    for candidate in candidates:
        if candidate is None or len(os.path.realpath(candidate)) > 60 or not os.access(candidate, os.W_OK):
            continue
        if shutil.disk_usage(candidate).free > bytes_needed + (256 << 20):
            return os.path.realpath(candidate)
    raise HarnessError(
        f"temporary folder: none has {bytes_needed >> 20} MiB free; set TMPDIR to one with room (path of at "
        "most 60 characters), or ask for less"
    )


def random_file(path, size, seed=1):
    """Writes `size` incompressible bytes: AES-128 in counter mode over zeros, a few GB/s."""
    key = f"{seed:032x}"
    command = ["openssl", "enc", "-aes-128-ctr", "-nosalt", "-K", key, "-iv", "0" * 32, "-in", "/dev/zero"]
    with open(path, "wb") as out:
        if size == 0:
            return path
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as stream:
            left = size
            while left > 0:
                block = stream.stdout.read(min(left, 1 << 20))
                if not block:
                    raise HarnessError("openssl enc: ended early; install the package openssl")
                out.write(block)
                left -= len(block)
            stream.kill()
    return path


def same_bytes(one, other):
    """Byte by byte: an opinion that owes nothing to Sluice. What is not there is not the same; two holes are."""
    block_bytes = 1 << 18
    if not (os.path.exists(one) and os.path.exists(other)):
        return False
    with open(one, "rb", buffering=0) as a, open(other, "rb", buffering=0) as b:
        size = os.fstat(a.fileno()).st_size
        if os.fstat(b.fileno()).st_size != size:
            return False
        at = 0
        while at < size:
            at = min(_next_data(file, at, size) for file in (a, b))
            a.seek(at)
            b.seek(at)
            block = a.read(block_bytes)
            if b.read(block_bytes) != block:
                return False
            at += len(block)
    return True


def _next_data(file, at, size):
    try:
        return os.lseek(file.fileno(), at, os.SEEK_DATA)
    except OSError:
        return size  # a hole to the end


def exit_on_signals():
    """SIGTERM, SIGHUP and SIGINT unwind the stack like any other error, so that cleanup runs."""

    def leave(number, _frame):
        # A second signal must not interrupt the cleanup.
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        sys.exit(128 + number)

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, leave)
