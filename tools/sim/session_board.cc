// The board of a simulated transfer: its flows, and its objects in the dataplane.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/leg/negotiation.h"
#include "dataplane/base/check.h"
#include "dataplane/board/attach.h"
#include "tools/sim/session.h"

namespace sluice::sim {
namespace {

constexpr uint64_t kAttachNs = 100'000;  // a question to the dataplane's main thread
constexpr uint64_t kPollNs = 1'000'000;

}  // namespace

board::BoardFlows* Session::board() const {
  const bool alive = host_.dataplane != nullptr && host_.dataplane->generation() == board_generation_;
  return alive ? flows_of_board_ : nullptr;
}

void Session::set_board(board::BoardFlows* flows, uint64_t generation) {
  flows_of_board_ = flows;
  board_generation_ = generation;
  if (flows == nullptr) {
    slot_.reset();
    for (const auto& its : legs_) {
      its->flows.clear();
      // What was asked of it is still answered.
      const Error gone{ErrorCode::kDaemonNotRunning, "the dataplane ended"};
      if (std::exchange(its->asked_flows, false))
        answer(transfer::FlowsReserved{.leg = its->id(), .status = gone});
      if (std::exchange(its->asked_buffers, false))
        answer(transfer::BuffersReserved{.leg = its->id(), .status = gone});
    }
    return post(transfer::BoardLost{});
  }
  post(transfer::BoardAttached{
      .dataplane = {.port = flows->port(),
                    .generation = generation,
                    .tx_lanes_max = flows->table().lanes_max(board::Direction::kTx),
                    .rx_lanes_max = flows->table().lanes_max(board::Direction::kRx)}});
}

void Session::perform(const transfer::ClaimFlows& e) { leg(e.leg).claim = e; }

void Session::take_claim(board::BoardFlows* flows, uint64_t generation) {
  flows_of_board_ = flows;
  board_generation_ = generation;
  for (const auto& its : legs_) {
    if (!its->claim) continue;
    const transfer::LegRecord& record = its->claim->record;
    std::vector<board::FlowGrant> grants;
    std::vector<uint64_t> flow_ids;
    std::vector<uint32_t> credit;
    for (const transfer::FlowRecord& flow : record.flows) {
      grants.push_back({.slot = flow.slot, .local_port = flow.local_port});
      flow_ids.push_back(flow.flow_id);
      credit.push_back(its->claim->receives ? flow.credit_extents : 0);
    }
    on_claimed(*its, record.board_generation == generation &&
                         flows->adopt(its.get(), record.board_session, grants, flow_ids, credit));
  }
}

void Session::on_claimed(SessionLeg& its, bool adopted) {
  const transfer::LegRecord& record = its.claim->record;
  if (adopted) {
    ++host_.trace.reached.adoptions;
    host_.oracle.moves(host_.node, transfer_->id());
    board::FlowsGranted granted{.session = record.board_session};
    for (const transfer::FlowRecord& flow : record.flows) {
      granted.flows.push_back({.slot = flow.slot, .local_port = flow.local_port});
    }
    its.flows.granted(granted);
    slot_ = granted.session;
  }
  post(transfer::FlowsClaimed{.leg = std::exchange(its.claim, std::nullopt)->leg,
                              .adopted = adopted,
                              .random = static_cast<uint32_t>(host_.random.next())});
}

void Session::perform(const transfer::ReserveFlows& e) {
  if (board() == nullptr) {
    return answer(
        transfer::FlowsReserved{.leg = e.leg, .status = Error{ErrorCode::kDaemonNotRunning, "no dataplane"}});
  }
  CHECK(!leg(e.leg).asked_flows && leg(e.leg).flows.size() == 0,
        "flows are asked for once, when there are none");
  leg(e.leg).asked_flows = true;
  board()->ask_flows(&leg(e.leg), e.lanes, e.may_wait, slot_);
}

void Session::perform(const transfer::ReserveBuffers& e) {
  if (board() == nullptr) {
    return answer(transfer::BuffersReserved{.leg = e.leg,
                                            .status = Error{ErrorCode::kDaemonNotRunning, "no dataplane"}});
  }
  CHECK(!leg(e.leg).asked_buffers, "one question at a time");
  leg(e.leg).asked_buffers = true;
  board()->ask_buffers(&leg(e.leg), e.direction, leg(e.leg).flows.grants());
}

void Session::on_admitted(SessionLeg& its, const board::Admitted& admitted) {
  if (const auto* error = std::get_if<Error>(&admitted.what)) {
    its.asked_flows = false;
    return post(transfer::FlowsReserved{.leg = its.id(), .status = *error});
  }
  if (const auto* buffers = std::get_if<board::BuffersGranted>(&admitted.what)) {
    its.asked_buffers = false;
    return post(transfer::BuffersReserved{.leg = its.id(), .credit_extents = buffers->credit_extents});
  }
  its.asked_flows = false;
  const auto& granted = std::get<board::FlowsGranted>(admitted.what);
  its.flows.granted(granted);
  slot_ = granted.session;
  transfer::FlowsReserved reserved{.leg = its.id(), .session = granted.session};
  for (const board::FlowGrant& grant : granted.flows) {
    reserved.grants.push_back(
        {.slot = grant.slot, .local_port = grant.local_port, .random = host_.random.next()});
  }
  post(reserved);
}

void Session::perform(const transfer::ShrinkLanes& e) {
  for (const FlowSlotId slot : leg(e.leg).flows.shrink(e.lanes)) {
    if (board() != nullptr) board()->release_flow(slot);
  }
}

void Session::perform(const transfer::OpenFlow& e) {
  SessionLeg& its = leg(e.leg);
  if (board() == nullptr || !its.flows.contains(e.lane)) return;
  board::FlowConfig config = e.config;
  config.session = slot_->value();
  config.status_interval_ns = host_.plan.status_interval_ns;
  const FlowSlotId slot = its.flows.slot(e.lane);
  const auto context = transfer::flow_secret_context(transfer_->id(), config.flow_id, e.lane);
  const auto secret = host_.streams->export_secret(host_.node, its.stream, *context);
  if (secret) host_.dataplane->take_keys(slot, {board()->next_tag(slot), e.protection, secret->bytes});
  board()->open_flow(slot, config, &its);
  host_.trace.add(host_.now_ns(), host_.node, "open flow", e.lane.value(), config.flow_id);
  if (e.lane == LaneId(0)) ++host_.trace.reached.attempts;
  if (e.lane == LaneId(0) && e.config.direction == board::Direction::kTx &&
      transfer_->leg(e.leg).agreement().chunk_reason == rate::SizeReason::kPath) {
    ++host_.trace.reached.narrowed;
  }
  host_.oracle.moves(host_.node, transfer_->id());
  judge_beginning();
  if (is_source(host_.node)) host_.oracle.share_changed(host_.node);
}

void Session::judge_beginning() {
  if (host_.node != kDestination) return;
  const std::string wrong =
      host_.oracle.owners().begins(transfer_->id(), peer_of(transfer::LegId(0)), host_.unix_ns());
  if (!wrong.empty()) host_.oracle.fail(wrong);
}

void Session::judge_moving() {
  if (!host_.journal.knows_files(transfer_->id()))
    host_.oracle.fail("data moves before the journal knows what was agreed upon");
}

void Session::perform(const transfer::CloseFlow& e) {
  const board::FlowSet& flows = leg(e.leg).flows;
  if (board() != nullptr && flows.contains(e.lane)) board()->close_flow(flows.slot(e.lane));
}

void Session::perform(const transfer::CommandLane& e) {
  const board::FlowSet& flows = leg(e.leg).flows;
  if (board() == nullptr || !flows.contains(e.command.flow.lane)) return;
  judge_moving();
  const board::Command command = flows.command(e.command);
  host_.trace.add(host_.now_ns(), host_.node, "command", static_cast<uint64_t>(command.kind), command.offset,
                  command.length);
  board()->command(command);
}

void Session::perform(const transfer::SettleLane& e) {
  const board::FlowSet& flows = leg(e.leg).flows;
  if (board() == nullptr || !flows.contains(e.lane)) return;
  board()->settle(flows.slot(e.lane), e.gaps, e.settled_below);
  if (!e.gaps.empty()) host_.dataplane->wake_all();
}

void Session::perform(const transfer::DrainEvents& e) {
  while (board() != nullptr && board()->drain()) {
  }
  answer(transfer::EventsDrained{.leg = e.leg});
}

void Session::on_event(SessionLeg& its, const board::Event& event, const board::FlowState& flow) {
  const auto lane = its.flows.lane_of(FlowSlotId(event.flow));
  if (!lane) return;
  host_.trace.add(host_.now_ns(), host_.node, "event", static_cast<uint64_t>(event.kind), event.offset,
                  event.length);
  post(transfer::FlowEvent{.leg = its.id(), .lane = *lane, .event = event, .state = &flow});
}

// A control stream that is lost while data moves is opened again, as soon as both controls are there.
void Session::check_renewal(const SessionLeg& its) {
  // The call for one leg waits at the peer while another makes its handshake, and a greeting for 10 s.
  const uint64_t bound_ns = legs_.size() == 1 ? 2'500'000'000 : 15'000'000'000;
  if (!transfer_->initiator() || host_.plan.freeze.ns != 0) return;  // it may have ended, or stand still
  const transfer::Leg& leg = transfer_->leg(its.id());
  const uint64_t disturbed_ns = host_.streams->disturbed_ns(host_.node, peer_of(its.id()));
  const uint64_t since_ns = std::max(leg.stream().down_since_ns(), disturbed_ns);
  if (leg.phase() != transfer::LegPhase::kMoving || leg.stream().up() || since_ns > host_.now_ns()) return;
  if (host_.now_ns() - since_ns > bound_ns)
    host_.oracle.fail("data moves, both controls are there, and nobody renews the control stream");
}

void Session::tick() {
  for (const auto& its : legs_) {
    if (!over_) tick(*its);
  }
}

void Session::tick(SessionLeg& its) {
  check_renewal(its);
  if (board() == nullptr || its.flows.size() == 0) return;
  std::vector<const board::FlowSlot*> lanes;
  for (uint32_t i = 0; i < its.flows.size(); ++i) {
    lanes.push_back(&board()->flow(its.flows.slot(LaneId(i))));
  }
  post(transfer::Tick{its.id(), lanes, board()->backlog(), board()->workers(its.flows.grants())});
}

void Session::kill_leg(transfer::LegId leg) {
  if (board() == nullptr || over_ || leg.value() >= legs_.size()) return;
  const board::FlowSet& flows = legs_[leg.value()]->flows;
  for (LaneId lane; flows.contains(lane); ++lane) board()->close_flow(flows.slot(lane));
  if (flows.size() != 0) ++host_.trace.reached.legs_killed;
}

void Session::forget_board(board::BoardFlows* flows) {
  for (const auto& its : legs_) flows->forget(its.get());
}

void Session::perform(const transfer::ReleaseFlows& e) {
  const Error given_up{ErrorCode::kCancelled, "given up"};
  SessionLeg& its = leg(e.leg);
  if (std::exchange(its.asked_flows, false))
    answer(transfer::FlowsReserved{.leg = e.leg, .status = given_up});
  if (std::exchange(its.asked_buffers, false))
    answer(transfer::BuffersReserved{.leg = e.leg, .status = given_up});
  if (board() == nullptr) return answer(transfer::FlowsReleased{e.leg});
  board()->give_up(&its);
  for (const FlowSlotId slot : its.flows.shrink(0)) board()->release_flow(slot);
  its.flows.clear();
  const auto session = e.keep_objects ? std::nullopt : std::exchange(slot_, std::nullopt);
  if (!session) return answer(transfer::FlowsReleased{e.leg});
  release(e.leg, *session, board_generation_);
}

// The slot is free again when none of its objects is in use; a flow that cannot end yet holds it up.
void Session::release(transfer::LegId leg, SessionSlotId session, uint64_t generation) {
  if (board() == nullptr || board_generation_ != generation) return answer(transfer::FlowsReleased{leg});
  if (!board()->session_has_flows(session) && host_.dataplane->close_session(session)) {
    board()->release_session(session);
    return answer(transfer::FlowsReleased{leg});
  }
  host_.scheduler.after(kPollNs, [weak = weak_from_this(), leg, session, generation] {
    if (const auto self = weak.lock()) self->release(leg, session, generation);
  });
}

// ---- objects -------------------------------------------------------------------------------------

void Session::perform(const transfer::OpenObject& e) {
  transfer::ObjectOpened opened{.object = e.object};
  if (board() == nullptr || !slot_) {
    opened.status = Error{ErrorCode::kDaemonNotRunning, "no dataplane"};
    return answer(opened);
  }
  const uint64_t inode = inode_of(e.object);
  if (host_.node == kDestination) host_.oracle.bind(inode, e.object.value(), transfer_->id());
  const uint32_t direct = host_.plan.direct ? uint32_t{board::kObjectDirect} : 0;
  if (!host_.dataplane->open_object(*slot_, e.object, e.flags | direct, host_.disk.open(inode),
                                    e.size_bytes)) {
    host_.oracle.fail("an object is opened twice");
  }
  answer(opened, kAttachNs);
}

void Session::perform(const transfer::CloseObject& e) {
  if (board() == nullptr || !slot_ || host_.dataplane->close_object(*slot_, e.object)) {
    return answer(transfer::ObjectClosed{e.object}, kAttachNs);
  }
  host_.scheduler.after(kPollNs, [weak = weak_from_this(), e] {
    if (const auto self = weak.lock()) self->perform(e);
  });
}

void Session::perform(const transfer::FetchObject& e) {
  const bool found = board() != nullptr && slot_ && host_.dataplane->object_open(*slot_, e.object);
  if (found) fetched_.insert(e.object);
  answer(transfer::ObjectFetched{.object = e.object, .found = found}, kAttachNs);
}

// ---- what a leg hears ----------------------------------------------------------------------------

void SessionLeg::on_event(const board::Event& event, const board::FlowState& flow) {
  session_.on_event(*this, event, flow);
}
void SessionLeg::on_admitted(const board::Admitted& admitted) { session_.on_admitted(*this, admitted); }
void SessionLeg::on_claimed(bool adopted) { session_.on_claimed(*this, adopted); }

}  // namespace sluice::sim
