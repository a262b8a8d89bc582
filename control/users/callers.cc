// SPDX-License-Identifier: Apache-2.0
#include "control/users/callers.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "control/users/asking.h"
#include "control/users/identity.h"
#include "control/users/lifeline.h"
#include "dataplane/base/local_socket.h"

namespace sluice::users {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kGreetingsMax = 64;
constexpr std::chrono::seconds kGreetingLimit{5};
constexpr std::chrono::milliseconds kAnswerLimit{1000};
constexpr std::chrono::milliseconds kTick{1000};

void say_goodbye(Channel& channel) {
  Call goodbye{.kind = Kind::kGoodbye, .file = {}};
  goodbye.file.spec.path = "/";
  (void)channel.send(encode(goodbye), {}, std::chrono::milliseconds(0));
}

}  // namespace

// Of each word: the process that came and is not in use yet, and whoever wants it.
struct Callers::Arrivals {
  struct Arrival {
    std::weak_ptr<Link> link;
    std::optional<Channel> channel;  // of a process that waits
    uint32_t uid = 0;                // of that
    Clock::time_point until;         // unless it is wanted by then, it goes
  };

  mutable std::mutex mutex;
  std::condition_variable came;
  std::map<std::string, Arrival> all;
  bool given_up = false;
  bool stopped = false;  // control goes; a session goes on in its next life
  Lifeline lifeline;
};

class Callers::Link final : public Asking {
 public:
  Link(std::shared_ptr<Arrivals> arrivals, uint32_t uid, std::string token)
      : Asking(uid), arrivals_(std::move(arrivals)), token_(std::move(token)) {}

  // Nobody wants it any more.
  ~Link() override {
    const std::scoped_lock lock(arrivals_->mutex);
    if (arrivals_->stopped) return;
    if (channel_) say_goodbye(*channel_);
    const auto arrival = arrivals_->all.find(token_);
    if (arrival == arrivals_->all.end() || !arrival->second.link.expired()) return;
    if (arrival->second.channel && arrival->second.uid != uid()) return;  // it waits for somebody else
    if (arrival->second.channel) say_goodbye(*arrival->second.channel);
    arrivals_->all.erase(arrival);
  }

  std::string key() const override {
    return "user " + std::to_string(uid()) + ", outside the exports, " + token_.substr(0, 8);
  }

  Status there() override {
    const std::scoped_lock lock(mutex_);
    return channel_ ? Status() : connect();
  }

 private:
  Status connect() override {
    std::unique_lock lock(arrivals_->mutex);
    arrivals_->came.wait_for(lock, kComesBack, [this] { return arrivals_->given_up || waits() != nullptr; });
    if (std::optional<Channel>* const waiting = waits()) {
      channel_ = std::exchange(*waiting, std::nullopt);
      channel_->give_up_with(arrivals_->lifeline.watched());
      return {};
    }
    return lost(ETIMEDOUT);
  }

  std::optional<Channel>* waits() const {
    const auto arrival = arrivals_->all.find(token_);
    if (arrival == arrivals_->all.end() || !arrival->second.channel || arrival->second.uid != uid())
      return nullptr;
    return &arrival->second.channel;
  }

  Error lost(int) const override {
    return {ErrorCode::kDaemonNotRunning,
            "the process of user " + name_of(uid()) +
                " that opens the files of this session, outside the exports, is not there: as that user, "
                "'sluice session continue' with the session's id brings it back"};
  }

  const std::shared_ptr<Arrivals> arrivals_;
  const std::string token_;
};

Callers::Callers() : arrivals_(std::make_shared<Arrivals>()) {}

Callers::~Callers() { stop(); }

Status Callers::listen(const std::filesystem::path& socket) {
  end_thread();
  stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_)
    return Error{ErrorCode::kConfiguration, std::string("cannot make an eventfd: ") + std::strerror(errno)};
  ::unlink(socket.c_str());  // of a former life: whoever runs holds the node's lock
  auto listener = base::listen_locally(socket, SOCK_SEQPACKET);
  if (!listener) return listener.error();
  listeners_.push_back(std::move(*listener));
  thread_ = std::thread([this] { run(); });
  return {};
}

void Callers::stop() {
  {
    const std::scoped_lock lock(arrivals_->mutex);
    arrivals_->stopped = true;
  }
  end_thread();
}

void Callers::end_thread() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t told = ::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void Callers::give_up() const {
  const std::scoped_lock lock(arrivals_->mutex);
  arrivals_->given_up = true;
  arrivals_->lifeline.cut();
  arrivals_->came.notify_all();
}

