// The API as a console sees it: each call goes to the services of the person that it is for. It decides
// nothing (console_door.h does).
//
// On gRPC's threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "control/api/bridge.h"
#include "control/api/console_door.h"
#include "control/api/services.h"
#include "control/proto/console.grpc.pb.h"

namespace sluice::service {

using Context = grpc::ServerContext;
using Subject = std::function<std::string()>;  // of a call that changes something; asked after it

template <typename Call>
grpc::Status for_person(ConsoleDoor& door, Context* context, std::string_view method, Call call,
                        const Subject& subject = {}) {
  const Result<ConsoleDoor::Seen> seen = door.seen(*context, method);
  if (!seen) return to_grpc(context, seen.error());
  const grpc::Status status = call(*seen->services);
  if (subject)
    door.audit({.person = seen->person,
                .role = seen->role,
                .method = std::string(method),
                .subject = subject(),
                .error = status.ok() ? "" : status.error_message()});
  return status;
}

class ConsoleControl final : public api::Control::Service {
 public:
  explicit ConsoleControl(ConsoleDoor& door) : door_(door) {}

  grpc::Status Node(Context* c, const api::NodeRequest* q, api::NodeReply* r) override {
    return for_person(door_, c, "Control/Node", [=](Services& s) { return s.control().Node(c, q, r); });
  }
  grpc::Status Send(Context* c, const api::SendRequest* q, api::SessionRef* r) override {
    return for_person(
        door_, c, "Control/Send", [=](Services& s) { return s.control().Send(c, q, r); },
        [=] { return r->id() + " to " + q->peer(); });
  }
  grpc::Status Get(Context* c, const api::GetRequest* q, api::SessionRef* r) override {
    return for_person(
        door_, c, "Control/Get", [=](Services& s) { return s.control().Get(c, q, r); },
        [=] { return r->id() + " from " + q->peer(); });
  }
  grpc::Status PreviewSend(Context* c, const api::SendRequest* q,
                           grpc::ServerWriter<api::PreviewReply>* w) override {
    return for_person(door_, c, "Control/PreviewSend",
                      [=](Services& s) { return s.control().PreviewSend(c, q, w); });
  }
  grpc::Status ListSessions(Context* c, const api::ListSessionsRequest* q,
                            api::ListSessionsReply* r) override {
    return for_person(door_, c, "Control/ListSessions",
                      [=](Services& s) { return s.control().ListSessions(c, q, r); });
  }
  grpc::Status ShowSession(Context* c, const api::SessionRef* q, api::Session* r) override {
    return for_person(door_, c, "Control/ShowSession",
                      [=](Services& s) { return s.control().ShowSession(c, q, r); });
  }
  grpc::Status WatchSession(Context* c, const api::SessionRef* q,
                            grpc::ServerWriter<api::Session>* w) override {
    return for_person(door_, c, "Control/WatchSession",
                      [=](Services& s) { return s.control().WatchSession(c, q, w); });
  }
  grpc::Status SessionEvents(Context* c, const api::SessionRef* q,
                             grpc::ServerWriter<api::SessionEvent>* w) override {
    return for_person(door_, c, "Control/SessionEvents",
                      [=](Services& s) { return s.control().SessionEvents(c, q, w); });
  }
  grpc::Status CancelSession(Context* c, const api::SessionRef* q, api::Session* r) override {
    return for_person(
        door_, c, "Control/CancelSession", [=](Services& s) { return s.control().CancelSession(c, q, r); },
        [=] { return q->id(); });
  }
  grpc::Status PauseSession(Context* c, const api::SessionRef* q, api::Session* r) override {
    return for_person(
        door_, c, "Control/PauseSession", [=](Services& s) { return s.control().PauseSession(c, q, r); },
        [=] { return q->id(); });
  }
  grpc::Status ContinueSession(Context* c, const api::SessionRef* q, api::Session* r) override {
    return for_person(
        door_, c, "Control/ContinueSession",
        [=](Services& s) { return s.control().ContinueSession(c, q, r); }, [=] { return q->id(); });
  }
  grpc::Status LimitSession(Context* c, const api::LimitRequest* q, api::Session* r) override {
    return for_person(
        door_, c, "Control/LimitSession", [=](Services& s) { return s.control().LimitSession(c, q, r); },
        [=] { return q->id(); });
  }
  grpc::Status PrioritizeSession(Context* c, const api::PriorityRequest* q, api::Session* r) override {
    return for_person(
        door_, c, "Control/PrioritizeSession",
        [=](Services& s) { return s.control().PrioritizeSession(c, q, r); }, [=] { return q->id(); });
  }
  grpc::Status VerifySession(Context* c, const api::SessionRef* q,
                             grpc::ServerWriter<api::VerifyProgress>* w) override {
    return for_person(
        door_, c, "Control/VerifySession", [=](Services& s) { return s.control().VerifySession(c, q, w); },
        [=] { return q->id(); });
  }
  grpc::Status Counters(Context* c, const api::CountersRequest* q, api::CountersReply* r) override {
    return for_person(door_, c, "Control/Counters",
                      [=](Services& s) { return s.control().Counters(c, q, r); });
  }

