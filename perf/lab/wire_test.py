# The whole lab once, for real: nodes, rounds, meter, JSON. Seconds, and no claim about speed.
# SPDX-License-Identifier: Apache-2.0
import json
import subprocess
import sys

from harness.system import REPOSITORY


def test_wire_measures_nodes_and_writes_its_result(tmp_path):
    path = tmp_path / "wire.json"
    command = [sys.executable, "-B", REPOSITORY / "perf/lab/main.py", "wire", "--quick", "--repeat", "1", "--no-plots",
               "--json", path]  # fmt: skip
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    result = json.loads(path.read_text())
    rows = {row["setting"]: row for row in result["rows"]}
    assert rows["sluice"]["goodput_gbps"] > 0 and rows["sluice"]["n"] == 2
    assert rows["sluice"]["cpu_s_per_gb"] > 0 and rows["sluice"]["rss_mb"] > 0
    assert set(result["summary"]) == {"goodput_gbps", "raw_gbps", "ratio", "ratio_low", "ratio_high", "crc_variant"}
    assert result["summary"]["crc_variant"]
    assert rows["raw"]["goodput_gbps"] or rows["raw"]["error"]
