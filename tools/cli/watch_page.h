// What `sluice session watch` shows of a session: a page of lines. Pure; terminal.h shows it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/proto/api.pb.h"

namespace sluice::cli {

inline constexpr size_t kPageColumnsMin = 40;
inline constexpr size_t kPageRowsMin = 8;

class WatchPage {
 public:
  // What the node told, and when. Older news than what is known is none.
  void session(const api::Session& session, int64_t now_ns);
  void counters(const api::CountersReply& counters, int64_t now_ns);
  const api::Session& last() const { return last_; }

  // At most `rows` lines of at most `columns`, without control characters.
  std::vector<std::string> lines(size_t columns, size_t rows) const;

 private:
  struct Lane {
    api::LaneProgress last;
    int64_t time_ns = 0;
    std::optional<double> rate_bps;  // payload, between the two last looks
    double loss = 0;                 // of the datagrams that left then
  };
  struct Disk {
    double reads_per_s = 0;
    double writes_per_s = 0;
    double read_ms = 0;
    double write_ms = 0;
    double busy = 0;  // of all workers together, in workers
  };

  enum class Room : uint8_t { kEnough, kLittle };  // kLittle: a line of text is cut rather than broken

  std::string head(size_t columns) const;
  std::vector<std::string> state_lines(size_t columns, Room room) const;
  std::vector<std::string> figure_lines(size_t columns, Room room) const;
  std::vector<std::string> lane_lines(size_t columns, size_t rows) const;

  api::Session last_;
  std::map<uint32_t, Lane> lanes_;
  std::map<std::string, uint64_t> counted_;
  int64_t counted_ns_ = 0;
  std::optional<Disk> disk_;
};

}  // namespace sluice::cli
