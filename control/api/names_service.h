// The API's service of names: gRPC's threads outside, the io_context's thread inside (server.h).
//
// A call that is cancelled, or a daemon that stops, ends the question within a moment. A client that takes
// nothing holds one thread and some pages, and the peer waits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>

#include "control/api/bridge.h"
#include "control/api/names_manager.h"
#include "control/proto/api.grpc.pb.h"

namespace sluice::service {

class NamesService final : public api::Names::Service {
 public:
  NamesService(asio::io_context& io, NamesManager& names) : bridge_(io), names_(names) {}

  // The calls that are under way end.
  void stop() { stopping_ = true; }

  grpc::Status List(grpc::ServerContext* context, const api::ListNamesRequest* request,
                    grpc::ServerWriter<api::ListNamesReply>* writer) override;
  grpc::Status MakeDirectory(grpc::ServerContext* context, const api::MakeDirectoryRequest* request,
                             api::NamesReply* reply) override;
  grpc::Status Move(grpc::ServerContext* context, const api::MoveNameRequest* request,
                    api::NamesReply* reply) override;
  grpc::Status Remove(grpc::ServerContext* context, const api::RemoveNameRequest* request,
                      api::NamesReply* reply) override;
  // names_compare.cc
  grpc::Status Compare(grpc::ServerContext* context, const api::CompareRequest* request,
                       grpc::ServerWriter<api::CompareReply>* writer) override;

 private:
  using QuestionPtr = std::shared_ptr<NamesQuestion>;
  // False: whoever takes the pages has left.
  using TakePage = std::function<bool(const names::Page&)>;
  grpc::Status ask(grpc::ServerContext* context, const std::string& peer, names::Request request,
                   const TakePage& take, names::Done* done);
  grpc::Status wanted(grpc::ServerContext* context) const;
  grpc::Status change(grpc::ServerContext* context, const std::string& peer, names::Request request,
                      api::NamesReply* reply);
  grpc::Status change_own(grpc::ServerContext* context, const names::Request& asked, api::NamesReply* reply);
  grpc::Status list_own(grpc::ServerContext* context, const names::List& asked, const TakePage& take);
  grpc::Status follow(grpc::ServerContext* context, const QuestionPtr& question, const TakePage& take,
                      names::Done* done);
  // The parts of a question: it begins, answers until it is done, and goes where it lives.
  grpc::Status begin_question(grpc::ServerContext* context, const std::string& peer, names::Request request,
                              QuestionPtr* question);
  grpc::Status next_answer(grpc::ServerContext* context, const QuestionPtr& question,
                           Result<NamesQuestion::Answer>* answer);
  void end_question(QuestionPtr* question);

  // A comparison: the list of the peer, and that of this node.
  class Comparing;

  Bridge bridge_;
  NamesManager& names_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace sluice::service
