// SPDX-License-Identifier: Apache-2.0
#include "tools/gfal2/node.h"

#include <fmt/format.h>
#include <grpc/grpc.h>
#include <pthread.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <thread>

#include "control/client/requests.h"
#include "control/client/way.h"
#include "dataplane/base/text.h"
#include "tools/gfal2/places/problem.h"

namespace sluice::gfal {
namespace {

constexpr int kNamespaceS = 300;  // as gfal2 without a configuration of its own
constexpr int kChecksumS = 1800;

// ---- forks -------------------------------------------------------------------------------------

std::mutex alive_mutex;
int alive = 0;
bool forked = false;  // a fork came in the middle of a call: what gRPC had of threads is not here

void before_fork() { alive_mutex.lock(); }
void after_fork() { alive_mutex.unlock(); }
void in_child() {
  forked = forked || alive > 0;
  alive_mutex.unlock();
}

}  // namespace

Alive::Alive() {
  static const int watched = ::pthread_atfork(before_fork, after_fork, in_child);
  const std::lock_guard lock(alive_mutex);
  if (watched != 0) throw Problem(ENOMEM, "no memory to watch for forks");
  if (forked)
    throw Problem(ENOTSUP,
                  "this process was forked while another thread asked a Sluice node, so that it cannot "
                  "ask one; let the child run a program of its own");
  if (alive++ == 0) ::grpc_init();
}

Alive::~Alive() {
  const std::lock_guard lock(alive_mutex);
  if (!forked && --alive == 0) ::grpc_shutdown_blocking();
}

bool Alive::cut_off() {
  const std::lock_guard lock(alive_mutex);
  return forked;
}

// ---- cancelling --------------------------------------------------------------------------------

Cancellation::Cancellation(gfal2_context_t context)
    : context_(context), token_(::gfal2_register_cancel_callback(context, &Cancellation::called, this)) {}

Cancellation::~Cancellation() { ::gfal2_remove_cancel_callback(context_, token_); }

void Cancellation::called(gfal2_context_t /*context*/, void* self) {
  auto& it = *static_cast<Cancellation*>(self);
  const std::lock_guard lock(it.mutex_);
  it.cancelled_ = true;
  if (it.call_ != nullptr) it.call_->TryCancel();
}

void Cancellation::check() const {
  if (cancelled_) throw Problem(ECANCELED, "was cancelled");
}

void Cancellation::wait(std::chrono::milliseconds time) const {
  constexpr std::chrono::milliseconds kLook{20};
  for (; time.count() > 0; time -= kLook) {
    check();
    std::this_thread::sleep_for(std::min(time, kLook));
  }
  check();
}

void Cancellation::begin(grpc::ClientContext* call) {
  const std::lock_guard lock(mutex_);
  call_ = call;
  if (cancelled_) call->TryCancel();
}

void Cancellation::end() {
  const std::lock_guard lock(mutex_);
  call_ = nullptr;
}

namespace {

class Cancelled {
 public:
  Cancelled(Cancellation& by, grpc::ClientContext* call) : by_(by) { by_.begin(call); }
  Cancelled(const Cancelled&) = delete;
  Cancelled& operator=(const Cancelled&) = delete;
  ~Cancelled() { by_.end(); }

