# How often damage passes a checksum: the closed sums against the paper's iteration, against counting, and against chance.
# SPDX-License-Identifier: Apache-2.0
import itertools
import math

import pytest
from lab import aliasing
from lab.experiments import aliasing as experiment


@pytest.mark.parametrize(("generator", "length"), [(0b1011, 40), (0b1_0001_1101, 24), (aliasing.CCITT >> 8 | 1, 12)])
@pytest.mark.parametrize("ber", ["1e-4", "0.3"])
def test_the_sum_is_what_the_iteration_over_all_states_gives(generator, length, ber):
    n = generator.bit_length() - 1
    assert abs(aliasing.zero_rest(aliasing.spectrum(generator, length), n, ber) - aliasing.iterate(generator, length, ber)) < 1e-100


def test_of_a_short_packet_every_error_can_be_counted():
    """The multiples of g with 10 bits are all that passes."""
    generator, length, ber = 0b1011, 10, 0.01
    passed = 0.0
    for errors in range(1, 1 << length):
        rest = 0
        for bit in f"{errors:0{length}b}":
            rest = aliasing.step(generator, rest, int(bit))
        if rest == 0:
            passed += ber ** errors.bit_count() * (1 - ber) ** (length - errors.bit_count())
    assert float(aliasing.crc_alias(generator, length, ber)) == pytest.approx(passed / (1 - (1 - ber) ** length), rel=1e-9)


def test_nothing_cancels_where_a_long_double_has_no_digit_left():
    """What passes at a low rate is the lightest multiples of g: here 2^-16 of a part that is 1e-40."""
    alias = aliasing.crc_alias(aliasing.MAXIMAL[16], 64, "1e-8")
    lightest = min(weight for weight in range(1, 8) if aliasing.crc_alias(aliasing.MAXIMAL[16], 64, "1e-8") > 10.0 ** (-8 * weight - 2))
    assert 0 < alias < 1e-20 and lightest >= 2
    tenth = aliasing.crc_alias(aliasing.MAXIMAL[16], 64, "1e-9")
    order = math.log10(alias / tenth)
    assert order == pytest.approx(round(order), abs=1e-5)


def test_every_generator_of_maximal_length_has_one_cycle_beside_that_of_zero():
    for n, generator in aliasing.MAXIMAL.items():
        assert [len(bits) for bits in aliasing.cycles(generator)] == [1, (1 << n) - 1]


def test_the_disagreement_with_figure_6_and_what_explains_it():
    maximal = aliasing.MAXIMAL[16]
    assert float(aliasing.crc_alias(maximal, 12000, "1e-4") * 65536) == pytest.approx(0.1753, abs=5e-4)
    assert float(aliasing.crc_alias(maximal, 12000, "1e-5") * 65536) == pytest.approx(0.00238, abs=5e-5)
    # One bit early it is 1/N, for any rate that is low: all that the paper says of it.
    for length in (512, 12000, 65536):
        assert float(aliasing.one_bit_early(maximal, length, "1e-8")) == pytest.approx(1 / length, rel=3e-3)
    assert float(aliasing.one_bit_early(aliasing.MAXIMAL[20], 12000, "1e-7")) == pytest.approx(1 / 12000, rel=3e-3)
    assert float(aliasing.one_bit_early(maximal, 12000, "1e-5")) == pytest.approx(0.00008, rel=0.03)


@pytest.mark.parametrize(("size", "alias"), [(64, 1.18e-4), (576, 1.06e-3), (1500, 2.62e-3), (9000, 9.86e-3)])
def test_the_internet_checksum(size, alias):
    assert aliasing.checksum_alias(size, 2.0**-16) == pytest.approx(alias, rel=5e-3)


def test_the_internet_checksum_of_one_word_passes_nothing_but_a_whole_turn():
    """0 and 65535 are the same to it: all 16 bits must turn, from all zeros or all ones."""
    ber = 0.25
    passed = 0.0
    for turned in itertools.product((0, 1), repeat=16):
        if not any(turned):
            continue
        # Each data word is as likely: the part of those that keep their sum modulo 65535.
        weight = sum(turned)
        if weight == 16:
            passed += ber**16 * 2 / 65536
    damaged = 1 - (1 - ber) ** 16
    assert aliasing.checksum_alias(2, ber) == pytest.approx(passed / damaged, rel=1e-6)


# ---- what sluice-alias says ---------------------------------------------------------------------


@pytest.mark.parametrize(("generator", "bits"), [(0x1100B, 1000), (aliasing.CCITT, 777), (aliasing.IBM, 100)])
def test_counted_weights_are_those_of_all_cycles(generator, bits):
    said = experiment.ask("weights", "--generator", f"{generator:x}", "--bits", bits)["weights"]
    assert {int(weight): count for weight, count in said.items()} == aliasing.spectrum(generator, bits)


def test_a_generator_that_is_none_of_both_kinds_is_refused():
    with pytest.raises(Exception, match="not of maximal length"):
        experiment.ask("weights", "--generator", "1f", "--bits", 10)


def test_crcs_pass_as_many_as_is_computed():
    """A seed gives one result: no chance is left in here."""
    said = experiment.ask("crc", "--bits", 12144, "--ber", "1e-4", "--packets", 20_000_000, "--seed", 3)
    damaged = 1 - (1 - 1e-4) ** 12144
    assert said["damaged"] == pytest.approx(20_000_000 * damaged, abs=5 * math.sqrt(20_000_000 * damaged * (1 - damaged)))
    for name in ("crc16", "crc16_ccitt"):
        expected = float(aliasing.crc_alias(experiment.GENERATORS[name], 12144, "1e-4")) * said["damaged"]
        assert abs(said["passed"][name] - expected) < 4 * math.sqrt(expected), name
    assert said["passed"]["crc32"] == said["passed"]["crc32c"] == said["passed"]["crc64"] == 0


def test_the_checksum_of_real_packets_passes_as_many_as_is_computed():
    for size in (64, 1496):
        said = experiment.ask("checksum", "--bytes", size, "--ber", 2.0**-12, "--packets", 300_000, "--seed", 5)
        assert said["damaged"] == 300_000
        expected = aliasing.checksum_alias(size, 2.0**-12)
        assert abs(said["passed"] / said["damaged"] - expected) < 4 * math.sqrt(expected / said["damaged"])
        assert said["damaged"] / said["packets"] == pytest.approx(aliasing.damaged(size, 2.0**-12), rel=0.02)


def test_the_baseline_is_the_crc_16_of_iso_3309():
    assert experiment.ask("cost", "--bytes", 900)["crc16_check"] == 0x906E


def test_what_it_asks_of_the_papers_is_within_their_numbers():
    rows = [*experiment._readings()]
    assert rows[0]["over_limit_1e-4"] < 0.2 and 5 < rows[-1]["over_limit_1e-5"] < 5.3
    layers = {row["layer"]: row for row in experiment._exabyte()}
    assert layers["CRC-64 of a chunk"]["wrong_most"] < 1e-7 < 1 < layers["TCP's or UDP's checksum"]["wrong_least"]
