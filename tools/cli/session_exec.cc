// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/session_exec.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/proto/session_state.h"
#include "dataplane/base/arguments/arguments.h"
#include "tools/cli/connect.h"
#include "tools/cli/format.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/listener.h"
#include "tools/cli/state_file.h"
#include "tools/cli/teller.h"

namespace sluice::cli {
namespace {

using unattended::kNever;
using unattended::kOneSecondNs;
using unattended::Letter;
using unattended::Telling;

constexpr int64_t kNsOfMs = 1'000'000;
// All sessions are looked at so long after the node was called, by when its events come; and then now and
// then.
constexpr int64_t kLookAfterNs = 2 * kOneSecondNs;
constexpr int64_t kLookEveryNs = 300 * kOneSecondNs;
// A line that says no more than that this is not the first start, whatever else there is to remember.
constexpr char kBegun[] = "begun\n";

// An end may be heard of before all sessions were looked at.
bool is_first_line(std::string_view line) { return line == "begun" || Telling::is_line(line); }

bool is_end_state(const std::string& state) {
  return state == "succeeded" || state == "partial" || state == "failed" || state == "cancelled";
}

// Of a pause each attempt has one.
std::string key_of_standing(const api::Session& session) {
  if (api::has_ended(session)) return session.id();
  return fmt::format("{} paused {}", session.id(), session.attempts());
}
std::string session_of_key(const std::string& key) { return key.substr(0, key.find(' ')); }

class Exec {
 public:
  Exec(const Context& context, std::string session, const ExecFlags& flags)
      : context_(context),
        session_(std::move(session)),
        flags_(flags),
        telling_({.at_once = flags.at_once,
                  .tries = flags.tries,
                  .waits = {.first_ns = flags.wait_s * kOneSecondNs}}),
        teller_(context.environment,
                {.program = flags.program,
                 .node = context.node_directory(),
                 .limit_ns = flags.limit_s * kOneSecondNs},
                telling_),
        interrupted_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  Status open_state() {
    if (!session_.empty()) return {};
    Result<std::filesystem::path> place = context_.environment.working_directory / flags_.state;
    if (flags_.state.empty())
      place = usual_state_file("events", {context_.node_directory().string(), flags_.program, flags_.on});
    if (!place) return place.error();
    Result<StateFile> state = StateFile::open(*place, is_first_line);
    if (!state) return state.error();
    first_start_ = state->fresh();
    telling_.read(state->text());
    state_.emplace(std::move(*state));
    return {};
  }

  Result<int> run() {
    // Before the threads, which shall not take the signals.
    const Interrupt interrupt([this] { (void)::eventfd_write(interrupted_.get(), 1); }, 0);
    // The first start of all passes over the sessions that have ended by now, and over none that ends later.
    // It writes them down before it tells anything.
    if (first_start_) look_ns_ = steady_now_ns();
    look();
    if (Status status = remember(); !status) return status.error();
    Listener listener(context_.node_directory(), session_);
    while (true) {
      if (Status status = hear(listener.take()); !status) return status.error();
      look();
      teller_.start_due(steady_now_ns());
      if (Status status = remember(); !status) return status.error();
      if (over_ && telling_.idle()) break;
      if (wait(listener.fd())) break;
      teller_.reap(steady_now_ns());
    }
    teller_.stop();
    if (Status status = remember(); !status) return status.error();
    if (!session_.empty() && teller_.given_up() != 0)
      return Error{ErrorCode::kInternal, flags_.program + ": failed each time; see above"};
    return 0;
  }

