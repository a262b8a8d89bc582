# Nodes on the sockets of the kernel (device = "udp"): with each other, with a DPDK node, without any privilege.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import pathlib
import subprocess
import tempfile

import pytest
from harness import HarnessError, Pair, VethWire, find_binaries, veth_missing, wait_until
from transfers import CONFIGURATION, MIB, finish, forget, last_session, make_file, pull, push, start_slow, still_serving

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))
_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all",
           "--inh-caps=-all", "--no-new-privs"]  # fmt: skip


# Both on sockets, and each beside a DPDK node.
@pytest.fixture(scope="module", params=[(0, 1), (0,), (1,)], ids=["both", "sender", "receiver"])
def pair(request, make_pair):
    return make_pair(wire=VethWire(sockets=request.param), bytes_needed=1 << 30)


@pytest.mark.parametrize("family", ["-4", "-6"])
@pytest.mark.parametrize("size", [0, 1, 8193, 24 * MIB + 1])
def test_pushed_file_arrives_identical(pair, size, family):
    source = make_file(pair.a, size)
    target = push(pair, source, family)
    forget(source, target)


@pytest.mark.parametrize("family", ["-4", "-6"])
def test_pulled_file_arrives_identical(pair, family):
    source = make_file(pair.b, 16 * MIB + 1)
    target = pull(pair, source, family, "--lanes", 3)
    forget(source, target)


@pytest.mark.parametrize("chunk_bytes", [1100, 2400, 8900])
def test_chunks_of_any_size(pair, chunk_bytes):
    source = make_file(pair.a, 20 * MIB + 5)
    target = push(pair, source, "-4", "--chunk-bytes", chunk_bytes)
    assert last_session(pair.a)["chunk_bytes"] == chunk_bytes
    forget(source, target)


def test_the_session_and_the_node_name_the_wire(pair):
    source = make_file(pair.a, MIB)
    target = push(pair, source)
    for side, node in enumerate(pair.nodes):
        device = "udp" if pair.wire.device(side, "") == "udp" else "net_af_packet0"
        assert last_session(node)["wire"] == device
        status, reply, _ = node.json("node", "show")
        assert status == 0 and reply["live"]["device"] == device
    forget(source, target)


def test_each_daemon_may_be_killed(pair):
    for node in pair.nodes:
        for daemon, restart in ((node.dataplane, node.start_dataplane), (node.control, node.start_control)):
            source = make_file(pair.a, 24 * MIB + 1)
            process, _ = start_slow(pair.a, "send", source, "b:data/", rate="200M")
            daemon.kill()
            restart()
            node.wait_attached()
            result = finish(process) if node is not pair.a or daemon is not node.control else None
            if result is None:
                process.communicate(timeout=60)
                session = last_session(pair.a)["id"]
                wait_until(lambda session=session: pair.a.json("session", "show", session)[1].get("state") ==
                           "succeeded", 60, "the session goes on")  # fmt: skip
            else:
                assert result.returncode == 0, result.stderr
            target = pair.b.export() / source.name
            assert target.read_bytes() == source.read_bytes()
            forget(source, target)
    still_serving(pair)


# ---- without any privilege --------------------------------------------------------------------------------


def _give_to_nobody(pair):
    subprocess.run(["chown", "-R", "65534:65534", str(pair.base)], check=True)


@pytest.fixture(scope="module")
def nobody(make_pair):
    return make_pair(wire=VethWire(sockets=(0, 1)), prefix=lambda _side: _NOBODY, prepare=_give_to_nobody,
                     bytes_needed=1 << 30)  # fmt: skip


@pytest.mark.parametrize("family", ["-4", "-6"])
def test_nobody_can_send_and_get(nobody, family):
    for node in nobody.nodes:
        status = open(f"/proc/{node.dataplane.pid}/status").read()
        assert "\nUid:\t65534" in status and "\nCapEff:\t0000000000000000\n" in status, status
        live = node.json("node", "show")[1]["live"]
        assert live["hugepages"] is False
        assert live["crc_variant"] in ("avx512", "avx2", "pclmul", "plain")
    source = make_file(nobody.a, 40 * MIB + 9)
    target = push(nobody, source, family)
    forget(source, target)
    source = make_file(nobody.b, 40 * MIB + 9)
    target = pull(nobody, source, family)
    forget(source, target)


@pytest.fixture
def folder_of_nobody():
    # Not one of pytest's, to which each pytest that starts beside this one closes the way for other users.
    with tempfile.TemporaryDirectory(prefix="sluice-nobody-") as folder:
        yield pathlib.Path(folder)


def test_three_commands_are_enough(folder_of_nobody):
    """init, trust, send: no device, no address, no option but what is shared, by a user without any rights."""
    base = folder_of_nobody
    subprocess.run(["chown", "65534:65534", str(base)], check=True)
    binaries = find_binaries()
    with VethWire(sockets=(0, 1)) as wire, contextlib.ExitStack() as stack:
        def sluice(side, *arguments):
            node = base / "ab"[side]
            command = [*wire.enter(side), *_NOBODY, str(binaries / "sluice"), "--node", str(node), *map(str, arguments)]
            return subprocess.run(command, capture_output=True, text=True, check=False, cwd=base)

        for side in (0, 1):
            data = base / f"data-{'ab'[side]}"
            data.mkdir()
            subprocess.run(["chown", "65534:65534", str(data)], check=True)
            made = sluice(side, "node", "init", base / "ab"[side], "--name", "ab"[side], "--export", f"data={data}:rw")
            assert made.returncode == 0, made.stderr
        for side in (0, 1):
            other = "ba"[side]
            trusted = sluice(side, "node", "trust", other, base / other / "identity/cert.pem", "--address",
                             f"10.77.0.{2 - side}:7400")  # fmt: skip
            assert trusted.returncode == 0, trusted.stderr
        for side in (0, 1):
            for daemon in ("sluice-dataplane", "sluice-control"):
                log = open(base / f"{'ab'[side]}-{daemon}.log", "w")
                process = subprocess.Popen([*wire.enter(side), *_NOBODY, str(binaries / daemon), "--node",
                                            str(base / "ab"[side])], stdout=log, stderr=log)  # fmt: skip
                stack.callback(process.wait, 30)
                stack.callback(process.terminate)
        def runs(side):
            return "attached:" in sluice(side, "node", "show").stdout

        try:
            for side in (0, 1):
                wait_until(lambda side=side: runs(side), 30, "both daemons run")
        except HarnessError as error:
            logs = [f"{log.name}: {log.read_text()}" for log in sorted(base.glob("*.log"))]
            shows = [sluice(side, "node", "show") for side in (0, 1)]
            raise AssertionError(f"{error}: {logs}, {shows}") from error
        (base / "data-a" / "file").write_bytes(os.urandom(3 * MIB + 1))
        sent = sluice(0, "send", base / "data-a" / "file", "b:data/")
        assert sent.returncode == 0, sent.stderr
        assert (base / "data-b" / "file").read_bytes() == (base / "data-a" / "file").read_bytes()


def test_an_address_of_another_host_is_refused_by_name():
    with Pair(wire=VethWire(sockets=(0, 1))) as pair:
        pair.a.settings["port"]["address4"] = "10.77.0.99/24"
        pair.a.write_configuration()
        command = [*pair.wire.enter(0), pair.a.binaries / "sluice-dataplane", "--node", pair.a.directory]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == CONFIGURATION, result.stderr
        assert "10.77.0.99" in result.stderr and "10.77.0.1 (data0)" in result.stderr, result.stderr
