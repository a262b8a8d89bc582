// sluice session events|watch: what happens at sessions while one looks on.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <thread>

#include "control/proto/session_state.h"
#include "tools/cli/app.h"
#include "tools/cli/connect.h"
#include "tools/cli/follow.h"
#include "tools/cli/progress.h"
#include "tools/cli/session_exec.h"
#include "tools/cli/terminal.h"
#include "tools/cli/watch_page.h"

namespace sluice::cli {
namespace {

constexpr int kDrawMs = 200;
constexpr int kSignalExit = 128;  // and the signal's number, as a shell has it

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Lines for a program: each is written at once. Until the session ends; without one until the reader leaves.
Result<int> events(const Context& context, const std::string& id) {
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  std::ostream& out = context.environment.out;
  const Status status = (*client)->events(id, [&](const api::SessionEvent& event) {
    out << api::to_line(api::event_json(event)) << std::flush;
    return out.good();
  });
  if (!status) return status.error();
  return 0;
}

// What the node tells, on threads of its own, so that keys are answered meanwhile.
class News {
 public:
  News(api::Client& client, std::string id) : client_(client), id_(std::move(id)) {
    sessions_ = std::thread([this] { follow(); });
    counters_ = std::thread([this] { count(); });
  }
  // Within a second: so often the node repeats itself.
  ~News() {
    {
      const std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    left_.notify_all();
    sessions_.join();
    counters_.join();
  }
  News(const News&) = delete;
  News& operator=(const News&) = delete;

  std::vector<std::string> page(size_t columns, size_t rows) const {
    const std::lock_guard lock(mutex_);
    return page_.lines(columns, rows);
  }
  // The session's last state, or why nothing more comes.
  std::optional<Result<api::Session>> end() const {
    const std::lock_guard lock(mutex_);
    return end_;
  }

 private:
  void follow() {
    auto last = client_.watch(id_, std::nullopt, [this](const api::Session& session) {
      const std::lock_guard lock(mutex_);
      page_.session(session, now_ns());
      return !leaving_;
    });
    const std::lock_guard lock(mutex_);
    end_ = std::move(last);
  }
  void count() {
    bool leaving = false;
    while (!leaving) {
      const auto counters = client_.counters();
      std::unique_lock lock(mutex_);
      if (counters) page_.counters(*counters, now_ns());
      leaving = left_.wait_for(lock, std::chrono::seconds(1), [this] { return leaving_; });
    }
  }

  api::Client& client_;
  const std::string id_;
  mutable std::mutex mutex_;
  WatchPage page_;
  std::optional<Result<api::Session>> end_;
  bool leaving_ = false;
  std::condition_variable left_;
  std::thread sessions_;
  std::thread counters_;
};

// Without an id: the newest that has not ended, else the newest of all.
Result<std::string> chosen(api::Client& client, const std::string& id) {
  if (!id.empty()) {
    const auto session = client.show(id);
    if (!session) return session.error();
    return session->id();
  }
  const auto all = client.list();
  if (!all) return all.error();
  const api::Session* newest = nullptr;
  for (const api::Session& session : all->sessions()) {
    if (newest == nullptr || !api::stands_still(session) || api::stands_still(*newest)) newest = &session;
  }
  if (newest == nullptr)
    return Error{ErrorCode::kUsage, "there is no session; begin one with 'sluice send' or 'sluice get'"};
  return newest->id();
}

Result<int> watch(const Context& context, const std::string& id) {
  Environment& environment = context.environment;
  if (!environment.out_is_terminal || context.json) {
    return Error{
        ErrorCode::kUsage,
        "draws on a terminal, which the standard output is not: use 'sluice session show ID' for how it "
        "stands, 'sluice session events ID' for a program"};
  }
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  const Result<std::string> session = chosen(**client, id);
  if (!session) return session.error();
  auto terminal = Terminal::open();
  if (!terminal) return terminal.error();
  std::optional<Result<api::Session>> end;
  int signal = 0;
  {
    News news(**client, *session);
    while (true) {
      (*terminal)->draw(news.page((*terminal)->columns(), (*terminal)->rows()));
      end = news.end();
      signal = Terminal::signal();
      if (end || signal != 0 || (*terminal)->key(kDrawMs) == Terminal::Key::kQuit) break;
    }
    terminal->reset();  // before the threads are waited for
  }
  if (signal != 0) return kSignalExit + signal;
  if (!end) return 0;  // who looks on may leave
  if (!*end) return end->error();
  if ((*end)->state() == api::Session::SUCCEEDED) context.print({}, summary_text(**end));
  tell_failure(environment, **end);
  return exit_code_of(**end);
}

}  // namespace

void add_session_views(CLI::App& session, Context& context) {
  auto watched = std::make_shared<std::string>();
  CLI::App* const watching =
      session.add_subcommand("watch", "Look on: rate over time, what limits it, lanes; on a terminal");
  watching->add_option("id", *watched, "Session (default: the newest that has not ended)")->type_name("ID");
  watching->callback(
      [&context, watched] { context.action = [&context, watched] { return watch(context, *watched); }; });

  auto id = std::make_shared<std::string>();
  auto flags = std::make_shared<ExecFlags>();
  CLI::App* const listening = session.add_subcommand(
      "events", "Print what changes, as it changes: one JSON object a line; or have a program told");
  listening->add_option("id", *id, "Session, until its end; without it all, until interrupted")
      ->type_name("ID");
  add_exec_options(*listening, *flags);
  listening->callback([&context, id, flags] {
    context.action = [&context, id, flags] {
      return flags->program.empty() ? events(context, *id) : exec_on_events(context, *id, *flags);
    };
  });
}

}  // namespace sluice::cli
