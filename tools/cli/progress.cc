// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "control/client/requests.h"
#include "control/proto/session_state.h"
#include "dataplane/base/counted.h"
#include "dataplane/base/error.h"
#include "tools/cli/format.h"
#include "tools/cli/when.h"

namespace sluice::cli {
namespace {

constexpr size_t kNameColumnsMax = 32;
constexpr size_t kNameColumnsGood = 20;
constexpr size_t kNameColumnsMin = 8;
constexpr size_t kBarColumnsMax = 30;
constexpr size_t kBarColumnsMin = 8;
constexpr int kFilesShown = 20;  // with their digests, at the end
constexpr int64_t kTerminalIntervalNs = 100'000'000;
constexpr int64_t kPlainIntervalNs = 5'000'000'000;
constexpr int64_t kWaitIntervalNs = 1'000'000'000;  // waits come and go many times a second

double done_fraction(const api::Session& session) {
  if (session.bytes_total() == 0) return session.state() == api::Session::SUCCEEDED ? 1 : 0;
  return std::min(1.0,
                  static_cast<double>(session.bytes_done()) / static_cast<double>(session.bytes_total()));
}

std::string last_component(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path;
  const size_t slash = path.find_last_of('/', end);
  return path.substr(slash == std::string::npos ? 0 : slash + 1, end + 1 - (slash + 1));
}

std::string bar(double fraction, size_t columns) {
  const size_t inner = columns - 2;
  const auto full = static_cast<size_t>(fraction * static_cast<double>(inner));
  std::string out = "[" + std::string(full, '=');
  if (full < inner) out += '>' + std::string(inner - full - 1, ' ');
  return out + "]";
}

// With the reason, where it was not the network's loss.
std::string retransmits_text(const api::Session& session) {
  std::string text = fmt::format("{} retransmits", session.retransmits());
  if (session.no_room() > 0) text += fmt::format(" ({} had no room at the destination)", session.no_room());
  if (session.crc_errors() > 0) text += fmt::format(" ({} came damaged)", session.crc_errors());
  return text;
}

// What follows the bar, in this order. Where there is no room for all, what is worth least is left out first.
enum class Worth : uint8_t { kDetail, kDeadline, kBytes, kRate, kEnd, kState, kPercent, kWait };
struct Fact {
  Worth worth;
  std::string text;
};
std::vector<Fact> facts(const api::Session& session) {
  std::vector<Fact> out;
  const auto add = [&out](Worth worth, std::string text) {
    if (!text.empty()) out.push_back({worth, std::move(text)});
  };
  if (!session.waiting_for().empty()) add(Worth::kWait, "waiting: " + printable(session.waiting_for()));
  if (!session.listing()) add(Worth::kPercent, format_percent(done_fraction(session)));
  if (session.state() != api::Session::TRANSFERRING) add(Worth::kState, api::state_name(session));
  add(Worth::kBytes, bytes_text(session));
  if (session.has_rate_bps()) {
    add(Worth::kRate, format_rate(session.rate_bps()));
  } else if (session.state() == api::Session::TRANSFERRING) {
    add(Worth::kRate, "starting");
  }
  const auto eta = eta_s(session);
  if (!session.listing()) add(Worth::kEnd, "ETA " + (eta ? format_duration(*eta) : "-"));
  add(Worth::kDeadline, deadline_text(session));
  add(Worth::kDetail, "loss " + format_percent(loss_fraction(session)));
  add(Worth::kDetail, retransmits_text(session));
  return out;
}

// Takes the last of those that are worth least, if that is no more than `most`, and not all that there is.
bool leave_one_out(std::vector<Fact>* facts, Worth most) {
  if (facts->size() < 2) return false;
  auto least = facts->begin();
  for (auto each = facts->begin(); each != facts->end(); ++each) {
    if (each->worth <= least->worth) least = each;
  }
  if (least->worth > most) return false;
  facts->erase(least);
  return true;
}

std::string digest_text(const api::FileProgress& file, const std::string& crc) {
  if (file.digest_source().empty() && file.digest_destination().empty())
    return file.done() ? "no digest" : "did not arrive";
  const std::string source = file.digest_source().empty() ? "-" : file.digest_source();
  const std::string destination = file.digest_destination().empty() ? "-" : file.digest_destination();
  // Of one that was refused, or given up, the other node has none.
  const bool both = !file.digest_source().empty() && !file.digest_destination().empty();
  return fmt::format("{} source {} destination {} {}", crc, source, destination,
                     !both                   ? "not stored"
                     : source == destination ? "identical"
                                             : "DIFFERENT");
}

}  // namespace

std::string bytes_text(const api::Session& session) {
  return fmt::format("{} of {}{}", format_bytes(session.bytes_done()), format_bytes(session.bytes_total()),
                     so_far(session));
}

std::string_view so_far(const api::Session& session) { return session.listing() ? " so far" : ""; }

// Sources, until the node knows what is in them.
uint64_t names_total(const api::Session& session) {
  return std::max<uint64_t>(session.names().total(), static_cast<uint64_t>(session.files_size()));
}

// Files, as far as anybody knows; a pack counts the directories and links that are in it as well.
std::string_view counted_as(const api::Session& session) {
  // A node of 1.0.0 does not say `packed`.
  const auto is_pack = [](const api::FileProgress& file) { return file.packed() || file.names() > 1; };
  const bool packs = std::any_of(session.files().begin(), session.files().end(), is_pack);
  return packs || names_total(session) > static_cast<uint64_t>(session.files_size()) ? "name" : "file";
}

bool names_one_file(const api::Session& session) {
  return session.files_size() == 1 && session.names().total() <= 1;
}

std::string direction_text(const api::Session& session) {
  std::string text = session.direction();
  if (!session.from().empty()) text += ", " + session.from() + " sends to " + session.peer();
  if (!session.lease().empty()) text += ", lease " + session.lease();
  if (!session.ordered_by().empty()) text += ", ordered by " + session.ordered_by();
  return printable(text);
}

std::string session_subject(const api::Session& session) {
  if (names_one_file(session)) return printable(last_component(session.files(0).source()));
  const uint64_t left_out = session.names().left_out();
  return fmt::format("{}{} ({} done{})", base::counted(names_total(session), counted_as(session)),
                     so_far(session), session.names().done(),
                     left_out == 0 ? "" : fmt::format(", {} left out", left_out));
}

std::string short_subject(const api::Session& session) {
  if (names_one_file(session)) return session_subject(session);
  const uint64_t total = names_total(session);
  return fmt::format("{}/{}{} {}{}", session.names().done(), total, session.listing() ? "+" : "",
                     counted_as(session), total == 1 ? "" : "s");
}

double loss_fraction(const api::Session& session) {
  const uint64_t sent = api::datagrams_sent(session);
  return sent == 0 ? 0 : static_cast<double>(session.lost()) / static_cast<double>(sent);
}

std::optional<double> eta_s(const api::Session& session) {
  if (session.listing()) return std::nullopt;
  if (session.bytes_done() >= session.bytes_total()) return 0;
  const double rate_bps = session.rate_bps() > 0 ? session.rate_bps() : session.goodput_bps();
  if (rate_bps <= 0 || session.state() != api::Session::TRANSFERRING) return std::nullopt;
  return static_cast<double>(session.bytes_total() - session.bytes_done()) * 8 / rate_bps;
}

std::string deadline_text(const api::Session& session) {
  if (session.deadline_unix_ns() == 0) return "";
  const std::string& state = session.deadline_state();
  if (session.late_s() > 0) return "late by " + format_duration(session.late_s());
  // Its date is told where it is not that of the day on which the session began.
  const std::string when = format_when(session.deadline_unix_ns(), session.started_unix_ns());
  if (state == "kept" || state == "missed") return fmt::format("deadline {} {}", when, state);
  if (!session.has_deadline_chance_percent()) return fmt::format("deadline {}, measuring", when);
  return fmt::format("deadline {}, chance {:.0f} %{}", when, std::floor(session.deadline_chance_percent()),
                     state == "measuring" ? " (measuring)" : "");
}

std::string progress_line(const api::Session& session, size_t width) {
  std::string name = session_subject(session);
  const bool counted = !names_one_file(session);
  if (counted && display_width(name) > kNameColumnsMax) name = short_subject(session);
  size_t name_columns = std::min(display_width(name), kNameColumnsMax);
  size_t bar_columns = session.listing() ? 0 : kBarColumnsMax;
  std::vector<Fact> parts = facts(session);
  const auto needed = [&] {
    size_t sum = name_columns + (bar_columns == 0 ? 0 : 2 + bar_columns);
    for (const Fact& part : parts) sum += 2 + display_width(part.text);
    return sum;
  };
  const auto shrink = [&](size_t* columns, size_t least) {
    if (*columns <= least) return false;
    *columns -= std::min(needed() - width, *columns - least);
    return true;
  };
  const auto count_shortly = [&] {
    if (!counted || name == short_subject(session)) return false;
    name = short_subject(session);
    name_columns = std::min(display_width(name), kNameColumnsMax);
    return true;
  };
  // What costs the reader least comes first.
  const std::array<std::function<bool()>, 9> steps = {
      [&] { return bar_columns > 0 && shrink(&bar_columns, kBarColumnsMin); },
      [&] { return !counted && shrink(&name_columns, kNameColumnsGood); },
      [&] { return leave_one_out(&parts, Worth::kDetail); },
      count_shortly,
      [&] { return !counted && shrink(&name_columns, kNameColumnsMin); },
      [&] { return leave_one_out(&parts, Worth::kDeadline); },
      [&] { return std::exchange(bar_columns, 0) != 0; },
      [&] { return leave_one_out(&parts, Worth::kState); },
      [&] { return shrink(&name_columns, kNameColumnsMin); },
  };
  while (needed() > width &&
         std::any_of(steps.begin(), steps.end(), [](const auto& step) { return step(); })) {
  }
  std::string line = shorten(name, name_columns);
  if (bar_columns > 0) line += "  " + bar(done_fraction(session), bar_columns);
  for (const Fact& part : parts) line += "  " + part.text;
  return display_width(line) > width ? shorten(line, width) : line;
}

std::string progress_text(const api::Session& session) {
  std::string line = fmt::format("session {}: {}", printable(session.id()), api::state_name(session));
  if (session.files_size() > 0) line += " " + session_subject(session);
  for (const Fact& part : facts(session)) {
    if (part.worth != Worth::kState) line += ", " + part.text;
  }
  return line;
}

std::string missing_text(const api::Session& session) {
  std::string out;
  for (const api::MissingName& name : session.names().missing())
    out += fmt::format("{}: {}: {}\n", name.arrived() ? "changed" : "missing", printable(name.path()),
                       name.reason());
  const uint64_t missing = session.names().failed() + session.names().left_out();
  const auto told = static_cast<uint64_t>(session.names().missing_size());
  if (missing > told) out += fmt::format("missing: and {} more\n", missing - told);
  return out;
}

std::string bottleneck_text(const api::Bottleneck& bottleneck) {
  if (bottleneck.cause().empty() || bottleneck.cause() == "none") return "";
  return fmt::format("{}, {:.0f} % of the time", printable(bottleneck.cause()), bottleneck.share() * 100);
}

std::string summary_text(const api::Session& session) {
  const double seconds = session.data_elapsed_s() > 0 ? session.data_elapsed_s() : session.elapsed_s();
  std::string out = fmt::format(
      "{}, {} ({}) in {:.3f} s: {}, {}, loss {}\n", base::counted(names_total(session), counted_as(session)),
      base::counted(session.bytes_total(), "byte"), format_bytes(session.bytes_total()), seconds,
      format_rate(session.goodput_bps()), retransmits_text(session), format_percent(loss_fraction(session)));
  if (const std::string cause = bottleneck_text(session.bottleneck()); !cause.empty()) {
    out += "bottleneck: " + cause;
    for (const std::string& line : session.bottleneck().evidence()) out += "; " + printable(line);
    out += "\n";
  }
  if (session.digest_s() > 0)
    out += fmt::format("digests: the destination read files for them for {:.3f} s\n", session.digest_s());
  int shown = 0;
  for (const api::FileProgress& file : session.files()) {
    if (session.files_size() > kFilesShown && file.names() > 1) continue;
    if (++shown > kFilesShown) break;
    out += fmt::format("{} -> {}: {}\n", printable(file.source()), printable(file.destination()),
                       digest_text(file, session.crc()));
    for (const api::Digest& digest : file.digests())
      out += fmt::format("  {} {}\n", printable(digest.kind()), printable(digest.hex()));
  }
  if (session.files_size() > kFilesShown)
    out += "more: sluice session show " + session.id().substr(0, kShortIdBytes) + "\n";
  return out + missing_text(session);
}

bool ProgressPace::due(const api::Session& session, int64_t now_ns) {
  const bool wait_changed = session.waiting_for() != waiting_for_;
  const int64_t interval_ns = terminal_      ? kTerminalIntervalNs
                              : wait_changed ? kWaitIntervalNs
                                             : kPlainIntervalNs;
  const bool late = !last_ns_ || now_ns - *last_ns_ >= interval_ns;
  if (!late && (terminal_ || session.state() == state_)) return false;
  last_ns_ = now_ns;
  state_ = session.state();
  waiting_for_ = session.waiting_for();
  return true;
}

}  // namespace sluice::cli
