// Cold. See link.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memif/link.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "dataplane/memif/process_files.h"

namespace sluice::memif {
namespace {

constexpr int kServerPollMs = 5;
constexpr int kRetryMs = 200;
constexpr int kHandshakeMs = 1000;
constexpr int kKnockMs = 50;
constexpr int kOnlinePollMs = 1000;

}  // namespace

// ---- one link ----------------------------------------------------------------------------------

// A peer may have gone and come back while the handlers ran: the link is up, but not the one we know.
bool Link::End::still_attached() const {
  if (region == 0) return true;
  return std::ranges::any_of(mapped_regions(), [&](const auto& each) { return each.inode == region; });
}

void Link::End::close_gates(Gate::State state) const {
  for (Gate* gate : gates) gate->close(state);
}

void Link::End::open_gates() const {
  for (Gate* gate : gates) gate->open();
}

// ---- all of them -------------------------------------------------------------------------------

Link::Link(std::vector<LinkEnd> ends, HandlerThread& handlers) : handlers_(handlers) {
  for (LinkEnd& end : ends) ends_.push_back(std::make_unique<End>(std::move(end)));
}

Status Link::start() {
  open_process_files();
  stop_event_.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  // Starting a server only makes it answer. A client is started later, when its server is there.
  for (const auto& end : ends_) {
    if (end->socket.server && !end->driver->start()) {
      return Error{ErrorCode::kDevice, fmt::format("[port] device {}: cannot start", end->socket.device)};
    }
  }
  // The process's signals are for its main thread; the real-time ones tell threads to drop their privileges,
  // and SIGSYS that a call is not allowed.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) sigdelset(&all, signal);
  sigdelset(&all, SIGSYS);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "sluice-link");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

Link::~Link() {
  if (thread_.joinable()) {
    stopping_ = true;
    const uint64_t one = 1;
    (void)!write(stop_event_.get(), &one, sizeof one);
    thread_.join();
  }
  // The driver frees what its handlers use from here on, so they must not run again.
  hold();
  for (const auto& end : ends_) end->driver->stop();
}

void Link::run() {
  while (!stopping_.load()) {
    const Knock knock = wait_for_knock();
    if (stopping_.load()) return;
    if (knock != Knock::kNone) let_handlers_run(knock);
    for (const auto& end : ends_) {
      if (!end->online) seek(*end);
    }
    // Somebody who knocks all the time must not keep the workers from their work.
    if (knock != Knock::kNone) sleep_ms(10);
  }
}

// While the interrupt thread is held, news of any link comes as a knock on its control socket: a peer that
// goes, or one that comes to a server.
Link::Knock Link::wait_for_knock() {
  std::vector<pollfd> polled{{.fd = stop_event_.get(), .events = POLLIN, .revents = 0}};
  size_t online = 1;
  for (const bool wanted : {true, false}) {
    for (const auto& end : ends_) {
      if (!held_ || end->online != wanted || (!wanted && !end->socket.server)) continue;
      for (const int fd : socket_descriptors(end->socket)) {
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

int Link::wait_ms() const {
  int wait_ms = kOnlinePollMs;
  for (const auto& end : ends_) {
    if (end->online || (held_ && end->socket.server)) continue;
    wait_ms = std::min(wait_ms, end->socket.server ? kServerPollMs : kRetryMs);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end->next_try - Clock::now());
    if (!end->socket.server) wait_ms = std::clamp<int>(static_cast<int>(left.count()) + 1, 0, wait_ms);
  }
  return wait_ms;
}

void Link::seek(End& end) {
  if (Clock::now() < end.next_try) return;
  if (!end.socket.server) {
    if (!server_answers(end)) return;
    start_client(end);
    end.next_try = Clock::now() + std::chrono::milliseconds(kRetryMs);
  }
  if (end.driver->connected()) try_online(end);
}

bool Link::server_answers(End& end) {
  if (!end.greeting) end.greeting = connect_to_server(end.socket);
  const int answer = end.greeting ? greeted(end.greeting, kRetryMs) : -1;
  if (answer == 0) return false;
  end.greeting.reset();
  if (answer < 0) end.next_try = Clock::now() + std::chrono::milliseconds(kRetryMs);
  return answer > 0;
}

void Link::start_client(End& end) {
  pause_gates();
  hold();
  end.driver->stop();
  end.driver->start();  // a failure shows as a link that does not come up, and is tried again
  let_go();
  for (int waited_ms = 0; waited_ms < kHandshakeMs && !end.driver->connected(); ++waited_ms) {
    if (sleep_ms(1)) break;
  }
  settle();
}

void Link::let_handlers_run(Knock knock) {
  pause_gates();
  if (knock == Knock::kOnline) {
    handlers_.handle_ready();
  } else {
    // A greeting is a conversation. It ends when it has led to a link, or when nothing comes of it for a
    // while.
    const auto waits = [&] {
      return std::ranges::none_of(ends_,
                                  [](const auto& end) { return !end->online && end->driver->connected(); });
    };
    let_go();
    for (int waited_ms = 0; waited_ms < kKnockMs && waits(); ++waited_ms) {
      if (sleep_ms(1)) break;
    }
  }
  settle();
}

// After the handlers ran: links that are gone go offline, the others on.
void Link::settle() {
  if (!any_online()) return;
  hold();
  for (const auto& end : ends_) {
    if (!end->online) continue;
    if (end->driver->connected() && end->still_attached()) {
      end->open_gates();
      continue;
    }
    end->close_gates(Gate::State::kOffline);
    end->online = false;
    end->up = false;
    say(fmt::format("device {}: link down: waiting for the peer", end->socket.device));
  }
  if (!any_online()) let_go();
}

void Link::try_online(End& end) {
  const bool alone = !any_online();
  hold();
  // The driver does not tell how many rings were agreed on, and lets a queue without a ring of its own use
  // the first one's, which two workers then destroy. So the regions are counted: each link that is online has
  // a good one, and this link's must be one more.
  const std::vector<Region> regions = mapped_regions();
  const size_t wanted = 2 * end.gates.size();
  const auto good = std::ranges::count_if(
      regions, [&](const auto& each) { return each.rings == wanted || each.rings == 0; });
  const auto online = std::ranges::count_if(ends_, [](const auto& each) { return each->online; });
  const bool mismatch = !regions.empty() && good <= online;
  if (!end.driver->connected() || mismatch) {
    if (alone) let_go();
    const auto other = std::ranges::find_if(
        regions, [&](const auto& each) { return each.rings != wanted && each.rings != 0; });
    if (end.driver->connected() && other != regions.end() && !std::exchange(end.mismatch_said, true)) {
      say(
          fmt::format("device {}: the peer's memif has {} queue pairs, ours {}: give both nodes the same "
                      "[dataplane] workers",
                      end.socket.device, other->rings / 2, wanted / 2));
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
  say(fmt::format("device {}: link up", end.socket.device));
}

bool Link::any_online() const {
  return std::ranges::any_of(ends_, [](const auto& end) { return end->online; });
}

void Link::pause_gates() {
  for (const auto& end : ends_) {
    if (end->online) end->close_gates(Gate::State::kPaused);
  }
}

void Link::hold() {
  if (!held_) handlers_.hold();
  held_ = true;
}

void Link::let_go() {
  if (held_) handlers_.let_go();
  held_ = false;
}

bool Link::sleep_ms(int timeout_ms) {
  pollfd stop{.fd = stop_event_.get(), .events = POLLIN, .revents = 0};
  poll(&stop, 1, timeout_ms);
  return stopping_.load();
}

void Link::say(std::string news) {
  const std::lock_guard lock(news_mutex_);
  if (news_.size() < 16) news_.push_back(std::move(news));
}

std::vector<std::string> Link::take_news() {
  const std::lock_guard lock(news_mutex_);
  return std::exchange(news_, {});
}

}  // namespace sluice::memif
