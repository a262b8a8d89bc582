# Attacks by somebody in the path, who alters statuses and probes, and doubles, holds back, reorders and loses what
# passes him: the transfer goes on, and the file arrives identical.
# SPDX-License-Identifier: Apache-2.0
import pytest
from attacks import besieged, named
from harness import MiddleWire, veth_missing, wait_until
from tamperings import ALTERED_STATUSES, MOVED, PROBES, in_path

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))


@pytest.fixture(scope="module")
def siege(make_pair):
    settings = {"transfer": {"protection": "aes-256-gcm"}}
    with besieged(make_pair(wire=MiddleWire(), bytes_needed=1 << 30, settings=settings), "-4") as one:
        yield one


@pytest.mark.parametrize(**named(ALTERED_STATUSES + PROBES + MOVED))
def test_held_up_and_misled(siege, attack):
    in_path(siege, attack)
    before = siege.bytes_done()
    wait_until(lambda: siege.bytes_done() > before, 20, "the transfer goes on")
