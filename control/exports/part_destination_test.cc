// Ranges of one file as destinations: no session touches what others write, and the file gets its name
// when all of it is there.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include "control/exports/exports_fixture.h"
#include "dataplane/crc/crc.h"

namespace sluice::exports {
namespace {

using What = selection::FilePart::What;
constexpr uint64_t kMiB = 1U << 20;
constexpr uint64_t kWhole = 2 * kMiB + 5;
const std::string kSet(32, 'a');

class PartsTest : public ExportsTest {
 protected:
  void SetUp() override {
    ExportsTest::SetUp();
    for (size_t i = 0; i < kWhole; ++i) text_.push_back(static_cast<char>('a' + i % 23));
  }

  DestinationSpec spec_of(What what, uint64_t offset = 0, uint64_t length = 0) const {
    DestinationSpec wanted = spec("data/big", kWhole);
    wanted.mtime_ns = 1'600'000'000'000'000'123;
    wanted.mode = 0640;
    wanted.part = {.what = what, .set = kSet, .offset = offset, .length = length, .whole_bytes = kWhole};
    return wanted;
  }
  DestinationSpec first() const { return spec_of(What::kRange, 0, kMiB); }
  DestinationSpec second() const { return spec_of(What::kRange, kMiB, kMiB + 5); }
  uint64_t digest_of(const DestinationSpec& wanted) const {
    return crc::compute(wanted.crc_kind, 0, text_.data() + wanted.part.offset, wanted.part.length);
  }
  DestinationFile create(const DestinationSpec& wanted) {
    auto file = exports_.create_destination(wanted);
    EXPECT_TRUE(file) << file.error().message;
    return std::move(*file);
  }
  void put(const DestinationFile& file, const DestinationSpec& wanted) const {
    const UniqueFd plain(::open(("/proc/self/fd/" + std::to_string(file.fd())).c_str(), O_WRONLY));
    EXPECT_EQ(::pwrite(plain.get(), text_.data() + wanted.part.offset, wanted.part.length,
                       static_cast<off_t>(wanted.part.offset)),
              static_cast<ssize_t>(wanted.part.length));
  }
  void arrive(const DestinationSpec& wanted) {
    DestinationFile file = create(wanted);
    put(file, wanted);
    ASSERT_TRUE(file.sync());
    ASSERT_TRUE(file.finish());
    ASSERT_TRUE(file.commit_part(digest_of(wanted)));
  }
  bool found(const DestinationSpec& wanted) const {
    const auto part = exports_.find_part(wanted);
    EXPECT_TRUE(part) << part.error().message;
    return part && part->has_value();
  }
  size_t files() const { return entries("data") - before_; }