 private:
  ConsoleDoor& door_;
};

class ConsoleNames final : public api::Names::Service {
 public:
  explicit ConsoleNames(ConsoleDoor& door) : door_(door) {}

  grpc::Status List(Context* c, const api::ListNamesRequest* q,
                    grpc::ServerWriter<api::ListNamesReply>* w) override {
    return for_person(door_, c, "Names/List", [=](Services& s) { return s.names().List(c, q, w); });
  }
  grpc::Status MakeDirectory(Context* c, const api::MakeDirectoryRequest* q, api::NamesReply* r) override {
    return for_person(
        door_, c, "Names/MakeDirectory", [=](Services& s) { return s.names().MakeDirectory(c, q, r); },
        [=] { return at(q->peer(), q->path()); });
  }
  grpc::Status Move(Context* c, const api::MoveNameRequest* q, api::NamesReply* r) override {
    return for_person(
        door_, c, "Names/Move", [=](Services& s) { return s.names().Move(c, q, r); },
        [=] { return at(q->peer(), q->from()) + " to " + q->to(); });
  }
  grpc::Status Remove(Context* c, const api::RemoveNameRequest* q, api::NamesReply* r) override {
    return for_person(
        door_, c, "Names/Remove", [=](Services& s) { return s.names().Remove(c, q, r); },
        [=] { return at(q->peer(), q->path()); });
  }
  grpc::Status Compare(Context* c, const api::CompareRequest* q,
                       grpc::ServerWriter<api::CompareReply>* w) override {
    return for_person(door_, c, "Names/Compare", [=](Services& s) { return s.names().Compare(c, q, w); });
  }

 private:
  static std::string at(const std::string& peer, const std::string& path) {
    return peer.empty() ? path : peer + ":" + path;
  }
  ConsoleDoor& door_;
};

class ConsoleLogs final : public api::Logs::Service {
 public:
  explicit ConsoleLogs(ConsoleDoor& door) : door_(door) {}

  grpc::Status Read(Context* c, const api::LogRequest* q, grpc::ServerWriter<api::LogReply>* w) override {
    return for_person(door_, c, "Logs/Read", [=](Services& s) { return s.logs().Read(c, q, w); });
  }
  grpc::Status SetSessionLevel(Context* c, const api::SessionLogLevel* q, api::SessionLogLevel* r) override {
    return for_person(
        door_, c, "Logs/SetSessionLevel", [=](Services& s) { return s.logs().SetSessionLevel(c, q, r); },
        [=] { return q->id() + " " + q->level(); });
  }
  grpc::Status Levels(Context* c, const api::ComponentLevelsRequest* q, api::ComponentLevels* r) override {
    return for_person(door_, c, "Logs/Levels", [=](Services& s) { return s.logs().Levels(c, q, r); });
  }
  grpc::Status SetLevel(Context* c, const api::ComponentLevel* q, api::ComponentLevels* r) override {
    return for_person(
        door_, c, "Logs/SetLevel", [=](Services& s) { return s.logs().SetLevel(c, q, r); },
        [=] { return q->component() + " " + q->level(); });
  }

 private:
  ConsoleDoor& door_;
};

class ConsolePeers final : public api::Peers::Service {
 public:
  explicit ConsolePeers(ConsoleDoor& door) : door_(door) {}
  grpc::Status About(Context* c, const api::PeerRequest* q, api::PeerAnswer* r) override {
    return for_person(door_, c, "Peers/About", [=](Services& s) { return s.peers().About(c, q, r); });
  }

 private:
  ConsoleDoor& door_;
};

class ConsoleRights final : public api::Console::Service {
 public:
  explicit ConsoleRights(ConsoleDoor& door) : door_(door) {}
  grpc::Status Rights(Context* c, const api::RightsRequest*, api::RightsReply* r) override {
    const Result<ConsoleDoor::Seen> seen = door_.seen(*c, "Console/Rights");
    if (!seen) return to_grpc(c, seen.error());
    r->set_uid(seen->person.uid);
    r->set_name(seen->person.name);
    for (const api::Delegation::Role role : seen->person.roles) r->add_roles(role);
    return grpc::Status::OK;
  }

  // The node's key signs it: a user or a viewer has none of that.
  grpc::Status Receipt(Context* c, const api::ReceiptRequest* q, api::ReceiptReply* r) override {
    const Result<ConsoleDoor::Seen> seen = door_.seen(*c, "Console/Receipt");
    if (!seen) return to_grpc(c, seen.error());
    if (seen->role != api::Delegation::OPERATOR)
      return to_grpc(c, {ErrorCode::kConfiguration, "a receipt is made by an operator of this node"});
    api::SessionRef ref;
    ref.set_id(q->id());
    api::Session session;
    if (grpc::Status status = seen->services->control().ShowSession(c, &ref, &session); !status.ok())
      return status;
    Result<std::string> made = door_.receipt(session);
    door_.audit({.person = seen->person,
                 .role = seen->role,
                 .method = "Console/Receipt",
                 .subject = session.id(),
                 .error = made ? "" : made.error().message});
    if (!made) return to_grpc(c, made.error());
    r->set_receipt(std::move(*made));
    return grpc::Status::OK;
  }

 private:
  ConsoleDoor& door_;
};

}  // namespace sluice::service
