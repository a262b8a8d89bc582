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

control::BoardFlows* Session::board() const {
  const bool alive = host_.dataplane != nullptr && host_.dataplane->generation() == board_generation_;
  return alive ? flows_of_board_ : nullptr;
}

void Session::set_board(control::BoardFlows* flows, uint64_t generation) {
  flows_of_board_ = flows;
  board_generation_ = generation;
  if (flows == nullptr) {
    flows_.clear();
    // What was asked of it is still answered.
    const Error gone{ErrorCode::kDaemonNotRunning, "the dataplane ended"};
    if (std::exchange(asked_flows_, false))
      answer(transfer::FlowsReserved{.leg = transfer::LegId(0), .status = gone});
    if (std::exchange(asked_buffers_, false))
      answer(transfer::BuffersReserved{.leg = transfer::LegId(0), .status = gone});
    return post(transfer::BoardLost{});
  }
  post(transfer::BoardAttached{
      .dataplane = {.port = flows->port(),
                    .generation = generation,
                    .tx_lanes_max = flows->table().lanes_max(board::Direction::kTx),
                    .rx_lanes_max = flows->table().lanes_max(board::Direction::kRx)}});
}

void Session::perform(const transfer::ClaimFlows& e) { claim_ = e; }

void Session::take_claim(control::BoardFlows* flows, uint64_t generation) {
  flows_of_board_ = flows;
  board_generation_ = generation;
  if (!claim_) return;
  const transfer::LegRecord& record = claim_->record;
  std::vector<control::FlowGrant> grants;
  std::vector<uint64_t> flow_ids;
  std::vector<uint32_t> credit;
  for (const transfer::FlowRecord& flow : record.flows) {
    grants.push_back({.slot = flow.slot, .local_port = flow.local_port});
    flow_ids.push_back(flow.flow_id);
    credit.push_back(claim_->receives ? flow.credit_extents : 0);
  }
  on_claimed(record.board_generation == generation &&
             flows->adopt(this, record.board_session, grants, flow_ids, credit));
}

void Session::on_claimed(bool adopted) {
  const transfer::LegRecord& record = claim_->record;
  if (adopted) {
    ++host_.trace.reached.adoptions;
    host_.oracle.moves(host_.node, transfer_->id());
    control::FlowsGranted granted{.session = record.board_session};
    for (const transfer::FlowRecord& flow : record.flows) {
      granted.flows.push_back({.slot = flow.slot, .local_port = flow.local_port});
    }
    flows_.granted(granted);
  }
  post(transfer::FlowsClaimed{.leg = std::exchange(claim_, std::nullopt)->leg,
                              .adopted = adopted,
                              .random = static_cast<uint32_t>(host_.random.next())});
}

void Session::perform(const transfer::ReserveFlows& e) {
  if (board() == nullptr) {
    return answer(
        transfer::FlowsReserved{.leg = e.leg, .status = Error{ErrorCode::kDaemonNotRunning, "no dataplane"}});
  }
  CHECK(!asked_flows_ && flows_.size() == 0, "flows are asked for once, when there are none");
  asked_flows_ = true;
  board()->ask_flows(this, e.lanes, e.may_wait);
}

void Session::perform(const transfer::ReserveBuffers& e) {
  if (board() == nullptr) {
    return answer(transfer::BuffersReserved{.leg = e.leg,
                                            .status = Error{ErrorCode::kDaemonNotRunning, "no dataplane"}});
  }
  CHECK(!asked_buffers_, "one question at a time");
  asked_buffers_ = true;
  board()->ask_buffers(this, e.direction, flows_.grants());
}

void Session::on_admitted(const control::Admitted& admitted) {
  if (const auto* error = std::get_if<Error>(&admitted.what)) {
    asked_flows_ = false;
    return post(transfer::FlowsReserved{.leg = transfer::LegId(0), .status = *error});
  }
  if (const auto* buffers = std::get_if<control::BuffersGranted>(&admitted.what)) {
    asked_buffers_ = false;
    return post(
        transfer::BuffersReserved{.leg = transfer::LegId(0), .credit_extents = buffers->credit_extents});
  }
  asked_flows_ = false;
  const auto& granted = std::get<control::FlowsGranted>(admitted.what);
  flows_.granted(granted);
  transfer::FlowsReserved reserved{.leg = transfer::LegId(0), .session = granted.session};
  for (const control::FlowGrant& grant : granted.flows) {
    reserved.grants.push_back(
        {.slot = grant.slot, .local_port = grant.local_port, .random = host_.random.next()});
  }
  post(reserved);
}

void Session::perform(const transfer::ShrinkLanes& e) {
  for (const FlowSlotId slot : flows_.shrink(e.lanes)) {
    if (board() != nullptr) board()->release_flow(slot);
  }
}

void Session::perform(const transfer::OpenFlow& e) {
  if (board() == nullptr || !flows_.contains(e.lane)) return;
  board::FlowConfig config = e.config;
  config.session = flows_.session()->value();
  config.status_interval_ns = host_.plan.status_interval_ns;
  const FlowSlotId slot = flows_.slot(e.lane);
  const auto context = transfer::flow_secret_context(transfer_->id(), config.flow_id, e.lane);
  const auto secret = host_.streams->export_secret(host_.node, stream_, *context);
  if (secret) host_.dataplane->take_keys(slot, {board()->next_tag(slot), e.protection, secret->bytes});
  board()->open_flow(slot, config, this);
  host_.trace.add(host_.now_ns(), host_.node, "open flow", e.lane.value(), config.flow_id);
  if (e.lane == LaneId(0)) ++host_.trace.reached.attempts;
  if (e.lane == LaneId(0) && e.config.direction == board::Direction::kTx &&
      transfer_->leg(e.leg).agreement().chunk_reason == rate::SizeReason::kPath) {
    ++host_.trace.reached.narrowed;
  }
  host_.oracle.moves(host_.node, transfer_->id());
  if (host_.node == kSource) host_.oracle.share_changed();
}

