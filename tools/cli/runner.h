// One run of the transfers of a file: begins them, follows each to its end, and tells of it.
//
// The command's main thread. A session of a transfer that goes on from before, since an earlier try or an
// earlier run of the file began it, is followed to its end; none is begun beside it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/client/client.h"
#include "tools/cli/app.h"
#include "tools/cli/canceller.h"
#include "tools/cli/run_file.h"
#include "tools/cli/run_memory.h"
#include "tools/cli/transfer_lists.h"

namespace sluice::cli {

using Transfers = std::vector<const RunTransfer*>;

class Runner {
 public:
  Runner(const Context& context, std::shared_ptr<api::Client> client, Canceller& canceller, RunMemory& memory,
         bool quiet)
      : context_(context),
        client_(std::move(client)),
        canceller_(canceller),
        memory_(memory),
        quiet_(quiet) {}

  // Its options count from now on: a deadline of "30m" begins with it.
  void begin(const RunTransfer& transfer);
  // All that were begun. What became of one does not keep the others from their end.
  void follow();
  void not_begun(const RunTransfer& transfer);

  struct Failed {
    Transfers transfers;
    std::string kinds;  // "no_space", "1 no_space, 2 storage"
  };
  // Of these, what failed and may end otherwise later: from now on it counts as not yet run.
  Failed take_failed(const Transfers& of);
  // A node that was restarted meanwhile has another connection.
  void use(std::shared_ptr<api::Client> client) { client_ = std::move(client); }

  int exit_code() const { return failed_.empty() ? 0 : failed_.begin()->second; }
  api::Json json() const;

 private:
  using Session = unattended::RunSessions::Session;
  struct Begun {
    const RunTransfer* transfer = nullptr;
    std::string id;
  };

  void sync(const RunTransfer& transfer);
  Status end_earlier(const RunTransfer& transfer);
  void preview(const RunTransfer& transfer);
  Result<api::TransferRequest> request_of(const RunTransfer& transfer);
  Result<api::TransferRequest> prepare(const RunTransfer& transfer);
  Result<std::string> begin_anew(const RunTransfer& transfer, api::TransferRequest request);
  Result<std::string> ask(const RunTransfer& transfer);
  Result<std::optional<api::Session>> going_on(const RunTransfer& transfer,
                                               const std::optional<Session>& known);
  Status go_on(const RunTransfer& transfer, const Session& known, const api::Session& session);
  void follow_next();
  void notify(const RunTransfer& transfer, const api::Session& session);
  void note(const RunTransfer& transfer, int exit_code);
  void fail(const RunTransfer& transfer, const Error& error);
  void say(const RunTransfer& transfer, const std::string& text);

  const Context& context_;
  std::shared_ptr<api::Client> client_;
  Canceller& canceller_;
  RunMemory& memory_;
  const bool quiet_;
  std::deque<Begun> under_way_;
  std::map<const RunTransfer*, TransferLists> lists_;
  std::map<const RunTransfer*, int> failed_;  // with their exit codes, in the order of the file
  std::map<const RunTransfer*, std::vector<std::string>> left_out_;  // that fit a pattern of theirs
  std::set<const RunTransfer*> settled_;                             // another try would bring no more
  api::Json followed_ = api::Json::array();                          // sessions that an earlier run began
  api::Json sessions_ = api::Json::array();
  api::Json previews_ = api::Json::array();
  api::Json syncs_ = api::Json::array();
  api::Json errors_ = api::Json::array();
};

}  // namespace sluice::cli
