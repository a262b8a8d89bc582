// How many fields each message of a transfer has, and a sample of each with none left out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "control/words/messages.h"
#include "dataplane/base/fields_for_test.h"

namespace sluice::fields {

// clang-format off
template <> struct Count<catalog::FailedName> : Fields<2> {};
template <> struct Count<catalog::Shortfall> : Fields<3> {};
template <> struct Count<recovery::Range> : Fields<2> {};
template <> struct Count<selection::Rule> : Fields<2> {};
template <> struct Count<catalog::AclEntry> : Fields<4> {};
template <> struct Count<catalog::Attributes> : Fields<7> {};
template <> struct Count<catalog::Xattr> : Fields<2> {};
template <> struct Count<selection::Keep> : Fields<6> {};
template <> struct Count<selection::Selection> : Fields<4> {};
template <> struct Count<selection::FilePart> : Fields<5> {};
template <> struct Count<transfer::DigestsWanted> : Fields<3> {};
template <> struct Count<transfer::ExtentDigests> : Fields<4> {};
template <> struct Count<transfer::FileDigest> : Fields<3> {};
template <> struct Count<transfer::FileDone> : Fields<4> {};
template <> struct Count<transfer::Failure> : Fields<2> {};
template <> struct Count<board::Load> : Fields<6> {};
template <> struct Count<transfer::Heartbeat> : Fields<3> {};
template <> struct Count<verdict::Verdict> : Fields<3> {};
template <> struct Count<transfer::Hello> : Fields<20> {};
template <> struct Count<transfer::Lease> : Fields<2> {};
template <> struct Count<transfer::Need> : Fields<3> {};
template <> struct Count<transfer::ObjectFailed> : Fields<2> {};
template <> struct Count<transfer::ObjectState> : Fields<5> {};
template <> struct Count<digests::Named> : Fields<4> {};
template <> struct Count<digests::Value> : Fields<2> {};
template <> struct Count<transfer::NameDigests> : Fields<4> {};
template <> struct Count<transfer::DigestProgress> : Fields<3> {};
template <> struct Count<transfer::OfferedFile> : Fields<10> {};
template <> struct Count<transfer::OrderFigures> : Fields<8> {};
template <> struct Count<transfer::OrderNames> : Fields<6> {};
template <> struct Count<transfer::OrderState> : Fields<18> {};
template <> struct Count<transfer::OrderWish> : Fields<3> {};
template <> struct Count<transfer::OrderedFile> : Fields<7> {};
template <> struct Count<transfer::PartitionDone> : Fields<2> {};
template <> struct Count<transfer::PartitionSent> : Fields<3> {};
template <> struct Count<transfer::Pause> : Fields<3> {};
template <> struct Count<transfer::RateLimit> : Fields<1> {};
template <> struct Count<transfer::SessionDone> : Fields<2> {};
template <> struct Count<transfer::Specification> : Fields<22> {};
template <> struct Count<transfer::SignedGrant> : Fields<3> {};
template <> struct Count<transfer::SignedMove> : Fields<3> {};
template <> struct Count<transfer::SpecificationSet> : Fields<15> {};
template <> struct Count<transfer::TransferOffer> : Fields<11> {};
template <> struct Count<transfer::TransferReady> : Fields<6> {};
template <> struct Count<transfer::TransferRequest> : Fields<2> {};
template <> struct Count<transfer::Want> : Fields<3> {};
// clang-format on

}  // namespace sluice::fields