  std::string text_;
  size_t before_ = 0;
};

INSTANTIATE_TEST_SUITE_P(FileSystems, PartsTest, testing::Values("/tmp", "/dev/shm"), [](const auto& chosen) {
  return std::string(chosen.param) == "/tmp" ? "Tmp" : "Shm";
});

TEST_P(PartsTest, TwoBecomeOneFile) {
  before_ = entries("data");
  DestinationFile one = create(first());
  DestinationFile other = create(second());  // beside it
  EXPECT_EQ(one.identity().inode, other.identity().inode);
  put(other, second());
  ASSERT_TRUE(other.finish());
  ASSERT_TRUE(other.commit_part(digest_of(second())));
  put(one, first());
  ASSERT_TRUE(one.finish());
  ASSERT_TRUE(one.commit_part(digest_of(first())));
  { const DestinationFile gone = std::move(one); }
  { const DestinationFile gone = std::move(other); }
  EXPECT_EQ(files(), 3U);
  EXPECT_FALSE(fs::exists(root_ / "data/big"));

  DestinationFile file = create(spec_of(What::kFinish));
  ASSERT_TRUE(file.finish());
  const auto digest = file.commit_part(0);
  ASSERT_TRUE(digest) << digest.error().message;
  EXPECT_EQ(*digest, crc::compute(wire::CrcKind::kCrc64Ecma, 0, text_.data(), text_.size()));
  EXPECT_TRUE(file.has_name());
  EXPECT_EQ(read(root_ / "data/big"), text_);
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(fs::status(root_ / "data/big").permissions(), fs::perms(0640));
}

TEST_P(PartsTest, WhatSomebodyChangedMeanwhileIsNotFinished) {
  arrive(first());
  arrive(second());
  const fs::path data = root_ / "data" / (".big." + kSet + ".sluice-part");
  std::fstream(data, std::ios::in | std::ios::out) << "another beginning";
  DestinationSpec finish = spec_of(What::kFinish);
  finish.verify = true;
  {
    DestinationFile file = create(finish);
    ASSERT_TRUE(file.finish());
    const auto digest = file.commit_part(0);
    ASSERT_FALSE(digest);
    EXPECT_EQ(digest.error().code, ErrorCode::kIntegrity);
    EXPECT_FALSE(file.has_name());
    file.keep();
  }
  fs::resize_file(data, kMiB);
  EXPECT_EQ(destination_error(spec_of(What::kFinish)).code, ErrorCode::kIntegrity);
  EXPECT_FALSE(fs::exists(root_ / "data/big"));
}

TEST_P(PartsTest, WhatIsNotThereIsNotFinished) {
  arrive(second());
  Error error = destination_error(spec_of(What::kFinish));
  EXPECT_EQ(error.code, ErrorCode::kUsage);
  EXPECT_NE(error.message.find("bytes from 0 on"), std::string::npos);
  arrive(first());
  EXPECT_TRUE(exports_.create_destination(spec_of(What::kFinish)));
}

TEST_P(PartsTest, OfASourceThatChangedNothingIsFinished) {
  arrive(first());
  arrive(second());
  DestinationSpec finish = spec_of(What::kFinish);
  finish.mtime_ns += 1;
  EXPECT_EQ(destination_error(finish).code, ErrorCode::kIntegrity);
  finish = spec_of(What::kFinish);
  finish.part.whole_bytes += 1;
  EXPECT_EQ(destination_error(finish).code, ErrorCode::kIntegrity);
  EXPECT_FALSE(fs::exists(root_ / "data/big"));
  EXPECT_TRUE(found(first()) && found(second()));
}

TEST_P(PartsTest, WhatHasArrivedIsFoundOfTheSameSourceAlone) {
  EXPECT_FALSE(found(first()));
  arrive(first());
  EXPECT_TRUE(found(first()));
  EXPECT_EQ((*exports_.find_part(first()))->digest, digest_of(first()));
  EXPECT_FALSE(found(second()));
  DestinationSpec other = first();
  other.mtime_ns += 1;
  EXPECT_FALSE(found(other));
  other = first();
  other.part.set = std::string(32, 'b');
  EXPECT_FALSE(found(other));
  other = first();
  other.crc_kind = wire::CrcKind::kCrc32c;
  EXPECT_FALSE(found(other));
}

TEST_P(PartsTest, WhatIsWrittenAgainIsNoMoreFound) {
  arrive(first());
  { const DestinationFile again = create(first()); }
  EXPECT_FALSE(found(first()));
  EXPECT_EQ(destination_error(spec_of(What::kFinish)).code, ErrorCode::kUsage);
}

TEST_P(PartsTest, ASessionThatEndsRemovesNothing) {
  before_ = entries("data");
  arrive(second());
  {
    DestinationFile file = create(first());
    EXPECT_TRUE(file.give_up());
  }
  {
    DestinationFile file = create(first());
    EXPECT_TRUE(file.drop());
  }
  EXPECT_EQ(files(), 2U);
  EXPECT_TRUE(found(second()));
}

TEST_P(PartsTest, DroppedAllOfItGoesAndNothingElse) {
  before_ = entries("data");
  arrive(first());
  arrive(second());
  DestinationSpec other = first();
  other.part.set = std::string(32, 'b');
  arrive(other);
  DestinationFile file = create(spec_of(What::kDrop));
  ASSERT_TRUE(file.finish());
  ASSERT_TRUE(file.commit_part(0));
  EXPECT_EQ(files(), 2U);
  EXPECT_TRUE(found(other));
  EXPECT_FALSE(found(first()) || found(second()));
}

TEST_P(PartsTest, AfterARestartItsOwnFileIsFoundAgain) {
  catalog::FileIdentity identity;
  {
    const DestinationFile file = create(first());
    identity = file.identity();
  }
  DestinationSpec again = first();
  auto reopened = exports_.reopen_destination(again, identity, UniqueFd());
  ASSERT_TRUE(reopened && reopened->has_value());
  EXPECT_FALSE(*exports_.is_part_committed(again, identity));
  ASSERT_TRUE((*reopened)->commit_part(digest_of(first())));
  EXPECT_TRUE(*exports_.is_part_committed(again, identity));
  reopened = std::optional<DestinationFile>();
  arrive(second());
  const DestinationSpec finish = spec_of(What::kFinish);
  {
    DestinationFile file = create(finish);
    ASSERT_TRUE(file.finish());
    EXPECT_FALSE(*exports_.is_part_committed(finish, identity));
    ASSERT_TRUE(file.commit_part(0));
  }
  EXPECT_TRUE(*exports_.is_part_committed(finish, identity));
}

TEST_P(PartsTest, ARecordThatIsCutIsNone) {
  arrive(first());
  for (const auto& entry : fs::directory_iterator(root_ / "data")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".big.") && name.size() > 60) fs::resize_file(entry.path(), 20);
  }
  EXPECT_FALSE(found(first()));
}

}  // namespace
}  // namespace sluice::exports
