// Words about names there and back. docs/WIRE.md, 2.6.
// SPDX-License-Identifier: Apache-2.0
#include "control/proto/names_codec.h"

#include <gtest/gtest.h>

#include "control/peer/codec.h"
#include "dataplane/base/documented_for_test.h"

namespace sluice::peer {
namespace {

names::Entry sample() {
  return {.path = "a/\xff",
          .type = names::Type::kLink,
          .size_bytes = 1ULL << 60,
          .mode = 07755,
          .mtime_ns = base::file_time_ns(13'569'465'600, 7),  // in 2400
          .uid = 1000,
          .gid = ~0U,
          .links = 2,
          .allocated_bytes = 512,
          .target = "../\x80",
          .digest = 1ULL << 63,
          .digest_kind = names::DigestKind::kCrc32c,
          .error_code = 7,
          .error = "cannot be read"};
}

std::vector<names::Word> samples() {
  using names::Request;
  return {
      Request(names::List{.path = "data/\xff*",
                          .itself = true,
                          .recursive = true,
                          .glob = true,
                          .unfinished = true,
                          .digests = true,
                          .digest_kind = names::DigestKind::kAdler32,
                          .pages = 8}),
      Request(names::List{}),
      Request(names::MakeDirectory{.path = "data/x", .parents = true}),
      Request(names::Move{.from = "data/x", .to = "data/y", .replace = true}),
      Request(names::Remove{.path = "data/x", .recursive = true}),
      Request(names::Remove{.path = "data/x", .empty = true}),
      Request(names::AboutNode{}),
      names::Done{.node = names::NodeState{.software = "sluice 1",
                                           .asked_unix_ns = 1,
                                           .answered_unix_ns = -2,
                                           .spaces = {{.name = "data", .size_bytes = 3, .free_bytes = 2}}}},
      names::Page{.entries = {sample(), {}}},
      names::More{.pages = 1ULL << 50},
      names::Done{.entries = 3, .failed = 1ULL << 40, .problems = {sample()}}};
}

TEST(NamesCodec, EveryWordComesBackAsItWas) {
  for (const names::Word& word : samples()) {
    PeerMessage wire;
    ASSERT_TRUE(wire.ParseFromString(to_wire(word).SerializeAsString()));
    const auto back = word_from_wire(wire);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->index(), word.index());
    EXPECT_EQ(to_wire(*back).DebugString(), to_wire(word).DebugString());
    EXPECT_FALSE(from_wire(wire)) << "it is no message of a session";
  }
}

TEST(NamesCodec, EveryFieldOfAnEntryTravels) {
  PeerMessage wire = to_wire(names::Page{.entries = {sample()}});
  const NameEntry& entry = wire.names_page().entries(0);
  std::vector<const google::protobuf::FieldDescriptor*> set;
  entry.GetReflection()->ListFields(entry, &set);
  EXPECT_EQ(static_cast<int>(set.size()), NameEntry::descriptor()->field_count());
  const names::Entry back = std::get<names::Page>(*word_from_wire(wire)).entries[0];
  EXPECT_EQ(back.path, sample().path);
  EXPECT_EQ(back.target, sample().target);
  EXPECT_EQ(back.mtime_ns, sample().mtime_ns);
  EXPECT_EQ(entry.mtime_ns(), INT64_MAX) << "for those who do not know the other fields";
  EXPECT_EQ(back.allocated_bytes, 512U);
  EXPECT_EQ(back.digest, 1ULL << 63);
  EXPECT_EQ(back.digest_kind, names::DigestKind::kCrc32c);
}

TEST(NamesCodec, SaysWhatTheDocumentShows) {
  const names::Word asked = names::Request(names::List{.path = "data/*.h5", .glob = true, .pages = 8});
  EXPECT_EQ(to_wire(asked).SerializeAsString(), base::documented_bytes("names, request"));
  const names::Word page = names::Page{{{.path = "a.h5",
                                         .type = names::Type::kLink,
                                         .size_bytes = 4,
                                         .mode = 0777,
                                         .mtime_ns = 1'000'000'000,
                                         .uid = 5,
                                         .gid = 6,
                                         .links = 1,
                                         .target = "../x"},
                                        {.path = "b\xff.h5", .error_code = 7, .error = "permission denied"}}};
  EXPECT_EQ(to_wire(page).SerializeAsString(), base::documented_bytes("names, page"));
  const names::Word digests = names::Request(names::List{.path = "data/a.h5",
                                                         .itself = true,
                                                         .digests = true,
                                                         .digest_kind = names::DigestKind::kAdler32,
                                                         .pages = 8});
  EXPECT_EQ(to_wire(digests).SerializeAsString(), base::documented_bytes("names, request of a digest"));
  const names::Word digest = names::Page{{{.type = names::Type::kFile,
                                           .size_bytes = 9,
                                           .mode = 0644,
                                           .links = 1,
                                           .digest = 0x11E60398,
                                           .digest_kind = names::DigestKind::kAdler32}}};
  EXPECT_EQ(to_wire(digest).SerializeAsString(), base::documented_bytes("names, page with a digest"));
}

TEST(NamesCodec, WhatThisVersionDoesNotKnow) {
  PeerMessage wire;
  wire.mutable_names_page()->add_entries()->set_type(static_cast<NameType>(99));
  EXPECT_EQ(std::get<names::Page>(*word_from_wire(wire)).entries[0].type, names::Type::kUnknown);
  wire.mutable_names_page()->mutable_entries(0)->set_digest_kind(static_cast<DigestKind>(99));
  EXPECT_EQ(std::get<names::Page>(*word_from_wire(wire)).entries[0].digest_kind, names::DigestKind::kCrc64);
  PeerMessage nothing;
  nothing.mutable_names_request();
  EXPECT_FALSE(word_from_wire(nothing));
  EXPECT_FALSE(word_from_wire(PeerMessage()));
  EXPECT_FALSE(word_from_wire(to_wire(transfer::Message(transfer::Heartbeat{}))));
}

}  // namespace
}  // namespace sluice::peer
