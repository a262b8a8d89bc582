# Who has which cores, and what `cores` gives its nodes.
# SPDX-License-Identifier: Apache-2.0
import pytest
from lab import sides
from lab.errors import MISSING, LabError
from lab.experiments import cores


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """allowed(COUNT) is how many cores there are; what is given to a side is taken back."""
    monkeypatch.setattr(sides, "_per_side", 1)

    def allowed(count):
        for module in (sides, cores):
            monkeypatch.setattr(module, "allowed_cores", lambda: list(range(count)))

    allowed(8)
    return allowed


def test_each_side_has_cores_of_its_own():
    assert (sides.cores(0), sides.cores(1)) == ([0], [1])
    sides.give(3)
    assert (sides.cores(0), sides.cores(1)) == ([0, 1, 2], [3, 4, 5])
    assert sides.pin(1) == ["taskset", "-c", "3,4,5"]


def test_a_single_core_is_shared(machine):
    machine(1)
    sides.give(1)
    assert sides.cores(0) == sides.cores(1) == [0]


def test_more_than_there_are_is_an_error():
    with pytest.raises(LabError, match="need 10 cores, this process may use 8") as error:
        sides.give(5)
    assert error.value.code == MISSING and sides.cores(1) == [1]


def test_nodes_with_many_workers_have_memory_for_each():
    few, many = cores.own(1), cores.own(4)
    assert many["settings_b"]["dataplane"] == {"workers": 4, "cores": [4, 5, 6, 7]}
    assert few["memory_mib"] == 256 and cores.own(8)["memory_mib"] == 512
