// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/watch_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/proto/session_state.h"
#include "tools/cli/chart.h"
#include "tools/cli/format.h"
#include "tools/cli/progress.h"

namespace sluice::cli {
namespace {

constexpr int64_t kLaneIntervalNs = 900'000'000;
constexpr size_t kChartRowsMax = 8;
constexpr size_t kChartRowsGood = 4;
constexpr size_t kNameColumns = 12;
constexpr size_t kLaneColumns = 68;  // of the whole table of lanes
constexpr char kFoot[] = "q quits; the session goes on";

// No more than so many columns; what is cut ends with a mark.
std::string cut(const std::string& line, size_t columns) {
  if (display_width(line) <= columns) return line;
  std::string kept;
  for (size_t i = 0; i < line.size();) {
    size_t next = i + 1;
    while (next < line.size() && (static_cast<unsigned char>(line[next]) & 0xC0) == 0x80) ++next;
    if (display_width(kept) + display_width(line.substr(i, next - i)) + 1 > columns) break;
    kept += line.substr(i, next - i);
    i = next;
  }
  return kept + ">";
}

// A name and what is to be said of it, in as many lines as that takes, or in one.
void add_field(std::vector<std::string>* page, std::string_view name, const std::string& value,
               size_t columns, bool breaks) {
  if (!breaks) return page->push_back(cut(fmt::format("{:<{}}{}", name, kNameColumns, value), columns));
  for (const std::string& line : wrap_words(value, columns - kNameColumns)) {
    page->push_back(fmt::format("{:<{}}{}", name, kNameColumns, line));
    name = "";
  }
}

double since(uint64_t before, uint64_t now) { return static_cast<double>(now - std::min(before, now)); }

}  // namespace

void WatchPage::session(const api::Session& session, int64_t now_ns) {
  last_ = session;
  for (const api::LaneProgress& lane : session.lane_progress()) {
    Lane& known = lanes_[lane.lane()];
    if (known.time_ns == 0 || lane.bytes() < known.last.bytes()) {
      known = {.last = lane, .time_ns = now_ns};
    } else if (now_ns - known.time_ns >= kLaneIntervalNs) {
      const double seconds = static_cast<double>(now_ns - known.time_ns) * 1e-9;
      const double left =
          since(known.last.chunks() + known.last.retransmits(), lane.chunks() + lane.retransmits());
      known.rate_bps = 8 * since(known.last.bytes(), lane.bytes()) / seconds;
      known.loss = left > 0 ? std::min(1.0, since(known.last.lost(), lane.lost()) / left) : 0;
      known.last = lane;
      known.time_ns = now_ns;
    }
  }
}

void WatchPage::counters(const api::CountersReply& counters, int64_t now_ns) {
  std::map<std::string, uint64_t> now;
  for (const auto& counter : counters.counters()) now[counter.name()] = counter.value();
  if (counted_ns_ != 0 && now_ns > counted_ns_) {
    const double seconds = static_cast<double>(now_ns - counted_ns_) * 1e-9;
    const auto grown = [&](const std::string& name) { return since(counted_[name], now[name]); };
    const auto each_ms = [&](const std::string& spent, const std::string& ended) {
      return grown(ended) > 0 ? grown(spent) / grown(ended) * 1e-6 : 0;
    };
    disk_ = Disk{.reads_per_s = grown("disk_reads") / seconds,
                 .writes_per_s = grown("disk_writes") / seconds,
                 .read_ms = each_ms("disk_read_ns", "disk_reads"),
                 .write_ms = each_ms("disk_write_ns", "disk_writes"),
                 .busy = grown("busy_ns") * 1e-9 / seconds};
  }
  counted_ = std::move(now);
  counted_ns_ = now_ns;
}

std::string WatchPage::head(size_t columns) const {
  const std::string id = printable(last_.id().substr(0, kShortIdBytes));
  const std::string from = last_.from().empty() ? "" : "from " + printable(last_.from()) + " ";
  const bool away = !from.empty() || last_.direction().ends_with("send");
  const std::string with =
      fmt::format("{}{} {}  {}", from, away ? "to" : "from", printable(last_.peer()), api::state_name(last_));
  const std::string way = printable(last_.direction());
  for (const std::string& line :
       {fmt::format("session {}  {} {}", id, way, with), fmt::format("{}  {} {}", id, way, with)}) {
    if (display_width(line) <= columns) return line;
  }
  return fmt::format("{}  {}", id, with);
}

std::vector<std::string> WatchPage::state_lines(size_t columns, Room room) const {
  const bool breaks = room == Room::kEnough;
  std::vector<std::string> out = {head(columns), progress_line(last_, columns)};
  const auto add = [&](std::string_view name, const std::string& value) {
    add_field(&out, name, value, columns, breaks);
  };
  if (last_.queue_place() != 0)
    add("queue", fmt::format("place {} of {}", last_.queue_place(), last_.queue_length()));
  if (!last_.waiting_for().empty()) add("waiting for", printable(last_.waiting_for()));
  if (!last_.error().empty()) add("error", printable(last_.error()));
  const std::string cause = bottleneck_text(last_.bottleneck());
  // What waits for its turn, or for its peer, nothing holds back besides.
  if (!cause.empty() || last_.waiting_for().empty()) add("bottleneck", cause.empty() ? "none" : cause);
  for (const std::string& line : last_.bottleneck().evidence()) add("", printable(line));
  return out;
}

std::vector<std::string> WatchPage::figure_lines(size_t columns, Room room) const {
  std::vector<std::string> out;
  const auto add = [&](std::string_view name, const std::string& value) {
    add_field(&out, name, value, columns, room == Room::kEnough);
  };
  std::string rate = last_.has_rate_bps() ? format_rate(last_.rate_bps()) : "-";
  if (last_.rate_limit_bps() != 0)
    rate += fmt::format(" of {} at most", format_rate(static_cast<double>(last_.rate_limit_bps())));
  if (!last_.rate_state().empty()) rate += ", " + printable(last_.rate_state());
  add("rate", rate);
  const auto eta = eta_s(last_);
  add("time",
      fmt::format("{} gone, ETA {}", format_duration(last_.elapsed_s()), eta ? format_duration(*eta) : "-"));
  add("path", fmt::format("round trip {}, loss {}, {} sent again",
                          last_.rtt_us() > 0 ? fmt::format("{:.2f} ms", last_.rtt_us() * 1e-3) : "-",
                          format_percent(loss_fraction(last_)), last_.retransmits()));
  if (disk_) {
    add("disk here", fmt::format("{:.0f} reads/s of {:.1f} ms, {:.0f} writes/s of {:.1f} ms",
                                 disk_->reads_per_s, disk_->read_ms, disk_->writes_per_s, disk_->write_ms));
    add("workers", fmt::format("{:.2f} CPUs busy", disk_->busy));
  }
  return out;
}

std::vector<std::string> WatchPage::lane_lines(size_t columns, size_t rows) const {
  std::vector<std::string> out;
  if (rows < 2 || last_.lane_progress_size() == 0) return out;
  const bool all = columns >= kLaneColumns;
  out.push_back(all ? fmt::format("{:>4} {:>12} {:>12} {:>8} {:>10} {:>9} {:>7}", "lane", "rate", "paced at",
                                  "loss", "sent again", "RTT ms", "credit")
                    : fmt::format("{:>4} {:>12} {:>8} {:>9}", "lane", "rate", "loss", "RTT ms"));
  for (const api::LaneProgress& lane : last_.lane_progress()) {
    if (out.size() == rows - 1 && last_.lane_progress_size() > static_cast<int>(rows) - 1) {
      out.push_back(
          fmt::format("     and {} more", last_.lane_progress_size() - static_cast<int>(out.size()) + 1));
      break;
    }
    const auto known = lanes_.find(lane.lane());
    const bool measured = known != lanes_.end() && known->second.rate_bps;
    const std::string rate = measured ? format_rate(*known->second.rate_bps) : "-";
    const std::string loss = measured ? format_percent(known->second.loss) : "-";
    const double rtt_ms = lane.rtt_us() * 1e-3;
    const std::string paced =
        lane.rate_limit_bps() == 0 ? "-" : format_rate(static_cast<double>(lane.rate_limit_bps()));
    out.push_back(all ? fmt::format("{:>4} {:>12} {:>12} {:>8} {:>10} {:>9.2f} {:>7}", lane.lane(), rate,
                                    paced, loss, lane.retransmits(), rtt_ms, lane.credit_extents())
                      : fmt::format("{:>4} {:>12} {:>8} {:>9.2f}", lane.lane(), rate, loss, rtt_ms));
  }
  return out;
}

std::vector<std::string> WatchPage::lines(size_t columns, size_t rows) const {
  if (columns < kPageColumnsMin || rows < kPageRowsMin)
    return {cut(fmt::format("at least {} columns and {} rows", kPageColumnsMin, kPageRowsMin), columns)};
  if (last_.id().empty()) return {"waiting for sluice-control", "", kFoot};
  std::vector<std::string> page;
  const auto left = [&] { return rows - std::min(rows, page.size() + 1); };  // the foot is the last
  const size_t lanes = static_cast<size_t>(last_.lane_progress_size()) + 1;
  const auto for_chart = [&] { return left() > lanes + 3 ? std::min(kChartRowsMax, left() - lanes - 3) : 0; };
  for (const Room room : {Room::kEnough, Room::kLittle}) {
    page = state_lines(columns, room);
    for (std::string& line : figure_lines(columns, room)) page.push_back(std::move(line));
    if (for_chart() >= kChartRowsGood) break;
  }
  if (const size_t chart_rows = for_chart(); chart_rows > 0) {
    page.emplace_back();
    for (std::string& line : rate_chart(last_, columns, chart_rows)) page.push_back(std::move(line));
    page.emplace_back();
  }
  for (std::string& line : lane_lines(columns, left())) page.push_back(std::move(line));
  page.resize(std::min(page.size(), rows - 1));
  page.emplace_back(kFoot);
  for (std::string& line : page) line = cut(line, columns);
  return page;
}

}  // namespace sluice::cli
