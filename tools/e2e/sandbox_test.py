# What the daemons have given up while they serve, over each kind of port, and that all that they do goes on under it.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import signal
import subprocess
import urllib.request

import pytest
from harness import MemifWire, VethWire, is_root, veth_missing, wait_until
from harness.system import free_ports, run
from transfers import MIB, NO_SPACE, RESOURCES, SANITIZED, begin, ended_session, forget, last_session, make_file, names, pull, push, refused

pytestmark = pytest.mark.skipif(SANITIZED, reason="a build with a sanitizer has no sandbox")

_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
_NET_RAW = 1 << 13
_OPEN_FILES = 4096
# CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, NET_BIND_SERVICE, LEASE
_OF_CONTROL = 0b1111 | 1 << 10 | 1 << 28
# Over which wire, as whom, and what its dataplane keeps.
_KINDS = {
    "memif": (MemifWire, [], 0),
    "af_packet": (VethWire, [], _NET_RAW),
    "sockets": (lambda: VethWire(sockets=(0, 1)), [], 0),
    "nobody": (lambda: VethWire(sockets=(0, 1)), _NOBODY, 0),
}


@pytest.fixture(scope="module", params=list(_KINDS))
def kind(request):
    if request.param != "memif" and (reason := veth_missing()) is not None:
        pytest.skip(reason)
    return request.param


@pytest.fixture(scope="module")
def pair(make_pair, kind):
    wire, user, _ = _KINDS[kind]

    def prepare(pair):
        for node, port in zip(pair.nodes, free_ports(2)):
            node.add_export("data", node.export(), "rwm")
            if is_root():
                node.add_export("small", pair.mount_tmpfs(f"{node.name}-small", 8))
            node.settings["control"]["metrics_listen"] = f"127.0.0.1:{port}"
            node.write_configuration()
        if user:
            subprocess.run(["chown", "-R", "65534:65534", str(pair.base)], check=True)

    few = ["prlimit", f"--nofile=256:{_OPEN_FILES}"]  # as a shell has it, before anybody raises it
    return make_pair(wire=wire(), prefix=lambda _side: [*few, *user], prepare=prepare, bytes_needed=256 * MIB)


def daemons(node):
    return (("dataplane", node.dataplane), ("control", node.control))


def statuses(daemon):
    """What the kernel says of each thread: {key: value}."""
    for task in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir():
        yield dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)


def nothing_was_refused(pair):
    for node in pair.nodes:
        live = node.json("node", "show")[1]["live"]
        for name, daemon in daemons(node):
            state = live[f"{name}_sandbox"]
            assert state["refused_calls"] == 0, daemon.log_tail()
            assert state["system_calls"] and (name == "control" or state["rings"]), state
            assert "the sandbox did not allow" not in daemon.log_file.read_text()


def test_no_thread_has_more_than_it_needs(pair, kind):
    for node in pair.nodes:
        for name, daemon in daemons(node):
            kept = _OF_CONTROL if name == "control" else _KINDS[kind][2]
            for status in statuses(daemon):
                told = f"{daemon.name}, {status['Name']}"
                assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1"), told
                for mask, most in (("CapEff", kept), ("CapPrm", kept), ("CapInh", 0), ("CapAmb", 0)):
                    assert int(status[mask], 16) & ~most == 0, f"{told}: {mask} {status[mask]}"
                if is_root() and kind != "nobody":
                    assert int(status["CapBnd"], 16) == 0, told
                # What is not allowed must not end the process.
                assert int(status["SigBlk"], 16) & 1 << (signal.SIGSYS - 1) == 0, told


def test_each_daemon_has_raised_its_limit_of_open_files_before(pair):
    for node in pair.nodes:
        for _, daemon in daemons(node):
            limits = pathlib.Path(f"/proc/{daemon.pid}/limits").read_text().splitlines()
            soft = next(line for line in limits if line.startswith("Max open files")).split()[3]
            assert int(soft) == _OPEN_FILES, daemon.name


