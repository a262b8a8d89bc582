"""Where things lie."""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build" / "cards"
sys.path.insert(0, str(ROOT / "tools"))  # for what lies beside: vm
