// Rows and what they mean. What earlier versions wrote is in journal_upgrade_test.cc.
// SPDX-License-Identifier: Apache-2.0
#include "control/journal/codec.h"

#include <gtest/gtest.h>

#include "control/journal/records_for_test.h"
#include "control/proto/journal.pb.h"

namespace sluice::journal {
namespace {

using transfer::Role;

const std::string kAnyBytes("\0\xff\xc3(\n\xed\xa0\x80", 8);

std::optional<transfer::Record> again(const transfer::Record& record) {
  return decode_record(encode(record), record.request ? encode(*record.request) : "");
}

// What a row says, with something changed; nothing when it cannot be read any more.
template <typename Change>
std::optional<transfer::Record> changed(Change change) {
  const transfer::Record record = sample_record("a", 1);
  SessionRecord session;
  Request request;
  EXPECT_TRUE(session.ParseFromString(encode(record)) && request.ParseFromString(encode(*record.request)));
  change(session, request);
  return decode_record(session.SerializeAsString(), request.SerializeAsString());
}

TEST(JournalCodec, EveryFieldOfARecordComesBack) {
  const transfer::Record record = sample_record("0123456789abcdef0123456789abcdef", -7);
  EXPECT_TRUE(fields::all_set(record)) << "the sample leaves a field out";
  const auto back = again(record);
  ASSERT_TRUE(back);
  EXPECT_TRUE(fields::equal(*back, record));
}

TEST(JournalCodec, EveryErrorComesBackAsWhatItWas) {
  transfer::Record record = sample_record("a", 1);
  for (int code = 1; error_code_name(static_cast<ErrorCode>(code)) != "unknown"; ++code) {
    record.error = Error{static_cast<ErrorCode>(code), "why"};
    EXPECT_EQ(again(record)->error->code, record.error->code) << code;
  }
}

TEST(JournalCodec, EveryFieldOfAFileComesBack) {
  const catalog::File file = sample_file("name");
  EXPECT_TRUE(fields::all_set(file)) << "the sample leaves a field out";
  const auto back = decode_file(encode(file));
  ASSERT_TRUE(back);
  EXPECT_TRUE(fields::equal(*back, file));
}

TEST(JournalCodec, APackComesBackAsWhatItIs) {
  catalog::File file = sample_file("name");
  file.part = {};
  for (uint8_t kind = 0; kind < catalog::kFileKinds; ++kind) {
    file.kind = static_cast<catalog::FileKind>(kind);
    EXPECT_EQ(decode_file(encode(file)).value().kind, file.kind);
  }
  file.pack.list = nullptr;  // at a destination
  EXPECT_EQ(decode_file(encode(file)).value().pack.list, nullptr);
  for (const uint32_t kind : {uint32_t{catalog::kFileKinds}, 256U, UINT32_MAX}) {
    FileRecord row;
    ASSERT_TRUE(row.ParseFromString(encode(file)));
    row.set_kind(kind);
    EXPECT_FALSE(decode_file(row.SerializeAsString())) << "of a later version: " << kind;
  }
}

TEST(JournalCodec, AFailureOfALaterVersionIsAny) {
  FileRecord row;
  ASSERT_TRUE(row.ParseFromString(encode(sample_file("name"))));
  row.mutable_failures(0)->set_failure(catalog::kFailures);
  EXPECT_EQ(decode_file(row.SerializeAsString())->missing.names[0].failure, catalog::Failure::kOther);
}

TEST(JournalCodec, WhatIsNotSetComesBackUnset) {
  transfer::Record record{.id = "a", .legs = {{}}};
  auto back = again(record);
  ASSERT_TRUE(back);
  EXPECT_TRUE(fields::equal(*back, record));
  record.legs[0].agreement.emplace();
  record.request.emplace();
  back = again(record);
  ASSERT_TRUE(back);
  EXPECT_TRUE(fields::equal(*back, record)) << "there, with nothing in it";
  EXPECT_TRUE(fields::equal(decode_file(encode(catalog::File())).value(), catalog::File()));
}

TEST(JournalCodec, EveryKindOfEachEnumerationComesBack) {
  transfer::Record record = sample_record("a", 1);
  for (const Role role : {Role::kUnknown, Role::kSource, Role::kDestination}) {
    for (int state = 0; state <= static_cast<int>(transfer::RecordState::kCancelled); ++state) {
      record.role = role;
      record.state = static_cast<transfer::RecordState>(state);
      EXPECT_TRUE(fields::equal(again(record).value(), record)) << state;
    }
  }
  for (int kind = 0; kind <= static_cast<int>(wire::CrcKind::kRead); ++kind) {
    record.legs[0].agreement->crc_kind = static_cast<wire::CrcKind>(kind);
    record.request->options.crc = static_cast<wire::CrcKind>(kind);
    EXPECT_TRUE(fields::equal(again(record).value(), record)) << kind;
  }
  for (int code = 1; code <= static_cast<int>(ErrorCode::kResources); ++code) {
    record.error->code = static_cast<ErrorCode>(code);
    EXPECT_TRUE(fields::equal(again(record).value(), record)) << code;
  }
  catalog::File file;
  for (int state = 0; state <= static_cast<int>(catalog::FileState::kFailed); ++state) {
    file.state = static_cast<catalog::FileState>(state);
    EXPECT_TRUE(fields::equal(decode_file(encode(file)).value(), file)) << state;
  }
}

// A peer's words may be cut within a character. A row with them that could not be read again would take every
// other session with it.
TEST(JournalCodec, TextOfAnyBytesComesBack) {
  transfer::Record record = sample_record(kAnyBytes, 1);
  record.error->message = kAnyBytes;
  record.legs[0].peer = kAnyBytes;
  record.request->destination = kAnyBytes;
  record.request->source_paths = {kAnyBytes};
  record.summary.device = kAnyBytes;
  const auto back = again(record);
  ASSERT_TRUE(back);
  EXPECT_TRUE(fields::equal(*back, record));
  catalog::File file = sample_file(kAnyBytes);
  const auto file_back = decode_file(encode(file));
  ASSERT_TRUE(file_back);
  EXPECT_TRUE(fields::equal(*file_back, file));
}

// What it cannot be was not written here: a transfer that took all of a tree instead would be another one.
TEST(JournalCodec, ASelectionThatCannotBeGivesNothing) {
  transfer::Record record = sample_record("a", 1);
  record.request->selection.rules[0].include = false;
  EXPECT_FALSE(again(record)->request->selection.rules[0].include);
  record.request->selection.rules[1].pattern.clear();
  EXPECT_FALSE(again(record));
  record = sample_record("a", 1);
  record.request->selection.names[1] = "../b";
  EXPECT_FALSE(again(record));
}

TEST(JournalCodec, WhatCannotBeReadGivesNothing) {
  EXPECT_TRUE(changed([](SessionRecord&, Request&) {}));
  EXPECT_FALSE(changed(
      [](SessionRecord& session, Request&) { session.set_state(static_cast<SessionRecord::State>(5)); }));
  EXPECT_FALSE(changed([](SessionRecord& session, Request&) {
    session.mutable_legs(1)->mutable_agreement()->set_crc_kind(4);
  }));
  EXPECT_FALSE(changed([](SessionRecord&, Request& request) { request.set_crc(4); }));
  EXPECT_FALSE(changed([](SessionRecord&, Request& request) { request.set_ip(3); }));
  const transfer::Record record = sample_record("a", 1);
  EXPECT_FALSE(decode_record(encode(record), "")) << "it was asked for here, and not what";
  EXPECT_FALSE(decode_record(encode(record), "\xff\xff"));
  EXPECT_FALSE(decode_record(encode(record).substr(0, 20), encode(*record.request)));
  FileRecord file;
  file.set_state(static_cast<FileRecord::State>(4));
  EXPECT_FALSE(decode_file(file.SerializeAsString()));
  EXPECT_FALSE(decode_file("\xff\xff"));
}

TEST(JournalCodec, AnErrorOfALaterVersionIsAnErrorStill) {
  const auto back = changed([](SessionRecord& session, Request&) { session.set_error_code(200); });
  ASSERT_TRUE(back && back->error);
  EXPECT_EQ(back->error->code, ErrorCode::kInternal);
  EXPECT_EQ(back->error->message, sample_record("a", 1).error->message);
}

}  // namespace
}  // namespace sluice::journal
