# iperf3 over the same veth: what the kernel's network carries when no file is touched.
# SPDX-License-Identifier: Apache-2.0
import json

from ..errors import LabError
from .ends import ADDRESSES
from .tools import Peer

_PORT = 5201


class Iperf3Tcp(Peer):
    name = "iperf3-tcp"
    packages = ("iperf3",)
    file = False
    options = ()
    port = _PORT

    def start(self):
        self.serve(1, ["iperf3", "-s", "-p", str(self.port)], self.port)

    def measure(self, seconds):
        """(received Gbit/s, bytes received, fraction lost, retransmits)"""
        command = ["iperf3", "-J", "-p", str(self.port), "-t", str(seconds), "-c", ADDRESSES[1], *self.options]
        finished = self.client(0, command).end(seconds + 30)
        return received(finished)


class Iperf3Udp(Iperf3Tcp):
    name = "iperf3-udp"
    tcp = False
    options = ("-u", "-b", "0", "-l", "8900")
    port = _PORT + 1


def received(finished):
    try:
        report = json.loads(finished.stdout)
    except ValueError:
        raise LabError(f"iperf3: exit {finished.status}: {finished.reason()}") from None
    if "error" in report:
        raise LabError(f"iperf3: {report['error']}")
    end = report["end"]
    got = end.get("sum_received") or end["sum"]
    lost = end.get("sum", {}).get("lost_percent")
    return {"goodput_gbps": got["bits_per_second"] / 1e9, "bytes": got["bytes"],
            "loss": lost / 100 if lost is not None else None,
            "retransmits": end.get("sum_sent", {}).get("retransmits")}  # fmt: skip