void Session::perform(const transfer::CloseFlow& e) {
  if (board() != nullptr && flows_.contains(e.lane)) board()->close_flow(flows_.slot(e.lane));
}

void Session::perform(const transfer::CommandLane& e) {
  if (board() == nullptr || !flows_.contains(e.command.lane)) return;
  const board::Command command = flows_.command(e.command);
  host_.trace.add(host_.now_ns(), host_.node, "command", static_cast<uint64_t>(command.kind), command.offset,
                  command.length);
  board()->command(command);
}

void Session::perform(const transfer::SettleLane& e) {
  if (board() == nullptr || !flows_.contains(e.lane)) return;
  board()->settle(flows_.slot(e.lane), e.gaps, e.settled_below);
  if (!e.gaps.empty()) host_.dataplane->wake_all();
}

void Session::perform(const transfer::DrainEvents& e) {
  while (board() != nullptr && board()->drain()) {
  }
  answer(transfer::EventsDrained{.leg = e.leg});
}

void Session::on_event(const board::Event& event, const board::FlowState& flow) {
  const auto lane = flows_.lane_of(FlowSlotId(event.flow));
  if (!lane) return;
  host_.trace.add(host_.now_ns(), host_.node, "event", static_cast<uint64_t>(event.kind), event.offset,
                  event.length);
  post(transfer::FlowEvent{.leg = transfer::LegId(0), .lane = *lane, .event = event, .state = &flow});
}

// A control stream that is lost while data moves is opened again, as soon as both controls are there.
void Session::check_renewal() {
  constexpr uint64_t kBoundNs = 2'500'000'000;
  if (!transfer_->initiator() || host_.plan.freeze.ns != 0) return;  // it may have ended, or stand still
  const transfer::Leg& leg = transfer_->leg(transfer::LegId(0));
  const uint64_t since_ns = std::max(leg.stream().down_since_ns(), host_.streams->disturbed_ns());
  if (leg.phase() != transfer::LegPhase::kMoving || leg.stream().up() || since_ns > host_.now_ns()) return;
  if (host_.now_ns() - since_ns > kBoundNs)
    host_.oracle.fail("data moves, both controls are there, and nobody renews the control stream");
}

void Session::tick() {
  check_renewal();
  if (board() == nullptr || flows_.size() == 0) return;
  std::vector<const board::FlowSlot*> lanes;
  for (uint32_t i = 0; i < flows_.size(); ++i) {
    const board::FlowSlot& flow = board()->flow(flows_.slot(LaneId(i)));
    lanes.push_back(&flow);
    if (host_.node != kSource || host_.plan.forged_per_million > 0 || flow.config.flow_id == 0) continue;
    // The newest status counts, which may name less than was used.
    uint64_t& most = credit_most_[flow.config.flow_id];
    most = std::max<uint64_t>(most, flow.state.credit_extents);
    if (flow.state.opened_extents > most && most > 0) host_.oracle.fail("a flow has gone beyond its credit");
  }
  post(transfer::Tick{transfer::LegId(0), lanes, board()->backlog(), board()->workers(flows_.grants())});
}

void Session::perform(const transfer::ReleaseFlows& e) {
  const Error given_up{ErrorCode::kCancelled, "given up"};
  if (std::exchange(asked_flows_, false)) answer(transfer::FlowsReserved{.leg = e.leg, .status = given_up});
  if (std::exchange(asked_buffers_, false))
    answer(transfer::BuffersReserved{.leg = e.leg, .status = given_up});
  if (board() == nullptr) return answer(transfer::FlowsReleased{e.leg});
  board()->give_up(this);
  for (const FlowSlotId slot : flows_.shrink(0)) board()->release_flow(slot);
  const std::optional<SessionSlotId> session = flows_.session();
  flows_.clear();
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
  if (board() == nullptr || !flows_.session()) {
    opened.status = Error{ErrorCode::kDaemonNotRunning, "no dataplane"};
    return answer(opened);
  }
  const uint64_t inode = inode_of(e.object);
  if (host_.node == kDestination) host_.oracle.bind(inode, e.object.value());
  const uint32_t direct = host_.plan.direct ? uint32_t{board::kObjectDirect} : 0;
  if (!host_.dataplane->open_object(*flows_.session(), e.object, e.flags | direct, host_.disk.open(inode),
                                    e.size_bytes)) {
    host_.oracle.fail("an object is opened twice");
  }
  answer(opened, kAttachNs);
}

void Session::perform(const transfer::CloseObject& e) {
  if (board() == nullptr || !flows_.session() || host_.dataplane->close_object(*flows_.session(), e.object)) {
    return answer(transfer::ObjectClosed{e.object}, kAttachNs);
  }
  host_.scheduler.after(kPollNs, [weak = weak_from_this(), e] {
    if (const auto self = weak.lock()) self->perform(e);
  });
}

void Session::perform(const transfer::FetchObject& e) {
  const bool found =
      board() != nullptr && flows_.session() && host_.dataplane->object_open(*flows_.session(), e.object);
  if (found) fetched_.insert(e.object);
  answer(transfer::ObjectFetched{.object = e.object, .found = found}, kAttachNs);
}

}  // namespace sluice::sim
