#!/usr/bin/python3
# Sends frames at a rate, as the headers, FCS, preamble and gap of Ethernet count, until SIGTERM; then says what it sent.
#
#   flooder.py DEVICE RATE_BPS FRAMES     FRAMES: a file, one frame a line, in hex; they are sent in turn
# SPDX-License-Identifier: Apache-2.0
import itertools
import json
import pathlib
import signal
import socket
import sys
import time

_WIRE_GAP_BYTES = 24  # preamble, FCS and gap
_BURST_S = 0.001
_LATE_S_MAX = 0.01  # what is later than that is not made up for


def send(port, frames, rate_bps, goes_on):
    """In bursts of a millisecond."""
    turns = itertools.cycle([(frame, (len(frame) + _WIRE_GAP_BYTES) * 8 / rate_bps) for frame in frames])
    sent, refused, wire_s = 0, 0, 0.0
    begin_s = due_s = time.monotonic()
    while goes_on():
        now_s = time.monotonic()
        due_s = max(due_s, now_s - _LATE_S_MAX)
        while due_s <= now_s:
            frame, takes_s = next(turns)
            due_s += takes_s
            try:
                port.send(frame)
            except OSError:  # no room
                refused += 1
            else:
                sent, wire_s = sent + 1, wire_s + takes_s
        time.sleep(_BURST_S)
    seconds = time.monotonic() - begin_s
    return {"frames": sent, "refused": refused, "seconds": seconds, "bps": wire_s * rate_bps / seconds}


def main(device, rate_bps, path):
    wanted = [True]
    signal.signal(signal.SIGTERM, lambda *_: wanted.clear())
    frames = [bytes.fromhex(line) for line in pathlib.Path(path).read_text().split()]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as port:
        port.bind((device, 0))
        print(json.dumps(send(port, frames, float(rate_bps), lambda: bool(wanted))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
