// Parts of a session's network log, as messages of the API.
// SPDX-License-Identifier: Apache-2.0
#include "control/api/node_sessions.h"

namespace sluice::service {
namespace {

constexpr int kPartRecords = 1024;      // of one message
constexpr uint64_t kPartLooked = 4096;  // of one turn of control's loop

void put_bytes(const board::LogEvent& event, api::LogRecord* to) {
  to->set_object(event.object);
  to->set_offset(event.offset);
  to->set_length(event.length);
}

void put(const board::LogEvent& event, api::LogRecord* to) {
  using Kind = board::LogKind;
  to->set_kind(std::string(board::log_kind_name(event.kind)));
  switch (event.kind) {
    case Kind::kOpened:
    case Kind::kClosed:
      break;
    case Kind::kGap:
      to->set_tx_seq(event.tx_seq);
      to->set_count(event.value);
      break;
    case Kind::kReport:
      to->set_tx_seq(event.tx_seq);
      to->set_credit_extents(event.value);
      to->set_gaps(event.length);
      break;
    case Kind::kRetransmission:
    case Kind::kRepair:
    case Kind::kSent:
    case Kind::kReceived:
      to->set_tx_seq(event.tx_seq);
      put_bytes(event, to);
      break;
    case Kind::kNeed:
    case Kind::kCompletion:
      put_bytes(event, to);
      break;
    case Kind::kFailure:
      put_bytes(event, to);
      to->set_error_number(static_cast<uint32_t>(event.value));
      break;
    case Kind::kRate:
      to->set_rate_bps(event.value);
      break;
  }
}

void add_record(const board::LogRecord& record, int64_t started_unix_ns, api::LogReply* reply) {
  api::LogRecord* const to = reply->add_records();
  to->set_unix_ns(record.unix_ns);
  to->set_session_ns(record.unix_ns - started_unix_ns);
  to->set_lane(record.lane);
  if (record.dropped == 0) return put(record.event, to);
  to->set_kind("dropped");
  to->set_count(record.dropped);
}

}  // namespace

Result<LogPart> NodeSessions::log(const api::LogRequest& request, const LogPlace& from) const {
  const Result<node::LogView> view = manager_.logs().log(request.id());
  if (!view) return view.error();
  const board::SessionLog& log = *view->log;
  LogPart part{.reply = {}, .next = from, .more = false, .ended = view->ended};
  part.reply.set_session(view->id);
  part.reply.set_level(std::string(board::log_level_name(log.level())));
  if (from.begun &&
      from.number < log.begin()) {  // who reads too slowly; of lanes, nobody knows any more which
    api::LogRecord* const missing = part.reply.add_records();
    missing->set_unix_ns(log.at(log.begin()).unix_ns);
    missing->set_session_ns(missing->unix_ns() - view->started_unix_ns);
    missing->set_lane(request.lane());
    missing->set_kind("dropped");
    missing->set_count(log.begin() - from.number);
  }
  uint64_t number = std::max(from.number, log.begin());
  const uint64_t end = std::min(log.end(), number + kPartLooked);
  for (; number < end && part.reply.records_size() < kPartRecords; ++number) {
    const board::LogRecord& record = log.at(number);
    if (!request.has_lane() || record.lane == request.lane())
      add_record(record, view->started_unix_ns, &part.reply);
  }
  part.next = {.number = number, .begun = true};
  part.more = number < log.end();
  return part;
}

Result<std::string> NodeSessions::set_log_level(const std::string& id, const std::string& level) {
  return manager_.logs().set_level(id, level);
}

asio::awaitable<Result<api::ComponentLevels>> NodeSessions::component_levels() {
  const std::vector<node::ComponentLevel> levels = co_await manager_.logs().component_levels();
  api::ComponentLevels reply;
  for (const node::ComponentLevel& each : levels) {
    api::ComponentLevel* const one = reply.add_levels();
    one->set_component(each.component);
    one->set_level(each.level);
  }
  co_return reply;
}

asio::awaitable<Result<api::ComponentLevels>> NodeSessions::set_component_level(api::ComponentLevel level) {
  const Status set = co_await manager_.logs().set_component_level(level.component(), level.level());
  if (!set) co_return set.error();
  Result<api::ComponentLevels> levels = co_await component_levels();
  co_return levels;
}

}  // namespace sluice::service
