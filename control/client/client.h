// A node's API, call by call, for programs that operators run. A call that fails returns the Error that
// control meant. If control does not answer, the Error says what to look at.
//
// Blocking; calls may come from several threads. There is one connection: a restart of control ends it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "control/client/call.h"
#include "control/client/requests.h"
#include "control/proto/api.grpc.pb.h"
#include "control/proto/log.grpc.pb.h"
#include "control/proto/peers.grpc.pb.h"
#include "dataplane/base/error.h"

namespace sluice::api {

class Client {
 public:
  // Errors as of connect_to (control/client/way.h).
  static Result<std::unique_ptr<Client>> connect(const std::filesystem::path& node_directory);

  // For a program that ends with its command: gRPC's threads end with the process. To have them end one after
  // the other, for which the end of the last channel waits, takes longer than a short command does.
  static void keep_channels();

  // From now on node(), list() and list_names() end after so long, in place of the usual time.
  void limit_time(double seconds) { limit_s_ = seconds; }

  Result<NodeReply> node();
  Result<std::string> begin(const TransferRequest& request);  // the session's id
  // Calls `on_part` with each part.
  Status preview(const SendRequest& request, const std::function<void(const PreviewReply&)>& on_part);
  Result<ListSessionsReply> list();
  Result<Session> show(const std::string& id);
  Result<Session> cancel(const std::string& id);
  Result<Session> pause(const std::string& id);
  Result<Session> limit(const std::string& id, uint64_t rate_bps);  // 0: as agreed upon
  Result<Session> go_on(const std::string& id);
  // What `sluice session import` takes at the other node; empty where it is withdrawn.
  Result<std::string> export_session(const ExportRequest& request);
  Result<Session> import_session(const std::string& bundle);
  Result<Session> prioritize(const std::string& id, int32_t priority);
  // Calls `on_progress` with every message about a file.
  // Of the names that the destination of a session stored, where they were asked for.
  Status digests(const std::string& id, const std::function<void(const NameDigests&)>& on_name);
  Status verify(const std::string& id, const std::function<void(const VerifyProgress&)>& on_progress);
  Result<CountersReply> counters();

  // The peer is called, and asked about itself.
  Result<PeerAnswer> about(const std::string& peer);

  // Calls `on_part` with each part of the list until there are no more, or it returns false: then it ends
  // well.
  Status list_names(const ListNamesRequest& request,
                    const std::function<bool(const ListNamesReply&)>& on_part);
  // The peer tells what has this name there; empty: it has nothing of that name. Other errors as of
  // list_names.
  Result<std::optional<NameEntry>> look_at(const std::string& peer, const std::string& path);
  // These take as long as it takes.
  Result<NamesReply> make_directory(const MakeDirectoryRequest& request);
  Result<NamesReply> move_name(const MoveNameRequest& request);
  Result<NamesReply> remove_name(const RemoveNameRequest& request);
  // As list_names; the last part has the totals.
  Status compare(const CompareRequest& request, const std::function<bool(const CompareReply&)>& on_part);

  // Calls `on_part` with each part of a session's log until there are no more, or it returns false.
  Status read_log(const LogRequest& request, const std::function<bool(const LogReply&)>& on_part);
  Result<ComponentLevels> log_levels();
  // A level without a component is for all of them.
  Result<ComponentLevels> set_component_level(const ComponentLevel& level);
  Result<SessionLogLevel> set_log_level(const std::string& id, const std::string& level);

  // Calls `on_event` with each event, of one session until its end, of all until it returns false.
  Status events(const std::string& id, const std::function<bool(const SessionEvent&)>& on_event);

  // Calls `on_change` with what the node tells, until the session has ended: its last state. Or until
  // `timeout_s` is over, or `on_change` returns false: what was known last, not ended.
  Result<Session> watch(const std::string& id, std::optional<double> timeout_s,
                        const std::function<bool(const Session&)>& on_change);

 private:
  Client(std::unique_ptr<Control::Stub> stub, std::unique_ptr<Names::Stub> names,
         std::unique_ptr<Logs::Stub> logs, std::unique_ptr<Peers::Stub> peers)
      : stub_(std::move(stub)), names_(std::move(names)), logs_(std::move(logs)), peers_(std::move(peers)) {}

  std::optional<double> limit_s_;
  std::unique_ptr<Control::Stub> stub_;
  std::unique_ptr<Names::Stub> names_;
  std::unique_ptr<Logs::Stub> logs_;
  std::unique_ptr<Peers::Stub> peers_;
};

}  // namespace sluice::api
