// What happens at a node's sessions, heard on a thread of its own, for a command that does other things
// meanwhile. A node that is restarted is called again, after growing waits.
//
// One thread takes what it has heard.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "control/proto/api.grpc.pb.h"
#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::cli {

class Listener {
 public:
  // `session`: of that one until its end; empty: of all.
  Listener(std::filesystem::path node_directory, std::string session);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int fd() const { return wake_.get(); }  // can be read when there is news

  struct News {
    std::vector<api::SessionEvent> events;
    bool missed = false;           // there may have been others: it has called the node anew, or was too slow
    bool over = false;             // the one session has ended, and that was told
    std::optional<Error> trouble;  // why it hears nothing just now; told once
  };
  News take();

 private:
  void run();
  // Until the stream ends; an error says why.
  Status listen();
  bool hear(const api::SessionEvent& event);
  bool wait(int seconds);  // false: it is to end
  void tell();

  const std::filesystem::path node_directory_;
  const std::string session_;
  UniqueFd wake_;
  std::mutex mutex_;
  std::condition_variable leaving_changed_;
  News news_;
  bool leaving_ = false;
  bool in_trouble_ = false;
  grpc::ClientContext* call_ = nullptr;
  std::thread thread_;
};

}  // namespace sluice::cli
