"""When a file was last written, as messages tell it (docs/WIRE.md 2.7): nanoseconds since 1970 in 64 bits, and where these do not
hold it, seconds and the rest of one besides."""
# SPDX-License-Identifier: Apache-2.0

_MIN, _MAX, _SECOND = -(1 << 63), (1 << 63) - 1, 10**9


def of(info):
    """The fields of a message, from what stat says."""
    ns = info.st_mtime_ns
    if _MIN <= ns <= _MAX:
        return {"mtime_ns": ns}
    seconds, rest = divmod(ns, _SECOND)
    return {"mtime_ns": max(_MIN, min(_MAX, ns)), "mtime_seconds": seconds, "mtime_rest_ns": rest}


def told(message):
    """Nanoseconds since 1970."""
    if not message.HasField("mtime_seconds"):
        return message.mtime_ns
    return message.mtime_seconds * _SECOND + min(message.mtime_rest_ns, _SECOND - 1)
