# Faults around nodes on UDP sockets: links that are down, a firewall, strangers, rubbish, fragments, and ports that are
# taken.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import signal
import socket
import subprocess

import pytest
from harness import VethWire, veth_missing, wait_until
from transfers import (MIB, STALLED, UNREACHABLE, begin, finish, forget, last_session, make_file, pull, push, refused,
                       start_slow, still_serving)  # fmt: skip

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))
_no_firewall = veth_missing(lossy=True)


@pytest.fixture(scope="module")
def sockets(make_pair):
    return make_pair(wire=VethWire(sockets=(0, 1)), bytes_needed=1 << 30)


def test_a_link_that_is_down_is_shown_and_a_timeout_ends_the_wait_for_it(make_pair):
    wire = VethWire(sockets=(0, 1))
    pair = make_pair(wire=wire, bytes_needed=1 << 30)

    def links():
        return [node.json("node", "show")[1]["live"]["link"] for node in pair.nodes]

    wait_until(lambda: links() == ["up", "up"], 10, "both links")
    process, _ = start_slow(pair.a, "send", make_file(pair.a, 64 * MIB), "b:data/", "--timeout", "3")
    wire.set_link(1, up=False)
    wait_until(lambda: links() == ["down", "down"], 10, "no link")
    assert "(link down)" in pair.a.must("node", "show").stdout
    result = finish(process)
    assert result.returncode == STALLED, result.stderr
    assert "nothing has moved with b for 3 s, the timeout that it was given; it waited for " in result.stderr
    wait_until(lambda: not list(pair.b.export().iterdir()), 20, "nothing of it is left")
    wire.set_link(1, up=True)
    wait_until(lambda: links() == ["up", "up"], 10, "both links again")
    push(pair, make_file(pair.a, MIB), "-4", "--timeout", "20")


# The nodes agree on everything over TCP, and a firewall of the host that receives drops UDP.
@pytest.mark.skipif(_no_firewall is not None, reason=str(_no_firewall))
def test_a_firewall_that_drops_udp_is_named_and_ends_the_session(make_pair):
    pair = make_pair(wire=VethWire(sockets=(0, 1)), settings={"control": {"connect_timeout_s": 5}}, bytes_needed=1 << 28)
    sent, got = make_file(pair.a, MIB), make_file(pair.b, MIB)
    push(pair, sent, name="before").unlink()
    pair.wire.close_udp(1)
    refused(pair.a.sluice("send", sent, "b:data/"), UNREACHABLE, "no data has reached node b", "arrives at b's UDP port",
            "firewall")  # fmt: skip
    for node in pair.nodes:
        wait_until(lambda node=node: last_session(node)["state"] == "failed", 60, "both ends know")
        session = last_session(node)
        assert session["error_code"] == UNREACHABLE and "UDP port" in session["error"]
    verdict = last_session(pair.a)["bottleneck"]
    assert verdict["cause"] == "network" and "sent" in verdict["evidence"][0] and "firewall" in verdict["evidence"][1]
    status, report, _ = pair.a.json("doctor", "b")
    path = [check for check in report["checks"] if check["check"] == "path"]
    assert status != 0 and path[0]["level"] == "fail" and "b's UDP port" in path[0]["text"]
    pair.wire.open_udp(1)
    pair.wire.close_udp(0)
    refused(pair.a.sluice("get", f"b:{got}", pair.a.export() / "got"), UNREACHABLE, "UDP port")
    pair.wire.open_udp(0)
    forget(sent, push(pair, sent), got, pull(pair, got))


