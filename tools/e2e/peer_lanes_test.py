# A peer that is trusted and lies under the right keys: statuses, data and probes that are sealed as they must be and say
# what is not so. Each is counted under its name or costs the liar's own session; the transfer ends identical, the node
# lives and has no more memory than before, and other sessions go on.
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import contextlib
import os
import pathlib
import time

import pytest
from harness import veth_missing, wait_until
from peer import wire
from peer.receiving_lane import CREDIT, ReceivingLane
from peer.sending_lane import SendingLane
from stranger import be_sent, met, send
from transfers import INCOMPATIBLE, MIB, fresh_name, make_file

import peer

_reason = veth_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

LIES = 20  # of a session
GROWTH_MAX = 48 * MIB  # of both daemons together, over all lies of this file
OTHERS_PORT = 46010


@pytest.fixture(scope="module")
def meeting():
    with met() as one:
        be_sent(one, one.peer(), [make_file(one.node, MIB)])
        send(one, one.peer(), [one.file(MIB)])
        before = memory_of(one)
        yield one
        assert memory_of(one) - before < GROWTH_MAX


def memory_of(meeting):
    """Resident bytes of both daemons; the most of each so far."""
    total = 0
    for daemon in (meeting.node.control, meeting.node.dataplane):
        assert daemon.running()
        status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
        total += int(status.partition("VmHWM:")[2].split()[0]) << 10
    return total


# ---- statuses --------------------------------------------------------------------------------------


def says(lane, **lies):
    """What an honest status would say now, but for these."""
    levels = {"echo_send_time": lane._echo, "echo_hold": time.monotonic_ns() - lane._echo_at,
              "received_end": lane._received_end, "datagrams_received": lane._datagrams,
              "bytes_received": lane._bytes, "credit_extents": len(lane._completed) + CREDIT,
              "done_end": len(lane._completed)}  # fmt: skip
    return wire.Status(**{**levels, **lies}).pack()


def done(lane, *runs, ahead=0):
    """A list of so many extents more than have come."""
    count = sum(run[2] for run in runs)
    return says(lane, done_end=len(lane._completed) + ahead + count, done_back=count, runs=list(runs))


def lying(make, at_once=LIES, rounds=1):
    """A destination of which each flow says so often, before what is so, the statuses that make(lane) makes."""

    class Lane(ReceivingLane):
        lied = 0

        def say_status(self, now):
            said = 0 if self._datagrams and self.lied < rounds else at_once
            self.lied += said < at_once
            for _ in range(said, at_once):
                for payload in make(self):
                    self.send(wire.Datagram(wire.STATUS, self.flow_id, self._statuses, now, payload))
                    self._statuses += 1
            super().say_status(now)

    class Liar(peer.Destination):
        def make_lanes(self, flow_ids, _kind):
            super().make_lanes(flow_ids, Lane)

    return Liar


EVERYTHING = (1 << 64) - 2
STATUSES = {
    "extents of a file that is not sent": ("rx_false_done_lists", lambda lane: [done(lane, (77, 0, 3))]),
    "extents that were never sent": ("rx_false_done_lists", lambda lane: [done(lane, (0, 1 << 40, 5))]),
    "all that a list can hold": ("rx_false_done_lists", lambda lane: [done(lane, (0, 0, 1024))]),
    "two lists that contradict each other": (
        "rx_false_done_lists", lambda lane: [done(lane, (0, 1 << 30, 4)), done(lane, (0, 1 << 31, 4))]),
    "credit beyond all that can be": ("rx_false_credit", lambda lane: [says(lane, credit_extents=1 << 62)]),
    "numbers that were never used": ("rx_false_received_end", lambda lane: [says(lane, received_end=1 << 50)]),
    "gaps of numbers that were never used": (
        "rx_false_gaps", lambda lane: [says(lane, gaps=[(lane._received_end + (1 << 40), 1 << 40)])]),
    "gaps of everything": ("rx_false_gaps", lambda lane: [says(lane, gaps=[(0, EVERYTHING)])]),
    "an echo of what is to come": ("rx_false_echo", lambda lane: [says(lane, echo_send_time=1 << 62)]),
    "an echo that was held for ever": ("rx_false_echo", lambda lane: [says(lane, echo_hold=1 << 62)]),
    "holes of nothing": ("rx_drop_bad_status", lambda lane: [says(lane, holes=[(0, 0, 8, [(0, 0)])])]),
    "holes beyond what is told": ("rx_drop_bad_status", lambda lane: [says(lane, holes=[(0, 0, 8, [(7, 2)])])]),
    "a gap of nothing": ("rx_drop_bad_status", lambda lane: [says(lane, gaps=[(1, 0)])]),
    "a run beyond all numbers": ("rx_drop_bad_status", lambda lane: [done(lane, (0, (1 << 63), 1 << 63))]),
    "more lists than a status has": (
        "rx_drop_bad_status", lambda lane: [done(lane, *[(number, 0, 1) for number in range(128)])]),
    "half a status": ("rx_drop_bad_status", lambda lane: [says(lane)[:5], says(lane) + b"\0" * 9, b"\xff" * 900]),
    # Nothing of these is ever wrong in itself: it is beyond reach, or what follows takes it back.
    "a count of done far ahead": ("rx_statuses", lambda lane: [done(lane, (0, 0, 1), ahead=1 << 30)]),
    "holes of what was never sent": ("rx_statuses", lambda lane: [says(lane, holes=[(0, 1 << 40, 8, [(0, 8)]), (9, 0, 8, [(0, 1)])])]),
    "no credit any more": ("rx_statuses", lambda lane: [says(lane, credit_extents=0)]),
    "levels without end": (
        "rx_statuses", lambda lane: [says(lane, bytes_received=EVERYTHING, datagrams_received=EVERYTHING, no_room=EVERYTHING,
                                          crc_errors=EVERYTHING, delay_max=(1 << 62))]),
    "probes that nobody sent": ("rx_statuses", lambda lane: [says(lane, padded=[(32768, (1 << 32) - 1), (1, 7)])]),
}  # fmt: skip


