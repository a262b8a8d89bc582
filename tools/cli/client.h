// The CLI's end of the local API: connects to a node's control socket and turns gRPC's errors back into the
// Errors that control meant. Blocking; calls may come from several threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "control/proto/api.grpc.pb.h"
#include "control/proto/log.grpc.pb.h"
#include "control/proto/peers.grpc.pb.h"
#include "dataplane/base/error.h"
#include "tools/cli/transfer_flags.h"

namespace sluice::cli {

class Client {
 public:
  // kDaemonNotRunning when nobody answers, kConfiguration when there is no such node or no right to it.
  static Result<std::unique_ptr<Client>> connect(const std::filesystem::path& node_directory);

  // For a program that ends with its command: gRPC's threads end with the process. To have them end one after
  // the other, for which the end of the last channel waits, takes longer than a short command does.
  static void keep_channels();

  // From now on node(), list() and list_names() end after so long, in place of the usual time.
  void limit_time(double seconds) { limit_s_ = seconds; }

  Result<api::NodeReply> node();
  Result<std::string> begin(const TransferRequest& request);  // the session's id
  // Calls `on_part` with each part.
  Status preview(const api::SendRequest& request,
                 const std::function<void(const api::PreviewReply&)>& on_part);
  Result<api::ListSessionsReply> list();
  Result<api::Session> show(const std::string& id);
  Result<api::Session> cancel(const std::string& id);
  Result<api::Session> pause(const std::string& id);
  Result<api::Session> limit(const std::string& id, uint64_t rate_bps);  // 0: as agreed upon
  Result<api::Session> go_on(const std::string& id);
  Result<api::Session> prioritize(const std::string& id, int32_t priority);
  // Calls `on_progress` with every message about a file.
  Status verify(const std::string& id, const std::function<void(const api::VerifyProgress&)>& on_progress);
  Result<api::CountersReply> counters();

  // The peer is called, and asked about itself.
  Result<api::PeerAnswer> about(const std::string& peer);

  // Calls `on_part` with each part of the list until there are no more, or it returns false: then it ends
  // well.
  Status list_names(const api::ListNamesRequest& request,
                    const std::function<bool(const api::ListNamesReply&)>& on_part);
  // The peer tells what has this name there; empty: it has nothing of that name. Other errors as of
  // list_names.
  Result<std::optional<api::NameEntry>> look_at(const std::string& peer, const std::string& path);
  // These take as long as it takes.
  Result<api::NamesReply> make_directory(const api::MakeDirectoryRequest& request);
  Result<api::NamesReply> move_name(const api::MoveNameRequest& request);
  Result<api::NamesReply> remove_name(const api::RemoveNameRequest& request);
  // As list_names; the last part has the totals.
  Status compare(const api::CompareRequest& request,
                 const std::function<bool(const api::CompareReply&)>& on_part);

  // Calls `on_part` with each part of a session's log until there are no more, or it returns false.
  Status read_log(const api::LogRequest& request, const std::function<bool(const api::LogReply&)>& on_part);
  Result<api::ComponentLevels> log_levels();
  // Of all components, if it names none.
  Result<api::ComponentLevels> set_component_level(const api::ComponentLevel& level);
  Result<api::SessionLogLevel> set_log_level(const std::string& id, const std::string& level);

  // Calls `on_event` with each event, of one session until its end, of all until it returns false.
  Status events(const std::string& id, const std::function<bool(const api::SessionEvent&)>& on_event);

  // Calls `on_change` with what the node tells, until the session has ended: its last state. Or until
  // `timeout_s` is over, or `on_change` returns false: what was known last, not ended.
  Result<api::Session> watch(const std::string& id, std::optional<double> timeout_s,
                             const std::function<bool(const api::Session&)>& on_change);

 private:
  Client(std::unique_ptr<api::Control::Stub> stub, std::unique_ptr<api::Names::Stub> names,
         std::unique_ptr<api::Logs::Stub> logs, std::unique_ptr<api::Peers::Stub> peers)
      : stub_(std::move(stub)), names_(std::move(names)), logs_(std::move(logs)), peers_(std::move(peers)) {}

  std::optional<double> limit_s_;
  std::unique_ptr<api::Control::Stub> stub_;
  std::unique_ptr<api::Names::Stub> names_;
  std::unique_ptr<api::Logs::Stub> logs_;
  std::unique_ptr<api::Peers::Stub> peers_;
};

}  // namespace sluice::cli
