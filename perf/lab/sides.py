# Which cores each side of an experiment has: one, unless --cores gives more. The first is its worker's.
# SPDX-License-Identifier: Apache-2.0
from harness.system import allowed_cores

from .errors import MISSING, LabError

_per_side = 1


def give(count):
    """From now on each side has so many cores, and none of the other side's."""
    global _per_side
    if count > 1 and 2 * count > len(allowed_cores()):
        raise LabError(f"--cores {count}: two sides need {2 * count} cores, this process may use {len(allowed_cores())}",
                       MISSING)  # fmt: skip
    _per_side = count


def cores(side):
    """With a single core on the machine both sides share it."""
    allowed = allowed_cores()
    return [allowed[(side * _per_side + index) % len(allowed)] for index in range(_per_side)]


def pin(side):
    """Words before a command of this side."""
    return ["taskset", "-c", ",".join(map(str, cores(side)))]
