// SPDX-License-Identifier: Apache-2.0
#include "control/leg/handshake.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::transfer {

void Handshake::enter(P phase, uint64_t now_ns) {
  phase_.change(phase);
  entered_ns_ = now_ns;
}

void Handshake::end() {
  pending_.check_none();
  phase_.change(P::kIdle);
  (void)take_inbox();
  agreed_ = settling_ = halted_ = contacted_ = specified_ = requested_ = peer_forgot_ = apart_ =
      wished_freely_ = false;
  agreed_apart_.reset();
  offered_.reset();
  reflects_.reset();
}

bool Handshake::queued() const {
  return phase_ == P::kFlows || phase_ == P::kCredit || phase_ == P::kReadBuffers;
}

std::string Handshake::waiting_for() const {
  return waits_for_turn() ? "another leg of the session" : std::string(handshake_wait(phase_).name);
}

uint64_t Handshake::due_ns() const {
  if (waits_for_turn()) return UINT64_MAX;  // for another leg, which has limits
  switch (handshake_wait(phase_).limit) {
    case WaitLimit::kStall:
      return entered_ns_ + around_.settings.stall_timeout_ns;
    case WaitLimit::kOpen:
      return entered_ns_ + kOpenTimeoutNs;
    case WaitLimit::kNone:
      return UINT64_MAX;
  }
  return UINT64_MAX;
}

// ---- messages, in their turn -------------------------------------------------------------------

Status Handshake::on_message(Message message, uint64_t now_ns, Effects& out) {
  inbox_bytes_ += memory_bytes(message);
  if (inbox_bytes_ > kInboxBytesMax && waits_for_turn()) {  // next time it waits before it calls
    return Error{ErrorCode::kPeerUnreachable,
                 fmt::format("the list of {} is long: it is asked again in its turn", around_.peer_name)};
  }
  if (inbox_bytes_ > kInboxBytesMax && !inbox_.empty()) {
    return Error{ErrorCode::kIncompatible, fmt::format("{} says more than {} MiB before its turn",
                                                       around_.peer_name, kInboxBytesMax >> 20)};
  }
  inbox_.push_back(std::move(message));
  return read_inbox(now_ns, out);
}

Status Handshake::read_inbox(uint64_t now_ns, Effects& out) {
  while (!inbox_.empty() && !handshake_wait(phase_).message.empty()) {
    if (!takes_turn(inbox_.front(), now_ns)) return {};
    Message message = std::move(inbox_.front());
    inbox_.pop_front();
    inbox_bytes_ -= memory_bytes(message);
    if (message_name(message) != handshake_wait(phase_).message) {
      return Error{ErrorCode::kIncompatible,
                   fmt::format("{} sent {} where {} was due: run one version on both nodes",
                               around_.peer_name, message_name(message), handshake_wait(phase_).message)};
    }
    if (Status status = handle(std::move(message), now_ns, out); !status) return status;
  }
  return {};
}

// False: the message concerns all legs, and another one has its turn.
bool Handshake::takes_turn(const Message& message, uint64_t now_ns) {
  const auto* const hello = std::get_if<Hello>(&message);
  const bool concerns_all =
      std::holds_alternative<TransferOffer>(message) || (hello != nullptr && hello->ended);
  if (!apart_ || !concerns_all) return true;
  entered_ns_ = now_ns;
  apart_ = !around_.job.may_begin(leg_);
  around_.job.legs.set(leg_, apart_ ? Siblings::Stage::kDue : Siblings::Stage::kBegins);
  return !apart_;
}

Status Handshake::handle(Message message, uint64_t now_ns, Effects& out) {
  Job& job = around_.job;
  if (const auto* answer = std::get_if<Hello>(&message)) return hello(*answer, now_ns, out);
  if (const auto* wishes = std::get_if<Specification>(&message)) return specification(*wishes, now_ns, out);
  if (const auto* set = std::get_if<SpecificationSet>(&message)) return take_answer(*set, now_ns, out);
  if (const auto* request = std::get_if<TransferRequest>(&message)) {
    if (selection::is_part(request->selection.part) && !around_.agreement.abilities.has(Ability::kRanges))
      return Error{ErrorCode::kIncompatible, "the peer asks for a part of a file, which was not agreed upon"};
    return find_sources(request->source_paths, request->selection, now_ns, out);
  }
  if (const auto* offer = std::get_if<TransferOffer>(&message)) return take_offer(*offer, now_ns, out);
  const auto& ready = std::get<TransferReady>(message);
  if (Status status = job.source()->take_ready(ready, around_.lanes.size()); !status) return status;
  around_.lanes.name_flows(ready.flow_ids);
  around_.lanes.credited(ready.credit_extents);
  agreed_ = true;
  enter(P::kJournal, now_ns);
  return {};
}

