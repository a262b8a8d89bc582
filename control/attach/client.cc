// SPDX-License-Identifier: Apache-2.0
#include "control/attach/client.h"

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include "dataplane/base/counted.h"
#include "dataplane/base/log.h"

namespace sluice::attach {
namespace {

constexpr auto kRetryInterval = std::chrono::milliseconds(200);
constexpr auto kBusyTick = std::chrono::milliseconds(1);
constexpr auto kIdleTick = std::chrono::milliseconds(50);
// A short session waits six times for a worker. So many looks for a while cost less than one chunk in a
// thousand of a long one, and spare a short one three milliseconds.
constexpr auto kQuickLook = std::chrono::microseconds(100);
constexpr uint64_t kQuickNs = 30'000'000;
constexpr auto kAtOnce = std::chrono::nanoseconds(0);
constexpr auto kCloseInterval = std::chrono::seconds(1);
constexpr uint64_t kLeftoverTimeoutNs = 2'000'000'000;
constexpr uint64_t kTickNs = 1'000'000;

}  // namespace

BoardClient::BoardClient(asio::io_context& io, const config::Node& node,
                         std::shared_ptr<async::TurnMeter> turns)
    : io_(io), socket_(node.dataplane_socket()), turns_(std::move(turns)), wake_(io) {}

void BoardClient::start() { asio::co_spawn(io_, run(shared_from_this()), asio::detached); }

void BoardClient::stop() {
  stopped_ = true;
  if (attached_) attached_->link().close();
  wake_.notify();
}

// ---- users -------------------------------------------------------------------------------------

void BoardClient::join(board::BoardUser* user) {
  DCHECK(std::ranges::find(users_, user) == users_.end(), "a user joins once");
  users_.push_back(user);
  if (cleared_) user->on_attached(*attached_);
}

void BoardClient::leave(board::BoardUser* user) {
  std::erase(users_, user);
  std::erase(ticking_, user);
  drop_claim(user);
  if (attached_) attached_->flows().forget(user);
}

void BoardClient::claim(board::BoardUser* user, Claim claim) {
  DCHECK(!claim.flows.empty() && claim.flows.size() == claim.flow_ids.size(), "a claim names each flow");
  claims_.emplace_back(user, std::move(claim));
}

void BoardClient::drop_claim(board::BoardUser* user) {
  std::erase_if(claims_, [user](const auto& claim) { return claim.first == user; });
}

void BoardClient::start_ticking(board::BoardUser* user) {
  DCHECK(std::ranges::find(ticking_, user) == ticking_.end(), "a user ticks once");
  ticking_.push_back(user);
  expect_answers();
}

void BoardClient::expect_answers() {
  quick_until_ns_ = async::monotonic_ns() + kQuickNs;
  wake_.notify();
}

void BoardClient::stop_ticking(board::BoardUser* user) { std::erase(ticking_, user); }

void BoardClient::when_drained(std::function<void()> then) {
  when_drained_.push_back(std::move(then));
  wake_.notify();
}

// ---- attaching ---------------------------------------------------------------------------------

asio::awaitable<void> BoardClient::run(std::shared_ptr<BoardClient> /*self*/) {
  bool told = false;
  while (!stopped_) {
    Result<std::shared_ptr<BoardLink>> link = co_await BoardLink::attach(io_, socket_);
    if (stopped_) {
      if (link) (*link)->close();
      break;
    }
    if (!link) {
      if (!told) log::of(log::kBoard)->warn("{}; trying again until it does", link.error().message);
      told = true;
      co_await wake_.wait_for(kRetryInterval);
      continue;
    }
    told = false;
    const auto board = std::make_shared<AttachedBoard>(*link);
    last_port_ = board->port();
    last_crc_variant_ = board->link().board().crc_variant();
    if (last_generation_ != 0 && last_generation_ != board->generation())
      log::of(log::kBoard)->info("the dataplane was restarted");
    last_generation_ = board->generation();
    // A user whose claim is taken uses the board from now on. It may leave while leftovers are closed.
    attached_ = board;
    take_claims(*board);
    co_await close_leftovers(board);
    if (!board->lost()) {
      cleared_ = true;
      log::of(log::kBoard)
          ->info("attached to the dataplane: {}, {}", last_port_.device,
                 base::counted(last_port_.workers, "worker"));
      const std::vector<board::BoardUser*> users = users_;
      for (board::BoardUser* user : users) user->on_attached(*board);
      co_await poll();
    }
    lost();
  }
}

void BoardClient::lost() {
  if (attached_ && !stopped_) log::of(log::kBoard)->warn("the dataplane ended; its sessions wait for it");
  if (attached_) attached_->link().close();
  attached_.reset();
  cleared_ = false;
  ticking_.clear();
  const std::vector<board::BoardUser*> users = users_;
  for (board::BoardUser* user : users) user->on_board_lost();
  for (const auto& then : std::exchange(when_drained_, {})) then();
}

void BoardClient::take_claims(AttachedBoard& board) {
  for (auto& [user, claim] : std::exchange(claims_, {})) {
    const bool there =
        claim.board_generation == board.generation() &&
        board.flows().adopt(user, claim.session, claim.flows, claim.flow_ids, claim.credit_extents);
    if (there) ticking_.push_back(user);
    user->on_claimed(there);
  }
}

// What a former control left and no transfer goes on with is closed.
asio::awaitable<void> BoardClient::close_leftovers(std::shared_ptr<AttachedBoard> board) {
  const bool had_control = board->board().control_alive_ns.load(std::memory_order_acquire) != 0;
  const uint32_t left = board->flows().close_leftovers();
  if (left != 0)
    log::of(log::kBoard)->info("closing {} that a former sluice-control left", base::counted(left, "flow"));
  const uint64_t deadline_ns = async::monotonic_ns() + kLeftoverTimeoutNs;
  while (board->flows().leftovers() != 0 && !stopped_ && !board->lost() &&
         async::monotonic_ns() < deadline_ns) {
    board->flows().push_commands();
    (void)board->flows().drain();
    co_await wake_.wait_for(kBusyTick);
  }
  if (const uint32_t stuck = board->flows().leftovers(); stuck != 0 && !board->lost())
    log::of(log::kBoard)->warn("{} of a former sluice-control did not close", base::counted(stuck, "flow"));
  board->flows().forget_leftovers();
  if (had_control) co_await board->close_leftover_sessions();
}

// ---- driving the board -------------------------------------------------------------------------

asio::awaitable<void> BoardClient::poll() {
  while (!stopped_ && !attached_->lost()) {
    const uint64_t now_ns = async::monotonic_ns();
    const bool more = turn(now_ns);
    std::chrono::nanoseconds pause = kBusyTick;
    if (ticking_.empty()) {
      pause = kIdleTick;
    } else if (now_ns < quick_until_ns_) {
      pause = kQuickLook;
    }
    co_await wake_.wait_for(more ? kAtOnce : pause);
  }
}

bool BoardClient::turn(uint64_t now_ns) {
  const async::TurnMeter::Scope scope(*turns_, "the board");
  AttachedBoard& board = *attached_;
  board.board().control_alive_ns.store(now_ns, std::memory_order_release);
  board.flows().push_commands();
  const bool more = board.flows().drain();
  if (!more) {
    for (const auto& then : std::exchange(when_drained_, {})) then();
  }
  // Neither do many events keep ticks away for longer than a tick lasts, nor are there more for many looks.
  if (now_ns - ticked_ns_ < kTickNs) return more;
  ticked_ns_ = now_ns;
  board.flows().tend_credit();
  const std::vector<board::BoardUser*> users = ticking_;
  for (board::BoardUser* user : users) {
    if (std::find(ticking_.begin(), ticking_.end(), user) != ticking_.end()) user->on_tick(now_ns);
  }
  board.flows().push_commands();
  return more;
}

asio::awaitable<void> BoardClient::close_session(std::shared_ptr<AttachedBoard> board,
                                                 SessionSlotId session) {
  const bool closed = co_await board->close_session(session);
  if (!closed) asio::co_spawn(io_, close_session_later(shared_from_this(), board, session), asio::detached);
}

asio::awaitable<void> BoardClient::close_session_later(std::shared_ptr<BoardClient> /*self*/,
                                                       std::shared_ptr<AttachedBoard> board,
                                                       SessionSlotId session) {
  log::of(log::kBoard)
      ->warn("session slot {} is still in use at the dataplane; closing it later", session.value());
  while (!stopped_ && !board->lost()) {
    co_await wake_.wait_for(kCloseInterval);
    if (stopped_ || board->lost()) co_return;
    const bool closed = co_await board->close_session(session);
    if (closed) co_return;
  }
}

}  // namespace sluice::attach
