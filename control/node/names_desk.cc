// SPDX-License-Identifier: Apache-2.0
#include "control/node/names_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <type_traits>

#include "control/async/clock.h"
#include "control/audit/lines.h"
#include "control/leg/negotiation.h"
#include "control/node/mapping.h"
#include "control/runtime/export_key.h"
#include "dataplane/base/check.h"
#include "dataplane/base/log.h"
#include "dataplane/base/version.h"

namespace sluice::node {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kRequestTimeout = 10s;
constexpr std::chrono::seconds kCreditTimeout = 600s;  // somebody reads the list page by page
constexpr auto kLook = 1s;
constexpr auto kSpacePatience = 2s;  // an export that does not answer by then is left out

Error stopping() { return {ErrorCode::kDaemonNotRunning, "sluice-control is stopping"}; }
std::string key_of(const exports::Exports& exports, const names::Request& asked) {
  if (const auto* made = std::get_if<names::MakeDirectory>(&asked)) return exports.export_of(made->path);
  if (const auto* removed = std::get_if<names::Remove>(&asked)) return exports.export_of(removed->path);
  if (const auto* move = std::get_if<names::Move>(&asked))
    return runtime::export_key(exports, {move->from, move->to});
  return "";
}

// A list of this process.
class OwnList final : public exports::UserNames::List {
 public:
  explicit OwnList(std::unique_ptr<exports::Listing> listing) : listing_(std::move(listing)) {}
  Result<names::Page> next() override { return listing_->next(); }

 private:
  const std::unique_ptr<exports::Listing> listing_;
};

Error answered() { return {ErrorCode::kCancelled, "it was answered"}; }

}  // namespace

Status NamesDesk::check_room(const std::string& peer) const {
  if (stopped_) return stopping();
  const size_t of_peer = calls_of(peer, calls_);
  if (calls_.size() < kCallsMax && of_peer < kCallsPerPeerMax) return {};
  return Error{
      ErrorCode::kResources,
      fmt::format("node {} answers {} questions about names already, {} of them of {}: try again when one "
                  "has ended (at most {} at a time, and {} of one peer)",
                  services_->node.name, calls_.size(), of_peer, peer, kCallsMax, kCallsPerPeerMax)};
}

