// The other node of a transfer under test, as an honest one behaves, and the bytes that both know. For tests.
//
// It knows nothing of time, and answers each message at once: what a test does not want to be said it takes
// out on the way (transfer_fixture.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/leg/negotiation.h"
#include "control/recovery/extent_ledger.h"
#include "control/transfer/peer_call.h"
#include "control/words/messages.h"
#include "dataplane/board/codes.h"

namespace sluice::transfer::test {

inline constexpr uint32_t kExtent = 64U << 10;
inline const std::string kId(32, 'a');

// Files whose bytes are known by the CRCs of their extents.
struct Content {
  std::vector<uint64_t> sizes;

  static uint64_t crc(ObjectId object, ExtentId extent) {
    return (object.value() + 1) * 0x9E3779B97F4A7C15U ^ (extent.value() + 1) * 0xC2B2AE3D27D4EB4FU;
  }
  recovery::Layout layout(ObjectId object) const {
    return {
        .size_bytes = sizes[object.value()], .extent_bytes = kExtent, .crc_kind = wire::CrcKind::kCrc64Ecma};
  }
  recovery::Range all(ObjectId object) const { return {.offset = 0, .length = sizes[object.value()]}; }
  recovery::ExtentLedger ledger(ObjectId object) const {
    recovery::ExtentLedger ledger(layout(object));
    for (ExtentId extent; extent < ledger.map().end_id(); ++extent) ledger.add(extent, crc(object, extent));
    return ledger;
  }
  uint64_t digest(ObjectId object) const { return ledger(object).digest(); }
  ObjectId end_id() const { return ObjectId(static_cast<uint32_t>(sizes.size())); }
};

// A data port at 10.0.0.`last` whose dataplane has 16 lanes.
inline Dataplane dataplane_at(uint8_t last, uint64_t generation = 1) {
  Dataplane dataplane{.generation = generation, .tx_lanes_max = 16, .rx_lanes_max = 16};
  dataplane.port.ip4[10] = dataplane.port.ip4[11] = 0xFF;
  dataplane.port.ip4[12] = 10;
  dataplane.port.ip4[15] = last;
  dataplane.port.chunk_bytes_max_ip4 = 8192;
  dataplane.port.extent_bytes_max = kExtent;
  dataplane.port.workers = 1;
  dataplane.port.codes = board::kCodesKnown;
  return dataplane;
}

// Of a tree's `count` objects.
inline catalog::FileKind kind_in_tree(size_t number, size_t count) {
  if (number == 0) return catalog::FileKind::kPack;
  return number + 1 == count ? catalog::FileKind::kLastPack : catalog::FileKind::kFile;
}
inline constexpr uint32_t kMembers = 3;  // of each pack

class HonestPeer {
 public:
  struct Wanted {
    ObjectId object;
    recovery::Range range;
  };

  HonestPeer() = default;
  HonestPeer(Role role, bool initiator, Content content)
      : role_(role), initiator_(initiator), content_(std::move(content)) {}

  // Before the transfer hears anything of it.
  std::map<ObjectId, std::vector<recovery::Range>> holds;  // a destination's, from an earlier attempt
  std::vector<Message> last_words;                         // the transfer has ended here: what it says of it
  bool known = false;                                      // files were agreed upon
  bool forgot = false;                                     // its journal is lost
  bool pauses = false;                                     // its operator has paused the session
  bool packs = false;          // a tree: the first is a pack, the last the last pack
  size_t grows = 0;            // as a source: so many files at first, then one at a time; 0: all
  bool bare_end = false;       // and that there is no more without one
  bool digests = false;        // as a destination: it was asked for them, and tells them
  catalog::Shortfall missing;  // of the first, at either node
  catalog::Failure failure = catalog::Failure::kOther;

  // Its own Hello, when it is the one who calls. With `renew` its flows are still there.
  Hello call(bool renew = false, uint32_t leg = 0) {
    at(leg);
    its().renewing = renew;
    return hello(renew);
  }

