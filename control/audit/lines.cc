// SPDX-License-Identifier: Apache-2.0
#include "control/audit/lines.h"

#include <nlohmann/json.hpp>

#include "dataplane/base/text.h"
#include "dataplane/base/utc.h"

namespace sluice::audit {
namespace {

using Json = nlohmann::ordered_json;

Json begun(std::string_view event, int64_t now_unix_ns) {
  return {{"time", base::utc_text_us(now_unix_ns)}, {"event", event}};
}

// Texts were made printable, so every line is UTF-8.
std::string line(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
}

void put_asker(Json& json, bool of_this_node, const std::optional<transfer::User>& user = {}) {
  json["asked_by"] = user ? "user" : of_this_node ? "operator" : "peer";
  if (!user) return;
  json["user"] = base::printable(user->name);
  json["uid"] = user->uid;
}

void put_mapped(Json& json, const std::optional<transfer::Mapped>& mapped) {
  if (!mapped) return;
  json["user"] = base::printable(mapped->user.name);
  json["uid"] = mapped->user.uid;
  json["peer_user"] = base::printable(mapped->peer_user);
}

std::string_view role_name(transfer::Role role) {
  return role == transfer::Role::kSource        ? "source"
         : role == transfer::Role::kDestination ? "destination"
                                                : "unknown";
}

void put_error(Json& json, const Error* error) {
  json["result"] = error_code_name(error == nullptr ? ErrorCode::kOk : error->code);
  if (error != nullptr) json["error"] = base::printable(error->message);
}

Json file_json(const transfer::FileView& file) {
  Json json = {{"source", base::printable(file.source)},
               {"destination", base::printable(file.destination)},
               {"bytes", file.size_bytes},
               {"names", file.names},
               {"done", file.done}};
  if (!file.digest_destination.empty()) json["digest"] = file.digest_destination;
  return json;
}

// The node refused what a peer has shown for a session.
std::string refused(std::string_view event, std::string_view id, std::string_view peer, const Error& error,
                    int64_t now_unix_ns) {
  Json json = begun(event, now_unix_ns);
  json["session"] = id;
  json["peer"] = peer;
  put_error(json, &error);
  return line(json);
}

}  // namespace

std::string session_begun(std::string_view id, transfer::Role role, bool initiator, std::string_view peer,
                          const std::optional<transfer::User>& user, int64_t now_unix_ns,
                          std::string_view ordered_by, const std::optional<transfer::Mapped>& mapped) {
  Json json = begun("session_begun", now_unix_ns);
  json["session"] = id;
  put_asker(json, initiator && ordered_by.empty(), user);
  put_mapped(json, mapped);
  // What somebody who calls wants is not known yet.
  if (role != transfer::Role::kUnknown) json["role"] = role_name(role);
  json["peer"] = peer;
  if (!ordered_by.empty()) json["ordered_by"] = ordered_by;
  return line(json);
}

std::string user_refused(std::string_view id, std::string_view peer, std::string_view peer_user,
                         const Error& error, int64_t now_unix_ns) {
  Json json = begun("user_refused", now_unix_ns);
  json["session"] = id;
  json["peer"] = peer;
  json["peer_user"] = base::printable(peer_user);
  put_error(json, &error);
  return line(json);
}

std::string order_begun(std::string_view id, std::string_view source, std::string_view destination,
                        int64_t now_unix_ns) {
  Json json = begun("order_begun", now_unix_ns);
  json["session"] = id;
  put_asker(json, true);
  json["source"] = source;
  json["destination"] = destination;
  return line(json);
}

std::string grant_refused(std::string_view id, std::string_view peer, const Error& error,
                          int64_t now_unix_ns) {
  return refused("grant_refused", id, peer, error, now_unix_ns);
}

std::string session_moved(std::string_view id, std::string_view from, std::string_view to, uint64_t epoch,
                          int64_t now_unix_ns) {
  Json json = begun("session_moved", now_unix_ns);
  json["session"] = id;
  json["from"] = from;
  json["to"] = to;
  json["epoch"] = epoch;
  return line(json);
}

std::string move_refused(std::string_view id, std::string_view peer, const Error& error,
                         int64_t now_unix_ns) {
  return refused("move_refused", id, peer, error, now_unix_ns);
}

std::string session_ended(const transfer::View& view, int64_t now_unix_ns) {
  Json json = begun("session_ended", now_unix_ns);
  json["session"] = view.id;
  const bool orders = !view.asker.source_node.empty();  // this node is neither end
  put_asker(json, view.asker.of_this_node && view.asker.ordered_by.empty(), view.asker.user);
  put_mapped(json, view.asker.mapped);
  json["role"] = orders ? "order" : role_name(view.role);
  json["peer"] = view.peer;
  if (!view.asker.ordered_by.empty()) json["ordered_by"] = view.asker.ordered_by;
  if (orders) {
    json["source"] = view.asker.source_node;
    json["destination"] = view.peer;
  }
  json["started"] = base::utc_text_us(view.started_unix_ns);
  put_error(json, view.error ? &*view.error : nullptr);
  json["bytes"] = view.summary.bytes_done;
  json["bytes_total"] = view.bytes_total;
  json["names"] = {{"total", view.names.total}, {"done", view.names.done}, {"failed", view.names.failed}};
  json["protection"] = view.protection;
  json["crc"] = view.crc;
  json["files"] = Json::array();
  for (const transfer::FileView& file : view.files) {
    if (json["files"].size() == kFilesTold) break;
    json["files"].push_back(file_json(file));
  }
  json["files_not_told"] = view.files.size() - json["files"].size();
  return line(json);
}

std::string names_changed(std::string_view peer, const names::Request& asked,
                          const Result<names::Done>& outcome, int64_t now_unix_ns,
                          const std::optional<transfer::User>& user) {
  Json json = begun("names_changed", now_unix_ns);
  put_asker(json, peer.empty(), user);
  if (!peer.empty()) json["peer"] = peer;
  json["asked"] = names::shown(asked);
  put_error(json, outcome ? nullptr : &outcome.error());
  if (outcome) {
    json["done"] = outcome->entries;
    json["failed"] = outcome->failed;
  }
  return line(json);
}

}  // namespace sluice::audit
