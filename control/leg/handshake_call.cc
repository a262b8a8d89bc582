// The handshake of who calls: what its call carries, and what follows from the answers. See handshake.h.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/leg/handshake.h"
#include "control/source/offer.h"

namespace sluice::transfer {

Status Handshake::call(const Dataplane& dataplane, uint64_t now_ns, Effects& out) {
  dataplane_ = dataplane;
  const bool source = around_.job.role == Role::kSource;
  const uint32_t lanes =
      std::min(around_.job.request->options.lanes, source ? dataplane.tx_lanes_max : dataplane.rx_lanes_max);
  if (lanes == 0) {
    return Error{ErrorCode::kResources,
                 "no lane is possible: raise dataplane.extents_per_worker in node.toml"};
  }
  reserve(lanes, true, now_ns, out);
  return {};
}

Hello Handshake::first_word() const {
  Hello hello = make_hello(around_.job.id);
  hello.known = around_.job.began;
  hello.share = around_.job.share();
  hello.user = around_.job.user_to_say();
  hello.leg = around_.number;
  if (around_.job.initiator && around_.job.granted) hello.grant = around_.job.granted->grant;
  if (around_.job.initiator) hello.lease = around_.job.lease;
  if (around_.job.initiator && around_.job.moved) hello.move = around_.job.moved->move;
  return hello;
}

TransferRequest Handshake::wanted() const {
  const Request& request = *around_.job.request;
  return {.source_paths = request.source_paths, .selection = request.selection};
}

// Only the first leg offers, and only once: a second call of a session that has not begun follows on one
// that may have failed by this.
std::optional<TransferOffer> Handshake::take_offer_ahead() {
  Job& job = around_.job;
  std::optional<TransferOffer> offer = std::exchange(job.foreseen, std::nullopt);
  if (job.role != Role::kSource || around_.number != 0 || job.has_end()) return {};
  if (job.sources) offer = offer_ahead(*job.sources, *job.request);
  if (offer && memory_bytes(Message(*offer)) > kCarriedBytesMax) offer.reset();
  return offer;
}

Status Handshake::specify(uint64_t now_ns) {
  const Job& job = around_.job;
  Options options = job.request->options;
  Abilities able = abilities(now_ns);
  wished_freely_ = !job.began;
  if (job.began) {  // what is there was cut and checked so
    able.port.extent_bytes_max = job.terms->extent_bytes;
    options.crc = job.terms->crc_kind;
  }
  Result<Specification> wishes =
      make_specification(able, options, job.role, job.request->discards(), around_.lanes.local_ports());
  if (!wishes) return wishes.error();
  specification_ = std::move(*wishes);
  around_.lanes.ask_echoes(options.echoes, options.echo_bytes);
  return {};
}

Status Handshake::stream_open(uint64_t rtt_ns, uint64_t now_ns, Effects& out) {
  if (phase_ != P::kCalling) return {};
  rtt_ns_ = rtt_ns;
  enter(P::kHello, now_ns);
  return read_inbox(now_ns, out);
}

Status Handshake::hello(const Hello& hello, uint64_t now_ns, Effects& out) {
  const Job& job = around_.job;
  if (Status status = check_hello(hello); !status) return status;
  if (hello.session_id != job.id) {
    return Error{ErrorCode::kIncompatible, fmt::format("{} answers for another session", around_.peer_name)};
  }
  if (job.granted && !hello.granted && !hello.ended)
    return Error{
        ErrorCode::kIncompatible,
        fmt::format("{} is too old ({}): it knows no grants, and would take this session for one of this "
                    "node; bring all three nodes to one version",
                    around_.peer_name, hello.software)};
  if (job.lease && !hello.leased && !hello.ended)
    return incompatible(
        fmt::format("{} is too old ({}): it keeps no leases, and would let others write as well; bring both "
                    "nodes to one version, or give no --lease",
                    around_.peer_name, hello.software));
  around_.stream.greeted();
  contacted_ = true;
  if (hello.ended) {
    settle(now_ns, out);
    return {};
  }
  peer_forgot_ = job.began && !hello.known && forgets_with_peer();
  if (peer_forgot_) {
    return Error{ErrorCode::kStalled,
                 fmt::format("{} does not know the session any more (its journal was lost): beginning anew",
                             around_.peer_name)};
  }
  if (!specified_) {
    if (Status status = specify(now_ns); !status) return status;
    around_.stream.send(specification_, out);
  }
  enter(P::kAnswer, now_ns);
  return {};
}

// A destination cannot be offered the rest of a list by a source that has lost its beginning. A destination
// that lost its journal tells of nothing as done, so what a source was told is worth nothing either.
bool Handshake::forgets_with_peer() const {
  const Job& job = around_.job;
  if (job.source() != nullptr) return job.source()->told_of_done();
  return job.destination() != nullptr && job.terms->abilities.has(Ability::kGrowingOffer);
}

Status Handshake::take_answer(const SpecificationSet& set, uint64_t now_ns, Effects& out) {
  if (Status status = agree_upon(specification_, set, now_ns, out); !status) return status;
  const Request& request = *around_.job.request;
  if (around_.job.role == Role::kSource)
    return find_sources(request.source_paths, request.selection, now_ns, out);
  if (!requested_) around_.stream.send(wanted(), out);
  await_offer(now_ns, out);
  return {};
}

// The other node will say how it ended: no flows are needed to hear it. What the source does not know the CRC
// of is read again before it believes a digest.
void Handshake::settle(uint64_t now_ns, Effects& out) {
  settling_ = true;
  around_.lanes.shrink(0, out);
  Job& job = around_.job;
  SourceEnd* const source = job.source();
  // The peer says nothing of files that nobody has agreed upon.
  if (job.destination() != nullptr && !job.destination()->files().agreed())
    job.made.emplace<std::monostate>();
  if (source != nullptr && !source->running()) {
    source->files().reopen(out);
    return enter(P::kSources, now_ns);
  }
  start(now_ns, out);
}

// The call carries what can be said before the peer has said anything. The peer answers each of these words
// by itself, so each saves a round trip. Of a session that has begun the specification depends on what the
// peer still knows of it.
Status Handshake::call_now(uint64_t now_ns, Effects& out) {
  std::vector<Message> words{first_word()};
  if (!around_.job.began) {
    if (Status status = specify(now_ns); !status) return status;
    words.emplace_back(specification_);
    specified_ = true;
    Message request = wanted();
    requested_ = around_.job.role == Role::kDestination && memory_bytes(request) <= kCarriedBytesMax;
    if (requested_) words.push_back(std::move(request));
    offered_ = take_offer_ahead();
    if (offered_) words.emplace_back(*offered_);
  }
  enter(P::kCalling, now_ns);
  around_.stream.call(out, std::move(words));
  return {};
}

}  // namespace sluice::transfer
