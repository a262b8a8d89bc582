# Attacks by somebody in the path, who alters and cuts the data that passes him: each altered datagram is counted and
# costs its loss, and the file arrives identical. (Statuses and probes: attacks_path_statuses_test.py.)
# SPDX-License-Identifier: Apache-2.0
import pytest
from attacks import besieged, named, over
from harness import MiddleWire, veth_missing
from tamperings import ALTERED_DATA, UNDER_CRC, in_path

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))


@pytest.fixture(scope="module")
def siege(make_pair, request):
    settings = {"transfer": {"protection": request.param}}
    with besieged(make_pair(wire=MiddleWire(), bytes_needed=1 << 30, settings=settings), "-4") as one:
        yield one


@pytest.mark.parametrize(**named(ALTERED_DATA))
@over("aes-128-gcm")
def test_altered_under_a_cipher(siege, attack):
    # That each costs one datagram sent again is for dataplane/lane/enciphered_test.cc: here a machine that is late
    # loses others besides.
    in_path(siege, attack)


@pytest.mark.parametrize(**named(UNDER_CRC))
@over("crc")
def test_altered_under_a_crc(siege, attack):
    in_path(siege, attack)
