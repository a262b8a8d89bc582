// Messages there and back. docs/WIRE.md, section 2.
// SPDX-License-Identifier: Apache-2.0
#include "control/peer/codec.h"

#include <gtest/gtest.h>

#include <set>

#include "control/peer/messages_for_test.h"
#include "dataplane/base/documented_for_test.h"

namespace sluice::peer {
namespace {

using transfer::Message;

// As it travels: through bytes.
std::optional<Message> again(const Message& message) {
  PeerMessage wire;
  EXPECT_TRUE(wire.ParseFromString(to_wire(message).SerializeAsString()));
  return from_wire(wire);
}

TEST(PeerCodec, EveryFieldOfEveryMessageComesBack) {
  std::set<size_t> kinds;
  for (const Message& message : transfer::sample_messages()) {
    const std::string name(transfer::message_name(message));
    EXPECT_TRUE(kinds.insert(message.index()).second) << name;
    EXPECT_TRUE(transfer::all_set(message)) << name << ": the sample leaves a field out";
    const auto back = again(message);
    ASSERT_TRUE(back) << name;
    EXPECT_TRUE(transfer::equal_messages(*back, message)) << name;
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Message>) << "a message without a sample";
}

template <size_t... kKinds>
void expect_empty_ones(std::index_sequence<kKinds...> /*kinds*/) {
  const auto expect = [](const Message& message) {
    const auto back = again(message);
    ASSERT_TRUE(back) << transfer::message_name(message);
    EXPECT_TRUE(transfer::equal_messages(*back, message)) << transfer::message_name(message);
  };
  (expect(std::variant_alternative_t<kKinds, Message>()), ...);
}

TEST(PeerCodec, AMessageWithNothingInItStaysWhatItIs) {
  expect_empty_ones(std::make_index_sequence<std::variant_size_v<Message>>());
}

// Zero is a lane; no lane is none.
TEST(PeerCodec, ALaneOfANeedMayBeMissing) {
  transfer::Need need{.object = ObjectId(1)};
  EXPECT_FALSE(std::get<transfer::Need>(*again(need)).lane);
  need.lane = LaneId(0);
  EXPECT_EQ(std::get<transfer::Need>(*again(need)).lane, LaneId(0));
}

TEST(PeerCodec, BothRolesAndNoneComeBack) {
  using transfer::OfferedRole;
  for (const OfferedRole role : {OfferedRole::kUnspecified, OfferedRole::kSource, OfferedRole::kDestination})
    EXPECT_EQ(std::get<transfer::Specification>(*again(transfer::Specification{.role = role})).role, role);
}

TEST(PeerCodec, ARoleOfALaterVersionIsNone) {
  PeerMessage wire;
  wire.mutable_specification()->set_role(static_cast<Specification::Role>(3));
  EXPECT_EQ(std::get<transfer::Specification>(*from_wire(wire)).role, transfer::OfferedRole::kUnspecified);
}

// Whoever negotiates passes over what it does not know, and may still find something in common.
TEST(PeerCodec, ACrcKindOfALaterVersionIsHandedOn) {
  const transfer::Specification offer{.crc_kinds = {77, 2}};
  EXPECT_EQ(std::get<transfer::Specification>(*again(offer)).crc_kinds, offer.crc_kinds);
}

TEST(PeerCodec, AFileOfALaterKindStaysOne) {
  for (const int kind : {3, 255, 256, 1 << 30, -1, INT32_MIN}) {
    PeerMessage wire;
    wire.mutable_transfer_offer()->add_files()->set_kind(static_cast<File::Kind>(kind));
    const auto message = from_wire(wire);
    const auto& files = std::get<transfer::TransferOffer>(*message).files;
    EXPECT_GE(static_cast<uint8_t>(files.at(0).kind), catalog::kFileKinds) << kind << ": it is refused later";
  }
}

TEST(PeerCodec, NamesThatDidNotArriveAreBoundedAndOfAKindThatIsKnown) {
  PeerMessage wire;
  wire.mutable_file_done()->set_failed(150);
  for (uint32_t i = 0; i < 150; ++i) {
    wire.mutable_file_done()->add_failures()->set_path("\xff" + std::to_string(i));
    wire.mutable_file_done()->mutable_failures(static_cast<int>(i))->set_failure(i);
  }
  const auto message = from_wire(wire);
  const catalog::Shortfall& missing = std::get<transfer::FileDone>(*message).missing;
  EXPECT_EQ(missing.failed, 150U);
  ASSERT_EQ(missing.names.size(), catalog::kFailuresKept);
  EXPECT_EQ(missing.names[7].path,
            "\xff"
            "7");
  EXPECT_EQ(missing.names[7].failure, catalog::Failure::kExists);
  EXPECT_EQ(missing.names[99].failure, catalog::Failure::kOther);
}

TEST(PeerCodec, WhatIsNoMessageOfThisVersionIsRefused) {
  EXPECT_FALSE(from_wire(PeerMessage()));
  PeerMessage later;
  ASSERT_TRUE(later.ParseFromString(std::string("\xaa\x06\x02\x08\x01", 5))) << "field 101, a message";
  EXPECT_FALSE(from_wire(later));
}

TEST(PeerCodec, ASessionsIdIsSixteenBytesOrNothing) {
  const std::string text = "00ff0123456789abcdef0123456789ab";
  const std::string bytes("\x00\xff\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab", 16);
  EXPECT_EQ(session_id_bytes(text), bytes);
  EXPECT_EQ(session_id_text(bytes), text);
  for (const size_t length : {0, 1, 2, 31}) EXPECT_EQ(session_id_bytes(text.substr(0, length)), "") << length;
  EXPECT_EQ(session_id_bytes(text + "0"), "");
  EXPECT_EQ(session_id_bytes(text + "00"), "");
  for (const size_t length : {0, 1, 15}) EXPECT_EQ(session_id_text(bytes.substr(0, length)), "") << length;
  EXPECT_EQ(session_id_text(bytes + "x"), "");
}

// A damaged journal: the peer knows no such session, and that is all.
TEST(PeerCodec, AnIdOfNoHexDigitsIsOneAsWell) {
  EXPECT_EQ(session_id_bytes(std::string(32, 'x')), std::string(16, '\0'));
  EXPECT_EQ(session_id_bytes("-1" + std::string(30, '0')), std::string(16, '\0'));
}

// Both ways, as docs/WIRE.md has the bytes under these names.
void expect_documented(const std::vector<std::pair<std::string, Message>>& documented) {
  for (const auto& [name, message] : documented) {
    const std::string bytes = base::documented_bytes(name);
    EXPECT_EQ(to_wire(message).SerializeAsString(), bytes) << name;
    PeerMessage wire;
    ASSERT_TRUE(wire.ParseFromString(bytes)) << name;
    EXPECT_TRUE(transfer::equal_messages(from_wire(wire).value(), message)) << name;
  }
}

// docs/WIRE.md 2.1.6.
TEST(PeerCodec, WordsAboutPartsAreThoseOfTheDocument) {
  const std::vector<std::pair<std::string, Message>> documented = {
      {"parts, answer", transfer::SpecificationSet{.lanes = 1,
                                                   .chunk_bytes = 8192,
                                                   .extent_bytes = 65536,
                                                   .partition_bytes = 64U << 20,
                                                   .crc_kind = 2,
                                                   .rate_bps = 1'000'000'000,
                                                   .data_ip = {10, 0, 0, 1},
                                                   .udp_ports = {47000},
                                                   .protection = 1,
                                                   .digests_unanswered = 4096,
                                                   .abilities = {transfer::Ability::kParts}}},
      {"parts, want",
       transfer::Want{.object = ObjectId(2),
                      .ranges = {{.offset = 0, .length = 131072}, {.offset = 19660800, .length = 9}}}},
      {"parts, withdrawn",
       transfer::Want{
           .object = ObjectId(2), .ranges = {{.offset = 65536, .length = 65536}}, .withdrawn = true}},
      {"parts, extent digests",
       transfer::ExtentDigests{
           .object = ObjectId(2), .offset = 19595264, .digests = {0x0123456789abcdef, 0x995dc9bbdf1939fa}}},
      {"parts, digests wanted",
       transfer::DigestsWanted{.object = ObjectId(2), .ranges = {{.offset = 19660800, .length = 9}}}},
      {"parts, last digests wanted",
       transfer::DigestsWanted{
           .object = ObjectId(2), .ranges = {{.offset = 19660800, .length = 9}}, .last = true}},
      {"parts, last extent digests",
       transfer::ExtentDigests{
           .object = ObjectId(2), .offset = 19660800, .digests = {0x995dc9bbdf1939fa}, .last = true}}};
  expect_documented(documented);
}

// docs/WIRE.md 2.18.
TEST(PeerCodec, WordsAboutDigestsAreThoseOfTheDocument) {
  const digests::Named file{
      .path = "run/a",
      .size_bytes = 3,
      .target = {},
      .values = {{.kind = digests::Kind::kCrc32c, .hex = "364b3fb7"},
                 {.kind = digests::Kind::kSha256,
                  .hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}}};
  const digests::Named link{.path = "run/b", .size_bytes = 0, .target = "run/a", .values = {}};
  const std::vector<std::pair<std::string, Message>> documented = {
      {"digests, names", transfer::NameDigests{.object = ObjectId(3), .names = {file, link}, .last = true}},
      {"digests, progress",
       transfer::DigestProgress{.object = ObjectId(3), .bytes = 4U << 20, .took_ns = 250'000'000}}};
  expect_documented(documented);
}

// docs/WIRE.md 2.13. What it says of the session's options is theirs, by name.
TEST(PeerCodec, WordsAboutOrdersAreThoseOfTheDocument) {
  const transfer::SignedGrant grant{.grant = "grant", .signature = "signature", .certificate = "certificate"};
  transfer::Order order{.grant = grant, .source_paths = {"data/run 7"}, .destination = "data/in/"};
  order.options.overwrite = true;
  order.options.rate_bps = 1'000'000'000;
  transfer::OrderState state{.state = 3, .bytes_total = 3U << 20, .bytes_done = 1U << 20};
  state.names.total = 1;
  state.files = {{.source = "/srv/data/run 7", .size_bytes = 3U << 20, .bytes_done = 1U << 20}};
  const std::vector<std::pair<std::string, Message>> documented = {
      {"orders, hello", transfer::Hello{.version_min = 5,
                                        .version_max = 5,
                                        .session_id = "000102030405060708090a0b0c0d0e0f",
                                        .grant = grant}},
      {"orders, order", order},
      {"orders, state", state},
      {"orders, limit",
       transfer::OrderWish{.kind = transfer::OrderWishKind::kLimit, .rate_bps = 100'000'000}},
      {"orders, renew", transfer::OrderWish{.kind = transfer::OrderWishKind::kRenew, .grant = grant}}};
  for (const auto& [name, message] : documented) {
    const std::string bytes = base::documented_bytes(name);
    EXPECT_EQ(to_wire(message).SerializeAsString(), bytes) << name;
    PeerMessage wire;
    ASSERT_TRUE(wire.ParseFromString(bytes)) << name;
    EXPECT_EQ(to_wire(from_wire(wire).value()).SerializeAsString(), bytes) << name;
  }
}

// docs/WIRE.md 2.14.
TEST(PeerCodec, LeasesAreThoseOfTheDocument) {
  transfer::Hello hello{.version_min = 5, .version_max = 5, .session_id = "000102030405060708090a0b0c0d0e0f"};
  hello.leased = true;
  EXPECT_EQ(to_wire(hello).SerializeAsString(), base::documented_bytes("lease, answer"));
  hello.leased = false;
  hello.lease = transfer::Lease{.name = "0123456789abcdef", .epoch = 7};
  EXPECT_EQ(to_wire(hello).SerializeAsString(), base::documented_bytes("lease, hello"));
}

// docs/WIRE.md 2.15.
TEST(PeerCodec, AMoveIsThatOfTheDocument) {
  transfer::Hello hello{
      .version_min = 5, .version_max = 5, .session_id = "000102030405060708090a0b0c0d0e0f", .known = true};
  hello.move = transfer::SignedMove{.move = "move", .signature = "signature", .certificate = "certificate"};
  EXPECT_EQ(to_wire(hello).SerializeAsString(), base::documented_bytes("moves, hello"));
  const std::string bytes = base::documented_bytes("moves, move");
  Move move;
  ASSERT_TRUE(move.ParseFromString(bytes));
  EXPECT_EQ(move.SerializeAsString(), bytes);
  EXPECT_EQ(move.from(), "a050837d85070582ccf7394b0988847cc312cb88259b894899f6f239cf1791a5");
  EXPECT_EQ(move.peer(), "node beta");
  EXPECT_EQ(move.epoch(), 2U);
  EXPECT_EQ(move.content_sha256().size(), 32U);
}

TEST(PeerCodec, AGrantIsThatOfTheDocument) {
  const std::string bytes = base::documented_bytes("orders, grant");
  Grant grant;
  ASSERT_TRUE(grant.ParseFromString(bytes));
  EXPECT_EQ(grant.SerializeAsString(), bytes);
  EXPECT_EQ(session_id_text(grant.id()), "000102030405060708090a0b0c0d0e0f");
  EXPECT_EQ(grant.issuer(), "a050837d85070582ccf7394b0988847cc312cb88259b894899f6f239cf1791a5");
  EXPECT_EQ(grant.holder().substr(0, 4), "abab");
  EXPECT_EQ(grant.destination(), "node beta");
  EXPECT_EQ(grant.sources_sha256().size(), 32U);
  EXPECT_EQ(grant.path(), "data/in/");
  EXPECT_TRUE(grant.overwrite());
  EXPECT_EQ(grant.bytes_max(), 1U << 20);
  EXPECT_EQ(grant.start_by_unix_ns() - grant.not_before_unix_ns(), 300'000'000'000);
}

}  // namespace
}  // namespace sluice::peer
