// SPDX-License-Identifier: Apache-2.0
#include "control/api/node_sessions.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "control/proto/valid_text.h"
#include "dataplane/base/version.h"

namespace sluice::service {
namespace {

Result<api::Session> answer(const Result<transfer::View>& view) {
  if (!view) return view.error();
  return to_api(*view);
}

api::VerifyProgress message_of(const node::VerifyProgress& progress) {
  api::VerifyProgress message;
  message.set_file(progress.file);
  message.set_bytes_checked(progress.bytes_checked);
  message.set_bytes_total(progress.bytes_total);
  message.set_done(progress.done);
  message.set_good(progress.good);
  message.set_problem(progress.problem);
  message.set_digest(progress.digest);
  message.set_names_unchecked(progress.names_unchecked);
  api::make_texts_valid(&message);
  return message;
}

constexpr int kPreviewPart = 256;  // entries of one message

void add_entry(const catalog::Entry& entry, api::PreviewReply* to) {
  api::PreviewEntry* const one = to->add_entries();
  one->set_path(entry.path);
  one->set_size(entry.size_bytes);
  switch (entry.kind) {
    case catalog::EntryKind::kDirectory:
      one->set_type(api::NameEntry::DIRECTORY);
      break;
    case catalog::EntryKind::kSymlink:
      one->set_type(api::NameEntry::LINK);
      break;
    default:
      one->set_type(api::NameEntry::FILE);
  }
  if (entry.failure == catalog::Failure::kNone) return;
  one->set_missing(std::string(catalog::failure_text(entry.failure)));
  one->set_left_out(entry.failure == catalog::Failure::kSpecial);
}

std::string ip_text(const uint8_t* ip, bool ip4) {
  if (std::all_of(ip, ip + 16, [](uint8_t byte) { return byte == 0; })) return "";
  char text[INET6_ADDRSTRLEN] = {};
  return ::inet_ntop(ip4 ? AF_INET : AF_INET6, ip4 ? ip + 12 : ip, text, sizeof text) != nullptr ? text : "";
}

Result<node::Wishes> of_user(Result<node::Wishes> wishes, const std::optional<transfer::User>& user) {
  if (wishes) wishes->user = user;
  return wishes;
}

asio::awaitable<Result<std::string>> refused(Error error) { co_return error; }

}  // namespace

// ---- sessions ----------------------------------------------------------------------------------

asio::awaitable<Result<std::string>> NodeSessions::send(api::SendRequest request) {
  Result<node::Wishes> wishes = of_user(wishes_of(request), user_);
  if (!wishes) return refused(wishes.error());
  if (!wishes->source_node.empty()) return manager_.orders().begin(std::move(*wishes));
  return manager_.starter().send(std::move(*wishes));
}

asio::awaitable<Result<std::string>> NodeSessions::get(api::GetRequest request) {
  Result<node::Wishes> wishes = of_user(wishes_of(request), user_);
  return wishes ? manager_.starter().get(std::move(*wishes)) : refused(wishes.error());
}

asio::awaitable<Result<Preview>> NodeSessions::preview(api::SendRequest request) {
  Result<node::Wishes> wishes = of_user(wishes_of(request), user_);
  if (!wishes) co_return wishes.error();
  if (!wishes->source_node.empty())
    co_return Error{ErrorCode::kUsage,
                    "what is at another node cannot be previewed: 'sluice ls -R' lists it"};
  Result<node::Preview> preview = co_await manager_.starter().preview(std::move(*wishes));
  if (!preview) co_return preview.error();
  co_return Preview([preview = std::move(*preview)](const PreviewReport& report) -> Status {
    api::PreviewReply part;
    const auto hand_over = [&report, &part]() -> Status {
      if (!report(part)) return Error{ErrorCode::kCancelled, "nobody wants to know"};
      part.clear_entries();
      return {};
    };
    const Status status = preview([&](const catalog::Entry& entry) -> Status {
      add_entry(entry, &part);
      return part.entries_size() < kPreviewPart ? Status() : hand_over();
    });
    return status ? hand_over() : status;
  });
}

std::vector<api::Session> NodeSessions::list() const {
  std::vector<api::Session> all;
  for (const transfer::View& view : manager_.sessions().list()) all.push_back(to_api(view));
  for (api::Session& session : all) session.clear_history();  // of many sessions that is much
  return all;
}

std::vector<api::Session> NodeSessions::overviews() const {
  std::vector<api::Session> all;
  for (const transfer::View& view : manager_.sessions().overviews()) all.push_back(to_api(view));
  return all;
}

Result<api::Session> NodeSessions::show(const std::string& id) const {
  Result<api::Session> session = answer(manager_.sessions().find(id));
  if (!session) return session;
  for (const metrics::LaneFigures& lane : manager_.report().lanes(session->id())) {
    api::LaneProgress* const one = session->add_lane_progress();
    one->set_lane(lane.lane);
    one->set_bytes(lane.payload_bytes);
    one->set_chunks(lane.chunks);
    one->set_retransmits(lane.retransmitted_chunks + lane.repaired_chunks);
    one->set_lost(lane.lost_datagrams);
    one->set_rate_limit_bps(lane.rate_bps);
    one->set_rtt_us(static_cast<double>(lane.rtt_ns) * 1e-3);
    one->set_credit_extents(lane.credit_extents);
  }
  return session;
}

asio::awaitable<Result<api::Session>> NodeSessions::cancel(std::string id) {
  const Result<transfer::View> view = co_await manager_.sessions().cancel(std::move(id));
  co_return answer(view);
}

asio::awaitable<Result<api::Session>> NodeSessions::pause(std::string id) {
  const Result<transfer::View> view = co_await manager_.sessions().pause(std::move(id));
  co_return answer(view);
}

asio::awaitable<Result<api::Session>> NodeSessions::go_on(std::string id) {
  const Result<transfer::View> view = co_await manager_.sessions().go_on(std::move(id));
  co_return answer(view);
}

asio::awaitable<Result<api::Session>> NodeSessions::limit(std::string id, uint64_t rate_bps) {
  const Result<transfer::View> view = co_await manager_.sessions().limit(std::move(id), rate_bps);
  co_return answer(view);
}

asio::awaitable<Result<api::Session>> NodeSessions::prioritize(std::string id, int32_t priority) {
  const Result<transfer::View> view = co_await manager_.sessions().prioritize(std::move(id), priority);
  co_return answer(view);
}

asio::awaitable<Result<std::string>> NodeSessions::give(api::ExportRequest request) {
  if (!request.withdraw())
    co_return co_await manager_.moves().give(request.id(), request.to(), request.within_s());
  const Result<transfer::View> view = co_await manager_.moves().withdraw(request.id());
  if (!view) co_return view.error();
  co_return std::string();
}

asio::awaitable<Result<api::Session>> NodeSessions::take(std::string bundle) {
  const Result<transfer::View> view = co_await manager_.moves().take(std::move(bundle));
  co_return answer(view);
}

asio::awaitable<Result<Verification>> NodeSessions::verification(std::string id) {
  const Result<transfer::View> view = manager_.sessions().find(id);
  if (!view) co_return view.error();
  auto exports = std::make_shared<const exports::Exports>(manager_.sessions().exports_of(*view));
  Result<node::ToVerify> found = co_await manager_.verification(std::move(id));
  if (!found) co_return found.error();
  auto files = std::make_shared<const node::ToVerify>(std::move(*found));
  node::VerifyPlace place = manager_.verify_place(exports);
  co_return Verification([exports, files, place = std::move(place)](const VerifyReport& report) {
    node::verify(exports, files, place,
                 [&report](const node::VerifyProgress& progress) { return report(message_of(progress)); });
  });
}

asio::awaitable<Result<std::vector<api::NameDigests>>> NodeSessions::digests(std::string id) {
  const Result<std::vector<digests::Named>> found = co_await manager_.digests(std::move(id));
  if (!found) co_return found.error();
  std::vector<api::NameDigests> names;
  for (const digests::Named& named : *found) {
    api::NameDigests& one = names.emplace_back();
    one.set_path(named.path);
    one.set_size(named.size_bytes);
    one.set_target(named.target);
    put_values(named.values, one.mutable_digests());
  }
  co_return names;
}

// ---- the node ----------------------------------------------------------------------------------

namespace {

api::Sandbox message_of(const sandbox::State& state, uint64_t refused_calls) {
  api::Sandbox message;
  message.set_text(state.text());
  message.set_system_calls(state.calls);
  message.set_landlock(state.landlock);
  message.set_rings(state.rings);
  message.set_refused_calls(refused_calls);
  return message;
}

}  // namespace

asio::awaitable<Result<api::NodeReply>> NodeSessions::node() {
  const Result<node::NodeInfo> info = co_await manager_.report().info();
  if (!info) co_return info.error();
  api::NodeReply reply;
  reply.set_name(info->name);
  reply.set_fingerprint(info->fingerprint);
  reply.set_version(SLUICE_VERSION);
  reply.set_dataplane_attached(info->dataplane_attached);
  reply.set_data_ip4(ip_text(info->port.ip4, true));
  reply.set_data_ip6(ip_text(info->port.ip6, false));
  reply.set_device(std::string(info->port.device));
  reply.set_device_abilities(std::string(info->port.abilities));
  reply.set_falls(info->port.falls);
  if (info->port.fallback_for[0] != 0) {
    reply.mutable_fallback()->set_device(std::string(info->port.fallback_for));
    reply.mutable_fallback()->set_reason(std::string(info->port.fallback_reason));
    reply.mutable_fallback()->set_since_unix_ns(static_cast<int64_t>(info->port.fallback_unix_ns));
  }
  reply.set_frame_bytes_max(info->port.frame_bytes_max);
  reply.set_workers(info->port.workers);
  reply.set_hugepages(info->port.hugepages != 0);
  reply.set_crc_variant(info->crc_variant);
  for (const config::Export& root : info->exports) {
    reply.add_exports(fmt::format("{} {} {}{}", root.name, root.path.string(), root.mode(),
                                  root.peers ? " for " + root.peers_text() : ""));
  }
  for (const identity::Peer& known : info->peers) {
    api::Peer* const peer = reply.add_peers();
    peer->set_name(known.name);
    peer->set_address(known.address);
    peer->set_fingerprint(known.fingerprint);
    for (const identity::Offer& offer : info->offers) {
      if (offer.peer != known.name) continue;
      peer->set_offered_fingerprint(offer.fingerprint);
      peer->set_offered_certificate(offer.certificate_pem);
    }
  }
  reply.set_control_address(info->control_address);
  reply.set_longest_turn_ns(info->longest_turn_ns);
  reply.set_longest_turn(info->longest_turn);
  for (const async::KeyedPool::Wait& wait : info->export_waits) {
    api::NodeReply::Wait* const one = reply.add_waits();
    one->set_export_name(wait.key);
    one->set_waited_s(static_cast<double>(wait.waited_ns) * 1e-9);
    one->set_calls(wait.running + wait.queued);
  }
  reply.set_metrics_address(metrics_address_);
  *reply.mutable_control_sandbox() = message_of(sandbox_, sandbox::refused_calls());
  if (const auto dataplane = manager_.report().dataplane_state()) {
    *reply.mutable_dataplane_sandbox() =
        message_of(sandbox::State::of_bits(dataplane->sandbox), dataplane->refused_calls);
    if (dataplane->link != board::Link::kUnknown)
      reply.set_link(dataplane->link == board::Link::kUp ? "up" : "down");
  }
  co_return reply;
}

asio::awaitable<Result<api::PeerAnswer>> NodeSessions::about(std::string peer) {
  const Result<node::PeerAbout> about = co_await manager_.questions().about(std::move(peer));
  if (!about) co_return about.error();
  api::PeerAnswer answer;
  answer.set_software(about->state.software);
  answer.set_clock_offset_ns(about->clock.offset_ns);
  answer.set_clock_error_ns(about->clock.error_ns);
  answer.set_round_trip_ns(about->clock.round_trip_ns);
  for (const names::Space& space : about->state.spaces) {
    api::PeerSpace* const one = answer.add_spaces();
    one->set_name(space.name);
    one->set_size_bytes(space.size_bytes);
    one->set_free_bytes(space.free_bytes);
  }
  co_return answer;
}

Result<api::CountersReply> NodeSessions::counters() const {
  const Result<std::vector<node::CounterValue>> values = manager_.report().counters();
  if (!values) return values.error();
  api::CountersReply reply;
  for (const node::CounterValue& value : *values) {
    api::CountersReply::Counter* const counter = reply.add_counters();
    counter->set_name(value.name);
    counter->set_unit(value.unit);
    counter->set_help(value.help);
    counter->set_value(value.value);
  }
  return reply;
}

}  // namespace sluice::service
