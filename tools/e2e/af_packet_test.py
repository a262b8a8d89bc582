# A real Ethernet path: af_packet on a veth pair between two network namespaces, jumbo and standard frames.
# SPDX-License-Identifier: Apache-2.0
import re
import subprocess

import pytest
from harness import VethWire, veth_missing
from transfers import MIB, forget, last_session, make_file, pull, push, still_serving

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))


@pytest.fixture(scope="module", params=[9000, 1500], ids=["mtu9000", "mtu1500"])
def pair(request, make_pair):
    return make_pair(wire=VethWire(mtu=request.param), bytes_needed=1 << 30)


@pytest.mark.parametrize("size", [0, 1, 8193, 24 * MIB + 1])
def test_pushed_file_arrives_identical(pair, size):
    source = make_file(pair.a, size)
    target = push(pair, source)
    forget(source, target)


def test_pulled_file_arrives_identical(pair):
    source = make_file(pair.b, 16 * MIB + 1)
    target = pull(pair, source)
    forget(source, target)


def test_chunks_fit_the_path(pair):
    source = make_file(pair.a, MIB)
    target = push(pair, source)
    # The IP packet: payload, chunk header, UDP, IPv4.
    assert last_session(pair.a)["chunk_bytes"] + 72 + 8 + 20 <= pair.wire.mtu
    forget(source, target)


def test_ipv6_with_two_lanes(pair):
    source = make_file(pair.a, 16 * MIB + 1)
    target = push(pair, source, "-6", "--lanes", 2)
    assert last_session(pair.a)["chunk_bytes"] + 72 + 8 + 40 <= pair.wire.mtu
    forget(source, target)
    still_serving(pair)


@pytest.fixture(scope="module")
def neighbour():
    """One node; the other end of its wire is a kernel IP stack."""
    from harness import Pair

    with Pair(wire=VethWire(mtu=9000, kernel_addresses=["10.77.0.9/24", "fd77::9/64"])) as half:
        half.a.start_dataplane()
        yield half


@pytest.mark.parametrize("size", [56, 8000])
@pytest.mark.parametrize("address", ["10.77.0.1", "fd77::1"])
def test_ping_from_a_kernel_neighbour_is_answered(neighbour, address, size):
    # The first answers also prove ARP and neighbour discovery: nothing else has the address.
    # -w: until three are answered, however late.
    command = ["ping", "-n", "-c", "3", "-i", "0.2", "-w", "30", "-s", str(size), address]
    result = subprocess.run([*neighbour.wire.enter(1), *command], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    # Until three came back; a reply that was late on a busy machine is one more.
    assert int(re.search(r"(\d+) received", result.stdout).group(1)) >= 3, result.stdout
