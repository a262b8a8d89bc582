// Samples of what a journal keeps, with no field left out, for its tests and its fuzzer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "control/words/records.h"
#include "dataplane/base/fields_for_test.h"

namespace sluice::fields {

// clang-format off
template <> struct Count<Error> : Fields<2> {};
template <> struct Count<catalog::FailedName> : Fields<2> {};
template <> struct Count<catalog::File> : Fields<24> {};
template <> struct Count<digests::Digested> : Fields<3> {};
template <> struct Count<digests::Named> : Fields<4> {};
template <> struct Count<digests::Value> : Fields<2> {};
template <> struct Count<catalog::AclEntry> : Fields<4> {};
template <> struct Count<catalog::Attributes> : Fields<7> {};
template <> struct Count<catalog::Xattr> : Fields<2> {};
template <> struct Count<selection::Keep> : Fields<6> {};
template <> struct Count<base::Range> : Fields<2> {};
template <> struct Count<catalog::FileIdentity> : Fields<4> {};
template <> struct Count<catalog::Pack> : Fields<2> {};
template <> struct Count<catalog::Shortfall> : Fields<3> {};
template <> struct Count<recovery::Block> : Fields<2> {};
template <> struct Count<selection::Rule> : Fields<2> {};
template <> struct Count<selection::FilePart> : Fields<5> {};
template <> struct Count<selection::Selection> : Fields<4> {};
template <> struct Count<transfer::Agreement> : Fields<20> {};
template <> struct Count<transfer::FlowRecord> : Fields<4> {};
template <> struct Count<transfer::Granted> : Fields<6> {};
template <> struct Count<transfer::Ordered> : Fields<4> {};
template <> struct Count<transfer::SignedGrant> : Fields<3> {};
template <> struct Count<transfer::LegRecord> : Fields<7> {};
template <> struct Count<transfer::Lease> : Fields<2> {};
template <> struct Count<transfer::Mapped> : Fields<2> {};
template <> struct Count<transfer::Moved> : Fields<4> {};
template <> struct Count<transfer::SignedMove> : Fields<3> {};
template <> struct Count<transfer::Record> : Fields<18> {};
template <> struct Count<transfer::Request> : Fields<8> {};
template <> struct Count<transfer::Saved> : Fields<3> {};
template <> struct Count<transfer::Summary> : Fields<21> {};
template <> struct Count<transfer::User> : Fields<2> {};
template <> struct Count<transfer::LocalFiles> : Fields<3> {};
template <> struct Count<verdict::Point> : Fields<3> {};
template <> struct Count<verdict::Tally::Row> : Fields<3> {};
// clang-format on

}  // namespace sluice::fields