  // On one of its legs to the transfer.
  std::vector<Message> hear(const Message& message, uint32_t leg = 0) {
    at(leg);
    std::vector<Message> answer;
    if (const auto* hello = std::get_if<Hello>(&message)) return greeted(*hello);
    if (const auto* wishes = std::get_if<Specification>(&message)) {
      const auto lanes = lanes_for(*wishes, 16);
      if (lanes) its().lanes = *lanes;
      const auto set = transfer::answer(*wishes, abilities(), 64U << 20, ports(lanes ? *lanes : 1));
      digests = wishes->abilities.has(Ability::kDigests);
      if (set) answer.emplace_back(*set);
    } else if (std::holds_alternative<SpecificationSet>(message)) {
      its().lanes = std::get<SpecificationSet>(message).lanes;
      if (role_ == Role::kSource) return {offer()};
      answer.emplace_back(TransferRequest{.source_paths = {"wanted"}});
    } else if (std::holds_alternative<TransferRequest>(message)) {
      return {offer()};
    } else if (const auto* offered = std::get_if<TransferOffer>(&message)) {
      return hear_offer(*offered);
    } else if (const auto* is_ready = std::get_if<TransferReady>(&message)) {
      return hear_ready(*is_ready);
    } else {
      return hear_of_data(message);
    }
    return answer;
  }

