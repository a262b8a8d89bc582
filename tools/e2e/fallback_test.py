# A device that dies under a dataplane while a session runs: the node goes on over sockets, and back once the device is there.
# SPDX-License-Identifier: Apache-2.0
import subprocess
import time

import pytest
from harness import FallbackWire, veth_missing, wait_until
from partings import begin, bytes_done, nothing_left, succeeded
from transfers import CONFIGURATION, DEVICE, MIB, finish, wait_state

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

DEADLINE_S = 90
EXTENT = MIB // 16
# Of a flow: the extents that were granted and are not complete. Their chunks may all have to come again.
IN_FLIGHT_MAX = 16 * EXTENT
# It moves so fast until it has lived through all that a test has for it.
SLOW, FAST = "2M", "none"


@pytest.fixture(scope="module")
def pair(make_pair):
    wire = FallbackWire()

    def port(side):
        return {"port": {"fallback": "udp", "fallback_address4": wire.fallback_address(side), "fallback_return_s": 1}}

    return make_pair(wire=wire, bytes_needed=1 << 29, settings_a=port(0), settings_b=port(1), settings={
        "control": {"stall_timeout_s": 30, "sync_lag_ms": 100}, "dataplane": {"extent_bytes": "64KiB"}})  # fmt: skip


@pytest.fixture(autouse=True)
def as_before(pair):
    with nothing_left(pair):
        yield
        # A node that goes back to its device takes no session just then.
        for node in pair.nodes:
            wait_device(node, "net_af_packet0")


def live(node):
    status, reply, _ = node.json("node", "show")
    return (reply.get("live") or {}) if status == 0 else {}


def wait_device(node, device):
    """Attached to a dataplane on this device."""
    def there():
        seen = live(node)
        return seen.get("dataplane_attached") and seen["device"] == device and seen

    return wait_until(there, DEADLINE_S, f"{node.name} carries data by {device}")


def begin_slowly(pair, push_it):
    begun = begin(pair, push_it, size=8 * MIB + 321, rate="20M")
    pair.a.must("session", "limit", begun[1], "--rate", SLOW)
    return begun


def wait_progress(node, session):
    """More has arrived than now: by what there is now."""
    before = bytes_done(node, session)
    wait_until(lambda: bytes_done(node, session) > before + 4 * EXTENT, DEADLINE_S, "bytes arrive")


def ended_well(pair, begun, changes):
    process, session, source, target = begun
    pair.a.must("session", "limit", session, "--rate", FAST)
    end = succeeded(pair, session, source, target)
    assert finish(process).returncode == 0
    for node in pair.nodes:
        shown = wait_state(node, session, "succeeded")
        resent = shown["bytes_resent"]
        print(f"{node.name}: {changes} changes, {shown['attempts']} attempts, {resent} bytes sent again")
        assert resent <= changes * IN_FLIGHT_MAX, (resent, end)
    return end


@pytest.mark.parametrize("push_it", [True, False], ids=["source", "destination"])
def test_a_session_outlives_its_device_and_its_return(pair, push_it):
    begun = begin_slowly(pair, push_it)
    session = begun[1]
    pair.wire.delete(0)
    seen = wait_device(pair.a, "udp")
    assert seen["fallback"]["device"] == "net_af_packet0"
    assert "data0 was deleted" in seen["fallback"]["reason"]
    assert seen["data_ip4"] == "10.77.0.11"
    assert live(pair.b)["device"] == "net_af_packet0", "the other node stays where it is"
    wait_progress(pair.a, session)
    falls = seen["falls"]
    pair.wire.make_anew(0)
    seen = wait_device(pair.a, "net_af_packet0")
    assert (seen["fallback"], seen["falls"]) == (None, falls)
    wait_progress(pair.a, session)
    ended_well(pair, begun, changes=2)


def test_both_devices_die_at_once(pair):
    begun = begin_slowly(pair, True)
    for side in (0, 1):
        pair.wire.move_away(side)
    for node in pair.nodes:
        wait_device(node, "udp")
    wait_progress(pair.a, begun[1])
    ended_well(pair, begun, changes=1)
    for side in (0, 1):
        pair.wire.move_back(side)


def test_the_dataplane_is_killed_while_it_falls(pair):
    begun = begin_slowly(pair, True)
    pair.wire.delete(0)
    wait_until(lambda: pair.a.dataplane.log_lines("FALLBACK"), DEADLINE_S, "it falls")
    pair.a.dataplane.kill()
    pair.a.start_dataplane()
    seen = wait_device(pair.a, "udp")
    assert "data0 is not there" in seen["fallback"]["reason"]
    wait_progress(pair.a, begun[1])
    ended_well(pair, begun, changes=2)
    pair.wire.make_anew(0)


def test_it_is_said_everywhere(pair):
    pair.wire.delete(0)
    wait_device(pair.a, "udp")
    assert "fallback     udp, for net_af_packet0" in pair.a.must("node", "show").stdout
    findings = {found["check"]: found for found in pair.a.json("doctor")[1]["checks"]}
    assert findings["fallback"]["level"] == "warn", findings
    pair.wire.make_anew(0)


def test_a_link_that_is_down_is_no_device_that_is_gone(pair):
    begun = begin_slowly(pair, True)
    falls = live(pair.a)["falls"]
    pair.wire.set_link(0, up=False)
    time.sleep(2)  # how long it is down is part of the fault
    pair.wire.set_link(0, up=True)
    wait_progress(pair.a, begun[1])
    assert (live(pair.a)["falls"], live(pair.a)["device"]) == (falls, "net_af_packet0")
    ended_well(pair, begun, changes=1)


def test_a_fallback_address_that_this_host_lacks_is_missed_at_the_start(pair):
    node = pair.a
    node.dataplane.stop()
    node.settings["port"]["fallback_address4"] = "10.99.0.1/24"
    node.write_configuration()
    result = subprocess.run(node.dataplane.command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == CONFIGURATION, result.stderr
    assert "[port] fallback_address4" in result.stderr
    node.settings["port"]["fallback_address4"] = pair.wire.fallback_address(0)
    node.write_configuration()
    node.start_dataplane()


def test_without_a_fallback_the_dataplane_ends_and_the_session_waits(pair):
    """Last: the node has none from then on, until it is written again."""
    node = pair.a
    node.dataplane.stop()
    node.settings["port"]["fallback"] = "none"
    del node.settings["port"]["fallback_address4"]
    node.write_configuration()
    node.start_dataplane()
    wait_device(node, "net_af_packet0")
    begun = begin_slowly(pair, True)
    pair.wire.delete(0)
    wait_until(lambda: not node.dataplane.running(), DEADLINE_S, "it ends")
    assert node.dataplane.exit_status() == DEVICE
    assert "name [port] fallback" in node.dataplane.log_tail()
    pair.wire.make_anew(0)
    node.start_dataplane()
    wait_progress(node, begun[1])
    ended_well(pair, begun, changes=1)
