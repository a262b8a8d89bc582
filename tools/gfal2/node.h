// The node whose directory $SLUICE_NODE names, else /etc/sluice, as the plug-in asks it: a connection that
// lives as long as one call of gfal2.
//
// gRPC runs threads while a connection lives. With the last one they end, so that a process may fork between
// two calls of gfal2, and a child may call. A child of a fork in the middle of a call could not: there each
// call is refused (Alive). One thread at a time for each object; what fails is thrown as a Problem.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gfal_plugins_api.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "control/client/call.h"
#include "tools/gfal2/places/place.h"
#include "tools/gfal2/places/problem.h"

namespace sluice::gfal {

// gRPC lives in this process as long as one of these does. Throws where it cannot.
class Alive {
 public:
  Alive();
  Alive(const Alive&) = delete;
  Alive& operator=(const Alive&) = delete;
  ~Alive();

  // In the child of a fork that came while one lived: nothing of gRPC can be used here, nor be destroyed.
  static bool cut_off();
};

// What ends a call when gfal2's user cancels, from whatever thread.
class Cancellation {
 public:
  explicit Cancellation(gfal2_context_t context);
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;
  ~Cancellation();

  bool cancelled() const { return cancelled_; }
  void wait(std::chrono::milliseconds time) const;  // throws when it is cancelled meanwhile
  void check() const;                               // throws
  void begin(grpc::ClientContext* call);
  void end();

 private:
  static void called(gfal2_context_t context, void* self);
  gfal2_context_t context_;
  gfal_cancel_token_t token_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  grpc::ClientContext* call_ = nullptr;
};

// A node answers few questions of one peer at a time, and refuses the others with EAGAIN: they are asked
// again, until the limit of such a question.
class Patience {
 public:
  Patience(const Cancellation& cancellation, int limit_s);
  // Waits, and ever longer. Throws `problem` if it is another one, or no time is left; or when it is
  // cancelled.
  void wait_after(const Problem& problem);

 private:
  const Cancellation& cancellation_;
  const std::chrono::steady_clock::time_point end_;
  std::chrono::milliseconds next_{20};
};

class Node {
 public:
  // Limits of calls are those of gfal2's configuration.
  explicit Node(gfal2_context_t context);

  gfal2_context_t context() const { return context_; }
  Cancellation& cancellation() { return cancellation_; }
  api::Control::Stub& control() { return *control_; }
  // The name under which this node knows the node of a place; empty: it is this node.
  std::string peer_of(const Place& place);

  // What stands there: itself, no link is followed.
  api::NameEntry entry_of(const Place& place);
  // Of a file: hex digits, of the kind that gfal2 calls `type`.
  std::string checksum_of(const Place& place, const std::string& type);
  void make_directory(const Place& place, bool parents);
  void move(const Place& from, const Place& to);
  void remove(const Place& place, bool directory);
  std::string begin(const api::SendRequest& request);
  std::string begin(const api::GetRequest& request);
  void cancel_session(const std::string& id);

  // A list as it comes. `next` gives nothing at its end.
  class List {
   public:
    List(Node& node, const std::string& peer, const Place& place);
    ~List();
    List(const List&) = delete;
    List& operator=(const List&) = delete;
    std::optional<api::NameEntry> next();

   private:
    void ask();
    Node& node_;
    api::ListNamesRequest request_;
    Patience patience_;
    std::optional<api::Call> call_;
    std::unique_ptr<grpc::ClientReader<api::ListNamesReply>> reader_;
    api::ListNamesReply part_;
    int at_ = 0;
    bool begun_ = false;
    bool over_ = false;
  };

 private:
  template <typename Reply, typename Stub, typename Request>
  Reply ask(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
            const Request& request);
  template <typename Request>
  std::string begun(grpc::Status (api::Control::Stub::*method)(grpc::ClientContext*, const Request&,
                                                               api::SessionRef*),
                    const Request& request);
  template <typename Once>
  auto patiently(int limit_s, Once once);
  api::NameEntry only_entry(const api::ListNamesRequest& request, int limit_s, const Place& place);
  int limit_s(const char* key, int otherwise) const;

  gfal2_context_t context_;
  Alive alive_;  // before all that is of gRPC
  Cancellation cancellation_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<api::Control::Stub> control_;
  std::unique_ptr<api::Names::Stub> names_;
  std::optional<api::NodeReply> itself_;
};

Problem problem_of(const api::Failure& failure);
[[noreturn]] void refuse(const api::Failure& failure);

}  // namespace sluice::gfal
