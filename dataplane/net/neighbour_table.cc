// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/neighbour_table.h"

#include <algorithm>

#include "dataplane/core/wire.h"

namespace sluice::net {
namespace {

// Where an entry may stand, from the place of its hash on. All that are fixed have room in it.
constexpr uint32_t kPlaces = 16;
constexpr uint64_t kComeBackNs = 250'000'000;

uint64_t hash_of(const Address& ip) {
  const uint64_t mixed = (wire::load_be64(ip.bytes) * 0x9e3779b97f4a7c15ULL) ^ wire::load_be64(ip.bytes + 8);
  return (mixed * 0xff51afd7ed558ccdULL) >> 32;
}

}  // namespace

NeighbourTable::Entry* NeighbourTable::find(const Address& ip) {
  const uint64_t hash = hash_of(ip);
  for (uint32_t i = 0; i < kPlaces; ++i) {
    Entry& entry = entries_[(hash + i) % kEntries];
    if (entry.state != State::kNone && entry.ip == ip) return &entry;
  }
  return nullptr;
}

// A stranger can make us hear of any neighbour, so nobody loses a place that is in use.
NeighbourTable::Entry* NeighbourTable::place_for(const Address& ip, uint64_t now_ns) {
  const uint64_t hash = hash_of(ip);
  Entry* oldest = nullptr;
  for (uint32_t i = 0; i < kPlaces; ++i) {
    Entry& entry = entries_[(hash + i) % kEntries];
    if (entry.state == State::kNone) {
      oldest = &entry;
      break;
    }
    if (entry.state == State::kFixed || (entry.used_ns != 0 && now_ns - entry.used_ns < kUsedNs)) continue;
    if (oldest == nullptr || entry.since_ns < oldest->since_ns) oldest = &entry;
  }
  if (oldest != nullptr) {
    *oldest = {};
    oldest->ip = ip;
  }
  return oldest;
}

void NeighbourTable::enter(Entry* entry, State state, uint64_t now_ns) {
  entry->state = state;
  if (state != State::kProbed) entry->proven = state == State::kReachable;
  entry->since_ns = now_ns;
  entry->asked = 0;
  entry->next_ask_ns = now_ns;
}

void NeighbourTable::fix(const Address& ip, const LinkAddress& link) {
  Entry* const known = find(ip);
  Entry* const entry = known != nullptr ? known : place_for(ip, 0);
  if (entry == nullptr) return;
  enter(entry, State::kFixed, 0);
  entry->link = link;
}

NeighbourTable::Way NeighbourTable::want(const Address& ip, uint64_t confirmed_ns, uint64_t now_ns) {
  Entry* entry = find(ip);
  if (entry == nullptr) {
    entry = place_for(ip, now_ns);
    if (entry == nullptr) {
      Way full;
      full.again_ns = now_ns + kSeekNs;
      return full;
    }
    enter(entry, State::kSought, now_ns);
  }
  entry->used_ns = now_ns;
  const Way known{.known = true, .link = entry->link, .again_ns = now_ns + kComeBackNs};
  switch (entry->state) {
    case State::kFixed:
      return known;
    case State::kReachable:
      entry->since_ns = std::max(entry->since_ns, std::min(confirmed_ns, now_ns));
      if (now_ns - entry->since_ns < kReachableNs) return known;
      [[fallthrough]];
    case State::kHeard:
      enter(entry, State::kProbed, now_ns);
      [[fallthrough]];
    case State::kProbed:
      return probe(entry, confirmed_ns, now_ns);
    case State::kNone:
    case State::kSought:
      break;
  }
  return seek(entry, now_ns);
}

NeighbourTable::Way NeighbourTable::probe(Entry* entry, uint64_t confirmed_ns, uint64_t now_ns) {
  Way way{.known = true, .link = entry->link};
  if (confirmed_ns > entry->since_ns) {
    enter(entry, State::kReachable, std::min(confirmed_ns, now_ns));
  } else if (now_ns >= entry->next_ask_ns && entry->asked == kProbesMax) {
    enter(entry, State::kSought, now_ns);
    way = seek(entry, now_ns);
    way.lost = true;
    return way;
  } else if (now_ns >= entry->next_ask_ns) {
    way.ask = Ask::kNeighbour;
    ++entry->asked;
    entry->next_ask_ns = now_ns + kProbeNs;
  }
  way.again_ns = now_ns + kComeBackNs;
  if (entry->state == State::kProbed) way.again_ns = std::min(way.again_ns, entry->next_ask_ns);
  return way;
}

NeighbourTable::Way NeighbourTable::seek(Entry* entry, uint64_t now_ns) {
  Way way;
  if (now_ns >= entry->next_ask_ns) {
    way.ask = Ask::kAll;
    entry->next_ask_ns = now_ns + (++entry->asked <= kSeeksFast ? kSeekNs : kSeekSlowNs);
  }
  way.again_ns = entry->next_ask_ns;
  return way;
}

bool NeighbourTable::hear(const Address& ip, const LinkAddress& link, Word word, uint64_t now_ns) {
  Entry* entry = find(ip);
  if (entry == nullptr) {
    // An answer that nobody asked for, and an announcement that concerns nobody, are nothing to us.
    if (word != Word::kQuestion) return false;
    entry = place_for(ip, now_ns);
    if (entry == nullptr) return false;
    enter(entry, State::kHeard, now_ns);
    entry->link = link;
    return false;
  }
  if (entry->state == State::kSought) {
    if (word == Word::kAnnouncement) return false;  // it will answer, too
    entry->link = link;
    enter(entry, word == Word::kAnswer ? State::kReachable : State::kHeard, now_ns);
    return false;
  }
  if (entry->link == link) {
    const bool answers_probe = entry->state == State::kProbed && entry->asked > 0 && word == Word::kAnswer;
    if (answers_probe) enter(entry, State::kReachable, now_ns);
    return false;
  }
  if (entry->state == State::kReachable) enter(entry, State::kProbed, now_ns);
  const bool unproven = entry->state == State::kProbed && !entry->proven;
  if (entry->state == State::kHeard || unproven) enter(entry, State::kSought, now_ns);  // all are asked
  return true;
}

NeighbourTable::State NeighbourTable::state(const Address& ip) const {
  const Entry* const entry = const_cast<NeighbourTable*>(this)->find(ip);
  return entry == nullptr ? State::kNone : entry->state;
}

}  // namespace sluice::net