  void fail(ObjectId object) { failed_.insert(object); }  // as a destination
  // As a source: what the transfer lacks now, as far as it has said.
  std::vector<Wanted> take_wanted() { return std::exchange(wanted_, {}); }
  bool take_leave() { return std::exchange(leaves_, false); }  // it hangs up
  bool take_asked() { return std::exchange(asked_, false); }   // also for nothing
  // What a source says once everything has left.
  std::vector<Message> all_was_sent() const {
    std::vector<Message> words;
    for (ObjectId object; object < end_known(); ++object) {
      if (content_.sizes[object.value()] != 0)
        words.emplace_back(PartitionSent{.object = object, .range = content_.all(object)});
      words.emplace_back(FileDigest{
          .object = object, .size_bytes = content_.sizes[object.value()], .digest = content_.digest(object)});
    }
    return words;
  }
  // All that it has listed, of these on.
  TransferOffer offer(size_t from = 0) const {
    TransferOffer offer{.destination = "in/", .into_directory = true, .growing = growing()};
    for (auto i = static_cast<uint32_t>(from); i < listed(); ++i) {
      offer.files.push_back(
          {.number = i, .name = "f" + std::to_string(i), .size_bytes = content_.sizes[i], .mode = 0644});
      if (!packs || kind_in_tree(i, content_.sizes.size()) == catalog::FileKind::kFile) continue;
      offer.files.back().name.clear();
      offer.files.back().kind = kind_in_tree(i, content_.sizes.size());
      offer.files.back().members = kMembers;
    }
    return offer;
  }
  Specification specification() const {
    const Options options{.rate_bps = 1'000'000'000};
    return *make_specification(abilities(), options, role_, false, ports(its().lanes));
  }
  const std::vector<uint64_t>& flow_ids() const { return its().flow_ids; }

 private:
  struct Leg {
    uint32_t lanes = 1;
    bool renewing = false;
    std::vector<uint64_t> flow_ids;
    bool ready = false;  // as a destination, in this attempt
  };
  void at(uint32_t leg) { number_ = leg; }
  Leg& its() { return legs_[number_]; }
  const Leg& its() const { return legs_[number_]; }

  size_t listed() const {
    return grows == 0 ? content_.sizes.size() : std::min(std::max(grows, listed_), content_.sizes.size());
  }
  bool growing() const { return role_ == Role::kSource ? grows != 0 && !list_ended_ : peer_grows_; }
  ObjectId end_known() const {
    return role_ == Role::kSource && grows != 0 ? ObjectId(static_cast<uint32_t>(answered_))
                                                : content_.end_id();
  }

  // Of the list that the transfer reads.
  std::vector<Message> hear_offer(const TransferOffer& offer) {
    if (!offer.files.empty()) heard_ = offer.files.back().number + 1;
    peer_grows_ = offer.growing;
    if (offer.more) return {};
    if (!its().ready) return ready();
    std::vector<Message> answer{
        TransferReady{.final_paths = std::vector<std::string>(offer.files.size(), "there"),
                      .objects = static_cast<uint32_t>(heard_),
                      .growing = offer.growing}};
    if (all_ended()) answer.emplace_back(session_done());
    return answer;
  }

  // One more file, or the end of the list, as soon as what was offered is answered for.
  std::vector<Message> hear_ready(const TransferReady& ready) {
    known = true;
    if (!ready.flow_ids.empty()) its().flow_ids = ready.flow_ids;
    if (grows == 0) return {};
    if (ready.flow_ids.empty()) {
      for (size_t i = answered_; i < ready.objects; ++i) {
        const ObjectId object(static_cast<uint32_t>(i));
        wanted_.push_back({object, content_.all(object)});
        asked_ = true;
      }
    }
    answered_ = ready.objects;
    if (!ready.growing) return {};
    if (listed() == content_.sizes.size()) {
      list_ended_ = true;
    } else {
      listed_ = listed() + 1;
      list_ended_ = !bare_end && listed_ == content_.sizes.size();
    }
    return {offer(answered_)};
  }

  static Abilities abilities() { return {.port = dataplane_at(2).port}; }
  static std::vector<uint16_t> ports(uint32_t lanes) {
    std::vector<uint16_t> ports;
    for (uint32_t i = 0; i < lanes; ++i) ports.push_back(static_cast<uint16_t>(48000 + i));
    return ports;
  }

  Hello hello(bool renew) const {
    Hello hello = make_hello(kId);
    hello.known = known;
    hello.leg = initiator_ ? number_ : 0;
    if (renew) hello.flow_ids = its().flow_ids;
    return hello;
  }

  std::vector<Message> greeted(const Hello& theirs) {
    std::vector<Message> answer;
    if (!last_words.empty()) return last_words;
    if (theirs.inquires && !theirs.ended)
      return forgot ? unknown_answer(theirs) : knows_answer(theirs, pauses);
    if (theirs.ended) return nothing_answer(theirs);  // it has heard how
    const bool renewed = initiator_ ? its().renewing : known && !theirs.flow_ids.empty();
    if (initiator_ && renewed && theirs.flow_ids != its().flow_ids) {  // they are gone: others are opened
      leaves_ = true;
      return {};
    }
    if (!renewed) {  // of this attempt nothing was asked for yet
      wanted_.clear();
      asked_ = its().ready = false;
      if (!known) done_.clear();
    }
    if (!initiator_) answer.emplace_back(hello(renewed));
    if (renewed && role_ == Role::kDestination) {
      tell_states(answer);
    } else if (renewed && grows != 0 && answered_ < listed() + (list_ended_ ? 1 : 0)) {
      answer.emplace_back(offer(answered_));
    } else if (!renewed && initiator_) {
      answer.emplace_back(specification());
    }
    return answer;
  }

  std::vector<Message> ready() {
    known = its().ready = true;
    its().flow_ids.clear();
    TransferReady ready{.credit_extents = std::vector<uint32_t>(its().lanes, 4)};
    for (uint32_t i = 0; i < its().lanes; ++i) its().flow_ids.push_back((1ULL << 63) + 16 * number_ + i + 1);
    ready.flow_ids = its().flow_ids;
    for (size_t i = 0; i < heard_; ++i) ready.final_paths.emplace_back("there");
    ready.objects = static_cast<uint32_t>(heard_);
    ready.growing = peer_grows_;
    std::vector<Message> answer{ready};
    tell_states(answer);
    return answer;
  }

  void tell_states(std::vector<Message>& answer) const {
    for (const auto& [object, ranges] : holds) {
      answer.emplace_back(ObjectState{.object = object, .held = ranges});
    }
    for (const auto& [object, digest] : done_) {
      tell_digests(object, answer);
      answer.emplace_back(ObjectState{.object = object, .done = true, .digest = digest});
      if (!file_done(object).missing.names.empty()) answer.emplace_back(file_done(object));
    }
    for (const ObjectId object : failed_)
      answer.emplace_back(ObjectFailed{.object = object, .names = {{.failure = failure}}});
    answer.emplace_back(ObjectState{.end = true});
    if (all_ended()) answer.emplace_back(session_done());
  }
  bool all_ended() const { return !growing() && done_.size() + failed_.size() == content_.sizes.size(); }

  std::vector<Message> hear_of_data(const Message& message) {
    std::vector<Message> answer;
    if (const auto* state = std::get_if<ObjectState>(&message)) {
      if (!state->end) {
        holds[state->object] = state->done ? std::vector{content_.all(state->object)} : state->held;
      } else {
        want_the_rest();
      }
    } else if (const auto* need = std::get_if<Need>(&message)) {
      for (const recovery::Range& range : need->ranges) wanted_.push_back({need->object, range});
    } else if (const auto* sent = std::get_if<PartitionSent>(&message)) {
      answer.emplace_back(PartitionDone{.object = sent->object, .ranges = {sent->range}});
    } else if (const auto* digest = std::get_if<FileDigest>(&message)) {
      done_[digest->object] = digest->digest;
      tell_digests(digest->object, answer);
      answer.emplace_back(file_done(digest->object));
      if (all_ended()) answer.emplace_back(session_done());
    } else if (const auto* failed = std::get_if<ObjectFailed>(&message)) {
      if (role_ == Role::kSource || done_.contains(failed->object)) return answer;
      failed_.insert(failed->object);
      answer.emplace_back(*failed);
      if (all_ended()) answer.emplace_back(session_done());
    } else if (std::holds_alternative<SessionDone>(message) && role_ == Role::kSource) {
      answer.emplace_back(session_done());
    }
    return answer;
  }

  void tell_digests(ObjectId object, std::vector<Message>& answer) const {
    if (!digests) return;
    answer.emplace_back(
        DigestProgress{.object = object, .bytes = content_.sizes[object.value()], .took_ns = 5});
    answer.emplace_back(
        NameDigests{.object = object,
                    .names = {{.values = {{.kind = digests::Kind::kMd5, .hex = std::string(32, 'a')}}}}});
    answer.emplace_back(NameDigests{.object = object, .first = 1, .last = true});
  }
  FileDone file_done(ObjectId object) const {
    const bool lacks = packs && object == ObjectId(0);
    return {.object = object, .digest = done_.at(object), .missing = lacks ? missing : catalog::Shortfall()};
  }
  SessionDone session_done() const { return {.files = content_.sizes.size()}; }

  void want_the_rest() {
    for (ObjectId object; object < end_known(); ++object) {
      recovery::ExtentMap held(content_.layout(object));
      for (const recovery::Range& range : holds[object]) {
        for (uint64_t at = range.offset; at < range.end(); at += kExtent) held.set(held.extent_at(at));
      }
      for (const recovery::Range& range : held.missing(content_.all(object), SIZE_MAX)) {
        wanted_.push_back({object, range});
      }
    }
    holds.clear();
    asked_ = true;
  }

  Role role_ = Role::kDestination;
  bool initiator_ = false;
  Content content_;
  std::array<Leg, kLegsMax> legs_;
  uint32_t number_ = 0;  // of the one that is spoken on
  std::vector<Wanted> wanted_;
  bool asked_ = false;
  bool leaves_ = false;
  size_t listed_ = 0;  // as a source whose list grows, and
  size_t answered_ = 0;
  bool list_ended_ = false;
  size_t heard_ = 0;  // of the list of the transfer
  bool peer_grows_ = false;
  std::map<ObjectId, uint64_t> done_;  // a destination's
  std::set<ObjectId> failed_;
};

}  // namespace sluice::transfer::test
