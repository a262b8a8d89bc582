// SPDX-License-Identifier: Apache-2.0
#include "control/api/names_service.h"

#include <chrono>
#include <future>

namespace sluice::control {
namespace {

// How often a call that waits for the peer looks whether it is still wanted.
constexpr std::chrono::milliseconds kLook{200};

// What is said to people there is printable already; a string of gRPC must be UTF-8, and names are bytes.
void put(const names::Entry& entry, api::NameEntry* to) {
  to->set_path(entry.path);
  to->set_type(static_cast<api::NameEntry::Type>(entry.type));
  to->set_size(entry.size_bytes);
  to->set_mode(entry.mode);
  to->set_mtime_ns(entry.mtime_ns);
  to->set_uid(entry.uid);
  to->set_gid(entry.gid);
  to->set_links(entry.links);
  to->set_allocated_bytes(entry.allocated_bytes);
  to->set_target(entry.target);
  to->set_error_code(entry.error_code);
  to->set_error(entry.error);
}

}  // namespace

// Does anybody still wait?
grpc::Status NamesService::wanted(grpc::ServerContext* context) const {
  if (context->IsCancelled()) return {grpc::StatusCode::CANCELLED, "the client left"};
  if (stopping_) return to_grpc(context, {ErrorCode::kDaemonNotRunning, "sluice-control is stopping"});
  return grpc::Status::OK;
}

grpc::Status NamesService::follow(grpc::ServerContext* context,
                                  const std::shared_ptr<NamesQuestion>& question, const TakePage& take,
                                  names::Done* done) {
  for (;;) {
    if (const grpc::Status status = wanted(context); !status.ok()) return status;
    Result<NamesQuestion::Answer> answer = bridge_.await_io(question->next());
    if (!answer) return to_grpc(context, answer.error());
    if (answer->page && !take(*answer->page)) return {grpc::StatusCode::CANCELLED, "the client left"};
    if (!answer->done) continue;
    *done = std::move(*answer->done);
    return grpc::Status::OK;
  }
}

grpc::Status NamesService::ask(grpc::ServerContext* context, const std::string& peer, names::Request request,
                               const TakePage& take, names::Done* done) {
  std::future<Result<std::shared_ptr<NamesQuestion>>> asked =
      bridge_.begin(names_.ask(peer, std::move(request)));
  while (asked.wait_for(kLook) != std::future_status::ready) {
    if (const grpc::Status status = wanted(context); !status.ok()) return status;
  }
  Result<std::shared_ptr<NamesQuestion>> question = Bridge::result_of(std::move(asked));
  if (!question) return to_grpc(context, question.error());
  const grpc::Status status = take({}) ? follow(context, *question, take, done)
                                       : grpc::Status(grpc::StatusCode::CANCELLED, "the client left");
  // It goes where it lives.
  (void)bridge_.on_io([&question]() -> Status {
    question->reset();
    return {};
  });
  return status;
}

grpc::Status NamesService::change(grpc::ServerContext* context, const std::string& peer,
                                  names::Request request, api::NamesReply* reply) {
  names::Done done;
  const grpc::Status status = ask(
      context, peer, std::move(request), [](const names::Page& page) { return page.entries.empty(); }, &done);
  if (!status.ok()) return status;
  reply->set_entries(done.entries);
  reply->set_failed(done.failed);
  for (const names::Entry& problem : done.problems) put(problem, reply->add_problems());
  return status;
}

grpc::Status NamesService::List(grpc::ServerContext* context, const api::ListNamesRequest* request,
                                grpc::ServerWriter<api::ListNamesReply>* writer) {
  const auto write = [writer](const names::Page& page) {
    api::ListNamesReply reply;
    for (const names::Entry& entry : page.entries) put(entry, reply.add_entries());
    return writer->Write(reply);
  };
  names::Done done;
  return ask(context, request->peer(),
             names::List{.path = request->path(),
                         .itself = request->itself(),
                         .recursive = request->recursive(),
                         .glob = request->glob(),
                         .unfinished = request->unfinished()},
             write, &done);
}

grpc::Status NamesService::MakeDirectory(grpc::ServerContext* context,
                                         const api::MakeDirectoryRequest* request, api::NamesReply* reply) {
  return change(context, request->peer(),
                names::MakeDirectory{.path = request->path(), .parents = request->parents()}, reply);
}

grpc::Status NamesService::Move(grpc::ServerContext* context, const api::MoveNameRequest* request,
                                api::NamesReply* reply) {
  return change(context, request->peer(),
                names::Move{.from = request->from(), .to = request->to(), .replace = request->replace()},
                reply);
}

grpc::Status NamesService::Remove(grpc::ServerContext* context, const api::RemoveNameRequest* request,
                                  api::NamesReply* reply) {
  return change(context, request->peer(),
                names::Remove{.path = request->path(), .recursive = request->recursive()}, reply);
}

}  // namespace sluice::control
