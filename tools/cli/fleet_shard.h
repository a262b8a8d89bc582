// Runs one shard at this host's node, and writes down how far it is (tools/fleet/tries.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "control/client/client.h"
#include "tools/cli/app.h"
#include "tools/cli/canceller.h"
#include "tools/cli/fleet.h"
#include "tools/cli/run_file.h"
#include "tools/fleet/tries.h"

namespace sluice::cli {

inline api::TransferOptions& options_of(api::TransferRequest& request) {
  return *std::visit([](auto& one) { return one.mutable_options(); }, request);
}

class ShardRun {
 public:
  ShardRun(const Context& context, const fleet::Plan& plan, std::filesystem::path directory,
           uint32_t patience_s, Canceller& canceller)
      : context_(context),
        plan_(plan),
        directory_(std::move(directory)),
        patience_s_(patience_s),
        canceller_(canceller) {}

  // The exit status, which the try has as well. Errors: the try could not be begun, or not be written down.
  Result<int> perform(uint32_t shard, uint64_t epoch);

 private:
  Status connect();
  Status check_node();
  // Repeats what fails since sluice-control is away, until its patience is over.
  template <typename Call>
  auto patiently(Call call);

  Status run_shard();
  // `cut`: the name in the dataset of the file of which it moves a range, or which it finishes; empty:
  // neither.
  Status run_session(uint32_t number, api::TransferRequest request, const std::string& cut = "");
  std::string cut_name(const RunTransfer& transfer) const;
  Result<api::Session> find_former(uint32_t number);
  Result<api::Session> follow(const std::string& id);
  Status note_end(uint32_t number, const api::Session& session);
  Status finish_files(const std::vector<RunTransfer>& all);
  void keep_digests(uint32_t number, const api::Session& session) const;
  void keep_receipt(uint32_t number, const api::Session& session);
  void progress(const api::Session& session);

  // What comes last.
  Status run_last();
  Status check_all_done() const;
  Status remove_extra();
  Status send_top();

  Result<std::vector<RunTransfer>> transfers() const;
  Status write();
  void fail(const Error& error);

  const Context& context_;
  const fleet::Plan& plan_;
  const std::filesystem::path directory_;
  const uint32_t patience_s_;
  Canceller& canceller_;
  std::shared_ptr<api::Client> client_;
  fleet::Try try_;
  std::vector<fleet::Try> former_;
  std::string lease_;   // "NAME:EPOCH" of this try
  bool range_ = false;  // the session moves a range of a file
  int64_t written_ns_ = 0;
  std::vector<std::string> touched_;  // directories from which something was removed
};

}  // namespace sluice::cli