Status NamesDesk::check_answers(const std::string& key) const {
  for (const async::KeyedPool::Wait& wait :
       services_->names_pool.waits(async::monotonic_ns(), runtime::kHeldUpNs)) {
    if (wait.key != key || wait.running < runtime::kNamesThreads) continue;
    return Error{
        ErrorCode::kStalled,
        fmt::format("export {} does not answer: its file system has let {} calls wait for up to {} s; "
                    "check it at node {}",
                    key, wait.running, wait.waited_ns / 1'000'000'000, services_->node.name)};
  }
  return {};
}

asio::awaitable<void> NamesDesk::serve(std::shared_ptr<peer::Connection> connection, transfer::Hello hello,
                                       std::shared_ptr<const identity::UserMap> map) {
  const std::shared_ptr<NamesDesk> self = shared_from_this();
  const auto call = std::make_shared<SessionlessCall>(services_->io, std::move(connection));
  std::string asked = "a question about names";
  Status status = transfer::check_hello(hello);
  if (status) status = check_room(call->peer());
  Whom whom;
  if (status) {
    UserCall user{.peer = call->peer(), .user = hello.user, .share = hello.share};
    Result<Whom> found = co_await map_user(services_, std::move(user), std::move(map));
    if (found)
      whom = std::move(*found);
    else
      status = found.error();
    if (status) status = check_room(call->peer());
  }
  if (status) {
    DCHECK(calls_.size() < kCallsMax, "there was room for it");
    calls_.insert(call);
    call->begin();
    transfer::Hello greeting = transfer::make_hello(hello.session_id);
    greeting.names = true;
    greeting.by_map = whom.has_value();
    call->say(greeting);
    status = co_await answer(call, std::move(whom), &asked);
    DCHECK(calls_.contains(call), "a call is answered once");
    calls_.erase(call);
  }
  if (!status) {
    log::of(log::kPeer)->info("{}: {}: {}", call->peer(), asked, status.error().message);
    call->say(transfer::failure_of(status.error()));
  }
  call->end(answered());
}

void NamesDesk::stop() {
  stopped_ = true;
  const std::set<CallPtr> calls = calls_;
  for (const CallPtr& call : calls) {
    call->say(transfer::failure_of(stopping()));
    call->end(stopping());
  }
}

asio::awaitable<Status> NamesDesk::answer(CallPtr call, Whom whom, std::string* asked) {
  Result<std::optional<SessionlessCall::Said>> said = co_await call->next(kRequestTimeout);
  if (!said) co_return said.error();
  if (!said->has_value())
    co_return Error{ErrorCode::kStalled, fmt::format("no question came within {} s",
                                                     std::chrono::seconds(kRequestTimeout).count())};
  const int64_t asked_unix_ns = async::unix_ns();
  auto* word = std::get_if<names::Word>(&**said);
  auto* request = word == nullptr ? nullptr : std::get_if<names::Request>(word);
  if (request == nullptr)
    co_return Error{ErrorCode::kIncompatible, "a question about names was due: the peer said something else"};
  *asked = names::shown(*request);
  log::of(log::kPeer)->debug("{}: {}", call->peer(), *asked);
  if (auto* wanted = std::get_if<names::List>(request))
    co_return co_await list(call, std::move(whom), std::move(*wanted));
  if (std::holds_alternative<names::AboutNode>(*request)) co_return co_await about(call, asked_unix_ns);
  co_return co_await change(call, std::move(whom), std::move(*request));
}

template <typename Job>
asio::awaitable<std::invoke_result_t<Job&>> NamesDesk::perform(CallPtr call, WorkPtr work, Job job) {
  using R = std::invoke_result_t<Job&>;
  const auto result = std::make_shared<std::optional<R>>();
  if (const Status status = check_answers(work->key); !status) co_return status.error();
  services_->names_pool.run(
      {.name = work->key, .owner = "", .most = 0}, [work, job = std::move(job)]() mutable { return job(); },
      [call, result](R done) {
        result->emplace(std::move(done));
        call->wake();
      });
  const std::chrono::seconds limit(services_->node.stall_timeout_s);
  uint64_t steps = 0;
  auto moved = steady_clock::now();
  while (!*result) {
    if (call->problem()) {
      work->pulse.stop = true;
      co_return *call->problem();
    }
    co_await call->wait_for_wake(kLook);
    const uint64_t now = work->pulse.steps;
    if (now != std::exchange(steps, now)) moved = steady_clock::now();
    if (*result || steady_clock::now() - moved < limit) continue;
    work->pulse.stop = true;
    co_return Error{ErrorCode::kStalled,
                    fmt::format("the file system did not answer for {} s; check it at node {}", limit.count(),
                                services_->node.name)};
  }
  co_return std::move(**result);
}

asio::awaitable<Status> NamesDesk::await_credit(CallPtr call, uint64_t sent, uint64_t* granted) {
  for (;;) {
    std::optional<SessionlessCall::Said> said = call->take();
    if (!said) {
      if (sent < *granted && !call->problem()) co_return Status();
      Result<std::optional<SessionlessCall::Said>> next = co_await call->next(kCreditTimeout);
      if (!next) co_return next.error();
      said = std::move(*next);
    }
    if (!said)
      co_return Error{ErrorCode::kStalled, fmt::format("the list was not taken on for {} s: ask again",
                                                       std::chrono::seconds(kCreditTimeout).count())};
    const auto* word = std::get_if<names::Word>(&*said);
    const auto* more = word == nullptr ? nullptr : std::get_if<names::More>(word);
    if (more == nullptr)
      co_return Error{ErrorCode::kIncompatible,
                      "the peer said something else than how much of the list it takes"};
    *granted = std::max(*granted, more->pages);
  }
}

// A process of a user that does not answer is none of an export's.
NamesDesk::WorkPtr NamesDesk::work_for(const Whom& whom, std::string key) const {
  const auto work = std::make_shared<Work>();
  work->services = services_;
  if (whom) work->user = services_->users.names_of(whom->user.uid);
  work->key = whom ? services_->users.of(whom->user.uid)->key() : std::move(key);
  return work;
}

asio::awaitable<Status> NamesDesk::list(CallPtr call, Whom whom, names::List asked) {
  const WorkPtr work = work_for(whom, services_->exports.export_of(asked.path));
  auto open = [work, asked, peer = call->peer()]() -> Status {
    if (work->user) {
      Result<std::unique_ptr<exports::UserNames::List>> listing =
          work->user->list(asked, peer, [work = work.get()] { return work->pulse.stop.load(); });
      if (!listing) return listing.error();
      work->listing = std::move(*listing);
      return {};
    }
    Result<std::unique_ptr<exports::Listing>> listing =
        work->services->exports.for_peer(peer).list(asked, work->pulse);
    if (!listing) return listing.error();
    work->listing = std::make_unique<OwnList>(std::move(*listing));
    return {};
  };
  if (const Status status = co_await perform(call, work, std::move(open)); !status) co_return status.error();
  uint64_t granted = asked.pages;
  names::Done done;
  for (uint64_t sent = 0;; ++sent) {
    if (const Status status = co_await await_credit(call, sent, &granted); !status) co_return status.error();
    DCHECK(work->listing, "a list was begun");
    auto read = [work] { return work->listing->next(); };
    const Result<names::Page> page = co_await perform(call, work, std::move(read));
    if (!page) co_return page.error();
    if (page->entries.empty()) break;
    DCHECK(sent < granted, "no page is sent that the peer has not asked for");
    done.entries += page->entries.size();
    done.failed += static_cast<uint64_t>(std::ranges::count_if(
        page->entries, [](const names::Entry& entry) { return entry.error_code != 0; }));
    call->say(names::Word(*page));
    // Also a peer that lets everything come at once keeps one page in our memory.
    co_await call->flush_within(kCreditTimeout);
  }
  call->say(names::Word(std::move(done)));
  co_return Status();
}

asio::awaitable<Status> NamesDesk::about(CallPtr call, int64_t asked_unix_ns) {
  const exports::Exports exports = services_->exports.for_peer(call->peer());
  const std::vector<std::string> writable = exports.writable();
  // Asked all at once: one that does not answer is left out, and takes no time from the others.
  struct Asked {
    size_t waits = 0;
    std::map<std::string, names::Space> spaces;
  };
  const auto asked = std::make_shared<Asked>();
  for (const std::string& name : writable) {
    if (!check_answers(name)) continue;
    ++asked->waits;
    services_->names_pool.run(
        {.name = name, .owner = "", .most = 0}, [exports, name] { return exports.space_of(name); },
        [call, asked](std::optional<names::Space> space) {
          DCHECK(asked->waits != 0, "each export answers once");
          --asked->waits;
          if (space) asked->spaces.emplace(space->name, *space);
          call->wake();
        });
  }
  const auto until = steady_clock::now() + kSpacePatience;
  while (asked->waits != 0 && steady_clock::now() < until) {
    if (call->problem()) co_return *call->problem();
    co_await call->wait_for_wake(until - steady_clock::now());
  }
  names::NodeState state{.software = "sluice " SLUICE_VERSION,
                         .asked_unix_ns = asked_unix_ns,
                         .answered_unix_ns = async::unix_ns(),
                         .spaces = {}};
  for (const std::string& name : writable) {
    const auto told = asked->spaces.find(name);
    if (told != asked->spaces.end() && state.spaces.size() < names::kSpacesMax)
      state.spaces.push_back(told->second);
  }
  call->say(names::Word(names::Done{.node = std::move(state)}));
  co_return Status();
}

asio::awaitable<Status> NamesDesk::change(CallPtr call, Whom whom, names::Request asked) {
  const WorkPtr work = work_for(whom, key_of(services_->exports, asked));
  auto job = [work, asked, peer = call->peer()]() -> Result<names::Done> {
    if (work->user) return work->user->change(asked, peer, work->pulse);
    return work->services->exports.for_peer(peer).change(asked, work->pulse, exports::Asker::kPeer);
  };
  const Result<names::Done> done = co_await perform(call, work, std::move(job));
  auto note = [services = services_,
               line = audit::names_changed(call->peer(), asked, done, async::unix_ns(),
                                           whom ? std::optional(whom->user) : std::nullopt)] {
    services->audit.append(line);
    return 0;
  };
  co_await services_->pool.wait_for(std::move(note));
  if (!done) co_return done.error();
  log::of(log::kPeer)
      ->info("{}: {}: {} done, {} failed", call->peer(), names::shown(asked), done->entries, done->failed);
  call->say(names::Word(*done));
  co_return Status();
}

}  // namespace sluice::node
