// SPDX-License-Identifier: Apache-2.0
#include "control/board/client.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <cerrno>
#include <cstring>

namespace sluice::control {
namespace {

constexpr auto kRetryInterval = std::chrono::milliseconds(200);
constexpr auto kBusyTick = std::chrono::milliseconds(1);
constexpr auto kCloseInterval = std::chrono::seconds(1);
constexpr auto kIdleTick = std::chrono::milliseconds(50);
constexpr uint64_t kLeftoverTimeoutNs = 2'000'000'000;

}  // namespace

uint64_t monotonic_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

BoardClient::BoardClient(asio::io_context& io, const config::Node& node)
    : io_(io), socket_(node.dataplane_socket()), changed_(io), wake_(io) {}

void BoardClient::start() { asio::co_spawn(io_, run(shared_from_this()), asio::detached); }

void BoardClient::stop() {
  stopped_ = true;
  if (link_) link_->close();
  wake_.notify();
}

asio::awaitable<void> BoardClient::pause(std::chrono::nanoseconds duration) {
  co_await wake_.wait_for(duration);
}

asio::awaitable<void> BoardClient::run(std::shared_ptr<BoardClient> /*self*/) {
  bool told = false;
  while (!stopped_) {
    Result<std::shared_ptr<BoardLink>> link = co_await BoardLink::attach(io_, socket_);
    if (stopped_) {
      if (link) (*link)->close();
      break;
    }
    if (!link) {
      if (!told) spdlog::warn("{}; trying again until it does", link.error().message);
      told = true;
      co_await pause(kRetryInterval);
      continue;
    }
    told = false;
    link_ = *link;
    port_ = link_->board().port();
    table_.reset(port_);
    flows_ = {};
    for (auto& queue : backlog_) queue.clear();
    if (generation_ != 0 && generation_ != link_->board()->generation)
      spdlog::info("the dataplane was restarted");
    generation_ = link_->board()->generation;
    take_claims();
    co_await close_leftovers();
    if (!link_->closed()) {
      attached_ = true;
      spdlog::info("attached to the dataplane: {}, {} worker(s)", port_.device, port_.workers);
      changed_.notify();
      co_await poll();
    }
    lost();
  }
}

void BoardClient::lost() {
  if (link_) link_->close();
  if (attached_ && !stopped_) spdlog::warn("the dataplane ended; its sessions wait for it");
  attached_ = false;
  const std::vector<BoardUser*> users = std::exchange(users_, {});
  for (BoardUser* user : users) user->on_board_lost();
  changed_.notify();
}

asio::awaitable<void> BoardClient::poll() {
  while (!stopped_ && !link_->closed()) {
    tick(monotonic_ns());
    co_await pause(users_.empty() ? kIdleTick : kBusyTick);
  }
}

void BoardClient::claim(BoardUser* user, Claim claim) { claims_.emplace_back(user, std::move(claim)); }

void BoardClient::take_claims() {
  for (auto& [user, claim] : std::exchange(claims_, {})) {
    bool there = claim.board_generation == generation_ && !claim.flows.empty();
    for (size_t i = 0; there && i < claim.flows.size(); ++i) {
      const uint32_t slot = claim.flows[i].slot;
      there = slot < board::kFlowsMax && port_.workers != 0;
      if (!there) break;
      const board::FlowConfig& config = flow(slot).config;
      claim.flows[i].worker = static_cast<uint32_t>(config.local_port - port_.udp_port_base) % port_.workers;
      there = config.flow_id == claim.flow_ids[i] && config.session == claim.session &&
              config.local_port == claim.flows[i].local_port;
    }
    there = there && table_.adopt(claim.session, claim.flows, claim.credit);
    for (size_t i = 0; there && i < claim.flows.size(); ++i) {
      flows_[claim.flows[i].slot] = {.user = user, .open = true};
    }
    if (there) users_.push_back(user);
    user->on_claimed(there);
  }
}

// What a former control left and no session goes on with is closed.
asio::awaitable<void> BoardClient::close_leftovers() {
  BoardMap& board = link_->board();
  const bool had_control = board->control_alive_ns.load(std::memory_order_acquire) != 0;
  drain_events([this](const board::Event& event) { handle(event); });
  uint32_t waiting = 0;
  for (uint32_t slot = 0; slot < board::kFlowsMax; ++slot) {
    const board::FlowConfig& config = board->flows[slot].config;
    if (config.flow_id == 0 || config.local_port < port_.udp_port_base || flows_[slot].user != nullptr)
      continue;
    ++waiting;
    flows_[slot].open = true;
    command({.kind = board::CommandKind::kCloseFlow, .flow = slot});
  }
  if (waiting != 0) spdlog::info("closing {} flow(s) that a former sluice-control left", waiting);
  const uint64_t deadline_ns = monotonic_ns() + kLeftoverTimeoutNs;
  while (waiting != 0 && !stopped_ && !link_->closed() && monotonic_ns() < deadline_ns) {
    push_commands();
    drain_events([&](const board::Event& event) {
      if (flows_[event.flow].user != nullptr) return handle(event);
      if (event.kind != board::EventKind::kFlowClosed || !std::exchange(flows_[event.flow].open, false))
        return;
      --waiting;
    });
    co_await pause(kBusyTick);
  }
  if (waiting != 0) spdlog::warn("{} flow(s) of a former sluice-control did not close", waiting);
  for (uint32_t slot = 0; slot < board::kFlowsMax; ++slot) {
    if (flows_[slot].user != nullptr) continue;
    board->flows[slot].config.flow_id = 0;
    flows_[slot].open = false;
  }
  for (uint32_t session = 0; had_control && session < board::kSessionsMax && !link_->closed(); ++session) {
    if (table_.session_taken(session)) continue;
    const board::AttachRequest request{.kind = board::AttachKind::kCloseSession, .session = session};
    (void)co_await link_->request(request, -1);
  }
}

void BoardClient::tick(uint64_t now_ns) {
  link_->board()->control_alive_ns.store(now_ns, std::memory_order_release);
  push_commands();
  drain_events([this](const board::Event& event) { handle(event); });
  const std::vector<BoardUser*> users = users_;
  for (BoardUser* user : users) {
    if (std::find(users_.begin(), users_.end(), user) != users_.end()) user->on_tick(now_ns);
  }
  push_commands();
}

void BoardClient::drain_events(const std::function<void(const board::Event&)>& handle) {
  for (uint32_t worker = 0; worker < port_.workers; ++worker) {
    board::Event event;
    for (uint32_t i = 0; i < board::kEventSlots && link_->board()->workers[worker].events.pop(&event); ++i) {
      if (event.flow < board::kFlowsMax) handle(event);
    }
  }
}

void BoardClient::handle(const board::Event& event) {
  Flow& flow = flows_[event.flow];
  BoardUser* user = flow.user;
  if (event.kind == board::EventKind::kFlowClosed) {
    flow.open = false;
    this->flow(event.flow).config.flow_id = 0;
    if (flow.released) release_flow(event.flow);
  }
  if (user != nullptr) user->on_event(event);
}

void BoardClient::push_commands() {
  for (uint32_t worker = 0; worker < port_.workers; ++worker) {
    std::deque<board::Command>& queue = backlog_[worker];
    while (!queue.empty() && link_->board()->workers[worker].commands.push(queue.front())) queue.pop_front();
  }
}

void BoardClient::command(const board::Command& command) {
  const board::FlowConfig& config = flow(command.flow).config;
  const uint32_t worker = static_cast<uint32_t>(config.local_port - port_.udp_port_base) % port_.workers;
  std::deque<board::Command>& queue = backlog_[worker];
  if (queue.empty() && link_->board()->workers[worker].commands.push(command)) return;
  queue.push_back(command);
}

size_t BoardClient::backlog() const {
  size_t waiting = 0;
  for (const auto& queue : backlog_) waiting += queue.size();
  return waiting;
}

uint64_t BoardClient::counter(board::Counter counter) const {
  if (!attached_) return 0;
  uint64_t sum = 0;
  for (uint32_t worker = 0; worker < port_.workers; ++worker) {
    sum += link_->board()->workers[worker].counters[static_cast<uint32_t>(counter)].load(
        std::memory_order_relaxed);
  }
  return sum;
}

Result<uint32_t> BoardClient::open_session(BoardUser* user) {
  if (!attached_) {
    return Error{
        ErrorCode::kDaemonNotRunning,
        fmt::format("sluice-dataplane of this node is not running ({}): start it", socket_.string())};
  }
  const std::optional<uint32_t> session = table_.take_session();
  if (!session) {
    return Error{ErrorCode::kResources,
                 fmt::format("all {} session slots are in use: wait until one ends", board::kSessionsMax)};
  }
  users_.push_back(user);
  wake_.notify();
  return *session;
}

// An object in use cannot be closed, and asking would hold up the dataplane: its flows must end first.
asio::awaitable<bool> BoardClient::try_close_session(uint32_t session) {
  const std::shared_ptr<BoardLink> link = link_;
  for (uint32_t slot = 0; slot < board::kFlowsMax; ++slot) {
    if (flows_[slot].open && flow(slot).config.session == session) co_return false;
  }
  const board::AttachRequest request{.kind = board::AttachKind::kCloseSession, .session = session};
  const Result<int> status = co_await link->request(request, -1);
  if (link != link_ || link->closed()) co_return true;  // the slot went with that dataplane
  if (status && *status == EBUSY) co_return false;
  table_.release_session(session);
  changed_.notify();
  co_return true;
}

asio::awaitable<void> BoardClient::close_session(uint32_t session, BoardUser* user) {
  const bool closed = co_await try_close_session(session);
  std::erase(users_, user);
  if (!closed) asio::co_spawn(io_, close_session_later(shared_from_this(), session), asio::detached);
}

asio::awaitable<void> BoardClient::close_session_later(std::shared_ptr<BoardClient> /*self*/,
                                                       uint32_t session) {
  const std::shared_ptr<BoardLink> link = link_;
  spdlog::warn("session slot {} is still in use at the dataplane; closing it later", session);
  while (!stopped_ && link == link_ && !link->closed()) {
    co_await changed_.wait_for(kCloseInterval);
    if (stopped_ || link != link_ || link->closed()) co_return;
    if (co_await try_close_session(session)) co_return;
  }
}

asio::awaitable<Status> BoardClient::open_object(uint32_t session, uint32_t object, uint32_t flags,
                                                 uint64_t size, uint32_t extent_bytes, int fd,
                                                 bool may_exist) {
  const board::AttachRequest request{.kind = board::AttachKind::kOpenObject,
                                     .session = session,
                                     .object = object,
                                     .flags = flags,
                                     .size = size,
                                     .extent_bytes = extent_bytes};
  const Result<int> status = co_await link_->request(request, fd);
  if (!status) co_return status.error();
  if (*status == 0 || (*status == EEXIST && may_exist)) co_return Status();
  co_return Error{*status == ENOMEM || *status == ENOBUFS ? ErrorCode::kResources : ErrorCode::kInternal,
                  fmt::format("the dataplane refused object {}: {}", object, std::strerror(*status))};
}

asio::awaitable<void> BoardClient::close_object(uint32_t session, uint32_t object) {
  const board::AttachRequest request{
      .kind = board::AttachKind::kCloseObject, .session = session, .object = object};
  (void)co_await link_->request(request, -1);
}

asio::awaitable<Result<UniqueFd>> BoardClient::fetch_object(uint32_t session, uint32_t object) {
  co_return co_await link_->fetch_object(session, object);
}

void BoardClient::poll_now() {
  if (!attached_) return;
  drain_events([this](const board::Event& event) { handle(event); });
}

void BoardClient::forget(BoardUser* user) {
  std::erase(users_, user);
  std::erase_if(claims_, [user](const auto& claim) { return claim.first == user; });
  for (Flow& flow : flows_) {
    if (flow.user == user) flow.user = nullptr;
  }
}

void BoardClient::open_flow(uint32_t slot, const board::FlowConfig& config, BoardUser* user) {
  board::FlowSlot& flow_slot = flow(slot);
  flow_slot.config = config;
  flow_slot.control.rate_bps.store(config.rate_bps, std::memory_order_release);
  flow_slot.control.settled_below.store(0, std::memory_order_release);
  flow_slot.gaps.reset();
  flows_[slot] = {.user = user, .open = true};
  command({.kind = board::CommandKind::kOpenFlow, .flow = slot});
}

void BoardClient::close_flow(uint32_t slot) {
  if (flows_[slot].open) command({.kind = board::CommandKind::kCloseFlow, .flow = slot});
}

void BoardClient::release_flow(uint32_t slot) {
  flows_[slot].user = nullptr;
  flows_[slot].released = true;
  if (flows_[slot].open) return;
  flows_[slot] = Flow();
  table_.release_flow(slot);
  changed_.notify();
}

}  // namespace sluice::control
