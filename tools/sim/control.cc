// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/control.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/transfer/peer_call.h"
#include "tools/sim/papers.h"

namespace sluice::sim {
namespace {

constexpr uint64_t kLeftoverNs = 2'000'000'000;
constexpr uint32_t kSlots = 4;  // of sessions, that are ever used here

transfer::Settings settings_of(const Plan& plan, uint32_t node) {
  return {.node_name = node_name(node),
          .udp_checksum_always = plan.udp_checksum,
          .protection = plan.protection_of(node),
          .calls_only = plan.nat && node == plan.initiator,
          .partition_bytes = plan.partition_bytes,
          .sync_lag_bytes = plan.sync_lag_bytes,
          .sync_lag_ns = is_source(node) ? plan.crc_lag_ns : plan.sync_lag_ns,
          .stall_timeout_ns = plan.stall_timeout_ns,
          .resume_timeout_ns = plan.resume_timeout_ns,
          .keep_ns = plan.keep_ns,
          .digests_unanswered = plan.several.digests_unanswered,
          .trust_journal = plan.broken == Break::kTrustJournal,
          .open_objects_max = plan.open_objects_max,
          .open_ahead = plan.open_ahead,
          .short_bytes = plan.partition_bytes};
}

}  // namespace

Control::Control(Host& host) : host_(host), settings_{settings_of(host.plan, host.node)} {
  host_.locked = [this](uint64_t inode, const Session* asking) {
    return std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& each) {
      return each.get() != asking && !each->over() && each->holds(inode);
    });
  };
  for (uint32_t node = 0; node < host.plan.nodes(); ++node)
    for (size_t n = 0; n < deadline::kSamplesMin && host.plan.several.known_bps[node] != 0; ++n)
      settings_.outlook->heard({.peer = node_name(node), .outgoing = false},
                               {.rate_bps = static_cast<double>(host.plan.several.known_bps[node])},
                               host.now_ns());
}
Control::~Control() = default;

std::shared_ptr<Session> Control::add(std::unique_ptr<transfer::Transfer> transfer) {
  sessions_.push_back(std::make_shared<Session>(host_, settings_, std::move(transfer)));
  return sessions_.back();
}

// A transfer that begins. One from the journal has its legs.
std::unique_ptr<transfer::Transfer> Control::with_legs(std::unique_ptr<transfer::Transfer> transfer) const {
  const bool several = host_.plan.course == Course::kSources && host_.node == kDestination;
  for (uint32_t node = 2; several && node < host_.plan.nodes(); ++node) transfer->add_leg(node_name(node));
  while (!several && transfer->legs() < host_.plan.legs) transfer->add_leg(transfer->peer());
  return transfer;
}

void Control::start() {
  for (const auto& [id, saved] : host_.journal.sessions()) {
    const transfer::Record& record = saved.record;
    const bool ended = transfer::has_ended(record.state);
    if (ended && !record.files_left && !transfer::peer_unaware(record)) continue;
    add(std::make_unique<transfer::Transfer>(settings_, saved, std::nullopt, host_.now_ns()));
  }
  for (const auto& session : sessions()) session->post(transfer::Begin{});
  restore_leases();
}

// ---- the operator --------------------------------------------------------------------------------

void Control::ask(const std::string& id, const std::optional<transfer::Lease>& lease) {
  transfer::Request request;
  request.options = {.lanes = host_.plan.lanes,
                     .mode = host_.plan.rate_mode,
                     .rate_bps = host_.plan.rate_bps,
                     .expected_loss = {host_.plan.expected_loss_ppm},
                     .fec = host_.plan.fec,
                     .compress = host_.plan.compress,
                     .crc = host_.plan.crc,
                     .protection = host_.plan.protection_of(host_.node),
                     .chunk_bytes = host_.plan.chunk_bytes};
  request.destination = "files/";
  for (uint32_t i = 0; i < host_.plan.sizes.size(); ++i)
    request.source_paths.push_back(Oracle::final_name(i));
  const transfer::Role role = is_source(host_.node) ? transfer::Role::kSource : transfer::Role::kDestination;
  const std::string peer = node_name(is_source(host_.node) ? kDestination : kSource);
  auto transfer =
      std::make_unique<transfer::Transfer>(settings_, id, peer, role, std::move(request), std::nullopt,
                                           static_cast<int64_t>(host_.now_ns()), host_.now_ns());
  if (host_.papers != nullptr) transfer->begin_granted(host_.papers->granted);
  transfer->begin_leased(lease);
  const auto session = add(with_legs(std::move(transfer)));
  if (role == transfer::Role::kSource && !host_.plan.growing && host_.plan.foreseen) session->foresee();
  if (attached_) session->set_board(flows_.get(), generation_);
  session->post(transfer::Begin{.at_once = true});
}

void Control::pause() {
  for (const auto& session : sessions()) {
    if (!session->over() && session->transfer().may_pause()) session->post(transfer::PauseAsked{});
  }
}