 private:
  Cancellation& by_;
};

[[noreturn]] void refuse_entry(const api::NameEntry& entry) {
  const int code = static_cast<int>(entry.error_code());
  throw Problem(errno_of(code, entry.error()), entry.error());
}

bool is_address(const std::string& address, const Place& place) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return false;
  return address.substr(0, colon) == place.node &&
         (place.port.empty() || address.substr(colon + 1) == place.port);
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

}  // namespace

Problem problem_of(const api::Failure& failure) {
  const Error error = api::error_of(failure);
  const int reason = failure.kind == api::Failure::Kind::kLate
                         ? ETIMEDOUT
                         : errno_of(static_cast<int>(error.code), error.message);
  return {reason, error.message};
}

void refuse(const api::Failure& failure) { throw problem_of(failure); }

Patience::Patience(const Cancellation& cancellation, int limit_s)
    : cancellation_(cancellation), end_(std::chrono::steady_clock::now() + std::chrono::seconds(limit_s)) {}

void Patience::wait_after(const Problem& problem) {
  if (problem.reason() != EAGAIN || std::chrono::steady_clock::now() + next_ >= end_) throw problem;
  cancellation_.wait(next_);
  next_ = std::min(2 * next_, std::chrono::milliseconds(500));
}

// ---- a node ------------------------------------------------------------------------------------

Node::Node(gfal2_context_t context) : context_(context), cancellation_(context) {
  Result<UniqueFd> connection = api::connect_to(api::usual_node());
  if (!connection) {
    const Error& error = connection.error();
    throw Problem(errno_of(static_cast<int>(error.code), error.message), error.message);
  }
  channel_ = api::channel_over(std::move(*connection));
  control_ = api::Control::NewStub(channel_);
  names_ = api::Names::NewStub(channel_);
}

int Node::limit_s(const char* key, int otherwise) const {
  const int set = ::gfal2_get_opt_integer_with_default(context_, CORE_CONFIG_GROUP, key, otherwise);
  return set > 0 ? set : otherwise;
}

template <typename Once>
auto Node::patiently(int limit, Once once) {
  Patience patience(cancellation_, limit);
  while (true) {
    try {
      return once();
    } catch (const Problem& problem) {
      patience.wait_after(problem);
    }
  }
}

template <typename Reply, typename Stub, typename Request>
Reply Node::ask(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                const Request& request) {
  const int limit = limit_s(CORE_CONFIG_NAMESPACE_TIMEOUT, kNamespaceS);
  return patiently(limit, [&] {
    Reply reply;
    api::Call call(*control_, limit);
    const Cancelled cancelled(cancellation_, call.context());
    const std::optional<api::Failure> failure = call.ask(stub, method, request, &reply);
    cancellation_.check();
    if (failure) refuse(*failure);
    return reply;
  });
}

std::string Node::peer_of(const Place& place) {
  if (place.node.empty()) return "";
  if (!itself_) itself_ = ask(*control_, &api::Control::Stub::Node, api::NodeRequest());
  const auto& peers = itself_->peers();
  for (const api::Peer& peer : peers) {
    if (peer.name() == place.node) return peer.name();
  }
  if (itself_->name() == place.node || is_address(itself_->control_address(), place)) return "";
  const api::Peer* found = nullptr;
  for (const api::Peer& peer : peers) {
    if (!is_address(peer.address(), place)) continue;
    if (found != nullptr)
      throw Problem(EINVAL, place.node + ": several nodes have that address; use a node's name");
    found = &peer;
  }
  if (found == nullptr)
    throw Problem(EHOSTUNREACH, "node " + base::printable(place.node, 100) + " is not known to node " +
                                    itself_->name() +
                                    "; 'sluice node show' lists those that are, 'sluice node "
                                    "trust' adds one");
  return found->name();
}

// ---- names -------------------------------------------------------------------------------------

Node::List::List(Node& node, const std::string& peer, const Place& place)
    : node_(node), patience_(node.cancellation_, node.limit_s(CORE_CONFIG_NAMESPACE_TIMEOUT, kNamespaceS)) {
  request_.set_peer(peer);
  request_.set_path(place.path);
  ask();
}

void Node::List::ask() {
  call_.emplace(*node_.control_, std::nullopt);
  node_.cancellation_.begin(call_->context());
  reader_ = node_.names_->List(call_->context(), request_);
}

Node::List::~List() {
  node_.cancellation_.end();
  if (over_) return;
  call_->context()->TryCancel();
  api::ListNamesReply part;
  while (reader_->Read(&part)) continue;
  (void)reader_->Finish();
}

std::optional<api::NameEntry> Node::List::next() {
  while (!over_ && at_ == part_.entries_size()) {
    at_ = 0;
    part_.Clear();
    if (reader_->Read(&part_)) {
      begun_ = true;
      continue;
    }
    over_ = true;
    const grpc::Status status = reader_->Finish();
    node_.cancellation_.end();
    node_.cancellation_.check();
    if (status.ok()) break;
    const Problem problem = problem_of(call_->failure_of(status));
    if (begun_) throw problem;
    patience_.wait_after(problem);
    over_ = false;
    ask();
  }
  if (over_) return std::nullopt;
  return part_.entries(at_++);
}

api::NameEntry Node::only_entry(const api::ListNamesRequest& request, int limit, const Place& place) {
  return patiently(limit, [&] {
    api::Call call(*control_, limit);
    const Cancelled cancelled(cancellation_, call.context());
    std::optional<api::NameEntry> entry;
    const std::optional<api::Failure> failure =
        call.read(names_->List(call.context(), request), [&entry](const api::ListNamesReply& part) {
          if (part.entries_size() > 0) entry = part.entries(0);
          return true;
        });
    cancellation_.check();
    if (failure) refuse(*failure);
    if (!entry) throw Problem(EIO, place.shown() + ": its node does not say what it is");
    return *entry;
  });
}

api::NameEntry Node::entry_of(const Place& place) {
  api::ListNamesRequest request;
  request.set_peer(peer_of(place));
  if (place.path.empty()) {  // the exports together: that the node answers is all that can be said of them
    List list(*this, request.peer(), place);
    (void)list.next();
    api::NameEntry all;
    all.set_type(api::NameEntry::DIRECTORY);
    all.set_mode(0555);
    all.set_links(1);
    return all;
  }
  request.set_path(place.names_directory ? place.path + "/" : place.path);
  request.set_itself(true);
  api::NameEntry entry = only_entry(request, limit_s(CORE_CONFIG_NAMESPACE_TIMEOUT, kNamespaceS), place);
  if (entry.error_code() != 0) refuse_entry(entry);
  return entry;
}

std::string Node::checksum_of(const Place& place, const std::string& type) {
  const std::string kind = upper(type);
  api::ListNamesRequest request;
  request.set_digest_kind(kind == "ADLER32"  ? api::NameEntry::ADLER32
                          : kind == "CRC32C" ? api::NameEntry::CRC32C
                                             : api::NameEntry::CRC64);
  if (kind != "ADLER32" && kind != "CRC32C" && kind != "CRC64")
    throw Problem(ENOSYS, "checksum " + base::printable(type, 30) +
                              " is not one that a Sluice node computes; use ADLER32, CRC32C or CRC64");
  request.set_peer(peer_of(place));
  request.set_path(place.path);
  request.set_itself(true);
  request.set_digests(true);
  const api::NameEntry entry = only_entry(request, limit_s(CORE_CONFIG_CHECKSUM_TIMEOUT, kChecksumS), place);
  if (entry.error_code() != 0) refuse_entry(entry);
  if (entry.type() == api::NameEntry::DIRECTORY)
    throw Problem(EISDIR, place.shown() + ": is a directory; only files have checksums");
  if (entry.type() != api::NameEntry::FILE)
    throw Problem(EINVAL, place.shown() + ": is no regular file; only those have checksums");
  if (!entry.has_digest() || entry.digest_kind() != request.digest_kind())
    throw Problem(ENOSYS, place.shown() + ": its node, or the one here, is too old to compute " + kind +
                              "; upgrade it");
  return fmt::format("{:0{}x}", entry.digest(), kind == "CRC64" ? 16 : 8);
}

void Node::make_directory(const Place& place, bool parents) {
  api::MakeDirectoryRequest request;
  request.set_peer(peer_of(place));
  request.set_path(place.path);
  request.set_parents(parents);
  (void)ask(*names_, &api::Names::Stub::MakeDirectory, request);
}

void Node::move(const Place& from, const Place& to) {
  api::MoveNameRequest request;
  request.set_peer(peer_of(from));
  if (request.peer() != peer_of(to))
    throw Problem(EXDEV, "names are moved within one node; copy the file instead");
  request.set_from(from.path);
  request.set_to(to.path);
  request.set_replace(true);
  (void)ask(*names_, &api::Names::Stub::Move, request);
}

void Node::remove(const Place& place, bool directory) {
  api::RemoveNameRequest request;
  request.set_peer(peer_of(place));
  request.set_path(place.path);
  request.set_empty(directory);
  (void)ask(*names_, &api::Names::Stub::Remove, request);
}

// ---- sessions ----------------------------------------------------------------------------------

// Not ended by who cancels: a session whose id nobody has heard would run to its end.
template <typename Request>
std::string Node::begun(grpc::Status (api::Control::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                   api::SessionRef*),
                        const Request& request) {
  cancellation_.check();
  api::SessionRef session;
  api::Call call(*control_, api::kCallS);
  if (const auto failure = call.ask(*control_, method, request, &session)) refuse(*failure);
  return session.id();
}

std::string Node::begin(const api::SendRequest& request) { return begun(&api::Control::Stub::Send, request); }

std::string Node::begin(const api::GetRequest& request) { return begun(&api::Control::Stub::Get, request); }

// Also when the caller has cancelled: so this call is not.
void Node::cancel_session(const std::string& id) {
  api::Session session;
  api::Call call(*control_, api::kCallS);
  const auto failure = call.ask(*control_, &api::Control::Stub::CancelSession, api::reference(id), &session);
  if (failure) refuse(*failure);
}

}  // namespace sluice::gfal