// ---- the other node ----------------------------------------------------------------------------

Status Handshake::answer_call(const Dataplane& dataplane, uint64_t now_ns, Effects& out) {
  dataplane_ = dataplane;
  around_.stream.greeted();
  contacted_ = true;
  Hello answer = make_hello(around_.job.id);
  answer.granted = around_.job.granted.has_value();
  answer.leased = around_.job.lease.has_value();
  answer.known = around_.job.began;
  around_.stream.send(std::move(answer), out);
  enter(P::kSpecification, now_ns);
  return {};
}

void Handshake::hear_of_end(uint64_t now_ns, Effects& out) {
  around_.stream.greeted();
  contacted_ = true;
  settle(now_ns, out);
}

Status Handshake::specification(const Specification& wishes, uint64_t now_ns, Effects& out) {
  Job& job = around_.job;
  const Role role = wishes.role == OfferedRole::kDestination ? Role::kSource : Role::kDestination;
  if (job.granted && role != Role::kDestination)
    return Error{ErrorCode::kPeerUntrusted, fmt::format("{} may send what {} has ordered, and get nothing",
                                                        around_.peer_name, job.granted->issuer)};
  const bool source = role == Role::kSource;
  const Result<uint32_t> lanes =
      lanes_for(wishes, source ? dataplane_.tx_lanes_max : dataplane_.rx_lanes_max);
  if (!lanes) return lanes.error();
  if (job.began && job.role != role) {
    return Error{ErrorCode::kIncompatible, fmt::format("{} changed sides of the session", around_.peer_name)};
  }
  job.role = role;
  specification_ = wishes;
  reserve(*lanes, false, now_ns, out);
  return {};
}

Status Handshake::answer_specification(uint64_t now_ns, Effects& out) {
  const Result<SpecificationSet> set = answer(specification_, abilities(now_ns),
                                              around_.settings.partition_bytes, around_.lanes.local_ports());
  if (!set) return set.error();
  if (set->abilities.has(Ability::kEchoes)) {
    reflects_ = around_.settings.reflecting->take(around_.peer_name);
    if (reflects_ == nullptr)
      return Error{ErrorCode::kResources,
                   "a probe of the same node is reflected here already: wait for its end"};
  }
  if (Status status = agree_upon(specification_, *set, now_ns, out); !status) return status;
  around_.stream.send(*set, out);
  if (around_.job.role == Role::kSource) {
    enter(P::kRequest, now_ns);
  } else {
    await_offer(now_ns, out);
  }
  return read_inbox(now_ns, out);
}

// ---- both --------------------------------------------------------------------------------------

Abilities Handshake::abilities(uint64_t now_ns) const {
  Abilities able{.port = dataplane_.port,
                 .udp_checksum_always = around_.settings.udp_checksum_always,
                 .calls_only = around_.settings.calls_only,
                 .file_part = around_.job.request && selection::is_part(around_.job.request->selection.part),
                 .several_sources = around_.job.several_peers,
                 .digests_unanswered = around_.settings.digests_unanswered,
                 .protection = around_.settings.protection};
  if (around_.job.role != Role::kSource) return able;
  const rate::PathSizes& sizes = around_.settings.paths->sizes();
  const auto path = [&](bool ip4) {
    const rate::SizeCurve* const curve = sizes.measured(around_.peer_name, ip4, now_ns);
    return Abilities::Path{.carried_bytes = sizes.chunk_bytes(around_.peer_name, ip4, now_ns),
                           .best_bytes = curve == nullptr ? 0 : curve->best_chunk_bytes};
  };
  able.ip4 = path(true);
  able.ip6 = path(false);
  return able;
}

