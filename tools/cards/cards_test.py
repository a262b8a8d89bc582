"""What ./dev cards makes of what its nodes say, and that the documents have what was tried."""
# SPDX-License-Identifier: Apache-2.0
import guest
import host
import tried
from vm.cases import Case, cases_of, table

SAID = """2026-11-27 info: serving device 0000:01:00.0 with 1 worker, 9014 byte frames, hugepages, CRC by avx2
2026-11-27 info: device 0000:01:00.0: driver net_vmxnet3, one queue, UDP checksums by the device, payloads copied
CASE start pass 1200
CASE send fail 60001 no end in 60 s: rx_missed=3
CASE link_down skip 0 nobody here can take the link down
--- a-dataplane
CASE sent pass
serving device 0000:01:00.0 with 2 workers, 1514 byte frames, hugepages, CRC by avx2
"""


def test_a_case_is_a_line_of_its_form_and_nothing_else():
    assert cases_of(SAID) == [Case("start", "pass", 1200, ""), Case("send", "fail", 60001, "no end in 60 s: rx_missed=3"),
                              Case("link_down", "skip", 0, "nobody here can take the link down")]  # fmt: skip


def test_the_table_has_each_case_of_each_kind_and_why_one_did_not_pass():
    lines = table({"e1000": cases_of(SAID), "vmxnet3": [Case("start", "pass", 900, "")]}).splitlines()
    assert lines[0].split() == ["e1000", "vmxnet3"]
    assert lines[1].split() == ["start", "pass", "1.2", "s", "pass", "0.9", "s"]
    assert lines[2].split() == ["send", "FAIL", "-"]
    assert lines[3].split() == ["link_down", "skipped", "-"]
    assert lines[4] == "e1000: send: no end in 60 s: rx_missed=3"


def test_each_kind_is_a_device_with_options_that_know_the_mtu():
    for device, options, workers in guest.KINDS.values():
        assert device and workers[0] == 1 and "{" not in options.format(mtu=1500)
    for a, b, before, after, workers, most, memory in host.KINDS.values():
        assert a != b and workers[0] == 1 and most >= 1500 and memory in ("hugepages", "no-huge")
        assert "{" not in (a + b).format(base="/x") + (before + after).format(mtu=1500)


def test_a_row_says_driver_frames_workers_and_what_did_not_pass():
    row = tried.row_of("QEMU's vmxnet3", SAID, cases_of(SAID))
    assert (row[0], row[1], row[3:7]) == ("QEMU's vmxnet3", "net_vmxnet3", ("9014", "2", "1 of 2", "send"))
    assert len(row) == len(tried.HEAD)


def test_the_tutorial_has_what_was_tried():
    text = tried.TUTORIAL.read_text()
    assert tried.in_tutorial(text, tried.rows()) == text, "./dev cards --row writes both"
    assert all(len(row) == len(tried.HEAD) for row in tried.rows())