namespace sluice::journal {

inline transfer::Agreement sample_agreement() {
  return {.lanes = 2,
          .chunk_bytes = 8896,
          .extent_bytes = 1U << 20,
          .partition_bytes = 64U << 20,
          .crc_kind = wire::CrcKind::kCrc32c,
          .rate_bps = 10'000'000'000,
          .udp_checksum = true,
          .discard = true,
          .local_ip = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
          .peer_ip = {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
          .peer_ports = {47000, 65535},
          .reach = board::Reach::kWeOpen,
          .mode = rate::Mode::kCubic,
          .expected_loss_ppm = 20'000,
          .chunk_reason = rate::SizeReason::kPath,
          .chunk_auto = true,
          .protection = wire::Protection::kAes256Gcm,
          .abilities = transfer::AbilitySet::all(),
          .peer_queue_datagrams = 128,
          .digests_unanswered = transfer::kDigestsUnansweredMax};
}

// None is as it is without it.
inline transfer::Options sample_options() {
  transfer::Options sample;
  for (const options::Option& option : options::all()) {
    if (option.of != options::Of::kTransfer) continue;
    const int64_t without = option.value_in(sample);
    const bool is_word = !option.choices.empty();
    option.set_value(sample, is_word && without + 1 == static_cast<int64_t>(option.choices.size())
                                 ? without - 1
                                 : without + option.step);
  }
  return sample;
}

inline selection::FilePart sample_part() {
  return {.what = selection::FilePart::What::kRange,
          .set = "00112233445566778899aabbccddeeff",
          .offset = 1ULL << 50,
          .length = 1ULL << 40,
          .whole_bytes = 1ULL << 59};
}

inline transfer::Request sample_request() {
  return {.options = sample_options(),
          .source_paths = {"/export/a/"},
          .selection = {.rules = {{.include = true, .pattern = "*.h5"}, {.include = true, .pattern = "*/"}},
                        .names = {"run 42", "run 43/"},
                        .keep = {.owner = true,
                                 .group = true,
                                 .numeric_ids = true,
                                 .xattrs = true,
                                 .acls = true,
                                 .top = true},
                        .part = sample_part()},
          .destination = "incoming/",
          .source_bytes = 1ULL << 50,
          .user = transfer::User{.uid = 1000, .name = "ada"},
          .local_files = transfer::LocalFiles{.uid = 1000, .token = "f00d", .names = {"/home/ada/x"}},
          .expected = std::make_shared<const digests::Expected>(
              digests::Expected{{"a/\xff", {{.kind = digests::Kind::kCrc32c, .hex = "00c0ffee"}}}})};
}

inline transfer::Summary sample_summary() {
  return {.bytes_done = 1,
          .bytes_sent = 2,
          .chunks = 3,
          .retransmits = 4,
          .duplicates = 5,
          .crc_errors = 6,
          .lost = 7,
          .no_room = 14,
          .rtt_ns = 8,
          .elapsed_ns = 9,
          .data_elapsed_ns = 10,
          .attempts = 11,
          .bytes_resent = 12,
          .device = "net_memif0",
          .parity = 15,
          .compressed_bytes = 18,
          .compressed_wire_bytes = 19,
          .decoded_chunks = 16,
          .causes = {{.cause = verdict::Cause::kNetwork, .held_ns = 1ULL << 50, .evidence = {"loss"}}},
          .history = {{.length_ns = 1ULL << 51, .bytes = 1ULL << 52, .cause = verdict::Cause::kLimit}},
          .digest_ns = 17};
}

inline transfer::Record sample_record(const std::string& id, int64_t started_unix_ns) {
  const transfer::LegRecord leg{
      .peer = "beta",
      .agreement = sample_agreement(),
      .flows = {{.slot = FlowSlotId(7), .flow_id = 1ULL << 63, .credit_extents = 16, .local_port = 47001},
                {.slot = FlowSlotId(127), .flow_id = 99, .credit_extents = 2, .local_port = 65535}},
      .board_generation = 1ULL << 62,
      .board_session = SessionSlotId(63),
      .peer_unaware = true,
      .left_out = "it has other bytes"};
  return {.id = id,
          .initiator = true,
          .role = transfer::Role::kSource,
          .state = transfer::RecordState::kPaused,
          .error = Error{ErrorCode::kNoSpace, "/export: no space; make some"},
          .started_unix_ns = started_unix_ns,
          .files_left = true,
          .request = sample_request(),
          .legs = {leg, leg},
          .summary = sample_summary(),
          .limit_bps = 1ULL << 39,
          .priority = -5,
          .deadline_admission = transfer::DeadlineAdmission::kDoubtful,
          .granted = transfer::Granted{.grant = {.grant = "\xff", .signature = "c2ln", .certificate = "PEM"},
                                       .issuer = "home",
                                       .path = "in/\xff",
                                       .overwrite = true,
                                       .bytes_max = 1ULL << 55,
                                       .end_by_unix_ns = 1LL << 61},
          .ordered =
              transfer::Ordered{
                  .destination = "gamma", .taken = true, .options = "\x01\xff", .state = "\x02\xff"},
          .lease = transfer::Lease{.name = "0123456789abcdef", .epoch = 1ULL << 62},
          .moved = transfer::Moved{.move = {.move = "\xff", .signature = "c2ln", .certificate = "PEM"},
                                   .from = "alpha",
                                   .to = "gamma",
                                   .epoch = 1ULL << 60},
          .mapped = transfer::Mapped{.user = {.uid = ~0U - 1, .name = "asmith"}, .peer_user = "al\xffice"}};
}

inline catalog::File sample_file(const std::string& name) {
  return {
      .name = name,
      .shown = "/export/" + name,
      .path = std::string("/export/\0\xff", 10) + name,
      .peer_path = "/incoming/" + name,
      .size_bytes = 1ULL << 59,
      .mode = 0600,
      .mtime_ns = base::file_time_ns(-20'000'000'000, 9),
      .ctime_ns = -7,
      .identity = {.device = ~0ULL, .inode = 1ULL << 63, .generation = ~0U, .birth_ns = -9},
      .digest = 0xFEDCBA9876543210,
      .state = catalog::FileState::kDone,
      .overwrite = true,
      .suspect = true,
      .verify = true,
      .kind = catalog::FileKind::kLastPack,
      .list = catalog::ListState::kEnded,
      .pack = {.members = 1000, .list = std::make_shared<const std::string>("\xff\0list", 6)},
      .missing = {.failed = 7,
                  .left_out = 5,
                  .names = {{.path = "a/\xff", .failure = catalog::Failure::kExists},
                            {.path = "b", .failure = catalog::Failure::kSpecial}}},
      .holes = {{.offset = 1ULL << 40, .length = 1ULL << 50}, {.offset = ~0ULL, .length = 7}},
      .keep = {.owner = true, .group = true, .numeric_ids = true, .xattrs = true, .acls = true, .top = true},
      .attributes = {.uid = 1000,
                     .gid = ~1U,
                     .user = "anna",
                     .group = "st\xff"
                              "aff",
                     .xattrs = {{.name = "user.a\xff", .value = std::string("v\0", 2)}},
                     .acl = {{.tag = 1, .perm = 7, .id = 9, .name = "c"},
                             {.tag = 2, .perm = 5, .id = ~1U, .name = "\xff"}},
                     .default_acl = {{.tag = 32, .perm = 1, .id = 3, .name = "d"}}},
      .part = sample_part(),
      .whole_digest = 1ULL << 63,
      .digests = {.wanted = 128,
                  .expected = {{.kind = digests::Kind::kAdler32, .hex = "0000ff01"}},
                  .found = {{.path = "a/\xff",
                             .size_bytes = 1ULL << 50,
                             .target = "b",
                             .values = {{.kind = digests::Kind::kCrc64, .hex = "fedcba9876543210"}}}}}};
}

}  // namespace sluice::journal