@pytest.mark.parametrize("program", ["sluice-control", "sluice-dataplane"])
def test_too_few_open_files_are_refused_with_the_number_that_is_needed(pair, program):
    command = [pair.a.binaries / program, "--node", pair.a.directory]
    result = subprocess.run(["prlimit", "--nofile=24", *command], capture_output=True, text=True, timeout=60, check=False)
    refused(result, RESOURCES, "the limit of open files is 24", "at least", "LimitNOFILE")


def test_files_names_and_figures(pair):
    source = make_file(pair.a, 20 * MIB + 7)
    target = push(pair, source)
    session = last_session(pair.a)["id"]
    pair.a.must("receipt", session)
    pair.b.must("verify", session)
    back = pull(pair, target)
    pair.a.must("mkdir", "-p", "b:data/made/within")
    pair.a.must("mv", f"b:data/{target.name}", "b:data/made/within/file")
    assert "within/file" in pair.a.must("ls", "-R", "b:data/made").stdout
    pair.a.must("rm", "-r", "--yes", "b:data/made")
    for node in pair.nodes:
        address = node.settings["control"]["metrics_listen"]
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
            assert b"sluice_" in answer.read()
    forget(source, back)
    nothing_was_refused(pair)


def test_trees(pair):
    tree = pair.a.export() / "tree"
    for number in range(30):
        (tree / str(number % 3)).mkdir(parents=True, exist_ok=True)
        (tree / str(number % 3) / f"file{number}").write_bytes(bytes([number]) * 1000)
    session = pair.a.must("send", tree, "b:data/", "--detach").stdout.split()[-1]
    assert ended_session(pair.a, session)["state"] == "succeeded"
    assert len([path for path in (pair.b.export() / "tree").rglob("*") if path.is_file()]) == 30
    nothing_was_refused(pair)


def test_the_audit_log_is_rotated(pair):
    log = pair.b.directory / "audit.ndjson"
    source = make_file(pair.a, 1000)
    push(pair, source)
    wait_until(log.exists, 30, "the audit log")
    log.rename(log.with_suffix(".1"))
    forget(pair.b.export() / source.name)
    ended_session(pair.a, begin(pair.a, "send", source, "b:data/"))
    wait_until(log.exists, 30, "an audit log of its own name")
    forget(source, pair.b.export() / source.name)
    nothing_was_refused(pair)


@pytest.mark.skipif(not is_root(), reason="mounting a tmpfs needs root")
def test_a_disk_that_is_full(pair, kind):
    if kind == "nobody":
        pytest.skip("its file systems are root's")
    source = make_file(pair.a, 12 * MIB)
    refused(pair.a.sluice("send", source, "b:small/"), NO_SPACE)
    assert not names(pair.b, "small")
    forget(source)
    nothing_was_refused(pair)


@pytest.mark.parametrize("name", ["dataplane", "control"])
def test_each_daemon_may_be_killed(pair, name):
    for node in pair.nodes:
        getattr(node, name).kill()
        getattr(node, f"start_{name}")()
        node.wait_attached()
    source = make_file(pair.a, 10 * MIB)
    forget(source, push(pair, source))
    nothing_was_refused(pair)


def test_a_daemon_without_it_says_so(pair):
    node = pair.b
    for section in ("control", "dataplane"):
        node.settings[section]["sandbox"] = "no"
    node.write_configuration()
    node.stop()
    try:
        node.start()
        shown = node.must("node", "show").stdout
        for name, daemon in daemons(node):
            assert f"{name}: off, as node.toml says" in shown
            assert "error sandbox: off, as node.toml says" in daemon.log_tail()
            assert {status["Seccomp"] for status in statuses(daemon)} == {"0"}
    finally:
        for section in ("control", "dataplane"):
            del node.settings[section]["sandbox"]
        node.write_configuration()
        node.stop()
        node.start()
    nothing_was_refused(pair)


