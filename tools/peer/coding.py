# The erasure code Reed-Solomon over the blocks of an extent. docs/WIRE.md, 1.12.
# SPDX-License-Identifier: Apache-2.0
import functools

from . import wire

BLOCK_MAX = 64  # chunks of a block, at most
SHARDS_MAX = 255


def _power_tables():
    power, log, value = [0] * 255, [0] * 256, 1
    for exponent in range(255):
        power[exponent], log[value] = value, exponent
        value = (value << 1) ^ (0x11D if value & 0x80 else 0)
    return power, log


_POWER, _LOG = _power_tables()


def times(a, b):
    return _POWER[(_LOG[a] + _LOG[b]) % 255] if a and b else 0


def inverse(a):
    return _POWER[-_LOG[a] % 255]


@functools.lru_cache(256)
def _row(factor):
    return bytes(times(factor, each) for each in range(256))


def scaled(factor, symbol):
    """As a number, so that XOR adds two of them."""
    return int.from_bytes(symbol.translate(_row(factor)), "big")


class Blocks:
    """How an extent with so many bytes is divided."""

    def __init__(self, terms, length):
        chunk_bytes = terms.chunk_bytes
        whole = -(-terms.extent_bytes // chunk_bytes)
        self.k = -(-whole // -(-whole // BLOCK_MAX))
        self.chunks = -(-length // chunk_bytes)
        self.blocks = -(-self.chunks // self.k)
        self.symbol_bytes = max(64, min(length, chunk_bytes))

    def chunks_of(self, block):
        return range(block, self.chunks, self.blocks)

    def repair(self, sources, number):
        """Symbol `number`, of the chunks of a block in order."""
        total = 0
        for at, chunk in enumerate(sources):
            total ^= scaled(inverse((self.k + number) ^ at), chunk.ljust(self.symbol_bytes, b"\0"))
        return total.to_bytes(self.symbol_bytes, "big")

    def decode(self, sources, repair):
        """All chunks, zeros behind those that are shorter. sources: None where one is missing; repair: number ->
        symbol. None: too few."""
        missing = [at for at, chunk in enumerate(sources) if chunk is None]
        if len(missing) > len(repair):
            return None
        rows = []
        for number in sorted(repair)[: len(missing)]:
            known = [chunk or b"" for chunk in sources]
            value = int.from_bytes(self.repair(known, number), "big") ^ int.from_bytes(repair[number], "big")
            rows.append(([inverse((self.k + number) ^ at) for at in missing], value))
        found = self._solved(rows)
        out = [chunk and chunk.ljust(self.symbol_bytes, b"\0") for chunk in sources]
        for at, symbol in zip(missing, found):
            out[at] = symbol
        return out

    def _solved(self, rows):
        """Gauss and Jordan. Every square part of a Cauchy matrix can be inverted, so no pivot is 0."""

        def by(factor, value):
            return scaled(factor, value.to_bytes(self.symbol_bytes, "big"))

        for at in range(len(rows)):
            factors, value = rows[at]
            turned = inverse(factors[at])
            rows[at] = ([times(turned, each) for each in factors], by(turned, value))
            for other in range(len(rows)):
                factor = rows[other][0][at]
                if other != at and factor:
                    rows[other] = ([a ^ times(factor, b) for a, b in zip(rows[other][0], rows[at][0])],
                                   rows[other][1] ^ by(factor, rows[at][1]))  # fmt: skip
        return [value.to_bytes(self.symbol_bytes, "big") for _, value in rows]


def digest(chunks):
    """By which a decoded block is believed."""
    value = 0
    for chunk in chunks:
        value = wire.CRC64.of(chunk, value)
    return value
