"""The shortest cases of ./dev cards, on the virtual device that needs neither hugepages nor a machine of its own."""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it makes network namespaces")
def test_files_move_between_devices_that_dpdk_drives():
    done = subprocess.run([sys.executable, "-B", HERE / "cards.py", "pcap", "--short"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "paced  pass" in done.stdout
