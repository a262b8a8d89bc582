// The sessions of a watched folder: each takes a batch of files, and is followed to its end, over restarts of
// this command and of the node.
//
// What is to be sent is written down before a session is asked for, with an id that this command makes: what
// has become of it is asked by that id, and nothing else counts as the session of these files. A session that
// an error holds up is continued after growing waits, so that what has arrived is not sent again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/client/client.h"
#include "tools/cli/app.h"
#include "tools/unattended/sent_files.h"
#include "tools/unattended/waits.h"

namespace sluice::cli {

class FolderSender {
 public:
  struct Options {
    api::SendRequest request;        // but for the names
    std::filesystem::path folder;    // absolute, as the node sees it
    std::filesystem::path receipts;  // empty: none are kept
    bool quiet = false;
  };
  // `remember`: writes down what `files` has to say, durably.
  FolderSender(const Context& context, Options options, unattended::SentFiles& files,
               std::function<Status()> remember)
      : context_(context), options_(std::move(options)), files_(files), remember_(std::move(remember)) {}

  // A session of these files. An error: it could not be begun.
  Status begin(const unattended::SentFiles::Files& files, int64_t now_ns);

  struct Ended {
    std::vector<std::string> arrived;
    std::vector<std::string> failed;
  };
  // At the sessions that are under way: what has become of them. kStorage: it cannot be written down.
  Result<Ended> look(int64_t now_ns);
  bool follows(const std::string& session) const;
  int64_t next_ns() const { return next_ns_; }  // when to look, if nothing is heard before

  // Nothing: the node does not answer.
  api::Client* client();
  void lose_client() { client_.reset(); }

 private:
  struct Hold {
    uint32_t failures = 0;  // in a row, of a session that an error holds up
    int64_t due_ns = 0;     // when it is continued
  };
  struct Followed {
    Hold hold;
    bool known = false;  // the node has shown the session
    std::optional<int64_t> unknown_since_ns;
  };
  Status look_at(uint64_t number, const std::string& session, int64_t now_ns, Ended* ended);
  Status end(uint64_t number, const api::Session& session, Ended* ended);
  void release(uint64_t number, Ended* ended);
  void go_on(uint64_t number, const api::Session& session, int64_t now_ns);
  bool keep_receipt(const api::Session& session) const;
  void tell(const api::Session& session, const Ended& ended, bool receipt) const;
  void say(const std::string& text) const;

  const Context& context_;
  const Options options_;
  unattended::SentFiles& files_;
  const std::function<Status()> remember_;
  std::unique_ptr<api::Client> client_;
  std::map<uint64_t, Followed> followed_;  // by the numbers of batches
  unattended::Waits waits_;
  int64_t next_ns_ = unattended::kNever;
  bool said_silent_ = false;
};

}  // namespace sluice::cli