@contextlib.contextmanager
def counted(meeting, counter, times):
    """What is done inside raises this counter by so much."""
    before = meeting.node.counters()[counter]
    yield
    risen = meeting.node.counters()[counter] - before
    assert risen >= times, f"{counter} has risen by {risen}"


@pytest.mark.parametrize("lie", STATUSES)
def test_statuses_that_lie(meeting, lie):
    counter, make = STATUSES[lie]
    # A list is taken until another one contradicts it: the next true one does.
    with counted(meeting, counter, 1 if counter == "rx_false_done_lists" else LIES // 2):
        be_sent(meeting, meeting.peer(destination=lying(make)), [make_file(meeting.node, MIB)])


def test_a_flood_of_statuses_harms_no_other_session(meeting):
    """A hundred at a time, two hundred times, while another session goes on."""
    flood = lying(lambda lane: [says(lane, gaps=[(0, 1 << 60)], credit_extents=1 << 62)], at_once=100, rounds=200)
    others = [make_file(meeting.node, MIB)]
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        honest = meeting.peer(ports=[OTHERS_PORT])
        goes_on = thread.submit(honest.get, meeting.address, [str(path) for path in others])
        with counted(meeting, "rx_false_credit", 100):
            be_sent(meeting, meeting.peer(destination=flood), [make_file(meeting.node, MIB)])
        assert goes_on.result(60).ended
    for path in others:
        assert (meeting.folder / path.name).read_bytes() == path.read_bytes()


# ---- data and probes ---------------------------------------------------------------------------------


def deceiving(make, lies=LIES):
    """A source that sends so often, beside what it should, the datagrams that make(lane, honest) makes."""

    class Lane(SendingLane):
        lied = 0

        def send(self, datagram):
            super().send(datagram)
            if datagram.type == wire.DATA and self.lied < lies:
                self.lied += 1
                for lie in make(self, datagram):
                    super().send(lie)

    class Liar(peer.Source):
        def make_lanes(self, flow_ids, _kind):
            super().make_lanes(flow_ids, Lane)

    return Liar


def datagram(lane, honest, payload=None, type=wire.DATA, **lies):
    """As the one before, under a number that is due, but for these."""
    if "tx_seq" not in lies and type == wire.DATA:
        lane.tx_seq += 1
        lies["tx_seq"] = lane.tx_seq
    fields = {"tx_seq": lane.tx_seq, "object": honest.object, "offset": honest.offset, "done_seen": honest.done_seen,
              "statuses_heard": honest.statuses_heard}  # fmt: skip
    if type == wire.PROBE:
        del fields["object"], fields["offset"]
    return wire.Datagram(type, lane.flow_id, send_time=time.monotonic_ns(),
                         payload=honest.payload if payload is None else payload, **{**fields, **lies})  # fmt: skip


def far(lane, step):
    """A number of the same epoch that nobody comes to: each once, since a number is never used again."""
    return 2_000_000 + step * 100_000 + lane.lied * 1000


DATA = {
    "a number far ahead": ("rx_drop_far_tx_seq", lambda lane, d: [datagram(lane, d, tx_seq=far(lane, 7 * (lane.lied % 8)))]),
    "a probe of a number far ahead": (
        "rx_far_probes", lambda lane, d: [datagram(lane, d, b"", wire.PROBE, tx_seq=far(lane, 7 * (lane.lied % 8)))]),
    "a file that is not sent": ("rx_drop_unknown_object", lambda lane, d: [datagram(lane, d, object=77)]),
    "a place beyond the file": ("rx_drop_out_of_range", lambda lane, d: [datagram(lane, d, offset=1 << 40)]),
    "a place that is none of a chunk": ("rx_drop_out_of_range", lambda lane, d: [datagram(lane, d, offset=d.offset + 4)]),
    "a chunk that is too short": ("rx_drop_out_of_range", lambda lane, d: [datagram(lane, d, d.payload[:-4])]),
    "a chunk of nothing": ("rx_drop_out_of_range", lambda lane, d: [datagram(lane, d, b"")]),
    "an echo of extents that never were": ("rx_false_done_seen", lambda lane, d: [datagram(lane, d, done_seen=1 << 31)]),
    "a wish for all credit": ("rx_chunks", lambda lane, d: [datagram(lane, d, credit_wanted=(1 << 24) - 1)]),
    "everything again": ("rx_chunks", lambda lane, d: [datagram(lane, d), datagram(lane, d)]),
    "a repair that nobody asked for": ("rx_chunks", lambda lane, d: [datagram(lane, d, flags=wire.REPAIR)]),
    "probes without end": ("rx_probes", lambda lane, d: [datagram(lane, d, b"", wire.PROBE) for _ in range(50)]),
    "padded probes": ("rx_probes", lambda lane, d: [datagram(lane, d, bytes(size), wire.PROBE) for size in (1, 8000)]),
}  # fmt: skip


@pytest.mark.parametrize("lie", DATA)
def test_data_and_probes_that_lie(meeting, lie):
    counter, make = DATA[lie]
    with counted(meeting, counter, LIES // 2):
        send(meeting, meeting.peer(source=deceiving(make)), [meeting.file(MIB)])


def test_one_chunk_of_each_extent_takes_no_more_than_its_credit(meeting):
    """A huge file of which everything is begun and nothing is sent to its end."""

    class Liar(peer.Source):
        def on_datagram(self, lane, datagram):
            pass

        def tick(self, now):
            if not self._may_send:
                return
            lane, chunk = self.lanes[0], bytes(self.terms.chunk_bytes)
            for extent in range(self.extents_of(self.files[0])):
                lane.send(wire.Datagram(wire.DATA, lane.flow_id, extent, time.monotonic_ns(), chunk,
                                        offset=extent * self.terms.extent_bytes))  # fmt: skip
                if extent % 64 == 0:
                    time.sleep(0)
            wait_until(lambda: meeting.node.counters()["rx_drop_no_buffer"] > before, 20, "credit holds")
            self.stream.fail(INCOMPATIBLE, "that was all")

    huge = meeting.folder / fresh_name()
    huge.touch()
    os.truncate(huge, 64 * MIB)
    before = meeting.node.counters()["rx_drop_no_buffer"]
    with pytest.raises(peer.Failed, match="that was all"):
        meeting.peer(source=Liar, extent_bytes=64 << 10).send(meeting.address, [huge], "data/")
    send(meeting, meeting.peer(), [meeting.file(MIB)])


# ---- words beside them ---------------------------------------------------------------------------------


def test_partitions_that_overlap_and_are_told_again(meeting):
    class Liar(peer.Source):
        def _states_are_complete(self):
            super()._states_are_complete()
            extent, size = self.terms.extent_bytes, self.files[0].size
            ranges = [(0, size), (0, extent), (extent // 2, size - extent), (size - 1, 1), (1, size - 1)]
            for offset, length in ranges * 400:
                self.stream.send("partition_sent", object=0, lane=0, range={"offset": offset, "length": length})

    send(meeting, meeting.peer(source=Liar), [meeting.file(MIB)])


def test_a_flood_of_need(meeting):
    """What is asked for is sent, within the rate that was agreed upon, and what waits is bounded. (Few bytes each, since
    it is this slow peer that has to take them.)"""

    class Liar(peer.Destination):
        def begin(self, goes_on):
            super().begin(goes_on)
            for number in range(300):
                self.stream.send("need", object=0, ranges=[{"offset": number % 128 * 8192, "length": 1}] * 5)

    be_sent(meeting, meeting.peer(destination=Liar), [make_file(meeting.node, MIB)])


def test_a_list_of_files_without_end(meeting):
    class Liar(peer.Source):
        def agree_on_files(self):
            for number in range(0, 1 << 20, 64):
                files = [{"path": b"x%d" % each, "object": each, "size": 1} for each in range(number, number + 64)]
                self.stream.send("transfer_offer", files=files, more=True, **self._offer)
                for name, message in self.stream.poll():
                    if name == "failure":
                        raise peer.Failed(message.code, message.message)
            raise AssertionError("nobody stopped it")

    with pytest.raises(peer.Failed, match="more than 4096 files") as failed:
        meeting.peer(source=Liar).send(meeting.address, [meeting.file(1)], "data/")
    assert failed.value.code == INCOMPATIBLE
    assert not list(meeting.node.export().glob("*x1*"))
