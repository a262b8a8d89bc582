// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "dataplane/base/counted.h"
#include "tools/cli/format.h"
#include "tools/cli/when.h"

namespace sluice::cli {
namespace {

constexpr size_t kNameColumnsMax = 32;
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

// What follows the bar, the most important first; so many of them are worth more than the bar.
struct Facts {
  std::vector<std::string> parts;
  size_t before_bar = 0;
};
Facts facts(const api::Session& session) {
  Facts facts;
  std::vector<std::string>& out = facts.parts;
  if (!session.waiting_for().empty()) out.push_back("waiting: " + printable(session.waiting_for()));
  if (!session.listing()) out.push_back(format_percent(done_fraction(session)));
  if (session.state() != api::Session::TRANSFERRING) out.push_back(state_name(session.state()));
  out.push_back(bytes_text(session));
  if (session.has_rate_bps()) {
    out.push_back(format_rate(session.rate_bps()));
  } else if (session.state() == api::Session::TRANSFERRING) {
    out.emplace_back("starting");
  }
  const auto eta = eta_s(session);
  if (!session.listing()) out.push_back("ETA " + (eta ? format_duration(*eta) : "-"));
  facts.before_bar = out.size();
  if (const std::string deadline = deadline_text(session); !deadline.empty()) out.push_back(deadline);
  out.push_back("loss " + format_percent(loss_fraction(session)));
  out.push_back(retransmits_text(session));
  return facts;
}

std::string digest_text(const api::FileProgress& file, const std::string& crc) {
  if (file.digest_source().empty() && file.digest_destination().empty())
    return file.done() ? "no digest" : "did not arrive";
  const std::string source = file.digest_source().empty() ? "-" : file.digest_source();
  const std::string destination = file.digest_destination().empty() ? "-" : file.digest_destination();
  return fmt::format("{} source {} destination {} {}", crc, source, destination,
                     source == destination ? "identical" : "DIFFERENT");
}

}  // namespace

bool session_ended(const api::Session& session) {
  return session.state() == api::Session::SUCCEEDED || session.state() == api::Session::FAILED ||
         session.state() == api::Session::CANCELLED ||
         (session.state() == api::Session::PAUSED && session.error_code() != 0);
}

std::string state_name(api::Session::State state) {
  std::string name = api::Session::State_Name(state);
  if (name.empty() || state == api::Session::STATE_UNSPECIFIED) return "unknown";
  std::transform(name.begin(), name.end(), name.begin(), [](char c) { return static_cast<char>(c | 0x20); });
  return name;
}

std::string bytes_text(const api::Session& session) {
  return fmt::format("{} of {}{}", format_bytes(session.bytes_done()), format_bytes(session.bytes_total()),
                     so_far(session));
}

std::string_view so_far(const api::Session& session) { return session.listing() ? " so far" : ""; }

// Sources, until the node knows what is in them.
uint64_t names_total(const api::Session& session) {
  return std::max<uint64_t>(session.names().total(), static_cast<uint64_t>(session.files_size()));
}

std::string session_subject(const api::Session& session) {
  if (session.files_size() == 1 && session.names().total() <= 1)
    return printable(last_component(session.files(0).source()));
  return fmt::format("{}{} ({} done)", base::counted(names_total(session), "file"), so_far(session),
                     session.names().done());
}

double loss_fraction(const api::Session& session) {
  const uint64_t sent = session.chunks() + session.retransmits();
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
  const std::string name = session_subject(session);
  size_t name_columns = std::min(display_width(name), kNameColumnsMax);
  size_t bar_columns = session.listing() ? 0 : kBarColumnsMax;
  auto [parts, before_bar] = facts(session);
  const auto needed = [&, &parts = parts] {
    size_t sum = name_columns + (bar_columns == 0 ? 0 : 2 + bar_columns);
    for (const std::string& part : parts) sum += 2 + display_width(part);
    return sum;
  };
  while (needed() > width) {
    const size_t over = needed() - width;
    if (bar_columns > kBarColumnsMin) {
      bar_columns -= std::min(over, bar_columns - kBarColumnsMin);
    } else if (name_columns > kNameColumnsMin) {
      name_columns -= std::min(over, name_columns - kNameColumnsMin);
    } else if (parts.size() > before_bar) {
      parts.pop_back();
    } else if (bar_columns > 0) {
      bar_columns = 0;
    } else if (parts.size() > 1) {
      parts.pop_back();
    } else {
      break;
    }
  }
  std::string line = shorten(name, name_columns);
  if (bar_columns > 0) line += "  " + bar(done_fraction(session), bar_columns);
  for (const std::string& part : parts) line += "  " + part;
  return display_width(line) > width ? shorten(line, width) : line;
}

std::string progress_text(const api::Session& session) {
  std::string line = fmt::format("session {}: {}", printable(session.id()), state_name(session.state()));
  if (session.files_size() > 0) line += " " + session_subject(session);
  for (const std::string& part : facts(session).parts) {
    if (part != state_name(session.state())) line += ", " + part;
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
  const uint64_t files = names_total(session);
  std::string out = fmt::format(
      "{} file{}, {} bytes ({}) in {:.3f} s: {}, {}, loss {}\n", files, files == 1 ? "" : "s",
      session.bytes_total(), format_bytes(session.bytes_total()), seconds, format_rate(session.goodput_bps()),
      retransmits_text(session), format_percent(loss_fraction(session)));
  if (const std::string cause = bottleneck_text(session.bottleneck()); !cause.empty()) {
    out += "bottleneck: " + cause;
    for (const std::string& line : session.bottleneck().evidence()) out += "; " + printable(line);
    out += "\n";
  }
  int shown = 0;
  for (const api::FileProgress& file : session.files()) {
    if (session.files_size() > kFilesShown && file.names() > 1) continue;
    if (++shown > kFilesShown) break;
    out += fmt::format("{} -> {}: {}\n", printable(file.source()), printable(file.destination()),
                       digest_text(file, session.crc()));
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
