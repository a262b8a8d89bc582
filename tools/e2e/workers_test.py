# Nodes with two workers: lanes spread over both, on one side or on both.
#
# Both ends of a memif have the same number of queues, so there both nodes have two workers; over an
# Ethernet path one node may have more than the other.
# SPDX-License-Identifier: Apache-2.0
import pytest
from harness import VethWire, veth_missing
from harness.system import allowed_cores
from transfers import MIB, forget, last_session, make_file, pull, push

pytestmark = pytest.mark.skipif(len(allowed_cores()) < 2, reason="two workers need two cores")

TWO = {"dataplane": {"workers": 2, "cores": allowed_cores()[:2]}}
# A short stall: what does not move at all fails soon.
STALL = {"control": {"stall_timeout_s": 10}}


@pytest.fixture(scope="module", params=["both-memif", "one-veth"])
def pair(request, make_pair):
    if request.param == "both-memif":
        return make_pair(bytes_needed=1 << 30, memory_mib=256, settings=STALL, settings_a=TWO, settings_b=TWO)
    reason = veth_missing()
    if reason:
        pytest.skip(reason)
    return make_pair(bytes_needed=1 << 30, memory_mib=256, wire=VethWire(), settings=STALL, settings_a=TWO)


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_push_from_two_workers(pair, lanes):
    source = make_file(pair.a, 32 * MIB + 11)
    target = push(pair, source, "--lanes", lanes)
    assert last_session(pair.a)["lanes"] == lanes
    forget(source, target)


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_pull_to_two_workers(pair, lanes):
    source = make_file(pair.b, 32 * MIB + 11)
    target = pull(pair, source, "--lanes", lanes)
    forget(source, target)


def test_ipv6_with_two_workers(pair):
    source = make_file(pair.a, 20 * MIB)
    target = push(pair, source, "-6", "--lanes", 2)
    forget(source, target)
