// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/leg_flows.h"

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <random>

#include "dataplane/base/check.h"
#include "dataplane/base/log.h"

namespace sluice::runtime {
namespace {

constexpr uint32_t kStatusIntervalNs = 1'000'000;

uint64_t random_bits() {
  static std::random_device random;
  return static_cast<uint64_t>(random()) << 32 | random();
}

Error no_dataplane() {
  return {ErrorCode::kDaemonNotRunning, "sluice-dataplane of this node does not run: start it"};
}

}  // namespace

LegFlows::LegFlows(std::shared_ptr<Services> services, std::weak_ptr<EventQueue> queue, transfer::LegId leg,
                   std::string session_id, const LegStream& stream, BoardObjects& objects)
    : services_(std::move(services)),
      queue_(std::move(queue)),
      leg_(leg),
      session_id_(std::move(session_id)),
      stream_(stream),
      objects_(objects),
      log_(services_->logs.of(session_id_)) {}

LegFlows::~LegFlows() {
  *self_ = nullptr;
  services_->board->leave(this);
}

void LegFlows::join() { services_->board->join(this); }

board::BoardFlows* LegFlows::flows() const {
  const auto board = services_->board->attached();
  return board ? &board->flows() : nullptr;
}

void LegFlows::post(transfer::Event event) const { post_to(queue_, std::move(event)); }

// ---- the board's words -------------------------------------------------------------------------

void LegFlows::on_attached(attach::AttachedBoard& board) { adopt_log_level(board); }

// When flows are adopted, the log level that an operator asked a former control for stands on the board.
void LegFlows::adopt_log_level(attach::AttachedBoard& board) {
  if (noting_.empty() || !flows_.contains(*noting_.begin())) return;
  const board::FlowSlot& flow = board.flows().flow(flows_.slot(*noting_.begin()));
  const uint64_t level = flow.control.log_level.load(std::memory_order_relaxed);
  log_->set_level(
      static_cast<board::LogLevel>(std::min(level, static_cast<uint64_t>(board::LogLevel::kPackets))));
}

void LegFlows::on_board_lost() {
  flows_.clear();
  noting_.clear();
  opening_.clear();
  close_when_open_.clear();
  const Error gone{ErrorCode::kDaemonNotRunning, "sluice-dataplane of this node ended: start it"};
  if (std::exchange(asked_flows_, false)) post(transfer::FlowsReserved{.leg = leg_, .status = gone});
  if (std::exchange(asked_buffers_, false)) post(transfer::BuffersReserved{.leg = leg_, .status = gone});
}

void LegFlows::on_event(const board::Event& event, const board::FlowState& flow) {
  const std::optional<LaneId> lane = flows_.lane_of(FlowSlotId(event.flow));
  if (lane && event.kind == board::EventKind::kFlowOpened && event.value == 0) noting_.insert(*lane);
  if (lane && event.kind == board::EventKind::kFlowClosed) {
    if (flows() != nullptr) look_at_log(*flows());
    noting_.erase(*lane);
  }
  if (lane) post(transfer::FlowEvent{.leg = leg_, .lane = *lane, .event = event, .state = &flow});
}

void LegFlows::on_tick(uint64_t) {
  board::BoardFlows* const board = flows();
  if (board == nullptr || flows_.size() == 0) return;
  look_at_log(*board);
  std::vector<const board::FlowSlot*> lanes;
  for (uint32_t lane = 0; lane < flows_.size(); ++lane)
    lanes.push_back(&board->flow(flows_.slot(LaneId(lane))));
  const std::vector<const board::WorkerSlot*> workers = board->workers(flows_.grants());
  post(transfer::Tick{.leg = leg_, .lanes = lanes, .command_backlog = board->backlog(), .workers = workers});
}

// What the workers have noted since.
void LegFlows::look_at_log(board::BoardFlows& board) {
  std::vector<board::SessionLog::Lane> lanes;
  for (const LaneId lane : noting_) {
    // The lanes of all legs stand in one log.
    const uint32_t number = leg_.value() * board::kLanesMax + lane.value();
    if (flows_.contains(lane)) lanes.push_back({.number = number, .flow = &board.flow(flows_.slot(lane))});
  }
  log_->look(lanes, {.monotonic_ns = async::monotonic_ns(), .unix_ns = async::unix_ns()});
}

// ---- slots and buffers -------------------------------------------------------------------------

void LegFlows::perform(const transfer::ClaimFlows& effect) {
  DCHECK(!claim_ && flows_.size() == 0, "flows are claimed once, before there are others");
  claim_ = effect;
  attach::Claim claim{.board_generation = effect.record.board_generation,
                      .session = effect.record.board_session,
                      .flows = {},
                      .flow_ids = {},
                      .credit_extents = {}};
  for (const transfer::FlowRecord& flow : effect.record.flows) {
    claim.flows.push_back({.slot = flow.slot, .local_port = flow.local_port});
    claim.flow_ids.push_back(flow.flow_id);
    claim.credit_extents.push_back(effect.receives ? flow.credit_extents : 0);
  }
  services_->board->claim(this, std::move(claim));
}

void LegFlows::perform(const transfer::DropClaim&) {
  if (!claim_) return;
  services_->board->drop_claim(this);
  on_claimed(false);
}

void LegFlows::on_claimed(bool adopted) {
  DCHECK(claim_, "what is answered was asked for");
  if (adopted) {
    opened_ = true;
    board::FlowsGranted granted{.session = claim_->record.board_session, .flows = {}};
    for (const transfer::FlowRecord& flow : claim_->record.flows)
      granted.flows.push_back({.slot = flow.slot, .local_port = flow.local_port});
    flows_.granted(granted);
    objects_.taken(granted.session);
    for (LaneId lane; lane < LaneId(static_cast<uint32_t>(flows_.size())); ++lane) noting_.insert(lane);
  }
  claim_.reset();
  post(transfer::FlowsClaimed{
      .leg = leg_, .adopted = adopted, .random = static_cast<uint32_t>(random_bits())});
}

void LegFlows::perform(const transfer::ReserveFlows& effect) {
  board::BoardFlows* const board = flows();
  if (board == nullptr) return post(transfer::FlowsReserved{.leg = leg_, .status = no_dataplane()});
  DCHECK(!asked_flows_ && flows_.size() == 0, "flows are asked for once, when there are none");
  asked_flows_ = true;
  board->ask_flows(this, effect.lanes, effect.may_wait, objects_.slot());
}

void LegFlows::perform(const transfer::ReserveBuffers& effect) {
  board::BoardFlows* const board = flows();
  if (board == nullptr) return post(transfer::BuffersReserved{.leg = leg_, .status = no_dataplane()});
  DCHECK(!asked_buffers_, "one question at a time");
  asked_buffers_ = true;
  board->ask_buffers(this, effect.direction, flows_.grants());
}

void LegFlows::on_admitted(const board::Admitted& admitted) {
  if (const auto* buffers = std::get_if<board::BuffersGranted>(&admitted.what)) {
    DCHECK(asked_buffers_, "what is granted was asked for");
    asked_buffers_ = false;
    return post(transfer::BuffersReserved{.leg = leg_, .credit_extents = buffers->credit_extents});
  }
  DCHECK(asked_flows_, "what is granted was asked for");
  asked_flows_ = false;
  if (const auto* error = std::get_if<Error>(&admitted.what))
    return post(transfer::FlowsReserved{.leg = leg_, .status = *error});
  granted(std::get<board::FlowsGranted>(admitted.what));
}

void LegFlows::granted(const board::FlowsGranted& granted) {
  flows_.granted(granted);
  objects_.taken(granted.session);
  services_->board->start_ticking(this);
  transfer::FlowsReserved reserved{.leg = leg_, .session = granted.session};
  for (const board::FlowGrant& grant : granted.flows)
    reserved.grants.push_back({.slot = grant.slot, .local_port = grant.local_port, .random = random_bits()});
  post(std::move(reserved));
}

void LegFlows::perform(const transfer::ShrinkLanes& effect) {
  for (const FlowSlotId slot : flows_.shrink(effect.lanes)) {
    if (board::BoardFlows* const board = flows()) board->release_flow(slot);
  }
}

// Flows and buffers; with those of the last leg the slot, of which objects may still be in use for a while.
void LegFlows::perform(const transfer::ReleaseFlows& effect) {
  const Error given_up{ErrorCode::kCancelled, "given up"};
  if (std::exchange(asked_flows_, false)) post(transfer::FlowsReserved{.leg = leg_, .status = given_up});
  if (std::exchange(asked_buffers_, false)) post(transfer::BuffersReserved{.leg = leg_, .status = given_up});
  services_->board->stop_ticking(this);
  const auto session = effect.keep_objects ? std::nullopt : objects_.give_back();
  const std::vector<FlowSlotId> slots = flows_.shrink(0);
  flows_.clear();
  noting_.clear();
  opening_.clear();
  close_when_open_.clear();
  opened_ = false;
  if (flows() == nullptr) return post(transfer::FlowsReleased{effect.leg});
  flows()->give_up(this);
  for (const FlowSlotId slot : slots) flows()->release_flow(slot);
  if (!session) return post(transfer::FlowsReleased{effect.leg});
  asio::co_spawn(services_->io,
                 release(services_, queue_, services_->board->attached(), *session, effect.leg),
                 asio::detached);
}

asio::awaitable<void> LegFlows::release(std::shared_ptr<Services> services, std::weak_ptr<EventQueue> queue,
                                        std::shared_ptr<attach::AttachedBoard> board, SessionSlotId session,
                                        transfer::LegId leg) {
  co_await services->board->close_session(board, session);
  post_to(queue, transfer::FlowsReleased{leg});
}

// ---- flows -------------------------------------------------------------------------------------

void LegFlows::lend_buffers() {
  if (flows() == nullptr || opened_) return;
  for (const board::FlowGrant& flow : flows_.grants()) flows()->lend_credit(flow.slot);
}

void LegFlows::perform(const transfer::OpenFlow& effect) {
  if (flows() == nullptr || !flows_.contains(effect.lane)) return;
  opened_ = true;
  flows()->table().take_back_credit(flows_.slot(effect.lane));
  DCHECK(flows_.session(), "who has flows has their session slot");
  DCHECK(!opening_.contains(effect.lane), "a lane is opened once");
  board::FlowConfig config = effect.config;
  config.session = flows_.session()->value();
  config.status_interval_ns = kStatusIntervalNs;
  config.log_level = log_->level();
  const FlowSlotId slot = flows_.slot(effect.lane);
  // Without a secret, as when the stream has just ended, the worker refuses the flow, and says so.
  const auto secret = stream_.flow_secret(session_id_, config.flow_id, effect.lane);
  if (!secret) {
    services_->board->expect_answers();
    return flows()->open_flow(slot, config, this);
  }
  const auto keys = std::make_shared<board::AttachRequest>();
  keys->flow = slot.value();
  keys->tag = flows()->next_tag(slot);
  keys->protection = static_cast<uint32_t>(effect.protection);
  std::copy(secret->bytes.begin(), secret->bytes.end(), keys->secret);
  opening_[effect.lane] = ++openings_;
  asio::co_spawn(services_->io,
                 open_with_keys(self_, services_->board->attached(), effect.lane, openings_, keys, config),
                 asio::detached);
}

asio::awaitable<void> LegFlows::open_with_keys(std::shared_ptr<LegFlows*> self,
                                               std::shared_ptr<attach::AttachedBoard> board, LaneId lane,
                                               uint64_t number, std::shared_ptr<board::AttachRequest> keys,
                                               board::FlowConfig config) {
  Status handed = co_await board->hand_over_keys(*keys);
  LegFlows* const its = *self;
  if (its == nullptr || board->lost()) co_return;
  const auto opening = its->opening_.find(lane);
  if (opening == its->opening_.end() || opening->second != number) co_return;  // it was given up
  its->opening_.erase(opening);
  DCHECK(its->flows_.contains(lane) && its->flows_.slot(lane).value() == keys->flow,
         "a lane that is opened has kept its slot");
  if (!handed)
    log::of(log::kSession)
        ->warn("session {}: {}", its->session_id_.substr(0, 8),
               handed.error().message);  // the worker then refuses the flow
  const FlowSlotId slot(keys->flow);
  board->flows().open_flow(slot, config, its);
  its->services_->board->expect_answers();
  if (its->close_when_open_.erase(lane) != 0) board->flows().close_flow(slot);
}

void LegFlows::perform(const transfer::CloseFlow& effect) {
  if (opening_.contains(effect.lane)) {
    close_when_open_.insert(effect.lane);
    return;
  }
  if (flows() == nullptr || !flows_.contains(effect.lane)) return;
  flows()->close_flow(flows_.slot(effect.lane));
  services_->board->expect_answers();
}

void LegFlows::perform(const transfer::CommandLane& effect) {
  if (flows() != nullptr && flows_.contains(effect.command.flow.lane))
    flows()->command(flows_.command(effect.command));
}

void LegFlows::perform(const transfer::SetRate& effect) {
  if (flows() == nullptr || !flows_.contains(effect.lane)) return;
  board::FlowControl& control = flows()->flow(flows_.slot(effect.lane)).control;
  control.rate_bps.store(effect.rate_bps, std::memory_order_relaxed);
  control.rate_ramps.store(effect.ramps ? 1 : 0, std::memory_order_relaxed);
}

void LegFlows::perform(const transfer::SettleLane& effect) {
  if (flows() != nullptr && flows_.contains(effect.lane))
    flows()->settle(flows_.slot(effect.lane), effect.gaps, effect.settled_below);
}

void LegFlows::perform(const transfer::DrainEvents& effect) {
  if (flows() == nullptr) return post(transfer::EventsDrained{.leg = effect.leg});
  services_->board->when_drained(
      [queue = queue_, leg = effect.leg] { post_to(queue, transfer::EventsDrained{.leg = leg}); });
}

}  // namespace sluice::runtime
