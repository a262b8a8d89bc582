# A node with two workers exchanges files with a node that has one, lanes spread over both.
# SPDX-License-Identifier: Apache-2.0
import pytest
from harness.system import allowed_cores
from transfers import MIB, forget, last_session, make_file, pull, push

pytestmark = pytest.mark.skipif(len(allowed_cores()) < 2, reason="two workers need two cores")


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30, settings_b={"dataplane": {"workers": 2, "cores": allowed_cores()[:2]}})


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_push_to_two_workers(pair, lanes):
    source = make_file(pair.a, 100 * MIB + 11)
    target = push(pair, source, "--lanes", lanes)
    assert last_session(pair.a)["lanes"] == lanes
    forget(source, target)


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_pull_from_two_workers(pair, lanes):
    source = make_file(pair.b, 100 * MIB + 11)
    target = pull(pair, source, "--lanes", lanes)
    forget(source, target)


def test_ipv6_with_two_workers(pair):
    source = make_file(pair.a, 20 * MIB)
    target = push(pair, source, "-6", "--lanes", 2)
    forget(source, target)
