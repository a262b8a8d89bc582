// A call to a node's API: its time limit, a look now and then whether control answers at all, and why the
// call failed.
//
// Any thread; a call blocks and is made once. Nothing is thrown here; an exception of a caller's function
// ends the call and passes through.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "control/client/liveness.h"
#include "control/proto/api.grpc.pb.h"
#include "dataplane/base/error.h"

namespace sluice::api {

// The limit of a call whose answer does not depend on a disk or a peer.
inline constexpr int kCallS = 60;

struct Failure {
  enum class Kind : uint8_t {
    kRefused,       // the node says why: the other members are its own
    kStandsStill,   // the daemon answers nobody (Liveness)
    kEnded,         // nobody listens, or the connection ended
    kLate,          // no answer within the call's limit
    kOtherVersion,  // the node does not know this call
    kExhausted,     // it lacks threads or memory for it, or the message is too long: `message`
    kUnexpected,    // anything else, in `message`
  };
  Kind kind = Kind::kUnexpected;
  int code = 0;  // an ErrorCode; a newer node may have one that this program does not know
  std::string name;
  std::string message;
};

// The command prints this error and exits with its code.
Error error_of(const Failure& failure);

class Call {
 public:
  // Without a limit it takes as long as it takes, while control answers.
  Call(Control::Stub& control, std::optional<double> limit_s);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // For a method of a stub that begins a stream.
  grpc::ClientContext* context() { return &context_; }

  // One answer, into `reply`.
  template <typename Stub, typename Request, typename Reply>
  std::optional<Failure> ask(Stub& stub,
                             grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                             const Request& request, Reply* reply) {
    const grpc::Status status = (stub.*method)(&context_, request, reply);
    return status.ok() ? std::nullopt : std::optional(failure_of(status));
  }

  // Hands out part after part, until there are no more, or `on_part` returns false: then it ends well.
  template <typename Part, typename OnPart>
  std::optional<Failure> read(std::unique_ptr<grpc::ClientReader<Part>> stream, const OnPart& on_part) {
    const Leaving leaving(context_);
    Part part;
    bool wanted = true;
    while (wanted && stream->Read(&part)) wanted = on_part(part);
    if (!wanted) context_.TryCancel();
    const grpc::Status status = stream->Finish();
    return status.ok() || !wanted ? std::nullopt : std::optional(failure_of(status));
  }

  // Of a stream that its caller reads by itself.
  Failure failure_of(const grpc::Status& status) const;
  // Nothing if the node took all the parts that this program sent.
  std::optional<Failure> end(const grpc::Status& status) const {
    return status.ok() ? std::nullopt : std::optional(failure_of(status));
  }

 private:
  // A stream that nobody reads stays open, so an exception must end it as well.
  class Leaving {
   public:
    explicit Leaving(grpc::ClientContext& context) : context_(context) {}
    Leaving(const Leaving&) = delete;
    Leaving& operator=(const Leaving&) = delete;
    ~Leaving() { context_.TryCancel(); }

   private:
    grpc::ClientContext& context_;
  };

  grpc::ClientContext context_;
  Liveness liveness_;  // last: it ends before the context
};

}  // namespace sluice::api
