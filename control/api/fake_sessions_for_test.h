// A SessionManager for tests of what stands in front of it: it keeps the requests it was given and
// answers as it is told. Its methods check that they run on one thread, as the real one requires.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/api/fake_names_for_test.h"
#include "control/api/server.h"
#include "control/api/session_changes.h"
#include "control/api/session_manager.h"
#include "control/proto/session_state.h"

namespace sluice::service {

class FakeSessions final : public SessionManager {
 public:
  asio::awaitable<Result<std::string>> send(api::SendRequest request) override {
    last_send = request;
    co_return add("send", request.peer(), {request.sources().begin(), request.sources().end()},
                  request.destination(), request.id());
  }
  asio::awaitable<Result<std::string>> get(api::GetRequest request) override {
    last_get = request;
    co_return add("get", request.peer(), {request.sources().begin(), request.sources().end()},
                  request.destination());
  }
  asio::awaitable<Result<Preview>> preview(api::SendRequest request) override {
    last_send = request;
    if (refusal) co_return *refusal;
    co_return Preview([part = preview_reply](const PreviewReport& report) -> Status {
      report(part);
      return {};
    });
  }
  std::vector<api::Session> list() const override {
    std::vector<api::Session> all;
    for (const auto& [id, session] : sessions) all.push_back(session);
    return all;
  }
  std::vector<std::string> ended() const override {
    std::vector<std::string> ids;
    for (const auto& [id, session] : sessions) {
      if (api::stands_still(session)) ids.push_back(id);
    }
    return ids;
  }
  std::vector<api::Session> overviews() const override {
    std::vector<api::Session> all;
    for (const auto& [id, session] : sessions) {
      if (api::stands_still(session)) continue;
      all.push_back(session);
      all.back().clear_files();
    }
    return all;
  }
  Result<api::Session> show(const std::string& id) const override {
    off_thread = off_thread || std::this_thread::get_id() != owner;
    ++shows;
    const auto found = sessions.find(id);
    if (found == sessions.end()) return unknown(id);
    return found->second;
  }
  asio::awaitable<Result<api::Session>> pause(std::string id) override {
    co_return set_state(id, api::Session::PAUSED);
  }
  asio::awaitable<Result<api::Session>> go_on(std::string id) override {
    co_return set_state(id, api::Session::TRANSFERRING);
  }
  asio::awaitable<Result<api::Session>> limit(std::string id, uint64_t rate_bps) override {
    const auto found = sessions.find(id);
    if (found == sessions.end()) co_return unknown(id);
    found->second.set_rate_limit_bps(rate_bps == 0 ? 10'000'000'000 : rate_bps);
    co_return found->second;
  }
  asio::awaitable<Result<api::Session>> prioritize(std::string id, int32_t priority) override {
    const auto found = sessions.find(id);
    if (found == sessions.end()) co_return unknown(id);
    found->second.set_priority(priority);
    co_return found->second;
  }
  asio::awaitable<Result<std::string>> give(api::ExportRequest request) override {
    if (auto session = show(request.id()); !session) co_return session.error();
    last_export = request;
    co_return request.withdraw() ? std::string() : bundle;
  }
  asio::awaitable<Result<api::Session>> take(std::string bytes) override {
    if (bytes != bundle) co_return Error{ErrorCode::kUsage, "no bundle"};
    co_return sessions.begin()->second;
  }
  asio::awaitable<Result<Verification>> verification(std::string id) override {
    if (auto session = show(id); !session) co_return session.error();
    co_return Verification([verdicts = verdicts](const VerifyReport& report) {
      for (const api::VerifyProgress& verdict : verdicts) {
        if (!report(verdict)) return;
      }
    });
  }
  asio::awaitable<Result<std::vector<api::NameDigests>>> digests(std::string id) override {
    if (auto session = show(id); !session) co_return session.error();
    co_return named;
  }
  asio::awaitable<Result<api::Session>> cancel(std::string id) override {
    const auto found = sessions.find(id);
    if (found == sessions.end()) co_return unknown(id);
    found->second.set_state(api::Session::CANCELLED);
    found->second.set_error_code(static_cast<uint32_t>(ErrorCode::kCancelled));
    found->second.set_error_name("cancelled");
    found->second.set_error("cancelled by the operator");
    co_return found->second;
  }
  Result<LogPart> log(const api::LogRequest& request, const LogPlace& from) const override {
    if (!sessions.contains(request.id())) return unknown(request.id());
    last_log = request;
    LogPart part{.reply = {}, .next = {from.number + 1, true}, .ended = from.number >= log_parts.size()};
    if (!part.ended) part.reply = log_parts[from.number];
    part.reply.set_session(request.id());
    part.reply.set_level("events");
    part.more = from.number + 1 < log_parts.size() && !log_waits;
    return part;
  }
  Result<std::string> set_log_level(const std::string& id, const std::string& level) override {
    if (!sessions.contains(id)) return unknown(id);
    log_level = level;
    return id;
  }
  asio::awaitable<Result<api::ComponentLevels>> component_levels() override { co_return levels; }
  asio::awaitable<Result<api::ComponentLevels>> set_component_level(api::ComponentLevel level) override {
    for (api::ComponentLevel& each : *levels.mutable_levels()) {
      if (level.component().empty() || each.component() == level.component()) each.set_level(level.level());
    }
    co_return levels;
  }
  asio::awaitable<Result<api::PeerAnswer>> about(std::string peer) override {
    if (refusal) co_return *refusal;
    if (!abouts.contains(peer))
      co_return Error{ErrorCode::kConfiguration, "node " + peer + " is not trusted"};
    co_return abouts[peer];
  }
  void when_ended(std::function<void()> to_tell) override { news = std::move(to_tell); }
  asio::awaitable<Result<api::NodeReply>> node() override { co_return node_reply; }
  Result<api::CountersReply> counters() const override { return counters_reply; }

  Result<api::Session> set_state(const std::string& id, api::Session::State state) {
    const auto found = sessions.find(id);
    if (found == sessions.end()) return unknown(id);
    found->second.set_state(state);
    return found->second;
  }

  static Error unknown(const std::string& id) {
    return {ErrorCode::kUsage, "no session " + id + "; see sluice session list"};
  }

  std::function<void()> news = [] {};
  std::map<std::string, api::Session> sessions;
  api::NodeReply node_reply;
  api::CountersReply counters_reply;
  std::vector<api::VerifyProgress> verdicts;
  std::vector<api::NameDigests> named;
  api::PreviewReply preview_reply;
  std::vector<api::LogReply> log_parts;
  bool log_waits = false;  // for each further part
  std::string log_level;
  std::string bundle = "a bundle";
  std::optional<api::ExportRequest> last_export;
  std::map<std::string, api::PeerAnswer> abouts;
  api::ComponentLevels levels;
  mutable std::optional<api::LogRequest> last_log;
  std::optional<Error> refusal;  // what send and get answer instead of a session
  api::Session prototype;        // state, bytes and error of new sessions
  std::optional<api::SendRequest> last_send;
  std::optional<api::GetRequest> last_get;
  std::thread::id owner;
  mutable bool off_thread = false;
  mutable int shows = 0;

 private:
  Result<std::string> add(const std::string& direction, const std::string& peer,
                          const std::vector<std::string>& sources, const std::string& destination,
                          const std::string& id = "") {
    off_thread = off_thread || std::this_thread::get_id() != owner;
    if (refusal) return *refusal;
    api::Session session = prototype;
    session.set_id(id.empty() ? "s" + std::to_string(sessions.size() + 1) : id);
    session.set_direction(direction);
    session.set_peer(peer);
    for (const std::string& source : sources) {
      api::FileProgress* file = session.add_files();
      file->set_source(source);
      file->set_destination(destination);
    }
    sessions[session.id()] = session;
    return session.id();
  }
};

// A FakeSessions on its own io_context thread, with or without a Server on a socket in a directory of
// its own that has the shape of a node's.
class FakeControl {
 public:
  FakeControl() {
    std::string pattern = "/tmp/sluice-api-test-XXXXXX";
    directory = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(directory / "run");
    socket = directory / "run" / "control.sock";
    thread_ = std::thread([this] {
      sessions.owner = std::this_thread::get_id();
      io.run();
    });
  }
  ~FakeControl() {
    server.reset();
    guard_.reset();
    thread_.join();
    std::filesystem::remove_all(directory);
  }
  FakeControl(const FakeControl&) = delete;
  FakeControl& operator=(const FakeControl&) = delete;

  Status serve(std::chrono::milliseconds watch_interval = kWatchInterval) {
    auto started = start_server(io, sessions, names, socket, watch_interval);
    if (!started) return started.error();
    server = std::move(*started);
    return {};
  }
  // Runs `work` where the sessions live.
  template <typename Work>
  auto on_io(Work work) -> decltype(work()) {
    std::packaged_task<decltype(work())()> task(std::move(work));
    auto result = task.get_future();
    asio::post(io, [&task] { task(); });
    return result.get();
  }

  std::filesystem::path directory;
  std::filesystem::path socket;
  asio::io_context io;
  FakeSessions sessions;
  FakeNames names;
  std::unique_ptr<Server> server;

 private:
  asio::executor_work_guard<asio::io_context::executor_type> guard_{io.get_executor()};
  std::thread thread_;
};

}  // namespace sluice::service
