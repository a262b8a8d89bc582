// What all legs of a transfer share: what is to be moved, which way, and its data end.
//
// Pure. The end is made when files are agreed upon, or comes from the journal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/transfer/destination_end.h"
#include "control/transfer/source_end.h"

namespace sluice::transfer {

// What stands for the user who asked for a session, at this node and at others, which learn nothing else of
// him; 0: an operator did, or a peer.
inline uint32_t share_of(const std::optional<Request>& request) {
  if (!request || !request->user) return 0;
  const uint64_t mixed = (uint64_t{request->user->uid} + 1) * 0x9E3779B97F4A7C15;
  return static_cast<uint32_t>(mixed >> 32) | 1U;
}

struct Job {
  std::string id;  // 32 hex digits
  bool initiator = false;
  Role role = Role::kUnknown;
  std::optional<Request> request;                     // initiator
  std::optional<std::vector<catalog::File>> sources;  // opened by whoever performs, and not yet in an end
  std::optional<Agreement> terms;                     // the first one: how what is there was cut and checked
  OpenSources asked;                                  // of a source: what it is to send
  uint32_t list_tag = 0;                              // of the last ReadList
  uint64_t limit_bps = 0;                             // of its rate, by an operator of this node; 0: none
  uint64_t ceiling_bps = 0;                           // of its rate, by a quota of this node; 0: none
  int32_t priority = 0;                               // in this node's queue; of what a peer began: 0
  bool began = false;                                 // files are agreed upon: it can go on after anything
  std::variant<std::monostate, SourceEnd, DestinationEnd> end;

  SourceEnd* source() { return std::get_if<SourceEnd>(&end); }
  const SourceEnd* source() const { return std::get_if<SourceEnd>(&end); }
  DestinationEnd* destination() { return std::get_if<DestinationEnd>(&end); }
  const DestinationEnd* destination() const { return std::get_if<DestinationEnd>(&end); }
  uint32_t share() const { return share_of(request); }
  bool has_end() const { return !std::holds_alternative<std::monostate>(end); }

  // By this node; 0: as agreed upon.
  uint64_t rate_limit_bps() const {
    if (limit_bps == 0 || ceiling_bps == 0) return std::max(limit_bps, ceiling_bps);
    return std::min(limit_bps, ceiling_bps);
  }
  // A source obeys before the next tick, so that the answer to whoever asked says it already.
  void keep_limit() {
    if (source() != nullptr) source()->limit_rate(rate_limit_bps());
  }
  void read_list(Effects& out) {
    source()->reading_list();
    out.add(ReadList{.tag = ++list_tag, .paths = asked.paths, .selection = asked.selection});
  }
  // Nothing is left to do but to wait for files that are not known yet.
  bool waits_for_list() const {
    return source() != nullptr ? source()->waits_for_list()
                               : destination() != nullptr && destination()->waits_for_list();
  }
  // What an operator of this node wants, who asked a peer for it.
  std::optional<DestinationFiles::Wish> wish() const {
    if (!initiator) return std::nullopt;
    return DestinationFiles::Wish{.paths = request->source_paths,
                                  .selection = request->selection,
                                  .destination = request->destination,
                                  .into_directory = request->into_directory(),
                                  .overwrite = request->options.overwrite,
                                  .verify = request->options.verify,
                                  .mkdir = request->options.mkdir};
  }
  bool complete() const {
    return source() != nullptr ? source()->complete() : destination() != nullptr && destination()->complete();
  }
  // It cannot be a success any more.
  std::optional<Error> lost() const {
    return destination() != nullptr ? destination()->lost() : std::nullopt;
  }
  bool peer_ended() const {
    return source() != nullptr ? source()->peer_ended()
                               : destination() != nullptr && destination()->peer_ended();
  }
  uint32_t pending() const {
    if (source() != nullptr) return source()->pending();
    return destination() != nullptr ? destination()->pending() : 0;
  }
  uint64_t steps() const {
    if (source() != nullptr) return source()->steps();
    return destination() != nullptr ? destination()->steps() : 0;
  }
  const catalog::Catalog* catalog() const {
    if (source() != nullptr) return &source()->catalog();
    return destination() != nullptr ? &destination()->catalog() : nullptr;
  }
  // For the journal, when files were agreed upon: holes are known before anything moves.
  std::vector<BlockRows> take_rows() {
    std::vector<BlockRows> all;
    for (ObjectId object; has_end() && object < ObjectId(catalog()->object_count()); ++object) {
      std::vector<recovery::Block> rows =
          source() != nullptr ? source()->take_rows(object) : destination()->take_rows(object);
      if (!rows.empty()) all.push_back({.object = object, .blocks = std::move(rows)});
    }
    return all;
  }
  uint64_t bytes_total() const { return catalog() == nullptr ? 0 : catalog()->bytes_total(); }
  uint64_t bytes_done(const control::FlowFigures& figures) const {
    if (source() != nullptr) return source()->bytes_done(figures);
    return destination() != nullptr ? destination()->bytes_done() : 0;
  }
  std::string waiting_for(const control::FlowFigures& before, const control::FlowFigures& now,
                          uint64_t interval_ns, uint64_t now_ns) const {
    if (source() != nullptr) return source()->waiting_for(before, now, interval_ns, now_ns);
    return destination() != nullptr ? destination()->waiting_for(before, now, now_ns) : "";
  }
  void halt() {
    if (source() != nullptr) source()->halt();
    if (destination() != nullptr) destination()->halt();
  }
  void settle(Effects& out) {
    if (source() != nullptr) source()->settle(out);
    if (destination() != nullptr) destination()->settle(out);
  }
  void attempt_over() {
    if (source() != nullptr) source()->attempt_over();
    if (destination() != nullptr) destination()->attempt_over();
  }
};

}  // namespace sluice::transfer
