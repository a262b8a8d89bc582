// A node's control, put together: its sessions, and who begins, calls, asks, watches and tells of them.
//
// All methods run on control's one io_context thread and none blocks it but start(), before the loop runs.
// Each part has one reason to change and knows those above it alone; this class makes them, and starts and
// stops them in their order. A session always ends in success, in failure with a reason, or stays in a
// visible named wait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "control/node/begin.h"
#include "control/node/export_watch.h"
#include "control/node/journal_watch.h"
#include "control/node/logs.h"
#include "control/node/names_digested.h"
#include "control/node/orders.h"
#include "control/node/questions.h"
#include "control/node/reception.h"
#include "control/node/report.h"
#include "control/node/sessions.h"
#include "control/node/trust_watch.h"
#include "control/node/verify.h"

namespace sluice::node {

class Manager {
 public:
  // It goes before `io`.
  Manager(asio::io_context& io, const config::Node& node, identity::Identity identity,
          exports::Exports exports, std::unique_ptr<journal::Journal> journal);
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // Finds what the journal has, then listens for peers and looks for the dataplane. Once; an error is final.
  Status start();
  // Lets go of every session (flows and files stay for the next control), then leaves the loop without work,
  // so that its run() returns. Once. The caller may stop the loop earlier if that takes too long.
  void stop();
  // ExportWatch's, after the loop.
  std::string settle(std::chrono::milliseconds limit) { return export_watch_.settle(limit); }
  // Whoever opens files for users is waited for no longer. Any thread.
  void give_up_users() const {
    services_->users.give_up();
    services_->callers.give_up();
  }

  Sessions& sessions() { return sessions_; }
  const Sessions& sessions() const { return sessions_; }
  Starter& starter() { return starter_; }
  Orders& orders() { return orders_; }
  Moves& moves() { return moves_; }
  const Questions& questions() const { return questions_; }
  const Logs& logs() const { return logs_; }
  Report& report() { return report_; }
  const Report& report() const { return report_; }

  // What `sluice verify` reads back, and where.
  asio::awaitable<Result<ToVerify>> verification(std::string id) const;
  // Of what the destination stored, where digests were asked for.
  asio::awaitable<Result<std::vector<digests::Named>>> digests(std::string id) const;
  VerifyPlace verify_place(std::shared_ptr<const exports::Exports> exports) const;
  // Who does things as users of this host. Any thread.
  const users::Client& users() const { return services_->users; }
  // Where processes call that open files for their user, outside the exports.
  users::Callers& callers() { return services_->callers; }
  const exports::Exports& exports() const { return services_->exports; }
  const audit::AuditLog& audit() const { return services_->audit; }

 private:
  const std::shared_ptr<runtime::Services> services_;
  bool started_ = false;
  Sessions sessions_;
  Starter starter_;
  Orders orders_;
  Moves moves_;
  Questions questions_;
  Logs logs_;
  Reception reception_;
  TrustWatch trust_watch_;
  ExportWatch export_watch_;
  JournalWatch journal_watch_;
  Report report_;
};

}  // namespace sluice::node
