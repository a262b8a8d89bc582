// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/client/requests.h"
#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

uint64_t more(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

api::Json rate_fields(const BenchInterval& interval, uint64_t bytes) {
  const double seconds = interval.seconds();
  return {{"start", interval.from_s},
          {"end", interval.until_s},
          {"seconds", seconds},
          {"bytes", bytes},
          {"bits_per_second", seconds > 0 ? static_cast<double>(bytes) * 8 / seconds : 0.0}};
}

double lost_percent(const BenchInterval& interval) {
  return interval.chunks == 0
             ? 0
             : 100 * static_cast<double>(interval.lost) / static_cast<double>(interval.chunks);
}

}  // namespace

BenchMeter::Point BenchMeter::point_of(const api::Session& session) {
  Point point{.at_s = session.data_elapsed_s(),
              .bytes = session.bytes_done(),
              .sent_bytes = session.bytes_sent() +
                            (api::datagrams_sent(session) - session.chunks()) * session.chunk_bytes(),
              .chunks = api::datagrams_sent(session),
              .retransmits = session.retransmits(),
              .lost = session.lost(),
              .rtt_us = session.rtt_us(),
              .lane_bytes = {}};
  for (const api::LaneProgress& lane : session.lane_progress()) point.lane_bytes.push_back(lane.bytes());
  return point;
}

BenchInterval BenchMeter::between(const Point& from, const Point& until) {
  BenchInterval interval{.from_s = from.at_s,
                         .until_s = until.at_s,
                         .bytes = more(until.bytes, from.bytes),
                         .sent_bytes = more(until.sent_bytes, from.sent_bytes),
                         .chunks = more(until.chunks, from.chunks),
                         .retransmits = more(until.retransmits, from.retransmits),
                         .lost = more(until.lost, from.lost),
                         .rtt_us = until.rtt_us,
                         .lane_bytes = {},
                         .omitted = false};
  for (size_t i = 0; i < until.lane_bytes.size(); ++i) {
    const uint64_t before = i < from.lane_bytes.size() ? from.lane_bytes[i] : 0;
    interval.lane_bytes.push_back(more(until.lane_bytes[i], before));
  }
  return interval;
}

BenchInterval BenchMeter::close() {
  BenchInterval interval = between(begun_, now_);
  interval.omitted = !counts();
  begun_ = now_;
  return interval;
}

std::vector<BenchInterval> BenchMeter::see(const api::Session& session) {
  Point point = point_of(session);
  if (point.at_s <= now_.at_s) return {};  // nothing moves yet, or any more
  // A session that has ended has no lanes any more.
  if (point.lane_bytes.empty()) point.lane_bytes = now_.lane_bytes;
  now_ = std::move(point);
  if (moving_from_.chunks == 0) moving_from_ = now_;
  if (!counts() && now_.at_s >= times_.omit_s) {
    const BenchInterval omitted = close();
    counted_from_ = now_;
    return {omitted};
  }
  const double next_s = (std::floor(begun_.at_s / times_.interval_s) + 1) * times_.interval_s;
  if (now_.at_s < next_s && !over()) return {};
  return {close()};
}

std::vector<BenchInterval> BenchMeter::finish() {
  if (now_.at_s <= begun_.at_s) return {};
  return {close()};
}

bool BenchMeter::over() const {
  if (stop_bytes_ > 0 && now_.bytes >= stop_bytes_) return true;
  return times_.counted_s > 0 && now_.at_s >= times_.omit_s + times_.counted_s;
}

std::string bench_line(const std::string& arrow, const BenchInterval& interval) {
  return fmt::format("{:>3} {:>7.2f}-{:<7.2f} s  {:>9}  {:>14}  {:>7} lost  {:>7} resent  {:>9.3f} ms{}\n",
                     arrow, interval.from_s, interval.until_s, format_bytes(interval.bytes),
                     format_rate(interval.rate_bps()), interval.lost, interval.retransmits,
                     interval.rtt_us / 1000, interval.omitted ? "  (omitted)" : "");
}

api::Json bench_sum(const BenchInterval& interval, bool sender) {
  api::Json out = rate_fields(interval, interval.bytes);
  out["retransmits"] = interval.retransmits;
  out["packets"] = interval.chunks;
  out["lost_packets"] = interval.lost;
  out["lost_percent"] = lost_percent(interval);
  out["rtt_us"] = interval.rtt_us;
  out["omitted"] = interval.omitted;
  out["sender"] = sender;
  return out;
}

api::Json bench_streams(const BenchInterval& interval, bool sender) {
  api::Json streams = api::Json::array();
  for (size_t i = 0; i < interval.lane_bytes.size(); ++i) {
    api::Json one = {{"socket", i}};
    one.update(rate_fields(interval, interval.lane_bytes[i]));
    one["omitted"] = interval.omitted;
    one["sender"] = sender;
    streams.push_back(std::move(one));
  }
  return streams;
}

}  // namespace sluice::cli
