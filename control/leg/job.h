// What all legs of a transfer share: what is to be moved, which way, and its data end.
//
// Pure. The end is made when files are agreed upon, or comes from the journal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/destination/destination_end.h"
#include "control/leg/siblings.h"
#include "control/rate/stricter.h"
#include "control/source/source_end.h"

namespace sluice::transfer {

// A number that stands for the user who asked for a session. Beside the user's name (docs/WIRE.md 2.19),
// other nodes learn nothing else. 0: an operator or a peer asked.
inline uint32_t share_of(const User& user) {
  const uint64_t mixed = (uint64_t{user.uid} + 1) * 0x9E3779B97F4A7C15;
  return static_cast<uint32_t>(mixed >> 32) | 1U;
}
inline uint32_t share_of(const std::optional<Request>& request) {
  return request && request->user ? share_of(*request->user) : 0;
}

struct Job {
  std::string id;  // 32 hex digits
  bool initiator = false;
  Role role = Role::kUnknown;
  std::optional<Request> request;  // initiator
  std::optional<Granted> granted;  // a third node has ordered it
  std::optional<Lease> lease;
  std::optional<Moved> moved;                         // it was another node's
  std::optional<Mapped> mapped;                       // of a peer: whom its user is here
  bool several_peers = false;                         // which all have the same data
  std::optional<std::vector<catalog::File>> sources;  // opened by whoever performs, and not yet in an end
  std::optional<TransferOffer>
      foreseen;                    // of sources that are to be opened: as they were when somebody looked
  std::optional<Agreement> terms;  // the first one: how the data was cut and checked
  std::string offered_by;          // of several peers: whose files the others must have, too
  OpenSources asked;               // of a source: what it is to send
  uint32_t list_tag = 0;           // of the last ReadList
  uint64_t limit_bps = 0;          // of its rate, by an operator of this node; 0: none
  uint64_t ceiling_bps = 0;        // of its rate, by a quota of this node; 0: none
  int32_t priority = 0;            // in this node's queue; of what a peer began: 0
  bool began = false;              // files are agreed upon: it can go on after anything
  std::variant<std::monostate, SourceEnd, DestinationEnd> made;  // the end, once files are agreed upon
  Siblings legs;

  // The source or the destination; nullptr before files are agreed upon.
  DataEnd* end() { return const_cast<DataEnd*>(std::as_const(*this).end()); }
  const DataEnd* end() const {
    if (const SourceEnd* const its = source()) return its;
    return destination();
  }
  SourceEnd* source() { return std::get_if<SourceEnd>(&made); }
  const SourceEnd* source() const { return std::get_if<SourceEnd>(&made); }
  DestinationEnd* destination() { return std::get_if<DestinationEnd>(&made); }
  const DestinationEnd* destination() const { return std::get_if<DestinationEnd>(&made); }
  bool has_end() const { return end() != nullptr; }
  uint32_t share() const { return share_of(request); }
  // Whose session it is, as this node's control says it to peers; empty: an operator's, or a name that cannot
  // be said.
  std::string user_to_say() const {
    return request && request->user && good_user_name(request->user->name) ? request->user->name : "";
  }
  const Request* own_request() const { return initiator ? &*request : nullptr; }

  // What went wrong with files of this node may be so because they are opened as a user whom its reader does
  // not know.
  Error with_user(Error error, const std::string& peer) const;

  // By this node; 0: as agreed upon.
  uint64_t rate_limit_bps() const { return rate::stricter_bps(limit_bps, ceiling_bps); }
  // At once, so that the answer to whoever asked says it already.
  void keep_limit(Effects& out) {
    if (has_end()) end()->limit_rate(rate_limit_bps(), out);
  }
  void read_list(Effects& out) {
    source()->reading_list();
    out.add(ReadList{.tag = ++list_tag, .paths = asked.paths, .selection = asked.selection});
  }
  bool waits_for_list() const { return has_end() && end()->waits_for_list(); }
  bool complete() const { return has_end() && end()->complete(); }
  bool peer_ended(LegId leg) const { return has_end() && end()->peer_ended(leg); }
  bool peer_ended() const { return has_end() && end()->peer_ended(); }
  uint32_t pending() const { return has_end() ? end()->pending() : 0; }
  uint64_t steps() const { return has_end() ? end()->steps() : 0; }
  const catalog::Catalog* catalog() const { return has_end() ? &end()->catalog() : nullptr; }
  uint64_t bytes_total() const { return has_end() ? end()->catalog().bytes_total() : 0; }
  uint64_t bytes_done() const { return has_end() ? end()->bytes_done(legs.figures()) : 0; }
  // May this leg begin its handshake, or take the call of its peer?
  bool may_begin(LegId leg) const {
    const bool joins = has_end() && end()->running();
    return legs.may_begin(leg) && (!joins || end()->may_join()) && !prepares();
  }
  // Files are found or made for an attempt that no leg has come to yet.
  bool prepares() const {
    return destination() != nullptr && !end()->running() && destination()->files().preparing();
  }
  // May legs speak with their peers side by side? Where files are many their lists would wait in memory.
  bool may_call_apart() const {
    constexpr size_t kFewFiles = 1000;
    const bool few = !has_end() || catalog()->file_count() <= kFewFiles;
    return initiator && several_peers && role == Role::kDestination && few;
  }
  // For the journal, when files were agreed upon: holes are known before anything moves.
  std::vector<BlockRows> take_rows() {
    std::vector<BlockRows> all;
    for (ObjectId object; has_end() && object < ObjectId(catalog()->object_count()); ++object) {
      std::vector<recovery::Block> rows = end()->take_rows(object);
      if (!rows.empty()) all.push_back({.object = object, .blocks = std::move(rows)});
    }
    return all;
  }
};

}  // namespace sluice::transfer
