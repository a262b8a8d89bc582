// Cold. See memif_link.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/memif_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <rte_ethdev.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "dataplane/dpdk/memif_socket.h"

namespace sluice::dpdk {
namespace {

constexpr int kServerPollMs = 5;
constexpr int kRetryMs = 200;
constexpr int kHandshakeMs = 1000;
constexpr int kKnockMs = 50;
constexpr int kOnlinePollMs = 1000;

}  // namespace

// ---- one link ----------------------------------------------------------------------------------

bool MemifLink::End::device_up() const {
  rte_eth_link link{};
  return rte_eth_link_get_nowait(port_id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

// A peer may have gone and come back while the handlers ran: the link is up, but not the one we know.
bool MemifLink::End::still_attached() const {
  if (region == 0) return true;
  return std::ranges::any_of(mapped_memif_regions(), [&](const auto& each) { return each.inode == region; });
}

void MemifLink::End::close_gates(Gate::State state) const {
  for (Gate* gate : gates) gate->close(state);
}

void MemifLink::End::open_gates() const {
  for (Gate* gate : gates) gate->open();
}

// ---- all of them -------------------------------------------------------------------------------

MemifLink::MemifLink(std::vector<MemifEnd> ends) {
  for (MemifEnd& end : ends) ends_.push_back(std::make_unique<End>(std::move(end)));
}

Status MemifLink::start() {
  stop_event_.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  // A server only begins to answer; a client is started when its server is there.
  for (const auto& end : ends_) {
    if (end->device.server && rte_eth_dev_start(end->port_id) != 0) {
      return Error{ErrorCode::kDevice, fmt::format("[port] device {}: cannot start", end->device.name)};
    }
  }
  // The process's signals are for its main thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) sigdelset(&all, signal);  // privileges.cc
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "sluice-link");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

MemifLink::~MemifLink() {
  if (thread_.joinable()) {
    stopping_ = true;
    const uint64_t one = 1;
    (void)!write(stop_event_.get(), &one, sizeof one);
    thread_.join();
  }
  // From here on the driver frees what its handlers use: they must not run again.
  hold();
  for (const auto& end : ends_) rte_eth_dev_stop(end->port_id);
}

void MemifLink::run() {
  while (!stopping_.load()) {
    const Knock knock = wait_for_knock();
    if (stopping_.load()) return;
    if (knock != Knock::kNone) let_handlers_run(knock);
    for (const auto& end : ends_) {
      if (!end->online) seek(*end);
    }
    // Whatever knocks there must not keep the workers from their work.
    if (knock != Knock::kNone) sleep_ms(10);
  }
}

// While the interrupt thread is held, news of any link comes as a knock on its control socket: a peer that
// goes, or one that comes to a server.
MemifLink::Knock MemifLink::wait_for_knock() {
  std::vector<pollfd> polled{{.fd = stop_event_.get(), .events = POLLIN, .revents = 0}};
  size_t online = 1;
  for (const bool wanted : {true, false}) {
    for (const auto& end : ends_) {
      if (!held_ || end->online != wanted || (!wanted && !end->device.server)) continue;
      for (const int fd : socket_descriptors(end->device)) {
        polled.push_back({.fd = fd, .events = POLLIN | POLLRDHUP, .revents = 0});
      }
    }
    if (wanted) online = polled.size();
  }
  if (poll(polled.data(), polled.size(), wait_ms()) <= 0) return Knock::kNone;
  for (size_t i = polled.size(); i-- > 1;) {
    if (polled[i].revents != 0) return i < online ? Knock::kOnline : Knock::kOffline;
  }
  return Knock::kNone;
}

int MemifLink::wait_ms() const {
  int wait_ms = kOnlinePollMs;
  for (const auto& end : ends_) {
    if (end->online || (held_ && end->device.server)) continue;
    wait_ms = std::min(wait_ms, end->device.server ? kServerPollMs : kRetryMs);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end->next_try - Clock::now());
    if (!end->device.server) wait_ms = std::clamp<int>(static_cast<int>(left.count()) + 1, 0, wait_ms);
  }
  return wait_ms;
}

void MemifLink::seek(End& end) {
  if (Clock::now() < end.next_try) return;
  if (!end.device.server) {
    if (!server_answers(end)) return;
    start_client(end);
    end.next_try = Clock::now() + std::chrono::milliseconds(kRetryMs);
  }
  if (end.device_up()) try_online(end);
}

bool MemifLink::server_answers(End& end) {
  if (!end.greeting) end.greeting = connect_to_server(end.device);
  const int answer = end.greeting ? greeted(end.greeting, kRetryMs) : -1;
  if (answer == 0) return false;
  end.greeting.reset();
  if (answer < 0) end.next_try = Clock::now() + std::chrono::milliseconds(kRetryMs);
  return answer > 0;
}

void MemifLink::start_client(End& end) {
  pause_gates();
  hold();
  rte_eth_dev_stop(end.port_id);
  rte_eth_dev_start(end.port_id);
  let_go();
  for (int waited_ms = 0; waited_ms < kHandshakeMs && !end.device_up(); ++waited_ms) {
    if (sleep_ms(1)) break;
  }
  settle();
}

void MemifLink::let_handlers_run(Knock knock) {
  pause_gates();
  if (knock == Knock::kOnline) {
    interrupts_.handle_ready();
  } else {
    // A greeting is a conversation: until it has led to something, or is just somebody who looked.
    const auto waits = [&] {
      return std::ranges::none_of(ends_, [](const auto& end) { return !end->online && end->device_up(); });
    };
    let_go();
    for (int waited_ms = 0; waited_ms < kKnockMs && waits(); ++waited_ms) {
      if (sleep_ms(1)) break;
    }
  }
  settle();
}

// After the handlers ran: links that are gone go offline, the others on.
void MemifLink::settle() {
  if (!any_online()) return;
  hold();
  for (const auto& end : ends_) {
    if (!end->online) continue;
    if (end->device_up() && end->still_attached()) {
      end->open_gates();
      continue;
    }
    end->close_gates(Gate::State::kOffline);
    end->online = false;
    end->up = false;
    say(fmt::format("device {}: link down: waiting for the peer", end->device.name));
  }
  if (!any_online()) let_go();
}

void MemifLink::try_online(End& end) {
  const bool alone = !any_online();
  hold();
  // The driver keeps the negotiated number of rings to itself, and a queue without a ring of its own uses the
  // first one's: two workers on one ring destroy it. The region of each link that is online is a good one;
  // this link's must be one more.
  const std::vector<MemifRegion> regions = mapped_memif_regions();
  const size_t wanted = 2 * end.gates.size();
  const auto good = std::ranges::count_if(
      regions, [&](const auto& each) { return each.rings == wanted || each.rings == 0; });
  const auto online = std::ranges::count_if(ends_, [](const auto& each) { return each->online; });
  const bool mismatch = !regions.empty() && good <= online;
  if (!end.device_up() || mismatch) {
    if (alone) let_go();
    const auto other = std::ranges::find_if(
        regions, [&](const auto& each) { return each.rings != wanted && each.rings != 0; });
    if (end.device_up() && other != regions.end() && !std::exchange(end.mismatch_said, true)) {
      say(
          fmt::format("device {}: the peer's memif has {} queue pairs, ours {}: give both nodes the same "
                      "[dataplane] workers",
                      end.device.name, other->rings / 2, wanted / 2));
    }
    end.next_try = Clock::now() + std::chrono::milliseconds(kRetryMs);
    return;
  }
  const bool direct = regions.size() == 1 && regions[0].rings == wanted && regions[0].has_buffers();
  if (end.attach) {
    end.attach(direct ? regions.data() : nullptr);
    end.region = direct ? regions[0].inode : 0;
  }
  end.online = true;
  end.mismatch_said = false;
  end.up = true;
  end.open_gates();
  say(fmt::format("device {}: link up", end.device.name));
}

bool MemifLink::any_online() const {
  return std::ranges::any_of(ends_, [](const auto& end) { return end->online; });
}

void MemifLink::pause_gates() {
  for (const auto& end : ends_) {
    if (end->online) end->close_gates(Gate::State::kPaused);
  }
}

void MemifLink::hold() {
  if (!held_) interrupts_.hold();
  held_ = true;
}

void MemifLink::let_go() {
  if (held_) interrupts_.let_go();
  held_ = false;
}

bool MemifLink::sleep_ms(int timeout_ms) {
  pollfd stop{.fd = stop_event_.get(), .events = POLLIN, .revents = 0};
  poll(&stop, 1, timeout_ms);
  return stopping_.load();
}

void MemifLink::say(std::string news) {
  const std::lock_guard lock(news_mutex_);
  if (news_.size() < 16) news_.push_back(std::move(news));
}

std::vector<std::string> MemifLink::take_news() {
  const std::lock_guard lock(news_mutex_);
  return std::exchange(news_, {});
}

}  // namespace sluice::dpdk
