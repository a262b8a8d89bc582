// SPDX-License-Identifier: Apache-2.0
#include "control/users/served_names.h"

#include <utility>
#include <variant>

#include "control/exports/exports.h"

namespace sluice::users {

using exports::Asker;
using exports::Exports;

ServedNames::ServedNames(const Served& served, const Channel& channel) : served_(served) {
  pulse_.abandoned = [&channel] { return channel.has_gone(); };
}

Answer ServedNames::answer(const Call& call) {
  Answer answer;
  Result<names::Word> word = call.kind == Kind::kMore ? more() : begin(call);
  if (word)
    answer.names = std::move(*word);
  else
    answer.error = word.error();
  return answer;
}

Result<names::Word> ServedNames::begin(const Call& call) {
  // A process of one command has the files that this named, and no others (for_caller.h).
  if (served_.names)
    return Error{ErrorCode::kOutsideExports, "this process opens the files that its command named"};
  if (!call.names) return Error{ErrorCode::kInternal, "sluice-control asked for no names"};
  const auto* const list = std::get_if<names::List>(&*call.names);
  if (list == nullptr) return change(*call.names, call.file.peer);
  // Anew each time: what the user may reach, and what is mounted, changes.
  const Exports reachable = Exports::open_reachable(served_.exports);
  const bool for_peer = !call.file.peer.empty();
  Result<std::unique_ptr<exports::Listing>> begun =
      for_peer ? reachable.for_peer(call.file.peer).list(*list, pulse_, Asker::kPeer)
               : reachable.list(*list, pulse_, Asker::kOperator);
  if (!begun) return begun.error();
  listing_ = std::move(*begun);
  return more();
}

Result<names::Word> ServedNames::more() {
  if (!listing_) return Error{ErrorCode::kInternal, "sluice-control asked for more of no list"};
  Result<names::Page> page = listing_->next();
  if (!page) return page.error();
  if (!page->entries.empty()) return names::Word(std::move(*page));
  return names::Word(
      names::Done{.entries = listing_->entries(), .failed = listing_->failed(), .problems = {}, .node = {}});
}

Result<names::Word> ServedNames::change(const names::Request& asked, const std::string& for_peer) {
  const Exports reachable = Exports::open_reachable(served_.exports);
  Result<names::Done> done = for_peer.empty()
                                 ? reachable.change(asked, pulse_, Asker::kOperator)
                                 : reachable.for_peer(for_peer).change(asked, pulse_, Asker::kPeer);
  if (!done) return done.error();
  return names::Word(std::move(*done));
}

}  // namespace sluice::users
