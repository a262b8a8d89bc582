# Kills at random moments: of any daemon, in any phase, several in one transfer. Seeded.
#
# Ten kills in the usual run on each wire; `./dev faults --kills N --seed S` for more. A seed gives the same transfers, victims
# and delays; what the daemons are just doing then is up to the machine.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import random
import time

import pytest
from harness import EmulatedWire, wait_until
from harness.system import same_bytes
from transfers import DAEMON, MIB, UNREACHABLE, ended_session, finish, forget, make_file, names, still_serving

KILLS = int(os.environ.get("SLUICE_KILLS", "10"))
SEED = int(os.environ.get("SLUICE_SEED", "1"))
EXTENT = MIB
CREDIT_MAX = 16  # extents that one flow may have open
SYNC_LAG_MS = 100
RATE_BPS = 400e6
DAEMONS = [("a", "control"), ("a", "dataplane"), ("b", "control"), ("b", "dataplane")]


LOSSY = {
    "loss": {"probability": 0.002},
    "duplicate": {"probability": 0.002},
    "reorder": {"probability": 0.002, "distance": 5},
    "corrupt": {"bits": 0.001},
}


@pytest.fixture(scope="module", params=["clean", "lossy"])
def pair(request, make_pair):
    settings = {"control": {"stall_timeout_s": 5, "sync_lag_ms": SYNC_LAG_MS, "sync_lag_bytes": f"{4}MiB"}}
    wire = EmulatedWire(settings=LOSSY, rate="1G") if request.param == "lossy" else None
    return make_pair(wire=wire, bytes_needed=2 << 30, settings=settings)


class Transfer:
    """Some files in one direction, asked for by a."""

    def __init__(self, pair, chance):
        self.pair = pair
        self.push = chance.random() < 0.5
        self.lanes = chance.choice([1, 1, 2])
        giver, self.taker = (pair.a, pair.b) if self.push else (pair.b, pair.a)
        count = chance.choice([1, 1, 3])
        sizes = [chance.choice([0, 1, 70_000, 3 * MIB, 12 * MIB + 7, 24 * MIB + 1]) for _ in range(count)]
        sizes[0] = max(sizes[0], 3 * MIB)
        self.sources = [make_file(giver, size) for size in sizes]
        self.targets = [self.taker.export() / source.name for source in self.sources]
        self.bytes = sum(sizes)
        self.known = {session["id"] for session in pair.a.sessions()}

    def start(self):
        into = ["b:data/"] if self.push else [f"{self.taker.export()}/"]
        sources = self.sources if self.push else [f"b:{source}" for source in self.sources]
        verb = "send" if self.push else "get"
        return self.pair.a.popen(verb, *sources, *into, "--lanes", self.lanes, "--rate", f"{int(RATE_BPS)}")

    def session(self):
        new = [session for session in self.pair.a.sessions() if session["id"] not in self.known]
        return new[-1]["id"] if new else None

    def check(self):
        for source, target in zip(self.sources, self.targets):
            assert same_bytes(source, target), f"{target} differs"
        forget(*self.sources, *self.targets)


def bring_back(pair, delay_s):
    time.sleep(delay_s)  # how long the victim is away is part of the fault
    for node in pair.nodes:
        if not node.dataplane.running():
            node.start_dataplane()
    for node in pair.nodes:
        if not node.control.running():
            node.start_control()
        wait_until(node.attached, 60, f"control of {node.name} is attached")


def one_transfer(pair, chance, kills_left):
    transfer = Transfer(pair, chance)
    kills = min(kills_left, chance.choice([1, 1, 1, 2, 3]))
    process = transfer.start()
    expected_s = transfer.bytes * 8 / RATE_BPS + 0.3
    report = {"bytes": transfer.bytes, "push": transfer.push, "lanes": transfer.lanes, "killed": []}
    for _ in range(kills):
        time.sleep(chance.random() * expected_s)  # the moment is the point
        victims = [chance.choice(DAEMONS)]
        if chance.random() < 0.2:  # a whole node
            victims = [(victims[0][0], "control"), (victims[0][0], "dataplane")]
        for name, daemon in victims:
            getattr(getattr(pair, name), daemon).kill()
            report["killed"].append(f"{name}.{daemon}")
        bring_back(pair, chance.choice([0, 0, 0.3, 1.0]))
    finish(process, 120)
    session = transfer.session()
    end = ended_session(pair.a, session, 120) if session else None
    never_began = end and end["error_code"] in (DAEMON, UNREACHABLE) and end["attempts"] == 0
    if session is None or never_began:
        # Killed before it knew of the session, or before its peer did: the operator was told, and asks again.
        assert process.returncode in (DAEMON, UNREACHABLE), process.stderr_text
        process = transfer.start()
        finish(process, 120)
        session = transfer.session()
        assert session, f"status {process.returncode}: {process.stderr_text}"
        end = ended_session(pair.a, session, 120)
    report |= {key: end[key] for key in ("state", "attempts", "bytes_resent", "error")}
    assert end["state"] == "succeeded", report
    transfer.check()
    return report, len(report["killed"])


def test_no_kill_loses_anything(pair):
    chance = random.Random(SEED)
    before = [names(node) for node in pair.nodes]
    survived, number = 0, 0
    while survived < KILLS:
        report, kills = one_transfer(pair, chance, KILLS - survived)
        survived += kills
        number += 1
        print(json.dumps(report))
        # At a source whose control was killed the count began anew: less is known, nothing is asserted.
        giver = "a" if report["push"] else "b"
        if report["push"] and f"{giver}.control" not in report["killed"]:
            lag = max(RATE_BPS / 8 * SYNC_LAG_MS / 1000 * 4, 4 * MIB)
            bound = len(report["killed"]) * (CREDIT_MAX * EXTENT * report["lanes"] + lag) + report["bytes"] // 20
            assert report["bytes_resent"] <= bound, (report, bound)  # the last term: lost on the wire
    print(f"{survived} kills in {number} transfers survived, seed {SEED}")
    wait_until(lambda: [names(node) for node in pair.nodes] == before, 10, "nothing is left")
    still_serving(pair)
