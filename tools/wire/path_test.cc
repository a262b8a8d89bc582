// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tools/wire/delay_line.h"
#include "tools/wire/frames_for_test.h"
#include "tools/wire/statistics_for_test.h"

namespace sluice::emulator {
namespace {

using Bytes = std::vector<uint8_t>;

struct Delivery {
  Bytes bytes;
  uint64_t deliver_ns = 0;
  bool operator==(const Delivery&) const = default;
};

class Recorder final : public Path::Out {
 public:
  void deliver(std::span<const uint8_t> bytes, uint64_t deliver_ns) override {
    deliveries.push_back({Bytes(bytes.begin(), bytes.end()), deliver_ns});
  }
  std::vector<Delivery> deliveries;
};

// A frame that knows its number.
Bytes numbered(uint64_t number, uint32_t payload_bytes = 64) {
  Bytes frame = udp_frame(payload_bytes, false, number);
  wire::store_be64(frame.data() + frame.size() - 8, number);
  return frame;
}
uint64_t number_of(const Delivery& delivery) {
  return wire::load_be64(delivery.bytes.data() + delivery.bytes.size() - 8);
}

// `frames` frames, one every `interval_ns`; then what is still held.
std::vector<Delivery> run(Path& path, uint64_t frames, uint64_t interval_ns) {
  Recorder out;
  for (uint64_t i = 1; i <= frames; ++i) {
    path.poll(i * interval_ns, out);
    path.push(numbered(i), i * interval_ns, out);
  }
  path.poll(UINT64_MAX / 2, out);
  return out.deliveries;
}

std::vector<uint64_t> order(const std::vector<Delivery>& deliveries) {
  DelayLine line(1ULL << 30);
  for (const Delivery& each : deliveries) EXPECT_TRUE(line.add(each.bytes, each.deliver_ns));
  std::vector<uint64_t> numbers;
  for (; !line.empty(); line.pop())
    numbers.push_back(wire::load_be64(line.front().data() + line.front().size() - 8));
  return numbers;
}

Settings everything() {
  Settings settings;
  settings.rate = {.bits_per_s = 200'000'000, .queue_bytes = 20'000};
  settings.loss = {.probability = 0.02,
                   .burst = {.p = 0.01, .r = 0.3},
                   .length_l0_bytes = 5000,
                   .every_nth = 97,
                   .packets = {5, 6}};
  settings.corrupt = {
      .bits = 0.02, .bits_repaired = 0.02, .swap_words = 0.02, .truncate = 0.02, .bits_count = 3};
  settings.duplicate = {.probability = 0.05, .delay_us = 3};
  settings.delay = {.fixed_us = 10, .exponential_us = 20, .uniform_us = 5, .normal_us = 2};
  settings.reorder = {.probability = 0.05, .distance = 3};
  return settings;
}

void expect_conserved(const PathCounters& counters) {
  EXPECT_EQ(counters.in + counters.duplicated, counters.out + counters.dropped() + counters.held);
}

TEST(Path, WithoutSettingsIsAWire) {
  Path path({}, 1);
  const std::vector<Delivery> out = run(path, 100, 1000);
  ASSERT_EQ(out.size(), 100U);
  for (uint64_t i = 1; i <= 100; ++i) EXPECT_EQ(out[i - 1], (Delivery{numbered(i), i * 1000}));
  EXPECT_EQ(path.counters().overtaking, 0U);
  EXPECT_EQ(path.counters().in_bytes, path.counters().out_bytes);
}

TEST(Path, SameSeedAndFramesGiveTheSameDeliveries) {
  Path one(everything(), 7);
  Path same(everything(), 7);
  Path other(everything(), 8);
  const std::vector<Delivery> deliveries = run(one, 20'000, 5000);
  EXPECT_EQ(run(same, 20'000, 5000), deliveries);
  EXPECT_NE(run(other, 20'000, 5000), deliveries);
}

// Without what is a matter of time (rate, holding), only the times of arrival move the times of delivery.
TEST(Path, DecisionsDoNotDependOnTime) {
  Settings settings = everything();
  settings.rate = {};
  settings.reorder = {};
  Path slow(settings, 7);
  Path fast(settings, 7);
  const std::vector<Delivery> one = run(slow, 20'000, 1'000'000);
  const std::vector<Delivery> two = run(fast, 20'000, 10);
  ASSERT_EQ(one.size(), two.size());
  for (size_t i = 0; i < one.size(); ++i) ASSERT_EQ(one[i].bytes, two[i].bytes);
}

// A frame that the queue drops would have met the same fate: those that pass meet theirs as without queue.
TEST(Path, DropsOfTheQueueDoNotMoveTheDrawsOfLaterFrames) {
  Settings settings;
  settings.loss = {.probability = 0.1, .burst = {.p = 0.05, .r = 0.3}};
  Path free(settings, 7);
  settings.rate = {.bits_per_s = 100'000'000, .queue_bytes = 2000};
  Path narrow(settings, 7);
  std::set<uint64_t> passed;
  for (const Delivery& each : run(free, 5000, 6000)) passed.insert(number_of(each));
  const std::vector<Delivery> some = run(narrow, 5000, 6000);
  EXPECT_GT(narrow.counters().dropped_queue, 500U);
  EXPECT_LT(some.size(), passed.size());
  for (const Delivery& each : some) EXPECT_TRUE(passed.contains(number_of(each)));
}

TEST(Path, CountersAddUpAtAnyTime) {
  Path path(everything(), 3);
  Recorder out;
  for (uint64_t i = 1; i <= 50'000; ++i) {
    if (i % 10'000 == 0) path.blackhole_until(i * 5000 + 1'000'000);
    path.poll(i * 5000, out);
    path.push(numbered(i, 8 + i % 400), i * 5000, out);
    if (i % 100 == 0) expect_conserved(path.counters());
  }
  const PathCounters& counters = path.counters();
  EXPECT_EQ(counters.in, 50'000U);
  EXPECT_EQ(counters.out, out.deliveries.size());
  // All of it happened.
  EXPECT_GT(counters.dropped_blackhole, 0U);
  EXPECT_GT(counters.dropped_queue, 0U);
  for (uint8_t reason = kLossPackets; reason < kLossReasons; ++reason)
    EXPECT_GT(counters.dropped_loss[reason], 0U) << int{reason};
  for (uint32_t kind = 0; kind < kCorruptKinds; ++kind) {
    if (kind == kCorruptForge) continue;  // there is no chunk here
    EXPECT_GT(counters.corrupted[kind], 0U) << kind;
  }
  EXPECT_GT(counters.duplicated, 0U);
  EXPECT_GT(counters.held_back, 0U);
  EXPECT_GT(counters.overtaking, 0U);
  EXPECT_GT(counters.queue_bytes_peak, 19'000U);
  EXPECT_LE(counters.queue_bytes_peak, 20'000U);
  path.poll(UINT64_MAX / 2, out);
  EXPECT_EQ(path.counters().held, 0U);
  expect_conserved(path.counters());
}

TEST(Path, NeverDeliversBeforeNow) {
  Path path(everything(), 3);
  Recorder out;
  for (uint64_t i = 1; i <= 20'000; ++i) {
    out.deliveries.clear();
    path.push(numbered(i), i * 5000, out);
    for (const Delivery& each : out.deliveries) ASSERT_GE(each.deliver_ns, i * 5000);
  }
}

TEST(Path, LetsThroughItsRate) {
  Settings settings;
  settings.rate.bits_per_s = 1'000'000'000;
  Path path(settings, 1);
  const std::vector<Delivery> out = run(path, 100'000, 100);
  const double bits = 8.0 * static_cast<double>(path.counters().out_bytes);
  const double seconds = static_cast<double>(out.back().deliver_ns - 100) / 1e9;
  EXPECT_NEAR(bits / seconds / 1e9, 1, 0.001);
}

TEST(Path, QueuePeakIsThatOfTheRateInForce) {
  Settings settings;
  settings.rate = {.bits_per_s = 1'000'000};
  Path path(settings, 1);
  Recorder out;
  path.push(numbered(1), 0, out);
  path.push(numbered(2), 0, out);
  EXPECT_NEAR(static_cast<double>(path.counters().queue_bytes_peak), 2.0 * numbered(1).size(), 1);
  path.set(settings);
  EXPECT_NE(path.counters().queue_bytes_peak, 0U);
  settings.rate.bits_per_s = 2'000'000;
  path.set(settings);
  EXPECT_EQ(path.counters().queue_bytes_peak, 0U);
}

TEST(Path, DuplicatesWithTheirProbabilityAndDelay) {
  Settings settings;
  settings.duplicate = {.probability = 0.1, .delay_us = 50};
  Path path(settings, 1);
  const std::vector<Delivery> out = run(path, 200'000, 1000);
  const auto twice = static_cast<double>(path.counters().duplicated);
  EXPECT_TRUE(fits_counts({twice, 200'000 - twice}, {20'000, 180'000}));
  EXPECT_FALSE(fits_counts({twice, 200'000 - twice}, {20'600, 179'400}));
  for (size_t i = 1; i < out.size(); ++i) {
    if (number_of(out[i]) != number_of(out[i - 1])) continue;
    ASSERT_EQ(out[i].bytes, out[i - 1].bytes);
    ASSERT_EQ(out[i].deliver_ns - out[i - 1].deliver_ns, 50'000U);
  }
}

TEST(Path, HoldsBackUntilAsManyAsAskedWentFirst) {
  for (const uint32_t distance : {1U, 3U, 10U}) {
    Settings settings;
    settings.reorder = {.probability = 0.01, .distance = distance, .hold_us_max = 1e6};
    settings.delay.fixed_us = 100;
    Path path(settings, 1);
    const std::vector<uint64_t> numbers = order(run(path, 100'000, 1000));
    ASSERT_EQ(numbers.size(), 100'000U);
    // How many later frames came first, per frame; two that are held at once count for each other or not.
    uint64_t exact = 0;
    uint64_t late = 0;
    uint64_t highest = 0;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] > highest) {
        highest = numbers[i];
        continue;
      }
      ++late;
      exact += highest - numbers[i] == distance ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(late), 1000, 120);
    EXPECT_EQ(late, path.counters().held_back);
    EXPECT_GT(exact, late * 85 / 100);
  }
}

TEST(Path, GivesUpHoldingWhenNothingFollows) {
  Settings settings;
  settings.reorder = {.probability = 1, .distance = 2, .hold_us_max = 500};
  Path path(settings, 1);
  Recorder out;
  EXPECT_EQ(path.next_poll_ns(), UINT64_MAX);
  path.push(numbered(1), 1000, out);
  path.push(numbered(2), 2000, out);
  EXPECT_TRUE(out.deliveries.empty());
  EXPECT_EQ(path.next_poll_ns(), 501'000U);
  path.poll(500'999, out);
  EXPECT_TRUE(out.deliveries.empty());
  path.poll(501'000, out);
  ASSERT_EQ(out.deliveries.size(), 1U);
  EXPECT_EQ(out.deliveries[0], (Delivery{numbered(1), 501'000}));
  EXPECT_EQ(path.next_poll_ns(), 502'000U);
  path.poll(502'000, out);
  EXPECT_EQ(out.deliveries.size(), 2U);
  EXPECT_EQ(path.next_poll_ns(), UINT64_MAX);
}

TEST(Path, BlackholeTakesAllForItsTimeOnly) {
  Settings settings;
  settings.delay.fixed_us = 10;
  Path path(settings, 1);
  path.blackhole_until(50'000);
  const std::vector<Delivery> out = run(path, 100, 1000);
  EXPECT_EQ(path.counters().dropped_blackhole, 49U);
  ASSERT_EQ(out.size(), 51U);
  EXPECT_EQ(number_of(out[0]), 50U);
}

TEST(Path, LengthIsThatOfTheUdpPayloadUnlessTheFrameIsAskedFor) {
  Settings settings;
  settings.delay.exponential_us_per_byte = 1;
  const auto mean_us = [&](LengthOf of, const Bytes& frame, Framing framing) {
    settings.length_of = of;
    Path path(settings, 1, framing);
    Recorder out;
    for (uint64_t i = 1; i <= 20'000; ++i) path.push(frame, 0, out);
    double sum_us = 0;
    for (const Delivery& each : out.deliveries) sum_us += static_cast<double>(each.deliver_ns) / 1000;
    return sum_us / 20'000;
  };
  const Bytes frame = udp_frame(100);  // 142 bytes
  EXPECT_NEAR(mean_us(LengthOf::kUdpPayload, frame, Framing::kEthernet), 100, 3);
  EXPECT_NEAR(mean_us(LengthOf::kFrame, frame, Framing::kEthernet), 142, 4);
  EXPECT_NEAR(mean_us(LengthOf::kUdpPayload, frame, Framing::kUdpPayload), 142, 4);
  EXPECT_NEAR(mean_us(LengthOf::kUdpPayload, Bytes(60, 0), Framing::kEthernet), 60, 2);
}

TEST(Path, ANewSettingIsValidForTheNextFrame) {
  Path path({}, 1);
  Recorder out;
  path.push(numbered(1), 0, out);
  Settings settings;
  settings.loss.probability = 1;
  path.set(settings);
  path.push(numbered(2), 0, out);
  path.set({});
  path.push(numbered(3), 0, out);
  ASSERT_EQ(out.deliveries.size(), 2U);
  EXPECT_EQ(number_of(out.deliveries[1]), 3U);
}

}  // namespace
}  // namespace sluice::emulator
