// Lists of digests of one transfer: --manifest, with which the destination compares what arrives, and
// --write-manifest, of what arrived.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/client/client.h"
#include "control/client/json.h"
#include "tools/cli/app.h"
#include "tools/cli/transfer_flags.h"
#include "tools/manifest/list.h"
#include "tools/manifest/write_list.h"

namespace sluice::cli {

class TransferLists {
 public:
  // Reads the list that --manifest names, and puts what it wants of names into the request, which has its
  // final form. `input`: what "-" stands for. kUsage: the list is none, or what is wished is impossible.
  static Result<TransferLists> of(const TransferFlags& flags, const Context& context, std::istream* input,
                                  api::TransferRequest* request);

  // Of files of this node, whose names are known before anything moves: that the list that is to be written
  // can have them. kUsage.
  Status check_names(const Context& context, api::Client& client, const api::TransferRequest& request) const;

  bool to_stdout() const { return write_.out != nullptr; }
  bool any() const { return checks_ || !write_.list.empty(); }
  struct Outcome {
    api::Json object;   // of --json
    std::string text;   // a line for each finding
    int exit_code = 0;  // of the lists alone
  };
  // After a session in which all or some names arrived: asks the node for their digests.
  Result<Outcome> finish(api::Client& client, const api::Session& session) const;

 private:
  Status read(const Context& context, std::istream& list, const std::string& name,
              const std::vector<digests::Kind>& kinds, const std::vector<std::string>& sources,
              api::TransferOptions* options);
  void expect(const manifest::Entry& entry, const std::vector<std::string>& sources);
  void compare(const std::vector<api::NameDigests>& arrived, const api::Session& session,
               Outcome* outcome) const;
  // The name in the list that is written. Nothing: of a bag it is none of the payload.
  std::optional<std::string> listed_as(const std::string& path) const;
  Status write(const std::vector<api::NameDigests>& arrived, const api::Session& session,
               Outcome* outcome) const;

  bool checks_ = false;
  bool bag_ = false;
  std::vector<manifest::Entry> entries_;
  std::map<std::string, size_t, std::less<>>
      first_;  // number of an entry, by the path under which it arrives
  std::map<std::string, size_t, std::less<>> second_;  // where nothing has the first one
  manifest::WriteOptions write_;
  std::string bag_prefix_;  // of the names that arrive, before those of the bag that is sent
};

}  // namespace sluice::cli