std::optional<uint32_t> Callers::waiting(const std::string& token) const {
  const std::scoped_lock lock(arrivals_->mutex);
  const auto arrival = arrivals_->all.find(token);
  if (arrival == arrivals_->all.end() || !arrival->second.channel) return std::nullopt;
  return arrival->second.uid;
}

std::shared_ptr<exports::UserFiles> Callers::of(uint32_t uid, const std::string& token) const {
  std::shared_ptr<Link> known;  // outlives the lock, which the end of a Link takes
  const std::scoped_lock lock(arrivals_->mutex);
  Arrivals::Arrival& arrival = arrivals_->all[token];
  known = arrival.link.lock();
  if (known && known->uid() == uid) return known;
  auto link = std::make_shared<Link>(arrivals_, uid, token);
  arrival.link = link;
  return link;
}

void Callers::run() {
  while (true) {
    std::vector<pollfd> all = {{.fd = stop_.get(), .events = POLLIN, .revents = 0}};
    for (const UniqueFd& each : listeners_) all.push_back({.fd = each.get(), .events = POLLIN, .revents = 0});
    for (const Greeting& each : greetings_)
      all.push_back({.fd = each.fd.get(), .events = POLLIN, .revents = 0});
    if (::poll(all.data(), all.size(), static_cast<int>(kTick.count())) < 0 && errno != EINTR) return;
    if (all[0].revents != 0) return;
    const size_t first = 1 + listeners_.size();
    for (size_t i = 0; i < greetings_.size(); ++i) {
      if (all[first + i].revents != 0) greet(greetings_[i]);
    }
    const auto now = Clock::now();
    std::erase_if(greetings_, [now](const Greeting& each) { return !each.fd || each.until < now; });
    for (size_t i = 0; i < listeners_.size(); ++i) {
      if (all[1 + i].revents != 0) take(listeners_[i].get());
    }
    const std::scoped_lock lock(arrivals_->mutex);
    for (auto each = arrivals_->all.begin(); each != arrivals_->all.end();) {
      Arrivals::Arrival& arrival = each->second;
      const bool over = arrival.link.expired() && arrival.until < now;
      if (over && arrival.channel) say_goodbye(*arrival.channel);
      each = over ? arrivals_->all.erase(each) : std::next(each);
    }
  }
}

void Callers::take(int listener) {
  UniqueFd connection(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  const std::optional<uint32_t> uid = connection ? base::caller_of(connection.get()) : std::nullopt;
  if (!uid || greetings_.size() >= kGreetingsMax) return;
  greetings_.push_back({std::move(connection), *uid, Clock::now() + kGreetingLimit});
}

// There is something to read. Whoever is not wanted yet waits for a while.
void Callers::greet(Greeting& greeting) const {
  Channel channel(std::move(greeting.fd));
  Parcel parcel;
  if (channel.receive(&parcel, std::chrono::milliseconds(0)) != 0) return;
  const Result<std::string> token = token_of_hello(parcel.bytes);
  Answer answer;
  if (!token) answer.error = token.error();
  std::shared_ptr<Link> link;  // outlives the lock, which the end of a Link takes
  const std::scoped_lock lock(arrivals_->mutex);
  if (token) answer.error = refusal(*token, greeting.uid, &link);
  if (channel.send(encode(answer), {}, kAnswerLimit) != 0 || !answer.status()) return;
  Arrivals::Arrival& arrival = arrivals_->all[*token];
  arrival.channel = std::move(channel);
  arrival.uid = greeting.uid;
  arrival.until = Clock::now() + kUnwanted;
  arrivals_->came.notify_all();
}

// kOk: there is nothing against it. With the lock held.
Error Callers::refusal(const std::string& token, uint32_t uid, std::shared_ptr<Link>* link) const {
  const auto known = arrivals_->all.find(token);
  if (known != arrivals_->all.end()) {
    const Arrivals::Arrival& arrival = known->second;
    *link = arrival.link.lock();
    if (*link && (*link)->uid() != uid)
      return {ErrorCode::kConfiguration, "the session is of user " + std::to_string((*link)->uid()) +
                                             ", whose own process opens its files"};
    if (arrival.channel && !arrival.channel->has_gone())
      return {ErrorCode::kDestinationExists, "a process that opens the files of the session is there"};
  }
  const auto unwanted = std::ranges::count_if(arrivals_->all, [uid](const auto& each) {
    return each.second.link.expired() && each.second.channel && each.second.uid == uid;
  });
  if (*link || static_cast<size_t>(unwanted) < kUnwantedOfOne) return {ErrorCode::kOk, ""};
  return {ErrorCode::kResources, std::to_string(kUnwantedOfOne) +
                                     " processes of this user wait for a session already: try again in a "
                                     "minute"};
}

}  // namespace sluice::users
