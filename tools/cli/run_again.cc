// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/run_again.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <ostream>

#include "tools/cli/format.h"
#include "tools/cli/run_memory.h"
#include "tools/cli/when.h"
#include "tools/unattended/words.h"

namespace sluice::cli {
namespace {

constexpr uint32_t kRetryMost = 1000;
constexpr std::chrono::seconds kLookAtClock{1};
constexpr int64_t kNsOfASecond = 1'000'000'000;

int32_t second_of_today() {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  ::localtime_r(&now, &day);
  return day.tm_hour * 3600 + day.tm_min * 60 + day.tm_sec;
}

Status set_every(const std::string& value, RunTimes* times) {
  const auto every_s = parse_span(value);
  if (!every_s) return Error{ErrorCode::kUsage, "every: write a span, such as \"15m\", \"1h\" or \"1d\""};
  times->every_ns = *every_s * kNsOfASecond;
  return {};
}

}  // namespace

bool is_run_time(const std::string& key) {
  return key == "retry" || key == "not_before" || key == "window" || key == "every";
}

Status set_run_time(const std::string& key, const std::string& value, RunTimes* times) {
  if (key == "every") return set_every(value, times);
  if (key == "retry") {
    const auto retry = unattended::number_of<uint32_t>(value);
    if (!retry || *retry > kRetryMost)
      return Error{ErrorCode::kUsage, fmt::format("retry: write a number from 0 to {}", kRetryMost)};
    times->retry = *retry;
    return {};
  }
  if (key == "window") {
    times->window = unattended::Window::parse(value);
    times->window_text = value;
    if (times->window) return {};
    return Error{ErrorCode::kUsage, "window: write a part of the day, such as \"22:00-06:00\""};
  }
  const auto ahead = parse_when(value, unix_now_ns());
  if (!ahead && !parse_since(value, unix_now_ns()))
    return Error{ErrorCode::kUsage, "not_before: " + ahead.error().message};
  times->not_before = value;
  return {};
}

std::string run_time_reference() {
  return "| `retry` | a number | at the top: so often a transfer that fails is begun again, or continued "
         "where an error holds it, after 5 s, "
         "then after waits that double up to 10 minutes (0) |\n"
         "| `not_before` | T | at the top: nothing begins before T, which is written as of `deadline` |\n"
         "| `window` | \"FROM-TO\" | at the top: transfers run in this part of the day alone, by the clock "
         "here "
         "(\"22:00-06:00\"); outside they are paused |\n"
         "| `every` | a span | at the top: the whole file is run again and again, so long after it was begun "
         "(\"1h\", "
         "\"1d\"), until interrupted |\n";
}

bool worth_another_try(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
    case ErrorCode::kUsage:
    case ErrorCode::kConfiguration:
    case ErrorCode::kPeerUntrusted:
    case ErrorCode::kOutsideExports:
    case ErrorCode::kDestinationExists:
    case ErrorCode::kCancelled:
    case ErrorCode::kIncompatible:
    case ErrorCode::kDeadline:
    case ErrorCode::kLate:
    case ErrorCode::kSuperseded:
    case ErrorCode::kMoved:
      return false;
    default:
      return true;
  }
}

Gate::Gate(Environment& environment, const RunTimes& times, Canceller& canceller)
    : environment_(environment), times_(times), canceller_(canceller) {
  if (!times.window) return;
  canceller.tell_of_sessions([this](const std::string& id, bool runs) {
    const std::lock_guard lock(mutex_);
    if (runs) {
      running_[id] = false;
    } else {
      running_.erase(id);
    }
  });
  keeper_ = std::thread([this] { keep(); });
}

Gate::~Gate() {
  canceller_.tell_of_sessions({});
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  leaving_changed_.notify_all();
  if (keeper_.joinable()) keeper_.join();
}

void Gate::use(std::shared_ptr<api::Client> client, std::shared_ptr<RunMemory> memory) {
  const std::lock_guard lock(mutex_);
  client_ = std::move(client);
  if (memory != nullptr) memory_ = std::move(memory);
}

bool Gate::is_open() const { return !times_.window || times_.window->contains(second_of_today()); }

void Gate::say(const std::string& text) const {
  environment_.err << (environment_.err_is_terminal ? "\r\x1b[K" : "") << "sluice: " << printable(text)
                   << "\n"
                   << std::flush;
}

void Gate::keep() {
  std::unique_lock lock(mutex_);
  while (!leaving_changed_.wait_for(lock, kLookAtClock, [this] { return leaving_; })) {
    lock.unlock();
    hold_or_let_go();
    lock.lock();
  }
}

// One that cannot be held up yet, as it only begins, is held up a second later.
void Gate::hold_or_let_go() {
  const bool open = is_open();
  std::map<std::string, bool> running;
  std::shared_ptr<api::Client> client;
  std::shared_ptr<RunMemory> memory;
  {
    const std::lock_guard lock(mutex_);
    running = running_;
    client = client_;
    memory = memory_;
  }
  if (open != std::exchange(was_open_, open) && !running.empty())
    say(fmt::format("{} the window {}: what runs is {}", open ? "within" : "outside", times_.window_text,
                    open ? "continued" : "paused"));
  for (const auto& [id, held] : running) {
    if (client == nullptr || held != open) continue;
    const bool done = static_cast<bool>(open ? client->go_on(id) : client->pause(id));
    if (done && memory != nullptr) memory->hold(id, !open);
    const std::lock_guard lock(mutex_);
    if (done && running_.contains(id)) running_[id] = !open;
  }
}

bool Gate::wait_until_open() {
  if (!is_open()) say(fmt::format("waiting for the window {}", times_.window_text));
  while (!is_open()) {
    if (!canceller_.wait(kLookAtClock)) return false;
  }
  return !canceller_.interrupted();
}

bool Gate::wait_not_before() {
  const auto when_ns =
      times_.not_before.empty() ? Result<int64_t>(0) : parse_when(times_.not_before, unix_now_ns());
  if (!when_ns || *when_ns <= unix_now_ns()) return true;  // it has passed
  say("waiting until " + format_when(*when_ns, unix_now_ns()));
  // Of the clock that people see, which may be set.
  while (unix_now_ns() < *when_ns) {
    if (!canceller_.wait(std::chrono::nanoseconds(std::min<int64_t>(*when_ns - unix_now_ns(), kNsOfASecond))))
      return false;
  }
  return true;
}

}  // namespace sluice::cli
