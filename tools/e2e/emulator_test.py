# Real nodes over the path emulator: under every kind of fault the file arrives identical, and the emulator's
# counters show that the fault really happened.
# SPDX-License-Identifier: Apache-2.0
import pytest
from harness import EmulatedWire, HarnessError, wait_until
from transfers import MIB, finish, forget, last_session, make_file, pull, push, start_slow, still_serving

SIZE = 16 * MIB + 1  # about 2050 frames


@pytest.fixture(scope="module")
def emulated(make_pair):
    return make_pair(wire=EmulatedWire(rate="1G"), bytes_needed=1 << 29)


@pytest.fixture
def pair(emulated):
    emulated.wire.clear()
    yield emulated
    emulated.wire.clear()
    # What is still on its way arrives first.
    wait_until(lambda: all(each["inside"] == 0 for each in emulated.wire.counters().values()), 10,
               "nothing is on its way")  # fmt: skip
    for each in emulated.wire.counters().values():
        assert each["in"] + each["duplicated"] == each["out"] + each["dropped"] + each["inside"], each
        assert each["dropped"] == sum(each["drops"].values()), each
        assert each["oversize"] == 0


def difference(after, before):
    return {key: difference(value, before[key]) if isinstance(value, dict) else value - before[key]
            for key, value in after.items()}  # fmt: skip


class Watch:
    """What the emulator counted from the beginning of the block on, a to b."""

    def __init__(self, wire):
        self._wire = wire
        self._before = wire.counters()

    def counted(self, direction="a_to_b"):
        return difference(self._wire.counters()[direction], self._before[direction])


def move(pair, *options):
    source = make_file(pair.a, SIZE)
    target = push(pair, source, *options)
    forget(source, target)


@pytest.mark.parametrize(
    ("loss", "reason"),
    [
        ({"probability": 0.01}, "loss_probability"),
        ({"burst": {"p": 0.01, "r": 0.3}}, "loss_burst"),
        ({"length_l0_bytes": 800_000}, "loss_length"),
        ({"every_nth": 50}, "loss_every_nth"),
    ],
    ids=["random", "burst", "length", "nth"],
)
def test_lost_frames_are_sent_again(pair, loss, reason):
    pair.wire.set("both", loss=loss)
    watch = Watch(pair.wire)
    move(pair)
    drops = watch.counted()["drops"]
    assert drops[reason] >= 5
    assert last_session(pair.a)["retransmits"] >= drops[reason] * 0.5


def test_frames_of_a_list_are_lost(pair):
    frames = [1, 2, 3, 100, 101, 1000]
    pair.wire.set("a_to_b", loss={"packets": frames})
    watch = Watch(pair.wire)
    move(pair)
    assert watch.counted()["drops"]["loss_packets"] == len(frames)


@pytest.mark.parametrize("distance", [1, 3, 40])
def test_reordered_frames_find_their_places(pair, distance):
    pair.wire.set("both", reorder={"probability": 0.02, "distance": distance})
    watch = Watch(pair.wire)
    move(pair)
    counted = watch.counted()
    assert counted["held_back"] >= 10
    # One frame may overtake several that were held back beside each other.
    assert counted["overtaking"] >= counted["held_back"] // 2


def test_frames_that_overtake_each_other_at_random_find_their_places(pair):
    pair.wire.set("both", delay={"fixed_us": 1000, "exponential_us": 300})
    watch = Watch(pair.wire)
    move(pair)
    assert watch.counted()["overtaking"] >= 50


def test_duplicated_frames_count_once(pair):
    pair.wire.set("both", duplicate={"probability": 0.1, "delay_us": 200})
    watch = Watch(pair.wire)
    move(pair)
    assert watch.counted()["duplicated"] >= 100


@pytest.mark.parametrize("kind", ["bits", "bits_repaired", "swap_words", "truncate"])
def test_damaged_frames_are_never_accepted(pair, kind):
    pair.wire.set("both", corrupt={kind: 0.01, "bits_count": 4})
    watch = Watch(pair.wire)
    move(pair)
    damaged = watch.counted()["corrupted"][kind]
    assert damaged >= 5
    assert last_session(pair.a)["retransmits"] >= 1


@pytest.mark.parametrize(
    "delay",
    [{"fixed_us": 20_000}, {"fixed_us": 5000, "normal_us": 1000, "keep_order": True}],
    ids=["fixed", "jitter"],
)
def test_a_long_path_is_only_slower(pair, delay):
    pair.wire.set("both", delay=delay)
    watch = Watch(pair.wire)
    move(pair)
    counted = watch.counted()
    assert counted["dropped"] == 0
    assert counted["overtaking"] == 0
    # Frames were on their way, for a while, in numbers.
    assert pair.wire.counters()["a_to_b"]["store_bytes_peak"] > 100_000


def test_a_path_just_wide_enough_loses_nothing(pair):
    # The queue holds what comes at once when the emulator got no processor time for a while.
    pair.wire.set("both", rate={"bits_per_s": "200M", "queue_bytes": 8 * MIB})
    watch = Watch(pair.wire)
    move(pair, "--mode", "fixed", "--rate", "150M")
    assert watch.counted()["dropped"] == 0


def test_a_path_too_narrow_drops_at_its_queue(pair):
    pair.wire.set("a_to_b", rate={"bits_per_s": "60M", "queue_bytes": 200_000})
    watch = Watch(pair.wire)
    move(pair, "--mode", "fixed", "--rate", "300M")
    assert watch.counted()["drops"]["queue"] >= 20
    assert 190_000 <= pair.wire.counters()["a_to_b"]["queue_bytes_peak"] <= 200_000


def test_a_transfer_goes_on_after_the_network_was_gone_for_two_seconds(pair):
    source = make_file(pair.a, SIZE)
    watch = Watch(pair.wire)
    process, _ = start_slow(pair.a, "send", source, "b:data/", rate="100M")
    pair.wire.blackhole(2)
    ended = finish(process)
    assert ended.returncode == 0, ended.stderr_text
    assert watch.counted()["drops"]["blackhole"] >= 1
    target = pair.b.export() / source.name
    assert target.read_bytes() == source.read_bytes()
    forget(source, target)


def test_all_at_once_both_ways(pair):
    pair.wire.set(
        "both",
        loss={"probability": 0.005, "burst": {"p": 0.001, "r": 0.3}},
        corrupt={"bits": 0.002, "bits_repaired": 0.002, "swap_words": 0.002, "truncate": 0.002},
        duplicate={"probability": 0.01},
        delay={"fixed_us": 2000, "uniform_us": 500},
        reorder={"probability": 0.01, "distance": 5},
        rate={"bits_per_s": "800M", "queue_bytes": 500_000},
    )
    move(pair, "--lanes", 2)
    source = make_file(pair.b, SIZE)
    forget(source, pull(pair, source, "-6"))
    pair.wire.clear()
    still_serving(pair)


def test_a_wrong_setting_is_named_and_changes_nothing(pair):
    before = pair.wire.settings()
    with pytest.raises(HarnessError, match="loss.propability: is no setting"):
        pair.wire.set("both", delay={"fixed_us": 5}, loss={"propability": 1})
    assert pair.wire.settings() == before
