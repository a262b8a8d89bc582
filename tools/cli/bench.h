// What `sluice bench` measures: how much of one direction arrives in each interval, and how that is told.
//
// Pure: the session's own clock (data_elapsed_s), which begins when the first byte may leave, is the time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/client/json.h"
#include "control/proto/api.pb.h"

namespace sluice::cli {

// Both in seconds of data. `omit_s`: at the beginning, shown and not counted.
struct BenchTimes {
  double omit_s = 0;
  double counted_s = 0;  // 0: until all has arrived
  double interval_s = 1;
};

struct BenchInterval {
  double from_s = 0;
  double until_s = 0;
  uint64_t bytes = 0;        // that stand at the destination
  uint64_t sent_bytes = 0;   // payload that left, first or again
  uint64_t chunks = 0;       // sent, and sent again
  uint64_t retransmits = 0;  // of them
  uint64_t lost = 0;
  double rtt_us = 0;
  std::vector<uint64_t> lane_bytes;
  bool omitted = false;

  double seconds() const { return until_s - from_s; }
  double rate_bps() const { return seconds() > 0 ? static_cast<double>(bytes) * 8 / seconds() : 0; }
};

class BenchMeter {
 public:
  // `stop_bytes`: over when so much has arrived; 0: only the time counts.
  BenchMeter(BenchTimes times, uint64_t stop_bytes) : times_(times), stop_bytes_(stop_bytes) {}

  // The intervals that have ended with what the session says now: none or one.
  std::vector<BenchInterval> see(const api::Session& session);
  // The last one, shorter than the others, when nothing more comes.
  std::vector<BenchInterval> finish();
  bool over() const;
  // All that counts; what was omitted where there is nothing else.
  BenchInterval total() const { return between(counted_from_, now_); }
  // Of that, all since the first news of data.
  BenchInterval moving() const {
    return between(counted_from_.at_s < moving_from_.at_s ? moving_from_ : counted_from_, now_);
  }

 private:
  struct Point {
    double at_s = 0;
    uint64_t bytes = 0;
    uint64_t sent_bytes = 0;
    uint64_t chunks = 0;
    uint64_t retransmits = 0;
    uint64_t lost = 0;
    double rtt_us = 0;
    std::vector<uint64_t> lane_bytes;
  };
  static Point point_of(const api::Session& session);
  static BenchInterval between(const Point& from, const Point& until);
  BenchInterval close();
  bool counts() const { return times_.omit_s == 0 || counted_from_.at_s > 0; }

  const BenchTimes times_;
  const uint64_t stop_bytes_;
  Point begun_;         // of the interval that is open
  Point counted_from_;  // what came before does not count
  Point moving_from_;
  Point now_;
};

// "->" or "<-", the times, bytes, rate, losses and round trip; with its newline.
std::string bench_line(const std::string& arrow, const BenchInterval& interval);
// Keys as iperf3's: start, end, seconds, bytes, bits_per_second, retransmits, packets, lost_packets,
// lost_percent, omitted, sender.
api::Json bench_sum(const BenchInterval& interval, bool sender);
api::Json bench_streams(const BenchInterval& interval, bool sender);

}  // namespace sluice::cli
