"""What ./dev cards makes of what its guests say."""
# SPDX-License-Identifier: Apache-2.0
from cards import KINDS, cases_of, table

SAID = """serving device 0000:01:00.0
CASE start pass 1200
CASE send fail 60001 no end in 60 s: rx_missed=3
--- a-dataplane
CASE sent pass
"""


def test_a_case_is_a_line_of_its_form_and_nothing_else():
    assert cases_of(SAID) == [("start", True, 1200, ""), ("send", False, 60001, "no end in 60 s: rx_missed=3")]


def test_the_table_has_each_case_of_each_kind_and_why_one_failed():
    lines = table({"e1000": cases_of(SAID), "vmxnet3": [("start", True, 900, "")]}).splitlines()
    assert lines[0].split() == ["e1000", "vmxnet3"]
    assert lines[1].split() == ["start", "pass", "1.2", "s", "pass", "0.9", "s"]
    assert lines[2].split() == ["send", "FAIL", "-"]
    assert lines[3] == "e1000: send: no end in 60 s: rx_missed=3"


def test_each_kind_is_a_device_with_options_that_know_the_mtu():
    for device, options, workers in KINDS.values():
        assert device and workers >= 1 and "{" not in options.format(mtu=1500)
