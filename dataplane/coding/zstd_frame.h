// Extents as zstd frames (RFC 8878): made and restored in steps, so that no turn of a worker takes long.
//
// One owner. All memory is taken when a Compressor or Restorer is made; begin and step allocate nothing and
// do not throw. A frame comes from a stranger: a Restorer never writes more than the extent's bytes, takes no
// dictionary, and no window that is longer than an extent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

// Opaque, as zstd.h has them.
typedef struct ZSTD_CCtx_s ZSTD_CCtx;  // NOLINT: as in zstd.h
typedef struct ZSTD_DCtx_s ZSTD_DCtx;  // NOLINT: as in zstd.h

namespace sluice::coding {

// How much a step takes from the extent, or from the frame.
inline constexpr uint32_t kCompressStepBytes = 64U << 10;
inline constexpr uint32_t kRestoreStepBytes = 32U << 10;

// zstd's levels: the faster, and the one that makes shorter frames.
enum class Effort : uint8_t { kFast = 1, kShort = 3 };

enum class Step : uint8_t {
  kMore,
  kDone,
  kFailed,  // it does not get shorter; or: this is no frame of this extent
};

class Compressor {
 public:
  // For extents of at most so many bytes.
  explicit Compressor(uint32_t extent_bytes_max);

  // `plain` stays as it is until kDone or kFailed. A frame longer than `frame_bytes_max` is given up, as
  // early as that can be told.
  void begin(std::span<const uint8_t> plain, uint32_t frame_bytes_max, Effort effort);
  Step step();
  // What the last step has taken.
  uint32_t step_bytes() const { return step_bytes_; }
  // After kDone, until begin.
  std::span<const uint8_t> frame() const { return {frame_.get(), frame_bytes_}; }

 private:
  std::unique_ptr<std::byte[]> memory_;  // of the context
  std::unique_ptr<uint8_t[]> frame_;
  ZSTD_CCtx* context_ = nullptr;  // in memory_
  uint32_t extent_bytes_max_;
  std::span<const uint8_t> plain_;
  size_t frame_bytes_max_ = 0;
  size_t frame_bytes_ = 0;
  size_t taken_ = 0;
  uint32_t step_bytes_ = 0;
};

class Restorer {
 public:
  explicit Restorer(uint32_t extent_bytes_max);  // a power of two

  // The frame must hold exactly so many bytes.
  void begin(uint32_t plain_bytes);
  // The next part of the frame. kDone: it ended with it, and is whole.
  Step step(std::span<const uint8_t> part);
  // After kDone, until begin.
  std::span<const uint8_t> plain() const { return {plain_.get(), plain_bytes_}; }

 private:
  std::unique_ptr<std::byte[]> memory_;  // of the context
  std::unique_ptr<uint8_t[]> plain_;
  ZSTD_DCtx* context_ = nullptr;  // in memory_
  uint32_t extent_bytes_max_;
  size_t plain_bytes_ = 0;  // to come
  size_t restored_ = 0;
  bool over_ = true;
};

}  // namespace sluice::coding
