// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/session_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "control/proto/session_state.h"
#include "tools/cli/format.h"
#include "tools/cli/progress.h"
#include "tools/cli/when.h"

namespace sluice::cli {
namespace {

constexpr std::string_view kActive = "active";
constexpr std::string_view kEnded = "ended";
constexpr size_t kPeerColumnsMin = 8;
constexpr size_t kPeerColumnsMax = 24;
constexpr size_t kOtherColumns = 72;  // of all but the peer, at the most
constexpr size_t kNameColumnsMin = 8;
constexpr size_t kGap = 2;
constexpr size_t kTimeColumns = 10;
constexpr size_t kWideColumns = 100;  // from here on there is room for how long it took

bool fits(const api::Session& session, const std::string& state) {
  if (state == kEnded) return api::has_ended(session);
  if (state == kActive) return !api::has_ended(session);
  return state == api::state_name(session);
}

// As much of the ids as tells them apart: what the commands take.
size_t id_bytes(const api::ListSessionsReply& reply) {
  std::vector<std::string_view> ids;
  for (const api::Session& session : reply.sessions()) ids.push_back(session.id());
  std::sort(ids.begin(), ids.end());
  size_t bytes = kShortIdBytes;
  for (size_t i = 1; i < ids.size(); ++i) {
    const auto differ = std::mismatch(ids[i].begin(), ids[i].end(), ids[i - 1].begin(), ids[i - 1].end());
    bytes = std::max(bytes, static_cast<size_t>(differ.first - ids[i].begin()) + 1);
  }
  return bytes;
}

struct Cell {
  std::string text;
  bool right = false;  // numbers
};
using Row = std::vector<Cell>;

std::string done_text(const api::Session& session) {
  if (session.listing()) return "-";
  if (session.bytes_total() == 0) return api::has_ended(session) ? "-" : "0 %";
  return format_percent(
      std::min(1.0, static_cast<double>(session.bytes_done()) / static_cast<double>(session.bytes_total())));
}

std::vector<std::string> peers_of(const api::Session& session) {
  std::vector<std::string> peers;
  const std::string& all = session.peer();  // "alpha, beta" of several sources
  for (size_t begin = 0; begin <= all.size();) {
    const size_t end = std::min(all.find(", ", begin), all.size());
    peers.push_back(all.substr(begin, end - begin));
    begin = end + 2;
  }
  return peers;
}

std::string peer_text(const api::Session& session) {
  const std::vector<std::string> peers = peers_of(session);
  const std::string others = peers.size() > 1 ? fmt::format(" +{}", peers.size() - 1) : "";
  return printable(peers.front()) + others;
}

Row row(const api::Session& session, size_t id_bytes, size_t columns, int64_t unix_now_ns) {
  const size_t others = kOtherColumns + (columns >= kWideColumns ? kTimeColumns : 0);
  const size_t peer_columns =
      std::clamp(columns - std::min(columns, others), kPeerColumnsMin, kPeerColumnsMax);
  const bool sends = session.direction().ends_with("send");
  const std::string way = !session.from().empty() ? session.from() + " to " : sends ? "to " : "from ";
  Row cells = {{printable(session.id().substr(0, id_bytes))},
               {format_date(session.started_unix_ns(), unix_now_ns)},
               {api::state_name(session)},
               {way + shorten(peer_text(session), peer_columns)},
               {done_text(session), true},
               {format_bytes(session.bytes_total()) + (session.listing() ? "+" : ""), true}};
  if (columns >= kWideColumns) cells.push_back({format_duration(session.elapsed_s()), true});
  cells.push_back({session_subject(session)});
  return cells;
}

// What stands beneath a session's line; empty: nothing is to be said of it.
std::string reason(const api::Session& session) {
  std::string text = deadline_text(session);
  const auto add = [&text](const std::string& more) {
    if (!more.empty()) text += (text.empty() ? "" : "; ") + more;
  };
  if (session.queue_place() != 0)
    add(fmt::format("place {} of {}", session.queue_place(), session.queue_length()));
  if (!session.error().empty()) {
    add(printable(session.error()));
  } else if (!session.waiting_for().empty()) {
    add("waiting for " + printable(session.waiting_for()));
  }
  return text;
}

std::string padded(const Cell& cell, size_t columns) {
  const std::string blank(columns - std::min(columns, display_width(cell.text)), ' ');
  return cell.right ? blank + cell.text : cell.text + blank;
}

}  // namespace

std::vector<std::string> state_words() {
  constexpr std::array<std::string_view, 3> kMore = {"partial", kActive, kEnded};
  std::vector<std::string> names(kMore.begin(), kMore.end());
  for (int i = 1; i < api::Session::State_ARRAYSIZE; ++i) {
    if (api::Session::State_IsValid(i)) names.push_back(api::state_name(static_cast<api::Session::State>(i)));
  }
  return names;
}

Status check_states(const std::vector<std::string>& states) {
  const std::vector<std::string> names = state_words();
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  for (const std::string& state : states) {
    if (std::find(names.begin(), names.end(), state) == names.end())
      return Error{ErrorCode::kUsage, "--state '" + printable(state) + "' is no state: give one of " + known};
  }
  return {};
}

api::ListSessionsReply filtered(const api::ListSessionsReply& all, const ListFilter& filter) {
  api::ListSessionsReply out;
  for (const api::Session& session : all.sessions()) {
    const std::vector<std::string> peers = peers_of(session);
    if (!filter.peer.empty() && std::find(peers.begin(), peers.end(), filter.peer) == peers.end()) continue;
    if (filter.since_unix_ns && session.started_unix_ns() < *filter.since_unix_ns) continue;
    const bool any =
        filter.states.empty() || std::any_of(filter.states.begin(), filter.states.end(),
                                             [&](const std::string& state) { return fits(session, state); });
    if (any) *out.add_sessions() = session;
  }
  return out;
}

std::string session_table(const api::ListSessionsReply& sessions, size_t columns, bool cuts,
                          int64_t unix_now_ns) {
  const bool wide = columns >= kWideColumns;
  const size_t id_columns = id_bytes(sessions);
  std::vector<Row> rows = {{{"ID"}, {"BEGAN"}, {"STATE"}, {"PEER"}, {"DONE", true}, {"SIZE", true}}};
  if (wide) rows[0].push_back({"TIME", true});
  rows[0].push_back({"FILES"});
  for (const api::Session& session : sessions.sessions())
    rows.push_back(row(session, id_columns, columns, unix_now_ns));
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const Row& each : rows) {
    for (size_t i = 0; i < each.size(); ++i) widths[i] = std::max(widths[i], display_width(each[i].text));
  }
  size_t before_last = 0;
  for (size_t i = 0; i + 1 < widths.size(); ++i) before_last += widths[i] + kGap;
  const size_t room = std::max(kNameColumnsMin, columns - std::min(columns, before_last));
  const std::string indent(id_columns + kGap, ' ');
  std::string text;
  for (size_t n = 0; n < rows.size(); ++n) {
    for (size_t i = 0; i + 1 < rows[n].size(); ++i) text += padded(rows[n][i], widths[i]) + "  ";
    if (n == 0) {
      text += rows[n].back().text + "\n";
      continue;
    }
    const api::Session& session = sessions.sessions(static_cast<int>(n) - 1);
    std::string subject = rows[n].back().text;
    if (cuts && display_width(subject) > room) subject = shorten(short_subject(session), room);
    text += subject + "\n";
    const std::string why = reason(session);
    for (const std::string& line : wrap_words(why, columns - std::min(columns - 1, indent.size())))
      text += indent + line + "\n";
  }
  return text;
}

}  // namespace sluice::cli
