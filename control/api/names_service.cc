// SPDX-License-Identifier: Apache-2.0
#include "control/api/names_service.h"

#include <chrono>
#include <future>

#include "control/proto/name_entry.h"

namespace sluice::service {
namespace {

// How often a call that waits for the peer looks whether it is still wanted.
constexpr std::chrono::milliseconds kLook{200};

}  // namespace

// Does anybody still wait?
grpc::Status NamesService::wanted(grpc::ServerContext* context) const {
  if (context->IsCancelled()) return {grpc::StatusCode::CANCELLED, "the client left"};
  if (stopping_) return to_grpc(context, {ErrorCode::kDaemonNotRunning, "sluice-control is stopping"});
  return grpc::Status::OK;
}

// Until something has come. An error of the question itself stands in the answer.
grpc::Status NamesService::next_answer(grpc::ServerContext* context, const QuestionPtr& question,
                                       Result<NamesQuestion::Answer>* answer) {
  for (;;) {
    if (const grpc::Status status = wanted(context); !status.ok()) return status;
    *answer = bridge_.await_io(question->next());
    if (!*answer || (*answer)->page || (*answer)->done) return grpc::Status::OK;
  }
}

grpc::Status NamesService::follow(grpc::ServerContext* context, const QuestionPtr& question,
                                  const TakePage& take, names::Done* done) {
  for (;;) {
    Result<NamesQuestion::Answer> answer = NamesQuestion::Answer{};
    if (const grpc::Status status = next_answer(context, question, &answer); !status.ok()) return status;
    if (!answer) return to_grpc(context, answer.error());
    if (answer->page && !take(*answer->page)) return {grpc::StatusCode::CANCELLED, "the client left"};
    if (!answer->done) continue;
    *done = std::move(*answer->done);
    return grpc::Status::OK;
  }
}

grpc::Status NamesService::begin_question(grpc::ServerContext* context, const std::string& peer,
                                          names::Request request, QuestionPtr* question) {
  std::future<Result<QuestionPtr>> asked = bridge_.begin(names_.ask(peer, std::move(request)));
  while (asked.wait_for(kLook) != std::future_status::ready) {
    if (const grpc::Status status = wanted(context); !status.ok()) return status;
  }
  Result<QuestionPtr> begun = Bridge::result_of(std::move(asked));
  if (!begun) return to_grpc(context, begun.error());
  *question = std::move(*begun);
  return grpc::Status::OK;
}

void NamesService::end_question(QuestionPtr* question) {
  (void)bridge_.on_io([question]() -> Status {
    question->reset();
    return {};
  });
}

grpc::Status NamesService::ask(grpc::ServerContext* context, const std::string& peer, names::Request request,
                               const TakePage& take, names::Done* done) {
  QuestionPtr question;
  const grpc::Status begun = begin_question(context, peer, std::move(request), &question);
  if (!begun.ok()) return begun;
  const grpc::Status status = take({}) ? follow(context, question, take, done)
                                       : grpc::Status(grpc::StatusCode::CANCELLED, "the client left");
  end_question(&question);
  return status;
}

namespace {

void put(const names::Done& done, api::NamesReply* reply) {
  reply->set_entries(done.entries);
  reply->set_failed(done.failed);
  for (const names::Entry& problem : done.problems) names::put_entry(problem, reply->add_problems());
}

}  // namespace

grpc::Status NamesService::change(grpc::ServerContext* context, const std::string& peer,
                                  names::Request request, api::NamesReply* reply) {
  if (peer.empty()) return change_own(context, request, reply);
  names::Done done;
  const grpc::Status status = ask(
      context, peer, std::move(request), [](const names::Page& page) { return page.entries.empty(); }, &done);
  if (!status.ok()) return status;
  put(done, reply);
  return status;
}

// On a thread of its own, so that a call that nobody wants any more can stop it.
grpc::Status NamesService::change_own(grpc::ServerContext* context, const names::Request& asked,
                                      api::NamesReply* reply) {
  exports::Pulse pulse;
  std::future<Result<names::Done>> changed =
      std::async(std::launch::async, [&] { return names_.change_own(asked, pulse); });
  while (changed.wait_for(kLook) != std::future_status::ready) {
    if (!wanted(context).ok()) pulse.stop = true;
  }
  const Result<names::Done> done = changed.get();
  if (const grpc::Status status = wanted(context); !status.ok()) return status;
  if (!done) return to_grpc(context, done.error());
  put(*done, reply);
  return grpc::Status::OK;
}

// On gRPC's own thread: the file system may be slow, and the client as well.
grpc::Status NamesService::list_own(grpc::ServerContext* context, const names::List& asked,
                                    const TakePage& take) {
  const Result<std::unique_ptr<OwnNames>> list =
      names_.list_own(asked, "", [&] { return !wanted(context).ok(); });
  if (!list) return to_grpc(context, list.error());
  for (bool wants = take({}); wants;) {
    if (const grpc::Status status = wanted(context); !status.ok()) return status;
    const Result<names::Page> page = (*list)->next();
    if (!page) return to_grpc(context, page.error());
    if (page->entries.empty()) return grpc::Status::OK;
    wants = take(*page);
  }
  return {grpc::StatusCode::CANCELLED, "the client left"};
}

grpc::Status NamesService::List(grpc::ServerContext* context, const api::ListNamesRequest* request,
                                grpc::ServerWriter<api::ListNamesReply>* writer) {
  const auto write = [writer](const names::Page& page) {
    api::ListNamesReply reply;
    for (const names::Entry& entry : page.entries) names::put_entry(entry, reply.add_entries());
    return writer->Write(reply);
  };
  const names::List asked{.path = request->path(),
                          .itself = request->itself(),
                          .recursive = request->recursive(),
                          .glob = request->glob(),
                          .unfinished = request->unfinished(),
                          .digests = request->digests(),
                          .digest_kind = names::digest_kind(static_cast<uint32_t>(request->digest_kind()))};
  if (request->peer().empty()) return list_own(context, asked, write);
  names::Done done;
  return ask(context, request->peer(), asked, write, &done);
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
  return change(
      context, request->peer(),
      names::Remove{.path = request->path(), .recursive = request->recursive(), .empty = request->empty()},
      reply);
}

}  // namespace sluice::service