// An operator demanded an erasure code, and there is none. A peer without it has ended the session before.
void Handshake::tell_fec(const Agreement& agreement, Effects& out) const {
  const auto& request = around_.job.request;
  if (!request || !demands_code(request->options.fec) || codes_of(agreement.abilities) != 0) return;
  out.log(LogLevel::kInfo, "fec is off: into null: no bytes are kept that lost ones could be made of");
}

Status Handshake::agree_upon(const Specification& wishes, const SpecificationSet& set, uint64_t now_ns,
                             Effects& out) {
  Result<Agreement> agreement = agree(wishes, set, abilities(now_ns), around_.job.initiator);
  if (!agreement) return agreement.error();
  const uint32_t lanes = agreement->lanes;
  tell_fec(*agreement, out);
  if (agreement->protection == wire::Protection::kCrc) {
    out.log(LogLevel::kWarn,
            "data are neither encrypted nor authenticated: [transfer] protection is \"crc\" at both nodes");
  }
  around_.lanes.shrink(lanes, out);
  if (!apart_) return join_terms(std::move(*agreement));
  agreed_apart_ = std::move(*agreement);
  return {};
}

// The first agreement says how the data is cut and checked.
Status Handshake::join_terms(Agreement agreement) {
  Job& job = around_.job;
  const bool first = !job.began && !(job.several_peers && job.has_end());
  if (first) {
    job.terms = agreement;
  } else if (agreement.extent_bytes != job.terms->extent_bytes || agreement.crc_kind != job.terms->crc_kind ||
             agreement.discard != job.terms->discard) {
    if (wished_freely_) {
      return Error{
          ErrorCode::kPeerUnreachable,
          fmt::format("{} agreed to cut or check the data otherwise than a source that was sooner: it "
                      "is asked again",
                      around_.peer_name)};
    }
    return Error{
        ErrorCode::kIncompatible,
        fmt::format("the session was cut into extents of {} bytes with {}, which {} does not take any "
                    "more: configure it as before, or begin another session",
                    job.terms->extent_bytes, wire::crc_kind_name(job.terms->crc_kind), around_.peer_name)};
  } else if (agreement.abilities.has(Ability::kParts) != job.terms->abilities.has(Ability::kParts)) {
    return incompatible("a session of one source cannot go on with several, nor the other way round");
  }
  around_.agreement = std::move(agreement);
  return {};
}

// A session that waits for credit may hold nothing that another could wait for while holding credit: flows
// first, then credit, then a source's buffers, at both nodes. So two nodes cannot deadlock.
void Handshake::reserve(uint32_t lanes, bool may_wait, uint64_t now_ns, Effects& out) {
  const bool source = around_.job.role == Role::kSource;
  enter(P::kFlows, now_ns);
  pending_.ask(ReserveFlows{.leg = leg_,
                            .direction = source ? board::Direction::kTx : board::Direction::kRx,
                            .lanes = lanes,
                            .may_wait = may_wait},
               out);
}

Status Handshake::on(const FlowsReserved& event, uint64_t now_ns, Effects& out) {
  pending_.answered();
  if (!event.status) return event.status;
  around_.lanes.reserved(event.session, event.grants);
  if (halted_) {
    around_.lanes.close(out);  // none of them was opened
    return {};
  }
  if (around_.job.role == Role::kSource) return reserved(now_ns, out);
  apart_ = around_.job.may_call_apart();
  if (apart_) around_.job.legs.set(leg_, Siblings::Stage::kCalls);
  enter(P::kCredit, now_ns);
  pending_.ask(ReserveBuffers{.leg = leg_, .direction = board::Direction::kRx}, out);
  return {};
}

Status Handshake::on(const BuffersReserved& event, uint64_t now_ns, Effects& out) {
  pending_.answered();
  if (!event.status) return event.status;
  around_.lanes.credited(event.credit_extents);
  if (halted_) return {};
  if (phase_ == P::kCredit) return reserved(now_ns, out);
  Job& job = around_.job;
  if (job.source()->running()) job.source()->note_told(leg_);
  if (Status status = offer(out); !status) return status;
  enter(P::kReady, now_ns);
  return read_inbox(now_ns, out);
}

Status Handshake::reserved(uint64_t now_ns, Effects& out) {
  return around_.job.initiator ? call_now(now_ns, out) : answer_specification(now_ns, out);
}

}  // namespace sluice::transfer
