// Sums of extents that a worker makes while data arrive: joined they are those of the object, whatever is
// lost, comes twice, or travels otherwise.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "dataplane/coding/compressible_for_test.h"
#include "dataplane/lane/lane_fixture_for_test.h"
#include "dataplane/sums/tree.h"

namespace sluice::lane::testing {
namespace {

constexpr uint32_t kSumsChunk = 1024;

class Sums : public Lane {
 protected:
  void begin(uint64_t bytes, sums::Mask wanted = sums::available()) {
    data_ = make_source(bytes);
    bytes_ = bytes;
    wanted_ = wanted;
    b_.objects.find(0, 0)->sums = wanted;
    tree_ = sums::Tree({.size_bytes = bytes, .extent_bytes = kExtentBytes}, wanted);
    on_written = [this](const board::Event& event) {
      EXPECT_EQ(event.tag, wanted_);
      tree_.add({.subtree = {.first = event.offset / kExtentBytes}, .sums = event.sums});
    };
    open_flows(crc_, kSumsChunk);
    a_.board().flows[kTxSlot].control.rate_bps = 2'000'000'000;
  }
  void expect_right() {
    expect_identical(data_);
    sums::Summer summer;
    summer.begin(wanted_, 0, true);
    summer.add(data_.data(), data_.size());
    ASSERT_TRUE(tree_.whole());
    EXPECT_EQ(*tree_.whole(), summer.value());
    close_flows();
  }

  std::vector<uint8_t> data_;
  sums::Mask wanted_ = 0;
  sums::Tree tree_;
};

TEST_F(Sums, AreThoseOfTheObject) {
  begin(21 * kExtentBytes + 12'345);
  transfer(bytes_, {}, true);
  expect_right();
}

TEST_F(Sums, AreThoseOfTheObjectWhateverIsLost) {
  begin(21 * kExtentBytes + 1);
  transfer(bytes_, {.loss = 0.1, .duplicate = 0.05, .corrupt = 0.01, .reorder = 0.1}, true);
  expect_right();
}

TEST_F(Sums, OfAFileInMemoryAreOfWhatLiesThere) {
  in_memory_ = true;
  begin(9 * kExtentBytes + 999);
  transfer(bytes_, {.loss = 0.02}, true);
  expect_right();
}

TEST_F(Sums, OneExtentIsTheWholeObject) {
  begin(kExtentBytes);
  transfer(bytes_, {}, true);
  expect_right();
}

TEST_F(Sums, ASmallObjectIsOneExtent) {
  begin(1);
  transfer(bytes_, {}, true);
  expect_right();
}

TEST_F(Sums, OnlyThoseAreMadeThatAreWanted) {
  begin(3 * kExtentBytes, board::kSumCrc32c);
  on_written = [this](const board::Event& event) {
    EXPECT_EQ(event.sums.crc64, 0U);
    EXPECT_EQ(event.sums.adler32, 0U);
    tree_.add({.subtree = {.first = event.offset / kExtentBytes}, .sums = event.sums});
  };
  transfer(bytes_, {}, true);
  expect_right();
}

TEST_F(Sums, OfCompressedExtentsAreOfTheirPlainBytes) {
  begin(12 * kExtentBytes + 77);
  data_ = coding::compressible_bytes(bytes_, 5);
  ASSERT_EQ(::pwrite(a_.objects.find(0, 0)->fd.get(), data_.data(), bytes_, 0), static_cast<ssize_t>(bytes_));
  a_.board().flows[kTxSlot].config.choice.compress = b_.board().flows[kRxSlot].config.choice.compress =
      board::Compress::kAlways;
  transfer(bytes_, {.loss = 0.02}, true);
  EXPECT_GT(b_.board().flows[kRxSlot].state.compressed_bytes.load(), 0U);
  expect_right();
}

TEST_F(Sums, OfRepairedBlocksAreOfTheirBytes) {
  begin(30 * kExtentBytes);
  repair_ahead();
  transfer(bytes_, {.loss = 0.05}, true);
  EXPECT_GT(b_.board().flows[kRxSlot].state.decoded_chunks.load(), 0U);
  expect_right();
}

// A flow that ends, or an object that is given up, lets go of what is being summed.
TEST_F(Sums, WhatEndsBeforeItWasSummedIsLetGoOf) {
  begin(8 * kExtentBytes);
  feed();
  for (int i = 0; i < 2000 && b_.objects.find(0, 0)->extents_in_use.load() < 2; ++i) step_alone();
  b_.command({.kind = board::CommandKind::kGiveUp, .flow = kRxSlot, .tag = 1});
  close_flows();
}

}  // namespace
}  // namespace sluice::lane::testing
