// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/places.h"

#include <asio/post.hpp>

#include "dataplane/base/check.h"

namespace sluice::runtime {

void Places::ask(const std::string& id, const std::string& caller, const transfer::AskPlace& wish,
                 std::weak_ptr<EventQueue> who) {
  DCHECK(!id.empty(), "whoever asks has a name");
  askers_[id] = {.ticket = wish.ticket, .who = std::move(who)};
  const bool ran = queue_.runs(id);
  queue_.ask(id, caller, wish.priority, wish.share);
  admit();
  if (ran || !queue_.runs(id)) tell(id);  // whoever was admitted has been told
}

void Places::take(const std::string& id, const std::string& caller, uint32_t share) {
  queue_.run(id, caller, share);
  DCHECK(queue_.runs(id), "whoever takes a place has it");
  admit();
}

void Places::leave(const std::string& id) {
  askers_.erase(id);
  queue_.leave(id);
  DCHECK(!queue_.runs(id), "whoever leaves has none");
  admit();
}

void Places::step_aside(const std::string& id) {
  askers_.erase(id);
  queue_.step_aside(id);
  admit();
}

void Places::admit() {
  for (const std::string& id : queue_.admit()) {
    DCHECK(queue_.runs(id), "whoever is let in runs");
    tell(id);
  }
}

void Places::tell(const std::string& id) {
  const auto asker = askers_.find(id);
  if (asker == askers_.end()) return;
  const uint32_t place = queue_.place(id);
  DCHECK(place <= queue_.waiting(), "a place is one of the queue");
  DCHECK(queue_.runs(id) == (place == 0), "whoever has asked runs, or waits");
  const transfer::PlaceTold told{
      .ticket = asker->second.ticket, .place = place, .places = place == 0 ? 0 : queue_.waiting()};
  asio::post(io_, [who = asker->second.who, told] { post_to(who, told); });
}

}  // namespace sluice::runtime
