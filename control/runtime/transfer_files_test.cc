// The files of one transfer on a real file system: each effect is answered once, and nothing counts as stored
// or named that is not.
// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/transfer_files.h"

#include <unistd.h>

#include "control/runtime/runtime_fixture.h"
#include "dataplane/crc/crc.h"

namespace sluice::runtime {
namespace {

constexpr uint32_t kFilesExtentBytes = 65536;
const std::string kFilesId(32, 'd');
const std::string kReceived = "what was received";

transfer::Saved saved_of(transfer::Role role, std::vector<catalog::File> files) {
  transfer::Saved saved;
  saved.record.id = kFilesId;
  saved.record.role = role;
  saved.record.started_unix_ns = 1;
  transfer::Agreement agreement{.lanes = 1, .chunk_bytes = 8192, .extent_bytes = kFilesExtentBytes};
  agreement.partition_bytes = kFilesExtentBytes;
  agreement.rate_bps = 1'000'000;
  agreement.peer_ports = {47000};
  saved.record.legs = {{.peer = "beta", .agreement = agreement, .flows = {}}};
  for (size_t i = 0; i < files.size(); ++i) saved.blocks.push_back({});
  saved.files = std::move(files);
  return saved;
}

class TransferFilesTest : public RuntimeTest {
 protected:
  TransferFilesTest() { serve(); }
  ~TransferFilesTest() override { files_.reset(); }

  void begin(const transfer::Saved& saved) {
    transfer_ = std::make_unique<transfer::Transfer>(services_->settings, saved, std::nullopt, 1);
    ASSERT_FALSE(transfer_->error()) << transfer_->error()->message;
    ASSERT_NE(transfer_->job().catalog(), nullptr);
    files_ = std::make_shared<TransferFiles>(services_, heard_, *transfer_, gather::OpenSources());
  }
  template <typename Answer, typename E>
  Answer ask(const E& effect) {
    const size_t before = heard_->events.size();
    files_->perform(effect);
    run_until([&] { return heard_->events.size() > before; });
    settle();
    EXPECT_EQ(heard_->events.size(), before + 1) << "one answer";
    EXPECT_TRUE(std::holds_alternative<Answer>(heard_->events.back()));
    return std::get<Answer>(heard_->events.back());
  }
  // An unfinished file as a former control left it.
  catalog::File unfinished(const std::string& name) {
    const exports::Exports open = services_->exports.for_peer("beta");
    auto file = open.create_destination({.path = path(name), .name = name, .size = kReceived.size()});
    EXPECT_TRUE(file) << file.error().message;
    std::string block(4096, '#');
    block.replace(0, kReceived.size(), kReceived);
    void* aligned = nullptr;
    EXPECT_EQ(::posix_memalign(&aligned, 4096, 4096), 0);
    std::copy(block.begin(), block.end(), static_cast<char*>(aligned));
    EXPECT_EQ(::pwrite(file->fd(), aligned, 4096, 0), 4096);
    ::free(aligned);
    catalog::File known{.name = name, .shown = path(name), .path = file->name_path()};
    known.size_bytes = kReceived.size();
    known.identity = file->identity();
    file->keep();
    return known;
  }
  catalog::File source(const std::string& name) {
    write(name, kReceived);
    const auto file = services_->exports.open_source(path(name));
    EXPECT_TRUE(file);
    catalog::File known{.name = name, .shown = path(name), .path = path(name)};
    known.size_bytes = file->size;
    known.mtime_ns = file->mtime_ns;
    known.ctime_ns = file->ctime_ns;
    known.identity = file->identity;
    return known;
  }
  size_t names() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(root_ / "data"),
                                             std::filesystem::directory_iterator()));
  }

  const std::shared_ptr<HeardEvents> heard_ = std::make_shared<HeardEvents>();
  std::unique_ptr<transfer::Transfer> transfer_;
  std::shared_ptr<TransferFiles> files_;
};

TEST_F(TransferFilesTest, WhatAFormerControlLeftIsFoundSyncedFinishedAndNamed) {
  begin(saved_of(transfer::Role::kDestination, {unfinished("f")}));
  const auto recovered = ask<transfer::FilesRecovered>(transfer::RecoverFiles{});
  ASSERT_EQ(recovered.objects.size(), 1U);
  EXPECT_EQ(recovered.objects[ObjectId(0)], transfer::Recovered::kHeld);
  EXPECT_GE(files_->descriptor(ObjectId(0)).fd, 0);
  EXPECT_FALSE(std::filesystem::exists(path("f")));
  EXPECT_TRUE(ask<transfer::ObjectSynced>(transfer::SyncObject{ObjectId(0)}).status);
  const auto crc = ask<transfer::ObjectReadBack>(
      transfer::ReadBackObject{.object = ObjectId(0), .range = {.offset = 0, .length = kReceived.size()}});
  ASSERT_TRUE(crc.crc) << crc.crc.error().message;
  EXPECT_EQ(*crc.crc, crc::compute(wire::CrcKind::kCrc64Ecma, 0,
                                   reinterpret_cast<const uint8_t*>(kReceived.data()), kReceived.size()));
  EXPECT_TRUE(ask<transfer::ObjectFinished>(transfer::FinishObject{ObjectId(0)}).status);
  EXPECT_FALSE(std::filesystem::exists(path("f"))) << "it is finished, and has no name yet";
  const auto named = ask<transfer::ObjectNamed>(transfer::NameObject{ObjectId(0)});
  EXPECT_TRUE(named.status && named.given);
  EXPECT_EQ(read("f"), kReceived);
  EXPECT_EQ(names(), 1U) << "the temporary name is gone";
  EXPECT_LT(files_->descriptor(ObjectId(0)).fd, 0) << "it was let go of";
}

