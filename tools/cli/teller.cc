// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/teller.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "control/proto/session_state.h"
#include "dataplane/base/write_all.h"
#include "tools/cli/child.h"
#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

using unattended::kOneSecondNs;
using unattended::Letter;
using unattended::Telling;

constexpr int64_t kEndingNs = 5 * kOneSecondNs;  // between SIGTERM and SIGKILL
constexpr int64_t kNsOfMilli = 1'000'000;
constexpr size_t kIdDigits = 8;

// A file without a name, from its beginning on: a pipe could fill.
UniqueFd file_with(const std::string& text) {
  UniqueFd file(::memfd_create("sluice-event", MFD_CLOEXEC));
  if (!file || !base::write_all(file.get(), text.data(), text.size()) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0)
    file.reset();
  return file;
}

// Of this process, but for what is given.
std::vector<std::string> whole_environment(const std::vector<std::string>& given) {
  std::vector<std::string> all = given;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string text = *one;
    const std::string name = text.substr(0, text.find('=') + 1);
    const bool replaced = std::any_of(given.begin(), given.end(),
                                      [&name](const std::string& mine) { return mine.starts_with(name); });
    if (!replaced) all.push_back(text);
  }
  return all;
}

std::vector<char*> argument_pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// In a process group of its own, without blocked signals; its standard output is our standard error.
int start_told(const std::string& program, std::vector<std::string> environment, int in, pid_t* pid) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  ::posix_spawnattr_setsigmask(&attributes, &signals);
  sigaddset(&signals, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &signals);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words{program};
  const int reason = ::posix_spawnp(pid, program.c_str(), &actions, &attributes,
                                    argument_pointers(words).data(), argument_pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return reason;
}

