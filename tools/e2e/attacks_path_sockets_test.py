# The attacks of attacks_path_test.py and attacks_path_statuses_test.py against nodes that use ordinary sockets.
# SPDX-License-Identifier: Apache-2.0
import dataclasses

import pytest
from attacks import A, B, besieged, named
from harness import MiddleWire, veth_missing, wait_until
from harness.middle import DATA
from tamperings import ALTERED_DATA, ALTERED_STATUSES, MOVED, PROBES, in_path

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

# Over sockets what is no datagram for a lane's socket stays with the kernel: it costs its loss, uncounted.
KERNELS = ("cut", "cut to nothing", "from elsewhere", "to another port")


def over_sockets(each):
    return dataclasses.replace(each, counters="") if each.name.partition(": ")[2] in KERNELS and each.kind == DATA or \
        each.name in ("status: from elsewhere", "data: also to another port") else each  # fmt: skip


SOCKETS = [over_sockets(each) for each in ALTERED_DATA + ALTERED_STATUSES + PROBES + MOVED
           if "turned" not in each.name or each.name.startswith(("data: payload", "status: seal", "probe"))]  # fmt: skip


@pytest.fixture(scope="module")
def siege(make_pair):
    settings = {"transfer": {"protection": "aes-128-gcm"}}
    with besieged(make_pair(wire=MiddleWire(sockets=(A, B)), bytes_needed=1 << 30, settings=settings), "-4") as one:
        yield one


@pytest.mark.parametrize(**named(SOCKETS))
def test_over_sockets(siege, attack):
    in_path(siege, attack)
    before = siege.bytes_done()
    wait_until(lambda: siege.bytes_done() > before, 20, "the transfer goes on")
