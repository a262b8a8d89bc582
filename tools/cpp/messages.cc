// SPDX-License-Identifier: Apache-2.0
#include "tools/cpp/messages.h"

#include <array>
#include <optional>
#include <string>

#include "control/proto/session_state.h"
#include "tools/cpp/errors.h"

namespace sluice::client {
namespace {

// The library's states are numbered as those of the API.
static_assert(static_cast<int>(State::kConnecting) == api::Session::CONNECTING);
static_assert(static_cast<int>(State::kCancelled) == api::Session::CANCELLED);
static_assert(static_cast<int>(State::kPaused) == api::Session::PAUSED);
constexpr size_t kStates = api::Session::State_ARRAYSIZE;
static_assert(static_cast<int>(State::kPaused) + 1 == kStates);

State state_of(api::Session::State state) {
  const auto number = static_cast<uint32_t>(state);
  return number < kStates ? static_cast<State>(number) : State::kUnknown;
}

void put_rule(const std::string& rule, api::Rule* to) {
  if (rule.size() < 3 || (rule[0] != '+' && rule[0] != '-') || rule[1] != ' ')
    throw error(ErrorCode::kUsage, rule + ": write \"+ PATTERN\" or \"- PATTERN\"");
  to->set_include(rule[0] == '+');
  to->set_pattern(rule.substr(2));
}

template <typename T, typename Set>
void put(const T& value, Set set) {
  set(value);
}
template <typename T, typename Set>
void put(const std::optional<T>& value, Set set) {
  if (value) set(*value);
}

File file_of(const api::FileProgress& file) {
  std::map<std::string, std::string> digests;
  for (const api::Digest& digest : file.digests()) digests[digest.kind()] = digest.hex();
  return {.source = file.source(),
          .destination = file.destination(),
          .size_bytes = file.size(),
          .bytes_done = file.bytes_done(),
          .done = file.done(),
          .digest_source = file.digest_source(),
          .digest_destination = file.digest_destination(),
          .names = file.names(),
          .digests = std::move(digests)};
}

}  // namespace

const char* name_of(State state) {
  static const std::array<std::string, kStates> names = [] {
    std::array<std::string, kStates> all;
    for (size_t i = 0; i < kStates; ++i) all[i] = api::state_name(static_cast<api::Session::State>(i));
    return all;
  }();
  const auto number = static_cast<size_t>(state);
  return names[number < kStates ? number : 0].c_str();
}

api::TransferOptions message_of(const Options& options) {
  api::TransferOptions message;
#define SLUICE_OPTION(name, ...) \
  put(options.name, [&message](const auto& value) { message.set_##name(value); });
#define SLUICE_KEEP(name, ...) message.set_##name(options.name);
#include "dataplane/base/options/options.def"
  for (const std::string& rule : options.rules) put_rule(rule, message.add_rules());
  for (const std::string& name : options.names) message.add_names(name);
  message.set_lease(options.lease);
  message.set_part(options.part);
  return message;
}

Status status_of(const api::Session& session) {
  Status status{.id = session.id(),
                .state = state_of(session.state()),
                .direction = session.direction(),
                .peer = session.peer(),
                .source_node = session.from(),
                .ordered_by = session.ordered_by(),
                .bytes_total = session.bytes_total(),
                .bytes_done = session.bytes_done(),
                .listing = session.listing(),
                .goodput_bps = session.goodput_bps(),
                .rate_limit_bps = session.rate_limit_bps(),
                .retransmits = session.retransmits(),
                .rtt_us = session.rtt_us(),
                .elapsed_s = session.elapsed_s(),
                .waiting_for = session.waiting_for(),
                .bottleneck = session.bottleneck().cause(),
                .bottleneck_share = session.bottleneck().share(),
                .evidence = {session.bottleneck().evidence().begin(), session.bottleneck().evidence().end()},
                .queue_place = session.queue_place(),
                .error_code = static_cast<int>(session.error_code()),
                .error_name = session.error_name(),
                .error = session.error()};
  if (session.has_rate_bps()) status.rate_bps = session.rate_bps();
  for (const api::FileProgress& file : session.files()) status.files.push_back(file_of(file));
  return status;
}

NodeStatus status_of(const api::NodeReply& node) {
  NodeStatus status{.name = node.name(),
                    .fingerprint = node.fingerprint(),
                    .version = node.version(),
                    .dataplane_attached = node.dataplane_attached(),
                    .exports = {node.exports().begin(), node.exports().end()}};
  for (const api::Peer& peer : node.peers()) status.peers.push_back(peer.name());
  return status;
}

}  // namespace sluice::client
