// What a handshake agrees about the files: found, offered, created and noted at both ends.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "control/leg/handshake.h"

namespace sluice::transfer {
namespace {

uint64_t seed_of(const std::string& session_id) {
  uint64_t seed = 0;
  const char* const digits = session_id.data();
  (void)std::from_chars(digits, digits + std::min<size_t>(session_id.size(), 16), seed, 16);
  return seed;
}

}  // namespace

// Those of the session, if it has any; else those that were opened for it; else what the paths name.
Status Handshake::find_sources(const std::vector<std::string>& paths, const selection::Selection& selection,
                               uint64_t now_ns, Effects& out) {
  Job& job = around_.job;
  enter(P::kSources, now_ns);
  job.asked = {.paths = paths, .selection = selection};
  if (job.source() == nullptr && job.sources) {
    if (Status status = make_source(*std::exchange(job.sources, std::nullopt)); !status) return status;
  }
  if (job.source() == nullptr) {
    pending_.ask(OpenSources{.paths = paths, .selection = selection, .of_leg = leg_}, out);
  } else if (!job.source()->running()) {  // else they are open: other legs move data
    job.source()->files().reopen(out);
  }
  return {};
}

Status Handshake::make_source(const std::vector<catalog::File>& files) {
  Result<SourceEnd> made = SourceEnd::make(around_.settings, *around_.job.terms, files);
  if (!made) return made.error();
  around_.job.made.emplace<SourceEnd>(std::move(*made));
  return {};
}

Status Handshake::on(const SourcesOpened& event, uint64_t /*now_ns*/, Effects& out) {
  pending_.answered();
  if (!event.files) return event.files.error();
  if (Status status = make_source(*event.files); !status) return status;
  if (!halted_) around_.job.source()->files().reopen(out);
  return {};
}

// A peer that takes no offer that grows gets the whole list at once.
Status Handshake::list_whole(Effects& out) {
  Job& job = around_.job;
  if (job.began) {
    return Error{
        ErrorCode::kIncompatible,
        fmt::format("the session began while its list of files was read, which {} does not "
                    "understand any more: run the version there that it began with, or begin another",
                    around_.peer_name)};
  }
  job.source()->take_found();
  if (job.source()->list() == ListPhase::kIdle) job.read_list(out);
  return {};
}

// Unless the call has brought it.
Status Handshake::offer(Effects& out) {
  std::vector<TransferOffer> parts = around_.job.source()->offer(around_.job.own_request());
  if (!offered_) {
    for (TransferOffer& part : parts) around_.stream.send(std::move(part), out);
    return {};
  }
  if (parts.size() == 1 && parts.front() == *offered_) return {};
  return Error{ErrorCode::kPeerUnreachable,
               fmt::format("the files have changed since they were offered to {}: it is called again",
                           around_.peer_name)};
}

Error Handshake::meant_by(Error failure) const {
  if (offered_ && !around_.job.began && failure.code == ErrorCode::kStalled)
    failure.code = ErrorCode::kPeerUnreachable;
  return failure;
}

void Handshake::await_offer(uint64_t now_ns, Effects& /*out*/) {
  if (!apart_) make_destination();
  enter(P::kOffer, now_ns);
}

void Handshake::make_destination() {
  Job& job = around_.job;
  if (job.destination() == nullptr) {
    job.made.emplace<DestinationEnd>(around_.settings, *job.terms);
    if (job.granted) job.destination()->files().bind(*job.granted);
  }
}

Status Handshake::take_offer(const TransferOffer& offer, uint64_t now_ns, Effects& out) {
  Job& job = around_.job;
  if (agreed_apart_) {
    if (Status status = join_terms(*std::exchange(agreed_apart_, std::nullopt)); !status) return status;
    make_destination();
    job.destination()->files().drop_parts();  // of one whose turn ended before its offer did
  }
  if (offer.growing && !around_.agreement.abilities.has(Ability::kGrowingOffer))
    return Error{ErrorCode::kIncompatible, "the peer makes an offer that grows, which was not agreed upon"};
  if (selection::is_part(offer.part) && !around_.agreement.abilities.has(Ability::kRanges))
    return Error{ErrorCode::kIncompatible, "the peer offers a part of a file, which was not agreed upon"};
  std::optional<DestinationFiles::Wish> wish = DestinationFiles::wish_of(job.own_request());
  if (wish) wish->replicas = job.several_peers;
  const Result<bool> whole = job.destination()->files().take_offer(offer, wish ? &*wish : nullptr);
  if (!whole && job.several_peers) {
    const bool differs = whole.error().code == ErrorCode::kIntegrity && !job.offered_by.empty() &&
                         job.offered_by != around_.peer_name;
    return Error{whole.error().code, fmt::format("{}{}: {}", differs ? job.offered_by + " and " : "",
                                                 around_.peer_name, whole.error().message)};
  }
  if (!whole) return whole.error();
  if (!*whole) return {};
  if (job.offered_by.empty()) job.offered_by = around_.peer_name;
  enter(P::kFiles, now_ns);
  // An attempt may have begun by a leg that only hears how the session has ended at its peer.
  if (!job.destination()->files().preparing()) job.destination()->prepare(out);
  return {};
}

// Beside the journal's sync, which takes about as long. An open flow is harmless before the journal knows of
// the session: a source has no work for it, and a destination names it to nobody (TransferReady). If the
// journal fails, the attempt closes it; if control dies, it is a flow of nobody.
void Handshake::open_flows(Effects& out) {
  if (phase_ != P::kJournal || halted_) return;
  if (around_.job.role == Role::kDestination) around_.lanes.invent_names();
  around_.lanes.open(around_.agreement, around_.job.role, out);
}

void Handshake::journal_agreed(uint64_t now_ns) {
  if (phase_ == P::kJournal && !halted_) enter(P::kOpening, now_ns);
}

Status Handshake::go_on(uint64_t now_ns, Effects& out) {
  Job& job = around_.job;
  if (waits_for_turn()) {
    if (Status status = read_inbox(now_ns, out); !status) return status;
  }
  if (phase_ == P::kSources && job.source() != nullptr && job.source()->files().prepared()) {
    if (settling_) {
      start(now_ns, out);
      return {};
    }
    if (!around_.agreement.abilities.has(Ability::kGrowingOffer) && job.source()->catalog().growing()) {
      const Status status = list_whole(out);
      if (!status || job.source()->catalog().growing()) return status;
    }
    enter(P::kReadBuffers, now_ns);
    pending_.ask(ReserveBuffers{.leg = leg_, .direction = board::Direction::kTx}, out);
  }
  if (phase_ == P::kFiles && job.destination()->files().prepared()) {
    agreed_ = true;
    enter(P::kJournal, now_ns);
  }
  if (phase_ == P::kOpening) {
    if (Status status = around_.lanes.refused(); !status) return status;
    if (around_.lanes.all_open()) start(now_ns, out);
  }
  if (now_ns < due_ns()) return {};
  if (phase_ == P::kOpening) {
    return Error{ErrorCode::kDaemonNotRunning, "the dataplane did not open a flow (no answer): see its log"};
  }
  return Error{ErrorCode::kStalled,
               fmt::format("{} did not send {} within {} s", around_.peer_name, handshake_wait(phase_).name,
                           around_.settings.stall_timeout_ns / kSecondNs)};
}

uint64_t Handshake::expected_bps(uint64_t now_ns) const {
  return static_cast<uint64_t>(
      around_.settings.outlook->about_bps({.peer = around_.peer_name, .outgoing = false}, now_ns));
}

void Handshake::start(uint64_t now_ns, Effects& out) {
  Job& job = around_.job;
  enter(settling_ ? P::kSettled : P::kDone, now_ns);
  if (!job.has_end()) return;
  job.end()->start_attempt({.peer_name = around_.peer_name,
                            .stream = around_.stream,
                            .agreement = around_.agreement,
                            .lanes = around_.lanes.size(),
                            .rtt_ns = rtt_ns_,
                            .expected_bps = expected_bps(now_ns),
                            .seed = seed_of(job.id)},
                           now_ns, out);
  DestinationEnd* const destination = job.destination();
  if (settling_ || destination == nullptr) return;
  around_.stream.send(destination->ready(around_.lanes.flow_ids(), around_.lanes.credit_extents()), out);
  destination->send_states(leg_, out);
}

}  // namespace sluice::transfer