void Control::go_on() {
  for (const auto& session : sessions()) {
    if (session->over() || !session->transfer().may_continue()) continue;
    host_.oracle.paused(host_.node, session->transfer().id(), false);
    session->post(transfer::ContinueAsked{});
  }
}

void Control::cancel() {
  for (const auto& session : sessions()) {
    if (!session->over()) session->post(transfer::Cancel{});
  }
}

void Control::kill_leg(uint32_t leg) {
  for (const auto& session : sessions()) session->kill_leg(transfer::LegId(leg));
}

void Control::stop() {
  stopping_ = true;
  for (const auto& session : sessions()) session->post(transfer::Detach{});
}

bool Control::quiet() const {
  return std::all_of(sessions_.begin(), sessions_.end(), [](const auto& session) { return session->over(); });
}

std::string Control::describe() const {
  std::string out;
  for (const auto& session : sessions_) {
    if (session->over()) continue;
    const transfer::View view = session->transfer().view(host_.now_ns());
    out += fmt::format("{}: transfer phase {} waiting for '{}' error '{}' done {} of {}\n",
                       node_name(host_.node), static_cast<int>(session->transfer().phase()), view.waiting_for,
                       view.error ? view.error->message : "", view.summary.bytes_done, view.bytes_total);
    for (uint32_t i = 0; i < session->transfer().legs(); ++i) {
      const transfer::Leg& leg = session->transfer().leg(transfer::LegId(i));
      out += fmt::format("  leg {} phase {} handshake {}\n", i, static_cast<int>(leg.phase()),
                         static_cast<int>(leg.handshake_phase()));
    }
  }
  return out;
}

std::vector<std::string> Control::going_on() const {
  std::vector<std::string> ids;
  for (const auto& session : sessions_) {
    if (!session->over() && !session->transfer().ended() && session->transfer().job().began)
      ids.push_back(session->transfer().id());
  }
  return ids;
}

bool Control::has(const std::string& id) const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [&](const auto& session) { return !session->over() && session->transfer().id() == id; });
}

// ---- standing still ------------------------------------------------------------------------------

void Control::freeze_near_the_end() {
  if (host_.plan.freeze.ns == 0 || froze_) return;
  for (const auto& session : sessions_) {
    const transfer::Transfer& transfer = session->transfer();
    if (session->over() || !transfer.initiator()) continue;
    const transfer::Job& job = transfer.job();
    const transfer::Leg& leg = transfer.leg(transfer::LegId(0));
    const bool last_bytes = job.has_end() && job.bytes_done() * 10 >= job.bytes_total() * 9;
    const bool farewell = leg.phase() == transfer::LegPhase::kFarewell;
    const bool end = transfer.phase() >= transfer::TransferPhase::kEnding;
    froze_ = end || (farewell && host_.plan.freeze.at <= FreezeAt::kFarewell) ||
             (last_bytes && host_.plan.freeze.at == FreezeAt::kLastBytes);
  }
  if (!froze_) return;
  ++host_.trace.reached.freezes;
  host_.trace.add(host_.now_ns(), host_.node, "freezes", host_.plan.freeze.ns);
  host_.frozen_until_ns = host_.now_ns() + host_.plan.freeze.ns;
  host_.scheduler.after(host_.plan.freeze.ns, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->thaw();
  });
}

void Control::thaw() {
  for (const auto& session : sessions()) session->thaw();
  for (const auto& [id, heard] : std::exchange(unheard_, {})) message(id, heard);
}

// ---- the dataplane -------------------------------------------------------------------------------

void Control::check_dataplane() {
  const bool there = host_.dataplane != nullptr;
  if (flows_ && (!there || host_.dataplane->generation() != generation_)) {
    flows_.reset();
    attached_ = false;
    for (const auto& session : sessions()) session->set_board(nullptr, 0);
  }
  if (there && !flows_) attach();
  if (flows_ && !attached_ && (flows_->leftovers() == 0 || host_.now_ns() >= leftovers_until_ns_))
    finish_attach();
}

// As sluice-control does: claimed flows are taken over, others of an earlier life are closed; then it serves.
void Control::attach() {
  Dataplane& dataplane = *host_.dataplane;
  generation_ = dataplane.generation();
  flows_ = std::make_unique<board::BoardFlows>(
      dataplane.board(), dataplane.board().port, [&host = host_, generation = generation_](uint32_t worker) {
        if (host.dataplane != nullptr && host.dataplane->generation() == generation)
          host.dataplane->wake(worker, host.now_ns());
      });
  for (const auto& session : sessions()) session->take_claim(flows_.get(), generation_);
  flows_->close_leftovers();
  leftovers_until_ns_ = host_.now_ns() + kLeftoverNs;
}

void Control::finish_attach() {
  flows_->forget_leftovers();
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    if (!flows_->table().session_taken(SessionSlotId(slot)))
      (void)host_.dataplane->close_session(SessionSlotId(slot));
  }
  attached_ = true;
  for (const auto& session : sessions()) {
    if (!session->over()) session->set_board(flows_.get(), generation_);
  }
}

