# Floods: frames that are right but for what they must be refused for; the rate at which they are sent; what is kept.
# SPDX-License-Identifier: Apache-2.0
import pytest
from harness.middle import DATA, kind_of, sluice_header_at
from lab import flooder, floods
from lab.experiments import flood

MAC = bytes.fromhex("02aabbccddee")
_HEADER = bytes([2, 0, 0, 72, 0, 0, 0, 0]) + bytes(range(8)) + (77).to_bytes(8, "big") + bytes(48)
_UDP = (47000).to_bytes(2, "big") + (47001).to_bytes(2, "big") + (8 + 72 + 1001).to_bytes(2, "big") + bytes(2)
_IP = bytes.fromhex("4500 0000 0000 4000 4011 0000".replace(" ", "")) + bytes([10, 66, 0, 1, 10, 66, 0, 200])
SEEN = bytes.fromhex("020000000001020000000002") + b"\x08\x00" + _IP + _UDP + _HEADER + b"x" * 1001


def is_right(frame):
    ip, udp = frame[14:34], frame[34:]
    pseudo = ip[12:20] + bytes([0, 17]) + udp[4:6]
    return floods.checksum(ip) == 0 and floods.checksum(pseudo + udp) == 0


@pytest.mark.parametrize("kind", floods.COUNTERS)
def test_frames_of_a_flood_are_right_and_each_is_another(kind):
    frames = floods.made_of(SEEN, kind, 50, MAC)
    assert len(set(frames)) == 50
    for frame in frames:
        assert is_right(frame) and kind_of(frame) == DATA
        assert len(frame) == len(SEEN) and frame[:6] == SEEN[:6] and frame[6:12] == MAC


def test_strangers_have_another_address_and_flow_and_who_knows_the_flow_has_neither():
    at = sluice_header_at(SEEN)
    stranger = floods.made_of(SEEN, floods.STRANGERS, 1, MAC)[0]
    assert stranger[26:30] != SEEN[26:30] and stranger[at + 8 : at + 16] != SEEN[at + 8 : at + 16]
    knowing = floods.made_of(SEEN, floods.WRONG_TAG, 1, MAC)[0]
    assert knowing[26:38] == SEEN[26:38] and knowing[at + 8 : at + 16] == SEEN[at + 8 : at + 16]
    assert int.from_bytes(knowing[at + 16 : at + 24], "big") > 77


def test_what_is_no_datagram_of_a_lane_makes_no_flood():
    with pytest.raises(ValueError, match="no datagram"):
        floods.made_of(SEEN[:40], floods.STRANGERS, 1, MAC)


def test_a_flood_says_what_it_sent_and_what_was_refused():
    taken, turns = [], iter(range(30))

    class Port:
        def send(self, frame):
            taken.append(frame)
            if len(taken) % 2:
                raise OSError

    report = flooder.send(Port(), [bytes(1476)], 1e9, lambda: next(turns, None) is not None)
    assert report["frames"] + report["refused"] == len(taken) and abs(report["frames"] - report["refused"]) <= 1
    assert report["bps"] == pytest.approx(report["frames"] * 1500 * 8 / report["seconds"])


def test_what_is_kept_is_of_the_share_that_is_left_and_the_worse_flood_counts():
    settings = [{"case": "alone", "flood_percent": 0},
                *({"case": kind, "flood_percent": percent} for kind in floods.COUNTERS for percent in (25, 50, 75))]  # fmt: skip
    samples = [[{"goodput_gbps": 1.0}, {"goodput_gbps": 2.0}]]
    samples += [[{"goodput_gbps": 0.75, "share": 0.25}, {"goodput_gbps": 1.5, "share": 0.25}],
                [{"goodput_gbps": 0.5, "share": 0.5}, {"error": "x"}],
                [{"goodput_gbps": 0.25, "share": 0.75}, {"goodput_gbps": 0.5, "share": 0.75}]]  # fmt: skip
    samples += [[{"goodput_gbps": 0.6, "share": 0.2}, {"goodput_gbps": 1.2, "share": 0.2}],
                [{"goodput_gbps": 0.25, "share": 0.5}, {"goodput_gbps": 0.5, "share": 0.5}], [{"error": "x"}]]  # fmt: skip
    flood.keep(settings, samples)
    damaged = [[{"goodput_gbps": 1.0}, {"goodput_gbps": 2.0}], [{"goodput_gbps": 0.9}, {"goodput_gbps": 2.0}]]
    out = flood.summary((0.25, 0.5, 0.75), settings, samples, damaged)
    assert out["kept_25"] == pytest.approx(0.75) and out["kept_50"] == pytest.approx(0.5)
    assert out["kept_75"] is None, "one of the floods was not measured"
    assert (out["forged_1"], out["forged_1_low"], out["forged_1_high"]) == pytest.approx((0.95, 0.9, 1.0))