def test_strange_datagrams_do_no_harm(sockets):
    """From the peer's host, to the ports of the lanes; and by the peer's own port, once its daemon is gone."""
    source = make_file(sockets.a, 24 * MIB + 3)
    process, _ = start_slow(sockets.a, "send", source, "b:data/", rate="100M")
    base = 47000
    stranger = sockets.wire.inside(0, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    with stranger:
        stranger.bind(("10.77.0.1", 0))
        for size in (0, 1, 71, 72, 73, 1500, 8964):
            for port in range(base, base + 4):
                stranger.sendto(os.urandom(size), ("10.77.0.2", port))
    result = finish(process)
    assert result.returncode == 0, result.stderr
    target = sockets.b.export() / source.name
    assert target.read_bytes() == source.read_bytes()
    assert sockets.b.counters()["rx_drop_crc"] == 0, "the kernel hands over what the peer's port sends, nothing else"
    forget(source, target)


@contextlib.contextmanager
def impostor(pair, fragments=False):
    """A socket that has the place of a's first lane in the middle of a transfer. Nobody at b hears of the change: the
    control of a stands still meanwhile."""
    source = make_file(pair.a, 24 * MIB + 3)
    process, _ = start_slow(pair.a, "send", source, "b:data/", rate="100M")

    def take_port():
        taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if fragments:
            taken.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER = IP_PMTUDISC_DONT
        taken.bind(("10.77.0.1", 47000))
        return taken

    os.kill(pair.a.control.pid, signal.SIGSTOP)
    pair.a.dataplane.kill()
    try:
        with pair.wire.inside(0, take_port) as taken:
            yield taken
    finally:
        os.kill(pair.a.control.pid, signal.SIGCONT)
        pair.a.start_dataplane()
    result = finish(process)
    assert result.returncode == 0, result.stderr
    target = pair.b.export() / source.name
    assert target.read_bytes() == source.read_bytes()
    forget(source, target)
    still_serving(pair)


def test_rubbish_from_the_peers_own_port_is_counted_and_dropped(sockets):
    before = sockets.b.counters()

    def seen():
        now = sockets.b.counters()
        return (now["rx_drop_bad_version"] == before["rx_drop_bad_version"] + 4 and
                now["rx_drop_too_short"] == before["rx_drop_too_short"] + 3)  # fmt: skip

    with impostor(sockets) as peer:
        for size in (0, 1, 71, 72, 73, 1500, 8964):
            peer.sendto(b"\xff" * size, ("10.77.0.2", 47000))
        wait_until(seen, 10, "the rubbish was seen")


def test_fragments_are_dropped(sockets):
    before = sockets.b.counters()["rx_drop_fragment"]
    with impostor(sockets, fragments=True) as peer:
        peer.sendto(b"\xff" * 20000, ("10.77.0.2", 47000))
        wait_until(lambda: sockets.b.counters()["rx_drop_fragment"] == before + 1, 10, "the fragments were seen")


def test_a_port_that_is_taken_is_named(sockets):
    def take_ports():
        taken = []
        for port in range(47000, 47000 + 64):
            one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            one.bind(("10.77.0.1", port))
            taken.append(one)
        return taken

    taken = sockets.wire.inside(0, take_ports)
    source = make_file(sockets.a, MIB)
    session = begin(sockets.a, "send", source, "b:data/")

    def shown():
        return sockets.a.json("session", "show", session)[1]

    try:
        wait_until(lambda: "udp_port_base" in shown()["waiting_for"], 30, "the port is named")
    finally:
        for one in taken:
            one.close()
    wait_until(lambda: shown()["state"] == "succeeded", 60, "it goes on once the ports are free")
    forget(source, sockets.b.export() / source.name)


def test_a_link_that_goes_down_for_a_while(sockets):
    source = make_file(sockets.a, 40 * MIB + 3)
    process, _ = start_slow(sockets.a, "send", source, "b:data/", rate="100M")
    namespace = sockets.wire.namespace(0)
    subprocess.run(["ip", "-n", namespace, "link", "set", "data0", "down"], check=True)
    wait_until(lambda: sockets.a.counters()["tx_refused"] > 0, 20, "the kernel finds no way")
    subprocess.run(["ip", "-n", namespace, "link", "set", "data0", "up"], check=True)
    subprocess.run(["ip", "-n", namespace, "address", "replace", "fd77::1/64", "dev", "data0", "nodad"], check=True)
    result = finish(process)
    assert result.returncode == 0, result.stderr
    forget(source, sockets.b.export() / source.name)
