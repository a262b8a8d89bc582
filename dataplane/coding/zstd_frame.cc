// SPDX-License-Identifier: Apache-2.0
#include "dataplane/coding/zstd_frame.h"

// Contexts in memory of the caller's are of the interface that is linked statically
// (docs/decisions/0027-compression.md).
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <algorithm>
#include <bit>

#include "dataplane/base/check.h"

namespace sluice::coding {
namespace {

int level_of(Effort effort) { return static_cast<int>(effort); }

// The parameters of a level depend on how long the data are, in these steps.
size_t compressor_bytes(uint32_t extent_bytes_max) {
  size_t bytes = 0;
  for (const Effort effort : {Effort::kFast, Effort::kShort}) {
    for (const size_t plain_bytes :
         {size_t{extent_bytes_max}, size_t{256U << 10}, size_t{128U << 10}, size_t{16U << 10}, size_t{1}}) {
      const size_t at_most = std::min<size_t>(plain_bytes, extent_bytes_max);
      bytes = std::max(bytes,
                       ZSTD_estimateCStreamSize_usingCParams(ZSTD_getCParams(level_of(effort), at_most, 0)));
    }
  }
  return bytes;
}

}  // namespace

Compressor::Compressor(uint32_t extent_bytes_max) : extent_bytes_max_(extent_bytes_max) {
  const size_t bytes = compressor_bytes(extent_bytes_max);
  memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
  frame_ = std::make_unique_for_overwrite<uint8_t[]>(extent_bytes_max);
  context_ = ZSTD_initStaticCCtx(memory_.get(), bytes);
  CHECK(context_ != nullptr, "zstd said how much memory it takes");
}

void Compressor::begin(std::span<const uint8_t> plain, uint32_t frame_bytes_max, Effort effort) {
  CHECK(plain.size() <= extent_bytes_max_, "a compressor is made for extents of this length");
  plain_ = plain;
  frame_bytes_max_ = std::min(frame_bytes_max, extent_bytes_max_);
  frame_bytes_ = taken_ = 0;
  (void)ZSTD_CCtx_reset(context_, ZSTD_reset_session_only);
  (void)ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level_of(effort));
  (void)ZSTD_CCtx_setPledgedSrcSize(context_, plain.size());
}

Step Compressor::step() {
  step_bytes_ = static_cast<uint32_t>(std::min<size_t>(kCompressStepBytes, plain_.size() - taken_));
  ZSTD_inBuffer in{.src = plain_.data() + taken_, .size = step_bytes_, .pos = 0};
  taken_ += step_bytes_;
  const bool last = taken_ == plain_.size();
  ZSTD_outBuffer out{.dst = frame_.get(), .size = frame_bytes_max_, .pos = frame_bytes_};
  const size_t left = ZSTD_compressStream2(context_, &out, &in, last ? ZSTD_e_end : ZSTD_e_flush);
  frame_bytes_ = out.pos;
  if (left != 0) return Step::kFailed;  // an error, or no room for the rest
  if (last) return Step::kDone;
  // It would have to get much shorter from here on: most extents are alike all through.
  const bool too_long = frame_bytes_ * plain_.size() > frame_bytes_max_ * taken_;
  return too_long && taken_ <= kCompressStepBytes ? Step::kFailed : Step::kMore;
}

Restorer::Restorer(uint32_t extent_bytes_max) : extent_bytes_max_(extent_bytes_max) {
  CHECK(std::has_single_bit(extent_bytes_max), "extents are powers of two");
  const size_t bytes = ZSTD_estimateDStreamSize(extent_bytes_max);
  memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
  plain_ = std::make_unique_for_overwrite<uint8_t[]>(extent_bytes_max);
  context_ = ZSTD_initStaticDStream(memory_.get(), bytes);
  CHECK(context_ != nullptr, "zstd said how much memory it takes");
  (void)ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, std::countr_zero(extent_bytes_max));
}

void Restorer::begin(uint32_t plain_bytes) {
  CHECK(plain_bytes <= extent_bytes_max_, "a restorer is made for extents of this length");
  (void)ZSTD_DCtx_reset(context_, ZSTD_reset_session_only);
  plain_bytes_ = plain_bytes;
  restored_ = 0;
  over_ = false;
}

Step Restorer::step(std::span<const uint8_t> part) {
  if (over_) return Step::kFailed;
  ZSTD_inBuffer in{.src = part.data(), .size = part.size(), .pos = 0};
  ZSTD_outBuffer out{.dst = plain_.get(), .size = plain_bytes_, .pos = restored_};
  while (in.pos < in.size) {
    const size_t taken = in.pos;
    const size_t hint = ZSTD_decompressStream(context_, &out, &in);
    const bool stuck = in.pos == taken && out.pos == restored_;
    restored_ = out.pos;
    if (hint == 0) {
      over_ = true;
      return in.pos == in.size && restored_ == plain_bytes_ ? Step::kDone : Step::kFailed;
    }
    if (ZSTD_isError(hint) != 0 || stuck) {
      over_ = true;
      return Step::kFailed;
    }
  }
  return Step::kMore;
}

}  // namespace sluice::coding