 private:
  // True: somebody wants this to end.
  bool wait(int news) {
    std::vector<pollfd> fds{{.fd = interrupted_.get(), .events = POLLIN, .revents = 0},
                            {.fd = news, .events = POLLIN, .revents = 0}};
    teller_.add_fds(&fds);
    const int64_t left_ns = std::min(teller_.next_ns(), look_ns_) - steady_now_ns();
    const int64_t left_ms = std::clamp<int64_t>(left_ns / kNsOfMs + 1, 0, 60'000);
    return ::poll(fds.data(), fds.size(), static_cast<int>(left_ms)) > 0 && fds[0].revents != 0;
  }

  Status hear(const Listener::News& news) {
    if (news.trouble) {
      if (!session_.empty() && news.trouble->code != ErrorCode::kDaemonNotRunning) return *news.trouble;
      say(news.trouble->message + "; it is asked again until it answers");
      client_.reset();
    }
    if (news.missed) look_ns_ = std::min(look_ns_, steady_now_ns() + (first_start_ ? 0 : kLookAfterNs));
    for (const api::SessionEvent& event : news.events) hear(event);
    over_ = over_ || news.over;
    return {};
  }

  void hear(const api::SessionEvent& event) {
    const bool stands = is_end_state(event.state()) || (event.state() == "paused" && event.error_code() != 0);
    if (stands && (event.event() == "state" || event.event() == "error")) {
      if (api::Client* const client = this->client()) {
        if (const auto session = client->show(event.session())) return tell(*session);
      }
      look_ns_ = steady_now_ns();
      return;
    }
    if (flags_.on != "change") return;
    Letter letter{.key = fmt::format("{} {} {}", event.session(), event.unix_ns(), changes_++),
                  .text = api::to_line(api::event_json(event)),
                  .lasting = false};
    add(std::move(letter));
  }

  void tell(const api::Session& session) {
    if (!session_.empty() && !session.id().starts_with(session_)) return;
    if (!api::stands_still(session) || (flags_.on == "end" && !api::has_ended(session))) return;
    Letter letter{.key = key_of_standing(session),
                  .text = api::to_line(api::event_json(standing_event(session)))};
    add(std::move(letter));
  }

  void add(Letter letter) {
    const bool full = telling_.add(std::move(letter), steady_now_ns()) == Telling::Added::kNoRoom;
    // An end that found no room is found again by the next look.
    if (full && !full_) say("more waits to be told than is kept; what only changes is left out");
    full_ = full;
  }

  // At all sessions: some may have ended while nobody listened.
  void look() {
    if (steady_now_ns() < look_ns_) return;
    look_ns_ = steady_now_ns() + kLookEveryNs;
    api::Client* const client = this->client();
    if (client == nullptr) return void(look_ns_ = steady_now_ns() + kLookAfterNs);
    const Status looked = session_.empty() ? look_at_all(*client) : look_at_one(*client);
    if (looked) return;
    client_.reset();
    look_ns_ = steady_now_ns() + kLookAfterNs;
  }
  Status look_at_one(api::Client& node) {
    const auto session = node.show(session_);
    if (!session) return session.error();
    tell(*session);
    return {};
  }
  Status look_at_all(api::Client& node) {
    const auto all = node.list();
    if (!all) return all.error();
    std::set<std::string> there;
    for (const api::Session& session : all->sessions()) {
      there.insert(session.id());
      if (first_start_ && api::stands_still(session)) {
        telling_.pass_over(key_of_standing(session));
      } else {
        tell(session);
      }
    }
    telling_.keep([&there](const std::string& key) { return there.contains(session_of_key(key)); });
    begun_ = begun_ || std::exchange(first_start_, false);
    return {};
  }

  Status remember() {
    const bool decisive = telling_.decisive() || begun_;
    std::string lines = telling_.take_lines();
    if (std::exchange(begun_, false)) lines.insert(0, kBegun);
    if (!state_) return {};
    return state_->append(lines, decisive,
                          [this] { return (first_start_ ? "" : kBegun) + telling_.all_lines(); });
  }

  api::Client* client() {
    if (client_ == nullptr) {
      auto connected = connect_to_node(context_.node_directory());
      if (!connected) return nullptr;
      client_ = std::move(*connected);
    }
    return client_.get();
  }

  void say(const std::string& text) const {
    context_.environment.err << "sluice: " << printable(text) << "\n" << std::flush;
  }

  const Context& context_;
  const std::string session_;
  const ExecFlags& flags_;
  Telling telling_;
  Teller teller_;
  UniqueFd interrupted_;
  std::unique_ptr<api::Client> client_;
  std::optional<StateFile> state_;
  bool first_start_ = false;
  bool begun_ = false;  // the first start has passed over what was there, which is not written down yet
  bool over_ = false;
  bool full_ = false;
  uint64_t changes_ = 0;
  int64_t look_ns_ = kNever;
};

}  // namespace

void add_exec_options(CLI::App& command, ExecFlags& flags) {
  command
      .add_option("--exec", flags.program,
                  "Run this program, without a shell, for each session that has ended; it gets the event on "
                  "its stdin")
      ->type_name("PROGRAM");
  const auto add = [&command](const std::string& flag, auto& value, const std::string& type,
                              const std::string& about) {
    return command.add_option(flag, value, about)->type_name(type)->needs(command.get_option("--exec"));
  };
  add("--on", flags.on, "WHAT",
      "With --exec: end (the default); stop, also when an error holds a session; change, each event")
      ->check(CLI::IsMember(std::vector<std::string>{"end", "stop", "change"}));
  add("--at-once", flags.at_once, "N", "With --exec: so many programs run at a time (4)")
      ->transform(arguments::whole(1, 64));
  add("--time-limit", flags.limit_s, "S", "With --exec: a program that takes longer has failed (30)")
      ->transform(arguments::whole(1, 3600));
  add("--tries", flags.tries, "N", "With --exec: so often a program that fails is run for one event (10)")
      ->transform(arguments::whole(1, 1000));
  add("--retry-wait", flags.wait_s, "S",
      "With --exec: so long after the first failure; twice as long after each other, up to 600 s (5)")
      ->transform(arguments::whole(1, 600));
  add("--state", flags.state, "FILE",
      "With --exec, of all sessions: what was told is remembered here (default: ~/.local/state/sluice/...)");
}

Result<int> exec_on_events(const Context& context, const std::string& session, const ExecFlags& flags) {
  if (Status status = check_program("--exec", flags.program); !status) return status.error();
  if (!session.empty() && !flags.state.empty())
    return Error{ErrorCode::kUsage,
                 "--state: what was told of one session is not remembered; leave ID out, or --state"};
  // What is wrong with the node's directory is told at once; that nobody answers there may change.
  auto client = connect_to_node(context.node_directory());
  if (!client && client.error().code != ErrorCode::kDaemonNotRunning) return client.error();
  std::string id = session;
  if (!session.empty()) {
    if (!client) return client.error();
    const auto shown = (*client)->show(session);
    if (!shown) return shown.error();
    id = shown->id();
  }
  Exec exec(context, id, flags);
  if (Status status = exec.open_state(); !status) return status.error();
  return exec.run();
}

}  // namespace sluice::cli
