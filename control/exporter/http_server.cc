// SPDX-License-Identifier: Apache-2.0
#include "control/exporter/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <map>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace sluice::exporter {
namespace {

using std::chrono::steady_clock;

constexpr size_t kHeadBytesMax = 8192;
constexpr std::chrono::milliseconds kShortage{100};  // without a descriptor, until somebody is accepted again

// By which callers share a bound.
std::string address_of(const sockaddr_storage& from) {
  char text[INET6_ADDRSTRLEN] = {};
  if (from.ss_family == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(from).sin_addr, text, sizeof text);
  if (from.ss_family == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(from).sin6_addr, text, sizeof text);
  return text;
}

std::string reply(std::string_view status, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n"
      "Connection: close\r\n\r\n{}",
      status, body.size(), body);
}

// Nothing: it is to be answered with the metrics.
std::string refusal(std::string_view head) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const size_t method_end = line.find(' ');
  const size_t target_end = line.find(' ', method_end == line.npos ? line.size() : method_end + 1);
  if (target_end == line.npos || !line.substr(target_end + 1).starts_with("HTTP/1."))
    return reply("400 Bad Request", "this is no request of HTTP/1\n");
  if (line.substr(0, method_end) != "GET") return reply("405 Method Not Allowed", "GET /metrics\n");
  const std::string_view target = line.substr(method_end + 1, target_end - method_end - 1);
  if (target.substr(0, target.find('?')) != "/metrics") return reply("404 Not Found", "GET /metrics\n");
  return "";
}

class Server final : public HttpServer {
 public:
  Server(UniqueFd listening, UniqueFd wake, Answer answer, Limits limits)
      : listening_(std::move(listening)),
        wake_(std::move(wake)),
        answer_(std::move(answer)),
        limits_(limits) {}
  ~Server() override {
    (void)::eventfd_write(wake_.get(), 1);
    if (thread_.joinable()) thread_.join();
  }
  void begin() {
    thread_ = std::thread([this] { serve(); });
  }

 private:
  enum class Step : uint8_t { kAsking, kTaking, kLeaving };
  struct Caller {
    UniqueFd socket;
    std::string address;
    steady_clock::time_point until;
    Step step = Step::kAsking;
    std::string head;  // of its request
    std::string left;  // of the answer
  };
  using Callers = std::list<Caller>;  // the oldest first

  void serve() {
    for (;;) {
      std::vector<pollfd> polled{{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                                 {.fd = listening_.get(), .events = POLLIN, .revents = 0}};
      for (const Caller& each : callers_)
        polled.push_back({.fd = each.socket.get(),
                          .events = static_cast<short>(each.step == Step::kTaking ? POLLOUT : POLLIN),
                          .revents = 0});
      (void)::poll(polled.data(), polled.size(), wait_ms());
      if (polled[0].revents != 0) return;
      std::vector<Caller*> asked;
      auto at = callers_.begin();
      for (size_t i = 2; i < polled.size(); ++i) {
        const auto each = at++;
        const bool stays = polled[i].revents == 0 || get_on(*each, &asked);
        if (!stays || (polled[i].revents == 0 && each->until < steady_clock::now())) callers_.erase(each);
      }
      answer(asked);
      if (polled[1].revents != 0) accept();
    }
  }
  int wait_ms() const {
    if (callers_.empty()) return -1;
    steady_clock::time_point first = steady_clock::time_point::max();
    for (const Caller& each : callers_) first = std::min(first, each.until);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - steady_clock::now());
    return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
  }

  // False: it is to go. Whoever has asked for the metrics is added to `asked`.
  bool get_on(Caller& caller, std::vector<Caller*>* asked) {
    if (caller.step == Step::kTaking) return send(caller);
    char part[2048];
    const ssize_t got = ::recv(caller.socket.get(), part, sizeof part, MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    if (caller.step == Step::kLeaving) return true;
    caller.head.append(part, static_cast<size_t>(got));
    if (caller.head.find("\r\n\r\n") == std::string::npos) return caller.head.size() < kHeadBytesMax;
    caller.left = refusal(caller.head);
    caller.step = Step::kTaking;
    caller.until = steady_clock::now() + limits_.patience;
    if (!caller.left.empty()) return send(caller);
    asked->push_back(&caller);
    return true;
  }
  void answer(const std::vector<Caller*>& asked) {
    if (asked.empty()) return;
    const std::string all = reply("200 OK", answer_());
    for (Caller* const each : asked) {
      each->left = all;
      each->until = steady_clock::now() + limits_.patience;
    }
  }
  bool send(Caller& caller) {
    const ssize_t sent =
        ::send(caller.socket.get(), caller.left.data(), caller.left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    caller.left.erase(0, static_cast<size_t>(sent));
    if (!caller.left.empty()) return true;
    // Closed at once, what it still says would take the answer from it on the way.
    caller.step = Step::kLeaving;
    return ::shutdown(caller.socket.get(), SHUT_WR) == 0;
  }

  void accept() {
    sockaddr_storage from{};
    socklen_t bytes = sizeof from;
    UniqueFd socket(::accept4(listening_.get(), reinterpret_cast<sockaddr*>(&from), &bytes,
                              SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if ((errno == EMFILE || errno == ENFILE) && !let_go("")) std::this_thread::sleep_for(kShortage);
      return;
    }
    std::string address = address_of(from);
    const auto of_address = std::ranges::count(callers_, address, &Caller::address);
    if (static_cast<size_t>(of_address) >= limits_.of_address) {
      if (!let_go(address)) return;
    } else if (callers_.size() >= limits_.callers && !let_go("")) {
      return;
    }
    callers_.push_back({.socket = std::move(socket),
                        .address = std::move(address),
                        .until = steady_clock::now() + limits_.patience,
                        .step = Step::kAsking,
                        .head = "",
                        .left = ""});
  }
  // The oldest of this address, or of the one with the most, that is not taking an answer.
  bool let_go(std::string address) {
    if (address.empty()) {
      std::map<std::string, size_t> counts;
      for (const Caller& each : callers_) counts[each.address] += each.step == Step::kTaking ? 0 : 1;
      if (counts.empty()) return false;
      address = std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first;
    }
    const auto oldest = std::ranges::find_if(callers_, [&address](const Caller& each) {
      return each.step != Step::kTaking && each.address == address;
    });
    if (oldest == callers_.end()) return false;
    callers_.erase(oldest);
    return true;
  }

  const UniqueFd listening_;
  const UniqueFd wake_;
  const Answer answer_;
  const Limits limits_;
  Callers callers_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(UniqueFd listening, Answer answer, Limits limits) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return Error{ErrorCode::kResources, "cannot serve metrics: no file descriptor is free"};
  auto server = std::make_unique<Server>(std::move(listening), std::move(wake), std::move(answer), limits);
  try {
    server->begin();
  } catch (const std::system_error&) {
    return Error{ErrorCode::kResources, "cannot serve metrics: no thread is to be had"};
  }
  return Result<std::unique_ptr<HttpServer>>(std::move(server));
}

}  // namespace sluice::exporter