std::string fact_of(const api::Json& event, const char* key) {
  const auto found = event.find(key);
  if (found == event.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

}  // namespace

int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Result<Teller::Running> Teller::start(const Letter& letter, int64_t now_ns) const {
  const api::Json event = api::Json::parse(letter.text, nullptr, false);
  Running one;
  one.key = letter.key;
  one.about = fmt::format("{} of session {} ({})", fact_of(event, "event"),
                          fact_of(event, "session").substr(0, kIdDigits), fact_of(event, "state"));
  std::vector<std::string> facts = event_environment(event);
  facts.push_back("SLUICE_NODE=" + options_.node.string());
  facts.push_back("SLUICE_TRY=" + std::to_string(letter.tries));
  const UniqueFd in = file_with(letter.text);
  int reason = in ? 0 : errno;
  if (in) reason = start_told(options_.program, whole_environment(facts), in.get(), &one.pid);
  if (reason != 0) return Error{ErrorCode::kConfiguration, std::strerror(reason)};
  one.ended.reset(static_cast<int>(::syscall(SYS_pidfd_open, one.pid, 0)));
  one.limit_ns = now_ns + options_.limit_ns;
  return one;
}

void Teller::start_due(int64_t now_ns) {
  while (const Letter* const letter = telling_.next(now_ns)) {
    Result<Running> one = start(*letter, now_ns);
    if (one) {
      running_.push_back(std::move(*one));
    } else {
      note({.key = letter->key, .about = letter->key}, false, "cannot be started: " + one.error().message,
           now_ns);
    }
  }
}

void Teller::say(const std::string& text) const {
  environment_.err << "sluice: " << printable(options_.program + ": " + text) << "\n" << std::flush;
}

void Teller::note(const Running& one, bool well, const std::string& how, int64_t now_ns) {
  const Telling::Outcome outcome = telling_.ended(one.key, well, now_ns);
  if (outcome == Telling::Outcome::kTold) return;
  const bool again = outcome == Telling::Outcome::kAgain;
  if (!again) ++given_up_;
  say(fmt::format("{}: {}; {}", one.about, how, again ? "it is told again later" : "given up"));
}

void Teller::reap(int64_t now_ns) {
  for (auto one = running_.begin(); one != running_.end();) {
    int status = 0;
    if (::waitpid(one->pid, &status, WNOHANG) == one->pid) {
      const int code = exit_status(status);
      const bool well = code == 0 && !one->asked_to_end;
      const std::string how = one->asked_to_end
                                  ? fmt::format("took longer than {} s", options_.limit_ns / kOneSecondNs)
                                  : fmt::format("ended with status {}", code);
      note(*one, well, how, now_ns);
      one = running_.erase(one);
      continue;
    }
    if (now_ns >= one->limit_ns) {
      ::kill(-one->pid, one->asked_to_end ? SIGKILL : SIGTERM);
      one->asked_to_end = true;
      one->limit_ns = now_ns + kEndingNs;
    }
    ++one;
  }
}

void Teller::add_fds(std::vector<pollfd>* fds) const {
  for (const Running& one : running_) fds->push_back({.fd = one.ended.get(), .events = POLLIN, .revents = 0});
}

int64_t Teller::next_ns() const {
  int64_t next_ns = telling_.next_ns();
  for (const Running& one : running_) next_ns = std::min(next_ns, one.limit_ns);
  return next_ns;
}

void Teller::stop() {
  for (const Running& one : running_) ::kill(-one.pid, SIGTERM);
  const int64_t end_ns = steady_now_ns() + kEndingNs;
  for (const Running& one : running_) {
    pollfd ended{.fd = one.ended.get(), .events = POLLIN, .revents = 0};
    const int64_t left_ms = std::max<int64_t>(0, (end_ns - steady_now_ns()) / kNsOfMilli);
    if (::poll(&ended, 1, static_cast<int>(left_ms)) != 1) ::kill(-one.pid, SIGKILL);
    int status = 0;
    while (::waitpid(one.pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (exit_status(status) == 0) {
      (void)telling_.ended(one.key, true, steady_now_ns());
    } else {
      telling_.given_back(one.key);
    }
  }
  running_.clear();
}

Status check_program(const std::string& option, const std::string& program) {
  const auto runs = [](const std::string& path) {
    std::error_code ignored;
    return ::access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path, ignored);
  };
  bool found = program.find('/') != std::string::npos && runs(program);
  const char* const path = std::getenv("PATH");
  std::string rest = program.find('/') == std::string::npos && path != nullptr ? path : "";
  while (!found && !rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    found = runs(rest.substr(0, colon) + "/" + program);
    rest.erase(0, colon + 1);
  }
  if (found) return {};
  return Error{
      ErrorCode::kUsage,
      option + " " + printable(program) +
          ": no such program, or it may not be run; give its path. It is run without a shell and without "
          "arguments: write a script for more"};
}

api::SessionEvent standing_event(const api::Session& session) {
  api::SessionEvent event;
  event.set_unix_ns(session.started_unix_ns() + static_cast<int64_t>(session.elapsed_s() * 1e9));
  event.set_session(session.id());
  event.set_event("state");
  event.set_state(api::state_name(session));
  event.set_direction(session.direction());
  event.set_peer(session.peer());
  event.set_from(session.from());
  event.set_bytes_done(session.bytes_done());
  event.set_bytes_total(session.bytes_total());
  event.set_waiting_for(session.waiting_for());
  event.set_rate_limit_bps(session.rate_limit_bps());
  event.set_rate_state(session.rate_state());
  *event.mutable_bottleneck() = session.bottleneck();
  event.set_error_code(session.error_code());
  event.set_error_name(session.error_name());
  event.set_error(session.error());
  return event;
}

std::vector<std::string> event_environment(const api::Json& event) {
  std::vector<std::string> facts;
  for (const char* key : {"event", "session", "state", "direction", "from", "peer", "bytes_done",
                          "bytes_total", "waiting_for", "error_code", "error_name", "error"}) {
    std::string name = key;
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c == '_' ? c : c & ~0x20; });
    facts.push_back("SLUICE_" + name + "=" + fact_of(event, key));
  }
  return facts;
}

void notify_end(Environment& environment, const std::filesystem::path& node, const std::string& program,
                const api::Session& session) {
  if (program.empty()) return;
  Telling telling({.at_once = 1, .tries = 3, .waits = {.first_ns = kOneSecondNs}, .waiting = 1});
  telling.add(
      {.key = session.id(), .text = api::to_line(api::event_json(standing_event(session))), .lasting = false},
      steady_now_ns());
  Teller teller(environment, {.program = program, .node = node}, telling);
  while (!telling.idle()) {
    teller.start_due(steady_now_ns());
    std::vector<pollfd> fds;
    teller.add_fds(&fds);
    const int64_t left_ns = std::min(teller.next_ns() - steady_now_ns(), kOneSecondNs);
    (void)::poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(0, left_ns / kNsOfMilli) + 1));
    teller.reap(steady_now_ns());
  }
}

}  // namespace sluice::cli
