// SPDX-License-Identifier: Apache-2.0
#include "control/api/readers.h"

namespace sluice::service {
namespace {

Error refusal() {
  return {ErrorCode::kConfiguration,
          "a member of [control] readers_group may only look at the node and its sessions, without names of "
          "files; ask its operator, or to become a member of [control] group"};
}

}  // namespace

void hide_names(api::Session* session) {
  for (api::FileProgress& file : *session->mutable_files()) {
    file.clear_source();
    file.clear_destination();
    file.clear_digest_source();
    file.clear_digest_destination();
    file.clear_digests();
  }
  session->mutable_names()->clear_missing();
  session->clear_user();
  session->clear_uid();
  if (!session->error().empty()) session->set_error(session->error_name());
  if (session->waiting_for().find('/') != std::string::npos) session->set_waiting_for("a file");
  for (api::LegProgress& leg : *session->mutable_legs()) {
    if (leg.waiting_for().find('/') != std::string::npos) leg.set_waiting_for("a file");
    if (leg.error().find('/') != std::string::npos) leg.set_error("a file");
  }
}

std::vector<api::Session> ReadersSessions::list() const {
  std::vector<api::Session> all = all_.list();
  for (api::Session& session : all) hide_names(&session);
  return all;
}

std::vector<api::Session> ReadersSessions::overviews() const {
  std::vector<api::Session> all = all_.overviews();
  for (api::Session& session : all) hide_names(&session);
  return all;
}

Result<api::Session> ReadersSessions::show(const std::string& id) const {
  Result<api::Session> session = all_.show(id);
  if (session) hide_names(&*session);
  return session;
}

asio::awaitable<Result<std::string>> ReadersSessions::send(api::SendRequest) { co_return refusal(); }
asio::awaitable<Result<std::string>> ReadersSessions::get(api::GetRequest) { co_return refusal(); }
asio::awaitable<Result<Preview>> ReadersSessions::preview(api::SendRequest) { co_return refusal(); }
asio::awaitable<Result<api::Session>> ReadersSessions::cancel(std::string) { co_return refusal(); }
asio::awaitable<Result<api::Session>> ReadersSessions::pause(std::string) { co_return refusal(); }
asio::awaitable<Result<api::Session>> ReadersSessions::go_on(std::string) { co_return refusal(); }
asio::awaitable<Result<api::Session>> ReadersSessions::limit(std::string, uint64_t) { co_return refusal(); }
asio::awaitable<Result<api::Session>> ReadersSessions::prioritize(std::string, int32_t) {
  co_return refusal();
}
asio::awaitable<Result<std::string>> ReadersSessions::give(api::ExportRequest) { co_return refusal(); }
asio::awaitable<Result<api::Session>> ReadersSessions::take(std::string) { co_return refusal(); }
asio::awaitable<Result<Verification>> ReadersSessions::verification(std::string) { co_return refusal(); }
asio::awaitable<Result<std::vector<api::NameDigests>>> ReadersSessions::digests(std::string) {
  co_return refusal();
}

Result<std::string> ReadersSessions::set_log_level(const std::string&, const std::string&) {
  return refusal();
}
asio::awaitable<Result<api::ComponentLevels>> ReadersSessions::set_component_level(api::ComponentLevel) {
  co_return refusal();
}
// A call to a peer is something done.
asio::awaitable<Result<api::PeerAnswer>> ReadersSessions::about(std::string) { co_return refusal(); }

Result<std::unique_ptr<OwnNames>> ReadersNames::list_own(const names::List&, const std::string&,
                                                         exports::Abandoned) {
  return refusal();
}
Result<names::Done> ReadersNames::change_own(const names::Request&, exports::Pulse&) { return refusal(); }
asio::awaitable<Result<std::shared_ptr<NamesQuestion>>> ReadersNames::ask(std::string, names::Request) {
  co_return refusal();
}

}  // namespace sluice::service