TEST_F(TransferFilesTest, WithoutItsFileNothingCountsAsStoredOrNamed) {
  catalog::File known = unfinished("f");
  std::filesystem::remove(path(".f.sluice-part"));
  begin(saved_of(transfer::Role::kDestination, {known}));
  EXPECT_EQ(ask<transfer::FilesRecovered>(transfer::RecoverFiles{}).objects[ObjectId(0)],
            transfer::Recovered::kAway);
  EXPECT_FALSE(*ask<transfer::FileReopened>(transfer::ReopenFile{ObjectId(0)}).found);
  EXPECT_EQ(ask<transfer::ObjectSynced>(transfer::SyncObject{ObjectId(0)}).status.error().code,
            ErrorCode::kInternal);
  EXPECT_EQ(ask<transfer::ObjectFinished>(transfer::FinishObject{ObjectId(0)}).status.error().code,
            ErrorCode::kInternal);
  const auto named = ask<transfer::ObjectNamed>(transfer::NameObject{ObjectId(0)});
  EXPECT_FALSE(named.status);
  EXPECT_FALSE(named.given);
  EXPECT_EQ(names(), 0U);
  // It begins anew under the same name.
  const auto again = ask<transfer::FileRecreated>(transfer::RecreateFile{ObjectId(0)});
  ASSERT_TRUE(again.identity) << again.identity.error().message;
  EXPECT_TRUE(ask<transfer::ObjectSynced>(transfer::SyncObject{ObjectId(0)}).status);
}

TEST_F(TransferFilesTest, UnfinishedFilesStayForALaterControlOrGoWithTheirTransfer) {
  begin(saved_of(transfer::Role::kDestination, {unfinished("f")}));
  (void)ask<transfer::FilesRecovered>(transfer::RecoverFiles{});
  EXPECT_EQ(ask<transfer::FilesReleased>(transfer::ReleaseFiles{.keep = true}).left, 0U);
  EXPECT_EQ(names(), 1U);
  // Nobody holds it open, and yet it is nobody else's.
  const auto other = services_->exports.create_destination({.path = path("f"), .name = "f", .size = 1});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kDestinationExists);
  EXPECT_EQ(ask<transfer::FilesReleased>(transfer::ReleaseFiles{.keep = false}).left, 0U);
  EXPECT_EQ(names(), 0U);
}

TEST_F(TransferFilesTest, ADroppedFileIsGoneAndItsDirectorySynced) {
  begin(saved_of(transfer::Role::kDestination, {unfinished("f"), unfinished("g")}));
  (void)ask<transfer::FilesRecovered>(transfer::RecoverFiles{});
  EXPECT_TRUE(ask<transfer::FileDropped>(transfer::DropFile{ObjectId(1)}).status);
  EXPECT_EQ(names(), 1U);
  EXPECT_TRUE(std::filesystem::exists(path(".f.sluice-part")));
}

TEST_F(TransferFilesTest, OfASourceTheSameFilesAreOpenedAgainAndRead) {
  begin(saved_of(transfer::Role::kSource, {source("f")}));
  EXPECT_TRUE(ask<transfer::SourcesReopened>(transfer::ReopenSources{}).failed.empty());
  EXPECT_GE(files_->descriptor(ObjectId(0)).fd, 0);
  EXPECT_TRUE(
      ask<transfer::SourceChecked>(transfer::CheckSource{.object = ObjectId(0), .otherwise = {}}).status);
  const auto extents = ask<transfer::ExtentsRead>(transfer::ReadExtents{
      .object = ObjectId(0), .first = ExtentId(0), .ranges = {{.offset = 0, .length = kReceived.size()}}});
  ASSERT_TRUE(extents.crcs && extents.crcs->size() == 1);
  EXPECT_EQ(extents.crcs->front(),
            crc::compute(wire::CrcKind::kCrc64Ecma, 0, reinterpret_cast<const uint8_t*>(kReceived.data()),
                         kReceived.size()));
  (void)ask<transfer::FilesReleased>(transfer::ReleaseFiles{.keep = false});
  EXPECT_EQ(read("f"), kReceived) << "a source's files are nobody's to remove";
}

TEST_F(TransferFilesTest, AnotherFileUnderASourcesNameIsNotSent) {
  catalog::File known = source("f");
  std::filesystem::rename(path("f"), path("elsewhere"));
  write("f", "something else entirely");
  begin(saved_of(transfer::Role::kSource, {known}));
  const auto reopened = ask<transfer::SourcesReopened>(transfer::ReopenSources{});
  ASSERT_EQ(reopened.failed.size(), 1U);
  EXPECT_EQ(reopened.failed[0].first, ObjectId(0));
  EXPECT_EQ(reopened.failed[0].second.code, ErrorCode::kIntegrity);
}

}  // namespace
}  // namespace sluice::runtime