void Control::tick() {
  check_dataplane();
  if (flows_) {
    host_.dataplane->board().control_alive_ns = host_.now_ns();
    flows_->push_commands();
    (void)flows_->drain();
    flows_->tend_credit();
    host_.dataplane->set_flows(std::any_of(sessions_.begin(), sessions_.end(),
                                           [](const auto& session) { return session->has_flows(); }));
  }
  if (attached_) {
    for (const auto& session : sessions()) {
      if (!session->over()) session->tick();
    }
  }
  freeze_near_the_end();
  look_at_grants();
  std::erase_if(sessions_, [&](const auto& session) {
    if (session->over() && flows_) session->forget_board(flows_.get());
    return session->over();
  });
}

// ---- the connections -----------------------------------------------------------------------------

bool Control::owns(Streams::Id id) const {
  return std::any_of(sessions_.begin(), sessions_.end(), [id](const auto& each) { return each->owns(id); });
}

void Control::call_ended(Streams::Id id, bool open, bool said) {
  for (const auto& session : sessions()) {
    if (session->owns(id)) return session->call_ended(id, open, said);
  }
}

void Control::stream_ended(Streams::Id id) {
  for (const auto& session : sessions()) {
    if (session->owns(id)) return session->stream_ended(id);
  }
}

void Control::message(Streams::Id id, const transfer::Message& message) {
  for (const auto& session : sessions()) {
    if (session->owns(id)) return session->message(id, message);
  }
  if (host_.frozen()) return unheard_.emplace_back(id, message), void();
  if (const auto* hello = std::get_if<transfer::Hello>(&message)) receive(id, *hello);
}

void Control::say(Streams::Id id, std::vector<transfer::Message> words) {
  for (transfer::Message& word : words) host_.streams->send(host_.node, id, std::move(word));
  host_.streams->hang_up(host_.node, id);
}

// The caller asks again, and counts that as no failure of its peer.
void Control::say_later(Streams::Id id) {
  say(id, {transfer::Pause{.node = node_name(host_.node), .place = 1, .places = 1}});
}

void Control::receive(Streams::Id id, const transfer::Hello& hello) {
  if (stopping_) return host_.streams->hang_up(host_.node, id);
  Called called{.hello = hello, .caller = host_.streams->caller(id), .session = nullptr};
  transfer::UnderId known;
  known.legs_of_new = host_.plan.legs;
  for (const auto& each : sessions_) {
    if (each->over() || each->transfer().id() != hello.session_id) continue;
    if (each->transfer().ended()) {
      known.ending = true;
      continue;
    }
    called.session = each;
    known.active = true;
    known.initiator = each->transfer().initiator();
    known.peers = each->transfer().leg_peers();
  }
  const auto saved = host_.journal.sessions().find(hello.session_id);
  if (saved != host_.journal.sessions().end()) called.saved = &saved->second;
  if (broken_memory(hello)) called.saved = nullptr;
  if (called.saved != nullptr) known.record = &called.saved->record;
  const std::string peer = node_name(called.caller);
  Result<std::optional<transfer::Granted>> granted = judge_grant(called);
  if (!granted) return say(id, {transfer::failure_of(granted.error())});
  const transfer::Decision decision = transfer::receive_call(peer, hello, known);
  const bool begins =
      decision.kind == transfer::CallKind::kNew || decision.kind == transfer::CallKind::kKnown;
  if (begins && !hello.ended) {
    const Result<bool> may = may_write(called);
    if (!may) return say(id, {transfer::failure_of(may.error())});
    if (!*may) return say_later(id);
  }
  switch (decision.kind) {
    case transfer::CallKind::kRefused:
      return say(id, {transfer::failure_of(*decision.error)});
    case transfer::CallKind::kEnded:
      return say(id, transfer::ended_answer(*called.saved));
    case transfer::CallKind::kNothing:
      return say(id, transfer::nothing_answer(hello));
    case transfer::CallKind::kUnknown:
      return say(id, transfer::unknown_answer(hello));
    case transfer::CallKind::kKnows:
      for (transfer::Message& word :
           transfer::knows_answer(hello, called.session && called.session->transfer().pausing()))
        host_.streams->send(host_.node, id, std::move(word));
      if (called.session) {
        if (const auto leg = called.session->transfer().leg_to(peer, hello.leg))
          called.session->post(transfer::PeerInquires{*leg});
      }
      return host_.streams->hang_up(host_.node, id);
    case transfer::CallKind::kLater:
      return say_later(id);
    case transfer::CallKind::kNew: {
      auto transfer = std::make_unique<transfer::Transfer>(
          settings_, hello.session_id, peer, static_cast<int64_t>(host_.now_ns()), host_.now_ns());
      judge_beginning(called);
      if (*granted) transfer->begin_granted(std::move(**granted));
      transfer->begin_leased(hello.lease);
      called.session = add(with_legs(std::move(transfer)));
      if (attached_) called.session->set_board(flows_.get(), generation_);
      called.session->post(transfer::Begin{});
    }
      [[fallthrough]];
    case transfer::CallKind::kKnown:
      return called.session->peer_called(id, peer, hello);
  }
}

}  // namespace sluice::sim
