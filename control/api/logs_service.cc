// SPDX-License-Identifier: Apache-2.0
#include "control/api/logs_service.h"

#include <thread>

namespace sluice::service {

grpc::Status LogsService::Read(grpc::ServerContext* context, const api::LogRequest* request,
                               grpc::ServerWriter<api::LogReply>* writer) {
  LogPlace place;
  bool told = false;
  while (!context->IsCancelled()) {
    if (stopping_) return to_grpc(context, {ErrorCode::kDaemonNotRunning, "sluice-control is stopping"});
    const Result<LogPart> part =
        bridge_.on_io([&]() -> Result<LogPart> { return sessions_.log(*request, place); });
    if (!part) return to_grpc(context, part.error());
    place = part->next;
    if (!told) {  // that there is such a session, and what is noted of it
      api::LogReply first;
      first.set_session(part->reply.session());
      first.set_level(part->reply.level());
      if (!writer->Write(first)) break;
      told = true;
    }
    if (part->reply.records_size() > 0 && !writer->Write(part->reply)) break;
    if (part->more) continue;
    if (!request->follow() || part->ended) return grpc::Status::OK;
    std::this_thread::sleep_for(look_interval_);
  }
  return {grpc::StatusCode::CANCELLED, "the client left"};
}

grpc::Status LogsService::SetSessionLevel(grpc::ServerContext* context, const api::SessionLogLevel* request,
                                          api::SessionLogLevel* reply) {
  Result<std::string> id = bridge_.on_io(
      [&]() -> Result<std::string> { return sessions_.set_log_level(request->id(), request->level()); });
  if (!id) return to_grpc(context, id.error());
  reply->set_id(*id);
  reply->set_level(request->level());
  return grpc::Status::OK;
}

grpc::Status LogsService::Levels(grpc::ServerContext* context, const api::ComponentLevelsRequest*,
                                 api::ComponentLevels* reply) {
  Result<api::ComponentLevels> levels = bridge_.await_io(sessions_.component_levels());
  if (!levels) return to_grpc(context, levels.error());
  *reply = std::move(*levels);
  return grpc::Status::OK;
}

grpc::Status LogsService::SetLevel(grpc::ServerContext* context, const api::ComponentLevel* request,
                                   api::ComponentLevels* reply) {
  Result<api::ComponentLevels> levels = bridge_.await_io(sessions_.set_component_level(*request));
  if (!levels) return to_grpc(context, levels.error());
  *reply = std::move(*levels);
  return grpc::Status::OK;
}

}  // namespace sluice::service
