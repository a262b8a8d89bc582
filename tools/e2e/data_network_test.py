# The data network fails, in one direction or both. Nothing is lost, and a session that is stuck says why and waits.
# SPDX-License-Identifier: Apache-2.0
import pytest
from harness import EmulatedWire, HarnessError, wait_until
from partings import STALLS_SOON, succeeded
from transfers import MIB, finish, make_file, start_slow, still_serving

SIZE = 40 * MIB + 4321
RATE = "100M"


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(wire=EmulatedWire(rate="1G"), bytes_needed=1 << 30, settings={"control": STALLS_SOON})


def test_a_data_network_without_statuses(pair):
    """The sender crawls, and something arrives all the same: no session has to wait."""
    source = make_file(pair.a, SIZE)
    process, session = start_slow(pair.a, "send", source, "b:data/", rate=RATE)
    pair.wire.blackhole(STALLS_SOON["stall_timeout_s"] + 2, "b_to_a")
    succeeded(pair, session, source, pair.b.export() / source.name)
    finish(process)
    still_serving(pair)


@pytest.mark.parametrize("direction", ["both", "a_to_b"])
def test_a_data_network_that_vanishes(pair, direction):
    source = make_file(pair.a, SIZE)
    process, session = start_slow(pair.a, "send", source, "b:data/", rate=RATE)
    pair.wire.blackhole(3600, direction)
    try:
        wait_until(lambda: pair.a.json("session", "show", session)[1]["attempts"] >= 2, 60, "new flows were opened")
        wait_until(lambda: "does not answer ARP" in pair.a.json("session", "show", session)[1]["waiting_for"], 60,
                   "the session says what it waits for")  # fmt: skip
    finally:
        pair.wire.blackhole(0, direction)
    succeeded(pair, session, source, pair.b.export() / source.name)
    finish(process)
    still_serving(pair)


def test_the_blackholes_were_real(pair):
    try:
        counters = pair.wire.counters()
    except HarnessError as error:
        pytest.fail(str(error))
    assert all(counters[direction]["drops"]["blackhole"] > 0 for direction in ("a_to_b", "b_to_a")), counters