def of_nobody(root, closed=()):
    subprocess.run(["chown", "-R", "65534:65534", str(root)], check=True)
    for path in closed:
        path.chmod(0o555)


def test_directories_that_forbid_their_owner_to_write(pair, kind):
    """They are brought up to date as by rsync, and have their modes afterwards, also where control was killed."""
    if kind != "nobody":
        pytest.skip("root may write to any directory")
    tree, there = pair.a.export() / "modes", pair.b.export() / "modes"
    closed = [pathlib.Path(path) for path in ("d", "d/e", "d/f", ".")]
    for path in closed[:-1]:
        (tree / path).mkdir(parents=True)
    for number, name in enumerate(("d/small", "d/e/small", "d/f/gone", "d/large")):
        (tree / name).write_bytes(bytes([number]) * (2 * MIB if name == "d/large" else 10))
    of_nobody(tree, [tree / path for path in closed])
    pair.a.must("send", tree, "b:data/")
    for turn, command in enumerate((["--sync", "--delete"], ["--overwrite"], ["--sync", "--delete"])):
        for name in ("d/small", "d/e/small", "d/large", "top"):
            (tree / name).write_bytes(bytes([10 + turn]) * (3 * MIB if name == "d/large" else 20))
        (tree / "d" / f"new{turn}").write_bytes(b"new")
        (tree / "d" / f"made{turn}" / "within").mkdir(parents=True)
        (tree / "d" / "f" / "gone").unlink(missing_ok=True)
        of_nobody(tree, [tree / path for path in closed])
        pair.a.must("send", *command, tree, "b:data/")
        assert subprocess.run(["diff", "-r", tree, there], capture_output=True).stdout == b""
        for path in closed:
            assert (there / path).stat().st_mode & 0o7777 == 0o555, path
    assert pair.b.control.stop() == 0
    info = (there / "d").stat()
    place = str(there / "d").encode().hex()
    note = pair.b.directory / "opened-directories"
    note.write_text(f"+ {info.st_dev} {info.st_ino} {0o555} {0o755} {place}\n")
    of_nobody(note)
    (there / "d").chmod(0o755)  # as a kill leaves it
    pair.b.start_control()
    wait_until(lambda: (there / "d").stat().st_mode & 0o7777 == 0o555, 30, "its mode")
    assert note.read_text() == ""
    nothing_was_refused(pair)


# ---- addresses: each is looked up and shown under the sandbox ------------------------------------------------


def link_local(wire, side):
    """The address that the kernel gave to this side's interface, once it may be used."""

    def found():
        lines = run([*wire.enter(side), "ip", "-6", "-o", "address", "show", "dev", "data0", "scope", "link"]).split("\n")
        return next((line.split()[3].split("/")[0] for line in lines if line and "tentative" not in line), None)

    return wait_until(found, 30, "a link-local address")


@pytest.mark.skipif(veth_missing() is not None, reason="no network namespaces here")
def test_peers_are_called_and_awaited_at_link_local_addresses_by_the_name_of_the_interface(make_pair):
    wire = VethWire(sockets=(0, 1))

    def prepare(pair):
        for side, node in enumerate(pair.nodes):
            node.address = f"[{link_local(wire, side)}%data0]:{node.address.split(':')[1]}"
        pair.a.settings["control"]["listen"] = pair.a.address
        pair.b.settings["control"]["listen"] = "[::]:" + pair.b.address.split(":")[-1]
        for node, other in ((pair.a, pair.b), (pair.b, pair.a)):
            node.write_configuration()
            node.trust(other)

    pair = make_pair(wire=wire, prefix=wire.enter, prepare=prepare, bytes_needed=64 * MIB)
    for node, other in ((pair.a, pair.b), (pair.b, pair.a)):
        source = make_file(node, MIB)
        node.must("send", source, f"{other.name}:data/")
        forget(source, other.export() / source.name)
    nothing_was_refused(pair)
    assert "%data0" in pair.b.control.log_file.read_text(), "a caller is shown with its zone"
