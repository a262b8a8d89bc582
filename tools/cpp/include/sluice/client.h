// Client of a Sluice node for C++17 and later: begins transfers, follows them, and asks for what `sluice
// session` shows.
//
//   sluice::client::Node node("/etc/sluice");
//   sluice::client::Session session = node.send({"/srv/run42.h5"}, "beta", "data/");
//   session.wait([](const sluice::client::Status& now) { draw(now.bytes_done, now.bytes_total); });
//
// A node is spoken to over a socket in its directory (docs/REFERENCE.md, "API"): the operators', or the
// users' where this user may not open that. It may do there what `sluice` does. Calls block, and may come
// from any thread. What fails is thrown: an Error, which has the code and the name of docs/RUNBOOK.md, "Exit
// codes". No header of gRPC or protobuf is needed to use this one, but their messages of Sluice
// (control/proto) must not be linked into the same program a second time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sluice/options.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#define SLUICE_CLIENT_API __attribute__((visibility("default")))

namespace sluice::client {

class SLUICE_CLIENT_API Error : public std::runtime_error {
 public:
  Error(int code, std::string name, const std::string& message);
  ~Error() override;
  int code() const { return code_; }  // as `sluice` exits with
  const std::string& name() const { return name_; }

 private:
  int code_;
  std::string name_;
};

enum class State : uint8_t {
  kUnknown,  // of a node that is newer than this library
  kConnecting,
  kNegotiating,
  kTransferring,
  kFinishing,
  kSucceeded,
  kFailed,
  kCancelled,
  kQueued,
  kWaiting,  // goes on by itself; waiting_for says what it waits for
  kPaused,   // until an operator continues it; with an error_code if none paused it
};
SLUICE_CLIENT_API const char* name_of(State state);  // "transferring": as `sluice` prints it

struct File {
  std::string source;
  std::string destination;
  uint64_t size_bytes = 0;
  uint64_t bytes_done = 0;
  bool done = false;
  std::string digest_source;  // hex, empty until known
  std::string digest_destination;
  uint32_t names = 1;                               // of a pack of small files: how many are in it
  std::map<std::string, std::string> digests = {};  // that were asked for: kind, such as "sha256", and hex
};

// A session as it stands. The whole of it is `Session` of control/proto/api.proto.
struct Status {
  std::string id;
  State state = State::kUnknown;
  std::string direction;  // "send", "get", "order"; at the other node "serve-receive", "serve-send"
  std::string peer;
  std::string source_node;  // of an "order": the node that sends to `peer`
  std::string ordered_by;   // the node for which this one moves the files; empty: none but its own
  std::vector<File> files;
  uint64_t bytes_total = 0;  // while `listing`: of what was found so far
  uint64_t bytes_done = 0;   // at the destination, written
  bool listing = false;
  std::optional<double> rate_bps;  // payload over the last second; nothing while there is no figure
  double goodput_bps = 0;          // payload over the whole time in which data moved
  uint64_t rate_limit_bps = 0;
  uint64_t retransmits = 0;
  double rtt_us = 0;
  double elapsed_s = 0;
  std::string waiting_for;  // a named wait, or empty
  std::string bottleneck;  // what holds it (docs/RUNBOOK.md, "The verdict"); "none": nothing, or nobody knows
  double bottleneck_share = 0;        // of the time, 0 to 1
  std::vector<std::string> evidence;  // of the bottleneck
  uint32_t queue_place = 0;           // while it waits for its turn: 1 is the next
  int error_code = 0;
  std::string error_name;
  std::string error;

  // It has ended, and some names did not arrive; all others did.
  bool partial() const { return state == State::kSucceeded && error_code == 21; }
  bool ended() const {
    return state == State::kSucceeded || state == State::kFailed || state == State::kCancelled;
  }
};
using OnProgress = std::function<void(const Status&)>;

// A node as it describes itself. The whole of it is `NodeReply` of control/proto/api.proto.
struct NodeStatus {
  std::string name;
  std::string fingerprint;  // SHA-256 of its public key, hex
  std::string version;
  bool dataplane_attached = false;
  std::vector<std::string> peers;    // names
  std::vector<std::string> exports;  // "name path mode"
};

class Connection;

// A transfer of a node. It goes on without this object, and without this process.
class SLUICE_CLIENT_API Session {
 public:
  const std::string& id() const { return id_; }

  Status show() const;  // as it stands now
  // Its end, if that is a success. Throws Error with its code otherwise, also where an error holds it until
  // an operator continues it. `on_progress` is called at once, at each change (at most ten times a second)
  // and once a second; what it throws ends the wait, not the session.
  Status wait(const OnProgress& on_progress = {}) const;
  // The same for so long: nothing when it has not ended then, and goes on.
  std::optional<Status> wait_for(std::chrono::nanoseconds time, const OnProgress& on_progress = {}) const;

  Status cancel() const;
  Status pause() const;
  Status go_on() const;                       // after a pause: `sluice session continue`
  Status limit(uint64_t rate_bps) const;      // the most that it may send from now on; 0: no own limit
  Status prioritize(int32_t priority) const;  // among those that wait for their turn: -100 to 100

  // The session ends here, and goes on at another node of this site, over the same storage, which calls the
  // peer within this time (0: a day): `sluice session export`. The answer is what that node imports. It
  // waits until the session has let go of its files, a minute at most. Said again, it is the same.
  std::string export_to(const std::string& node, std::chrono::seconds within = {}) const;
  Status withdraw() const;  // it is to go on here after all: paused

 private:
  friend class Node;
  Session(std::shared_ptr<const Connection> connection, std::string id);
  std::shared_ptr<const Connection> connection_;
  std::string id_;
};

// The node whose directory this is: without one $SLUICE_NODE, else /etc/sluice. Copies share a connection,
// which ends with the last of them and of their sessions.
class SLUICE_CLIENT_API Node {
 public:
  explicit Node(const std::string& directory = {});

  // Files of this node to another. A source is a path beneath an export, or "memory:BYTES"; the destination a
  // path of the peer, which ends in "/" where it is a directory, or "null:". With `source_node` that node
  // sends its own files to the peer (a third-party transfer), and sources are paths there.
  Session send(const std::vector<std::string>& sources, const std::string& peer,
               const std::string& destination, const Options& options = {},
               const std::string& source_node = {}) const;
  // Files of another node to this one. `more_peers` have the same files under the same paths: each node sends
  // a part.
  Session get(const std::string& peer, const std::vector<std::string>& sources,
              const std::string& destination, const Options& options = {},
              const std::vector<std::string>& more_peers = {}) const;

  std::vector<Status> sessions() const;  // all that run, and the last that have ended; the newest last
  // By its id, or as much of it as tells it from the others. Throws Error (2, usage) if there is none.
  Session session(const std::string& id) const;
  NodeStatus show() const;
  // What Session::export_to() of another node has returned: that session goes on here.
  Session import_session(const std::string& bundle) const;

 private:
  std::shared_ptr<const Connection> connection_;
};

}  // namespace sluice::client
