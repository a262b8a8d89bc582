# The keys of a flow, of the secret that both ends have by their control connection. docs/WIRE.md, 1.3.
# SPDX-License-Identifier: Apache-2.0
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from . import wire

LABEL = b"EXPORTER-sluice-flow-v1"
SECRET_BYTES = 32
EPOCH_BITS = 23
# By the numbers of Protection in peer.proto, the stricter the larger.
CRC, AES_128_GCM, AES_256_GCM = range(3)


def context(session_id, flow_id, lane):
    """What the secret of a flow is asked for with."""
    return session_id + flow_id.to_bytes(8, "big") + lane.to_bytes(4, "big")


def expand(secret, info, count):
    return HKDFExpand(SHA256(), count, info).derive(secret)


class Chain:
    """One type of datagrams: a key and an IV for each epoch, each of a secret that is made of the one before."""

    def __init__(self, secret, key_bytes, epoch_bits):
        self._secret, self._key_bytes, self.epoch_bits = secret, key_bytes, epoch_bits
        self._keys, self._newest = {}, -1
        self._make_next()
        self._make_next()

    def _make_next(self):
        if self._newest >= 0:
            self._secret = expand(self._secret, b"sluice next", SECRET_BYTES)
        self._newest += 1
        self._keys[self._newest] = (AESGCM(expand(self._secret, b"sluice key", self._key_bytes)),
                                    expand(self._secret, b"sluice iv", 12))  # fmt: skip
        self._keys.pop(self._newest - 3, None)

    def find(self, epoch):
        return self._keys.get(epoch, (None, bytes(12)))

    def reached(self, epoch):
        """A number of this epoch was used, or came and was proved right: the key after it is made."""
        if epoch == self._newest:
            self._make_next()


class Keys:
    def __init__(self, protection, secret, epoch_bits=EPOCH_BITS):
        self.protection = protection
        key_bytes = 32 if protection == AES_256_GCM else 16
        data = Chain(expand(secret, b"sluice data s2d", SECRET_BYTES), key_bytes, epoch_bits)
        probe = Chain(expand(secret, b"sluice probe s2d", SECRET_BYTES), key_bytes, epoch_bits)
        status = Chain(expand(secret, b"sluice status d2s", SECRET_BYTES), key_bytes, epoch_bits)
        echo = Chain(expand(secret, b"sluice echo s2d", SECRET_BYTES), key_bytes, epoch_bits)
        back = Chain(expand(secret, b"sluice echo d2s", SECRET_BYTES), key_bytes, epoch_bits)
        self._chains = {wire.DATA: data, wire.PARITY: data, wire.PROBE: probe, wire.STATUS: status, wire.ECHO: echo}
        self._back = back

    def encipher(self, kind):
        return kind not in (wire.DATA, wire.PARITY) or self.protection != CRC

    def _chain(self, datagram):
        reflected = datagram.type == wire.ECHO and datagram.flags == wire.REFLECTED
        return self._back if reflected else self._chains[datagram.type]

    def epoch(self, datagram):
        return wire.number_of(datagram) >> self._chain(datagram).epoch_bits

    def reached(self, datagram):
        self._chain(datagram).reached(self.epoch(datagram))

    def to_send(self, datagram):
        self.reached(datagram)
        return self.to_open(datagram)

    def to_open(self, datagram):
        """The cipher, or None, and the nonce."""
        cipher, iv = self._chain(datagram).find(self.epoch(datagram))
        number = wire.number_of(datagram).to_bytes(12, "big")
        return cipher, bytes(a ^ b for a, b in zip(iv, number))


class Copies:
    """Which numbers came: what comes again, or is much older than the newest, is a copy."""

    REMEMBERED = 1024

    def __init__(self):
        self._came, self._end = set(), 0

    def is_copy(self, number):
        return number in self._came or number + self.REMEMBERED < self._end

    def mark(self, number):
        self._came.add(number)
        self._end = max(self._end, number + 1)
        if len(self._came) > 2 * self.REMEMBERED:
            self._came = {each for each in self._came if each + self.REMEMBERED >= self._end}
