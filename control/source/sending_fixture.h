// A sending end whose stream is up and whose attempt has begun, and all that it stands on. For tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/leg/control_stream.h"
#include "control/source/source_end.h"
#include "control/transfer/peer_fixture.h"

namespace sluice::transfer::test {

class SendingFixture : public testing::Test {
 protected:
  explicit SendingFixture(Content content) : content_(std::move(content)) { settings_.open_objects_max = 2; }

  // Each file is like this one, and has the size that the content says.
  void start(const catalog::File& like) {
    std::vector<catalog::File> all;
    for (const uint64_t size : content_.sizes) {
      all.push_back(like);
      all.back().size_bytes = size;
    }
    end_ = std::make_unique<SourceEnd>(std::move(*SourceEnd::make(settings_, agreement_, all)));
    stream_.call(out_);
    stream_.call_ended(true, 1);
    stream_.greeted();
    end_->files().reopen(out_);
    EXPECT_TRUE(end_->on(SourcesReopened{}, out_));
    end_->start_attempt(
        {.peer_name = peer_, .stream = stream_, .agreement = agreement_, .lanes = agreement_.lanes}, 1, out_);
  }
  Status hear(const Message& message) { return end_->on_message(LegId(0), message, out_); }

  ThisNode settings_;
  Agreement agreement_{.lanes = 1,
                       .chunk_bytes = 8192,
                       .extent_bytes = kExtent,
                       .partition_bytes = 2 * kExtent,
                       .rate_bps = 1'000'000'000};
  Content content_;
  const std::string peer_ = "beta";
  ControlStream stream_{LegId(0)};
  Effects out_;
  std::unique_ptr<SourceEnd> end_;
};

}  // namespace sluice::transfer::test
