# How often damage passes a checksum, exactly: the model of Phatpackets (docs/SOURCES.md), section 3. Pure.
#
# A CRC of n bits divides the errors of a packet, a polynomial of N bits, by its generator g; damage passes if the
# rest is zero. Each bit is wrong with probability p, alone. So P0(N), the probability of a rest of zero, is
#
#     P0(N) = 2^-n sum over u of (1 - 2p)^w(u),
#
# where u runs over the words of n bits and w(u) is the number of ones among the first N bits that the shift register
# of g makes of u. It is what the paper's iteration over 2^n states gives (`iterate`), in a fraction of the steps.
# P(alias) = (P0 - (1-p)^N) / (1 - (1-p)^N): of packets with an error, the part that passes. Both terms of the numerator are
# nearly one where p N is small, and differ by as little as 1e-40: hence decimals of 120 digits, where a long double
# has 19.
#
# TCP's checksum: the sum of words of 16 bits modulo 65535. A wrong bit j adds or takes 2^j, each with probability
# one half where data are random. Of W words the sum of all errors is a multiple of 65535 with probability
# (1/65535) sum over k of prod over j of (1 - p + p cos(2 pi k 2^j / 65535))^W.
# SPDX-License-Identifier: Apache-2.0
import collections
import decimal
import functools
import itertools
import math
import operator

_DIGITS = 120
# x^16+x^12+x^3+x+1 and others of maximal length: their registers go through all states but zero.
MAXIMAL = {3: 0b1011, 8: 0b1_0001_1101, 16: 0x1100B, 20: 0x100009}
CCITT, IBM = 0x11021, 0x18005  # x + 1 times a polynomial of degree 15: what FMFT sums with, and what USB does


def _decimal(value):
    return decimal.Decimal(value) if isinstance(value, (str, int)) else decimal.Decimal(repr(value))


@functools.cache
def cycles(generator):
    """The sequences of g's shift register, one list of bits for each of its cycles; the shortest is that of zero."""
    n = generator.bit_length() - 1
    taps = generator & ((1 << n) - 1)
    seen = bytearray(1 << n)
    found = []
    for first in range(1 << n):
        state, bits = first, []
        while not seen[state]:
            seen[state] = 1
            bits.append(state & 1)
            state = (state >> 1) | (((state & taps).bit_count() & 1) << (n - 1))
        if bits:
            found.append(bits)
    return found


@functools.cache
def spectrum(generator, length):
    """{w: how many u have w ones among their first `length` bits}; 2^n in all."""
    found = collections.Counter()
    for bits in cycles(generator):
        rounds, rest = divmod(length, len(bits))
        before = list(itertools.accumulate(bits + bits, initial=0))
        whole = rounds * before[len(bits)]
        for weight, count in collections.Counter(map(operator.sub, before[rest : rest + len(bits)], before)).items():
            found[whole + weight] += count
    return dict(found)


def zero_rest(weights, n, p):
    """P0 as a Decimal, of a spectrum and the probability that a bit is wrong."""
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        base = 1 - 2 * _decimal(p)
        return sum(count * base**weight for weight, count in weights.items()) / (1 << n)


def given_an_error(passed, length, p):
    """P0 to the probability of an alias: of packets with an error, the part that passes."""
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        intact = (1 - _decimal(p)) ** length
        return (passed - intact) / (1 - intact)


def crc_alias(generator, length, p):
    n = generator.bit_length() - 1
    if length <= n:
        return decimal.Decimal(0)  # no multiple of g is so short
    return given_an_error(zero_rest(spectrum(generator, length), n, p), length, p)


def one_bit_early(generator, length, p):
    """As crc_alias, but with P0 of one bit more than (1-p)^N has been counted for: close to 1/N, for every p and g."""
    n = generator.bit_length() - 1
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        intact = (1 - _decimal(p)) ** (length + 1)
        return (zero_rest(spectrum(generator, length), n, p) - intact) / (1 - intact)


def iterate(generator, length, p):
    """P0 as the paper finds it: the probabilities of all states of the register, one bit after the other."""
    n = generator.bit_length() - 1
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        wrong = _decimal(p)
        states = [decimal.Decimal(0)] * (1 << n)
        states[0] = decimal.Decimal(1)
        for _ in range(length):
            after = [decimal.Decimal(0)] * (1 << n)
            for state, probability in enumerate(states):
                for bit, share in ((0, 1 - wrong), (1, wrong)):
                    after[step(generator, state, bit)] += probability * share
            states = after
        return states[0]


def step(generator, state, bit):
    """The register's next state when `bit` comes in: the rest of (state x + bit) divided by g."""
    state = state << 1 | bit
    return state ^ generator if state >> (generator.bit_length() - 1) else state


@functools.cache
def _factors(p):
    """For each k the product over the 16 bits of a word; doubling k changes nothing."""
    cosines = [1 - p + p * math.cos(2 * math.pi * k / 65535) for k in range(65535)]
    out = [0.0] * 65535
    for k in range(65535):
        if not out[k]:
            members = [k * (1 << j) % 65535 for j in range(16)]
            product = math.prod(cosines[member] for member in members)
            for member in members:
                out[member] = product
    return out


def checksum_alias(length_bytes, p):
    """Of packets of random data with an error, the part whose Internet checksum is right."""
    words = length_bytes // 2
    passed = math.fsum(factor**words for factor in _factors(p)) / 65535
    intact = (1 - p) ** (8 * length_bytes)
    return (passed - intact) / (1 - intact)


def damaged(length_bytes, p):
    """The part of packets with an error."""
    return -math.expm1(8 * length_bytes * math.log1p(-p))
