// SPDX-License-Identifier: Apache-2.0
#include "dataplane/coding/parity_choice.h"

#include <algorithm>
#include <cmath>

#include "dataplane/coding/block_layout.h"
#include "dataplane/coding/reed_solomon.h"
#include "dataplane/core/repair_rounds.h"
#include "dataplane/core/repetition.h"

namespace sluice::coding {
namespace {

// What a block waits for its encoder, its decoder and their threads.
constexpr double kCodingNs = 1e6;
// A block that lacks symbols waits for another round trip. Where that is what coding is for, it may happen
// once in a thousand blocks; where only the rate counts, a block may ask for more, and what is sent ahead in
// vain matters.
constexpr double kDeviationsForTime = 3;
constexpr double kDeviationsForRate = 1;
// Sending ahead must be worth it by more than what these estimates err.
constexpr double kGainMin = 1.05;
// RaptorQ decodes some 4 Gbit/s on a core whatever is lost; half a core is what a flow may take. Its larger
// blocks save datagrams where many are lost.
constexpr uint64_t kRaptorQRateMax = 2'000'000'000;
constexpr double kRaptorQLossMin = 0.05;
constexpr double kLossMax = 0.95;

struct Block {
  Scheme scheme;
  uint32_t source_symbols;
  uint32_t repair_symbols_max;
  BlockLoss loss;
};

Block block_of(const PathState& path, const WorkState& work, const CodesAtHand& codes) {
  const bool raptorq = codes.raptorq && (!codes.reed_solomon ||
                                         (path.loss >= kRaptorQLossMin && path.rate_bps <= kRaptorQRateMax));
  const uint32_t chunks = (work.extent_bytes + work.chunk_bytes - 1) / work.chunk_bytes;
  const uint32_t k = source_symbols(raptorq ? Scheme::kRaptorQ : Scheme::kReedSolomon,
                                    {.extent_bytes = work.extent_bytes, .chunk_bytes = work.chunk_bytes});
  const uint32_t interleaved = BlockLayout(chunks, k).blocks();
  return {.scheme = raptorq ? Scheme::kRaptorQ : Scheme::kReedSolomon,
          .source_symbols = k,
          .repair_symbols_max = raptorq ? 2 * k : ReedSolomon::kShardsMax - k,
          .loss = {.source_symbols = k,
                   .loss = std::min(path.loss, kLossMax),
                   .loss_run = std::max(1.0, path.loss_run_mean / interleaved)}};
}

// Whether there is a code, a loss, and something to send.
bool can_choose(const PathState& path, const WorkState& work, const CodesAtHand& codes) {
  return (codes.reed_solomon || codes.raptorq) && path.loss > 0 && work.left_bytes > 0 &&
         work.chunk_bytes > 0 && work.extent_bytes >= work.chunk_bytes;
}

// Time that is saved by sending ahead, less what it takes, when only `work.left_bytes` are left.
bool pays_at_end(const PathState& path, const WorkState& work, double overhead) {
  const double left = static_cast<double>(work.left_bytes);
  const double rtt = static_cast<double>(path.rtt_ns);
  const double sending_ns = left * 8e9 / static_cast<double>(path.rate_bps);
  if (sending_ns > rtt) return false;  // repairs come beside new data
  const double chunks = std::max(1.0, left / work.chunk_bytes);
  const double chance = 1 - std::pow(1 - path.loss, chunks / std::max(1.0, path.loss_run_mean));
  return chance * kRepairRoundTrips * rtt > kGainMin * (overhead * sending_ns + kCodingNs);
}

// Whether memory holds the sender up, and less so when blocks are repaired where they arrive.
bool pays_for_memory(const PathState& path, const WorkState& work, double overhead) {
  const double rate = static_cast<double>(path.rate_bps) / 8e9;  // bytes/ns
  const double rtt = static_cast<double>(path.rtt_ns);
  const double chunks = std::max(1.0, static_cast<double>(work.extent_bytes) / work.chunk_bytes);
  const double trips = 1 + kRepairRoundTrips * repair_rounds(static_cast<uint32_t>(chunks), path.loss);
  const double memory = static_cast<double>(work.memory_bytes);
  const double plain = std::min(rate, memory / (rtt * trips));
  const double coded = std::min(rate, memory / (rtt + kCodingNs)) / (1 + overhead);
  return coded > kGainMin * plain;
}

}  // namespace

uint32_t repair_symbols_for(const BlockLoss& block, double deviations, uint32_t repair_symbols_max) {
  const double p = std::clamp(block.loss, 0.0, kLossMax);
  if (p == 0) return 0;
  const double k = block.source_symbols;
  for (uint32_t m = 0; m < repair_symbols_max; ++m) {
    const double sent = k + m;
    if (sent * (1 - p) - deviations * std::sqrt(sent * p * (1 - p) * block.loss_run) >= k) return m;
  }
  return repair_symbols_max;
}

ParityChoice parity_where_lost(const PathState& path, const WorkState& work, const CodesAtHand& codes) {
  if (!can_choose(path, work, codes)) return {};
  const Block block = block_of(path, work, codes);
  const double deviations = path.loss >= Repetition::kLossMin ? kDeviationsForRate : kDeviationsForTime;
  return {ParityUse::kWhereLost, block.scheme,
          repair_symbols_for(block.loss, deviations, block.repair_symbols_max)};
}

ParityChoice choose_parity(const PathState& path, const WorkState& work, const CodesAtHand& codes) {
  if (path.rtt_ns == 0 || path.rate_bps == 0 || !can_choose(path, work, codes)) return {};
  const Block block = block_of(path, work, codes);
  const auto symbols = [&](double deviations) {
    return repair_symbols_for(block.loss, deviations, block.repair_symbols_max);
  };
  const uint32_t for_time = symbols(kDeviationsForTime);
  const double overhead = static_cast<double>(for_time) / block.source_symbols;
  if (pays_at_end(path, work, overhead)) return {ParityUse::kAtEnd, block.scheme, for_time};
  if (path.loss >= Repetition::kLossMin)
    return {ParityUse::kForLoss, block.scheme, symbols(kDeviationsForRate)};
  if (pays_for_memory(path, work, overhead)) return {ParityUse::kForMemory, block.scheme, for_time};
  return {};
}

}  // namespace sluice::coding
