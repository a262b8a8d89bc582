"""The cases on this host: on DPDK's virtual devices, in a network namespace of their own, or on two ports of real cards."""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import signal
import subprocess
import time

from guest import BINARIES
from places import HERE, ROOT, WORK
from vm.machine import Failed, run, stopping

_VETH = "ip link add va type veth peer name vb; for i in va vb; do ip link set $i mtu {mtu} up; done"
# What leaves one tap enters the other, once both are there. (A bridge would take frames to a tap's own link address, which its node has, for itself.)
_CROSSED = ("for tap in tapa tapb; do for i in $(seq 300); do ip link show $tap > /dev/null 2>&1 && break; sleep 0.1; done; done; "
            "for pair in 'tapa tapb' 'tapb tapa'; do set -- $pair; tc qdisc add dev $1 ingress; "
            "tc filter add dev $1 parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev $2; done")  # fmt: skip
# Kind: device of a, of b, what makes the interfaces, what joins them once both nodes run, numbers of workers, MTU at most, memory.
KINDS = {
    "tap": ("net_tap0,iface=tapa", "net_tap0,iface=tapb", "", _CROSSED, (1, 2, 4), 9000, "no-huge"),
    "vhost": ("net_vhost0,iface={base}/vhost,client=1,queues=2", "net_virtio_user0,path={base}/vhost,server=1,queues=2", "", "", (1, 2), 9000, "hugepages"),  # fmt: skip
    "pcap": ("net_pcap0,iface=va", "net_pcap0,iface=vb", _VETH, "", (1,), 9000, "no-huge"),
    "af_packet": ("net_af_packet0,iface=va", "net_af_packet0,iface=vb", _VETH, "", (1, 2, 4), 9000, "no-huge"),
    "af_xdp": ("net_af_xdp0,iface=va", "net_af_xdp0,iface=vb", _VETH, "", (1,), 1500, "hugepages"),
}
MEMORY_MIB = 512


def _hugepages(mib):
    """Free ones, for both nodes; they stay as they are afterwards if they were enough."""
    pool = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
    free = int((pool / "free_hugepages").read_text())
    if free * 2 >= mib:
        return
    wanted = int((pool / "nr_hugepages").read_text()) + mib // 2 - free
    (pool / "nr_hugepages").write_text(str(wanted))
    if int((pool / "free_hugepages").read_text()) * 2 < mib:
        raise Failed(f"{mib} MiB of hugepages are needed: echo {wanted} > {pool}/nr_hugepages")


def _cases(name, environment, inside, limit_s):
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "out").mkdir(parents=True)
    path = f"{BINARIES}:{ROOT / 'tools/package'}:{os.environ['PATH']}"
    log = folder / "out/cases.log"
    with log.open("wb") as out:
        process = subprocess.Popen([*inside, "bash", str(HERE / "cases.sh")], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   start_new_session=True, env={**os.environ, "PATH": path, "NODES": str(ROOT / "tools/vm/nodes.sh"), **environment})  # fmt: skip
        late = ""
        try:
            until = time.monotonic() + limit_s
            while process.poll() is None and time.monotonic() < until and not stopping.wait(0.2):
                pass
            if process.poll() is None:
                late = f"\nCASE to_the_end fail 0 no end in {limit_s} s\n"
        finally:
            for number in (signal.SIGTERM, signal.SIGKILL):  # its nodes, too, which are of its session
                try:
                    os.killpg(process.pid, number)
                    process.wait(10)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    pass
    return log.read_text(errors="replace") + late


def virtual(kind, mtu, which, limit_s):
    """What was said on the devices of this kind. `which`: as CASES of cases.sh."""
    a, b, before, after, workers, most, memory = KINDS[kind]
    mtu = min(mtu, most)
    network = f"sluice-cards-{kind}-{os.getpid()}"
    base = WORK / f"{kind}-nodes"
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    if memory == "hugepages":
        _hugepages(2 * MEMORY_MIB)
    join = base / "join"
    join.write_text(f"#!/bin/bash\n{after.format(mtu=mtu)}\n")
    join.chmod(0o755)
    run("ip", "netns", "add", network)
    try:
        run("ip", "-n", network, "link", "set", "lo", "up")
        if before:
            run("ip", "netns", "exec", network, "bash", "-c", before.format(mtu=mtu))
        environment = {"BASE": str(base), "MTU": str(mtu), "WORKERS": " ".join(map(str, workers)), "CASES": which,
                       "MEMORY": memory, "MEMORY_MIB": str(MEMORY_MIB), "JOIN": str(join), "DEVICES": f"{a} {b}".format(base=base)}  # fmt: skip
        return _cases(kind, environment, ["ip", "netns", "exec", network], limit_s)
    finally:
        run("ip", "netns", "del", network)


def real(ports, mtu, workers, which, limit_s):
    """What was said on two ports of real cards, which a cable joins. They are bound to vfio-pci, and stay so."""
    base = WORK / "real-nodes"
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    environment = {"BASE": str(base), "MTU": str(mtu), "WORKERS": " ".join(map(str, sorted({1, workers}))), "CASES": which,
                   "DEVICES": " ".join(ports)}  # fmt: skip
    return _cases("real", environment, [], limit_s)
