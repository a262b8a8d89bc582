# The tests import the lab as its main program does.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

_PERF = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_PERF), str(_PERF.parent / "tools")]