namespace sluice::transfer {

inline selection::FilePart sample_part() {
  return {.what = selection::FilePart::What::kRange,
          .set = "00112233445566778899aabbccddeeff",
          .offset = 1ULL << 40,
          .length = 1ULL << 30,
          .whole_bytes = 1ULL << 41};
}

// Without what is wrong with its options, which does not travel.
inline bool operator==(const Order& one, const Order& other) {
  const bool same_options = std::ranges::all_of(options::all(), [&](const options::Option& option) {
    return option.of != options::Of::kTransfer ||
           option.wish_in(one.options) == option.wish_in(other.options);
  });
  return same_options && one.grant == other.grant && one.source_paths == other.source_paths &&
         fields::equal(one.selection, other.selection) && one.destination == other.destination;
}

inline bool equal_messages(const Message& one, const Message& other) {
  if (one.index() != other.index()) return false;
  return std::visit(
      [&](const auto& m) { return fields::equal(m, std::get<std::decay_t<decltype(m)>>(other)); }, one);
}

inline bool all_set(const Message& message) {
  return std::visit([](const auto& m) { return fields::all_set(m); }, message);
}

// One of each kind.
inline std::vector<Message> sample_messages() {
  const std::vector<recovery::Range> ranges = {{.offset = 1ULL << 60, .length = 5},
                                               {.offset = ~0ULL, .length = ~0ULL}};
  const std::string ip4("\x0a\x00\x00\xff", 4);
  const std::string ip6("\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01", 16);
  return {
      Hello{.version_min = 1,
            .version_max = 2,
            .software = "sluice 1.0.0",
            .session_id = "00ff0123456789abcdef0123456789ab",
            .known = true,
            .flow_ids = {1, ~0ULL},
            .ended = true,
            .inquires = true,
            .names = true,
            .by_map = true,
            .paused = true,
            .share = ~0U,
            .user = "alice",
            .leg = 7,
            .orders = true,
            .grant = SignedGrant{.grant = "\xff", .signature = "c2lnbmVk", .certificate = "PEM"},
            .granted = true,
            .lease = Lease{.name = "0123456789abcdef", .epoch = kLeaseEpochMax},
            .leased = true,
            .move = SignedMove{.move = "\xff", .signature = "c2lnbmVk", .certificate = "PEM"}},
      Specification{.role = OfferedRole::kDestination,
                    .lanes_max = 16,
                    .data_ip4 = ip4,
                    .data_ip6 = ip6,
                    .chunk_bytes_max_ip4 = 8904,
                    .chunk_bytes_max_ip6 = 8880,
                    .chunk_reason_ip4 = rate::SizeReason::kPath,
                    .chunk_reason_ip6 = rate::SizeReason::kLoss,
                    .chunk_auto = true,
                    .extent_bytes_max = 1U << 22,
                    .crc_kinds = {2, 1},
                    .rate_bps_max = 1ULL << 40,
                    .udp_checksum_needed = true,
                    .prefer_ip6 = true,
                    .discard = true,
                    .udp_ports = {47000, 65535},
                    .rate_mode = rate::Mode::kCubic,
                    .expected_loss_ppm = 10'000,
                    .learn_address = true,
                    .queue_datagrams = 256,
                    .protection = 2,
                    .abilities = transfer::AbilitySet::all()},
      SpecificationSet{.lanes = 2,
                       .chunk_bytes = 8192,
                       .chunk_reason = rate::SizeReason::kPath,
                       .extent_bytes = 1U << 20,
                       .partition_bytes = 1ULL << 33,
                       .crc_kind = 1,
                       .rate_bps = 1ULL << 41,
                       .udp_checksum = true,
                       .data_ip = ip6,
                       .udp_ports = {47002, 47003},
                       .learns_address = true,
                       .queue_datagrams = 512,
                       .protection = 1,
                       .digests_unanswered = 4096,
                       .abilities = transfer::AbilitySet::all()},
      TransferRequest{
          .source_paths = {"/export/a/"},
          .selection = {.rules = {{.include = true, .pattern = "*\xff"}, {.include = true, .pattern = "b/"}},
                        .names = {"c\xff", "d/"},
                        .keep = {.owner = true,
                                 .group = true,
                                 .numeric_ids = true,
                                 .xattrs = true,
                                 .acls = true,
                                 .top = true},
                        .part = sample_part()}},
      TransferOffer{
          .files = {{.number = 4095,
                     .name = "\xe6\x95\xb0",
                     .size_bytes = 1ULL << 59,
                     .mode = 0640,
                     .mtime_ns = base::file_time_ns(-20'000'000'000, 9),
                     .kind = catalog::FileKind::kLastPack,
                     .members = 77,
                     .holes = ranges,
                     .attributes = {.uid = 1,
                                    .gid = ~1U,
                                    .user = "a\xff",
                                    .group = "b",
                                    .xattrs = {{.name = "user.a\xff", .value = std::string("v\0", 2)}},
                                    .acl = {{.tag = 1, .perm = 7, .id = 9, .name = "c"},
                                            {.tag = 2, .perm = 5, .id = ~1U, .name = "\xff"}},
                                    .default_acl = {{.tag = 32, .perm = 1, .id = 3, .name = "d"}}},
                     .expected = {{.kind = digests::Kind::kMd5, .hex = "000102030405060708090a0b0c0d0eff"}}}},
          .destination = "incoming/",
          .into_directory = true,
          .overwrite = true,
          .verify = true,
          .mkdir = true,
          .more = true,
          .growing = true,
          .keep = 63,
          .part = sample_part(),
          .digests = 255},
      TransferReady{.flow_ids = {5, 1ULL << 63},
                    .credit_extents = {16, 2},
                    .final_paths = {"/incoming/a", "/b"},
                    .objects = 4096,
                    .growing = true,
                    .keep = 63},
      ObjectState{.object = ObjectId(3), .held = ranges, .done = true, .digest = ~0ULL, .end = true},
      PartitionSent{.object = ObjectId(~0U), .range = ranges[0], .lane = LaneId(15)},
      PartitionDone{.object = ObjectId(1), .ranges = ranges},
      Need{.object = ObjectId(2), .ranges = ranges, .lane = LaneId(1)},
      FileDigest{.object = ObjectId(4), .size_bytes = 1ULL << 58, .digest = 7},
      FileDone{.object = ObjectId(5),
               .digest = 1ULL << 63,
               .missing = {.failed = 3,
                           .left_out = 2,
                           .names = {{.path = "a/\xff", .failure = catalog::Failure::kVanished}}},
               .whole_digest = 1ULL << 62},
      SessionDone{.files = 4096, .bytes = 1ULL << 62},
      Heartbeat{.load = board::Load{.busy = 0.25,
                                    .reading = 0.5,
                                    .writing = 0.75,
                                    .read_ns = 1ULL << 40,
                                    .write_ns = 1ULL << 41,
                                    .missed = 1ULL << 42},
                .bottleneck = verdict::Verdict{.cause = verdict::Cause::kCredit,
                                               .share = 0.125,
                                               .evidence = {"credit for 16 of 476 extents"}},
                .whole = true},
      Failure{.code = 17, .message = "this node has no free flow slot: try again later"},
      Pause{.node = "beta", .place = 3, .places = 5},
      RateLimit{.rate_bps = 1ULL << 42},
      ObjectFailed{.object = ObjectId(6),
                   .names = {{.path = "b/\xff", .failure = catalog::Failure::kNoSpace}}},
      Want{.object = ObjectId(7), .ranges = ranges, .withdrawn = true},
      ExtentDigests{.object = ObjectId(8), .offset = 1ULL << 58, .digests = {1, ~0ULL}, .last = true},
      DigestsWanted{.object = ObjectId(9), .ranges = ranges, .last = true},
      NameDigests{.object = ObjectId(10),
                  .first = 1U << 20,
                  .names = {{.path = "a/\xff",
                             .size_bytes = 1ULL << 50,
                             .target = "b\xff",
                             .values = {{.kind = digests::Kind::kCrc64, .hex = "fedcba9876543210"}}}},
                  .last = true},
      DigestProgress{.object = ObjectId(11), .bytes = 1ULL << 51, .took_ns = 1ULL << 52},
      Order{.grant = {.grant = "\xff", .signature = "c2lnbmVk", .certificate = "PEM"},
            .source_paths = {"data/a", "data/b/"},
            .selection = {.rules = {{.include = true, .pattern = "*\xff"}},
                          .names = {"c\xff"},
                          .keep = {.owner = true, .xattrs = true}},
            .destination = "in/",
            .options = {.rate_bps = 1ULL << 40, .overwrite = true, .mkdir = true}},
      OrderState{
          .state = 3,
          .bytes_total = 1ULL << 60,
          .bytes_done = 1ULL << 59,
          .names = {.total = 9,
                    .done = 5,
                    .failed = 2,
                    .left_out = 1,
                    .listing = true,
                    .failures = {{.path = "a/\xff", .failure = catalog::Failure::kVanished}}},
          .rate_bps = 1ULL << 40,
          .rate_limit_bps = 1ULL << 41,
          .waiting_for = "node beta",
          .error_code = 16,
          .error = "a disk",
          .figures = {.bytes_sent = 1ULL << 58,
                      .chunks = 7,
                      .retransmits = 6,
                      .lost = 5,
                      .rtt_ns = 4,
                      .elapsed_ns = 3,
                      .data_elapsed_ns = 2,
                      .attempts = 1},
          .lanes = 4,
          .chunk_bytes = 8904,
          .crc = "crc64",
          .protection = "aes-128-gcm",
          .queue_place = 2,
          .queue_length = 3,
          .verdict = {.cause = verdict::Cause::kNetwork, .share = 0.5, .evidence = {"3 of 900 were lost"}},
          .files = {{.source = "/a",
                     .destination = "/b",
                     .size_bytes = 1ULL << 57,
                     .bytes_done = 1ULL << 56,
                     .done = true,
                     .digest_source = "01",
                     .digest_destination = "02"}}},
      OrderWish{.kind = OrderWishKind::kRenew,
                .rate_bps = 1ULL << 42,
                .grant = {.grant = "\xff", .signature = "c2lnbmVk", .certificate = "PEM"}},
  };
}

}  // namespace sluice::transfer
