// SessionManager over real sessions: starts them, finds them again in the journal, serves peers', remembers
// the ended ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "control/peer/connection.h"
#include "control/session/context.h"
#include "control/session/session.h"
#include "control/session/session_manager.h"

namespace sluice::control {

class Manager final : public SessionManager {
 public:
  Manager(asio::io_context& io, const config::Node& node, identity::Identity identity,
          exports::Exports exports, std::unique_ptr<journal::Journal> journal);
  ~Manager() override;

  Status start() override;
  void stop() override;
  Result<std::string> send(const api::SendRequest& request) override;
  Result<std::string> get(const api::GetRequest& request) override;
  std::vector<api::Session> list() const override;
  Result<api::Session> show(const std::string& id) const override;
  Result<api::Session> cancel(const std::string& id) override;
  Result<api::Session> pause(const std::string& id) override;
  Result<api::Session> go_on(const std::string& id) override;
  Result<Verification> verification(const std::string& id) override;
  void when_ended(std::function<void()> news) override { news_ = std::move(news); }
  api::NodeReply node() const override;
  api::CountersReply counters() const override;

 private:
  static constexpr size_t kEndedKept = 256;

  Status check_room() const;
  Result<identity::Peer> find_peer(const std::string& name) const;
  std::string begin(SessionRequest request);
  void add(const std::shared_ptr<Session>& session);
  void ended(const std::shared_ptr<Session>& session);
  // The one session whose id begins with `id`.
  Result<api::Session> find(const std::string& id) const;
  Result<std::shared_ptr<Session>> find_active(const std::string& id) const;

  // manager_journal.cc: what a former control left
  Status restore();
  Status restore_one(const journal::SessionRecord& record);
  asio::awaitable<void> tell_unaware(std::string id, identity::Peer peer, Error error);

  // manager_serve.cc: connections of peers
  asio::awaitable<void> serve(std::shared_ptr<bool> alive, std::unique_ptr<peer::Connection> connection);
  asio::awaitable<void> refuse(std::shared_ptr<peer::Connection> connection, Error error);
  asio::awaitable<void> answer_ended(std::shared_ptr<peer::Connection> connection,
                                     const journal::SessionRecord& record);

  std::function<void()> news_ = [] {};
  std::shared_ptr<Context> context_;
  std::unique_ptr<peer::Listener> listener_;
  std::vector<std::shared_ptr<Session>> active_;
  std::deque<api::Session> ended_;
  bool stopping_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // callbacks may outlive this object
};

}  // namespace sluice::control
