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
          .repair_symbols_max = raptorq ? 3 * k : ReedSolomon::kShardsMax - k,
          .loss = {.source_symbols = k,
                   .loss = std::min(path.loss, kLossMax),
                   .loss_run = std::max(1.0, path.loss_run_mean / interleaved)}};
}

// Whether there is a code, and a loss.
bool can_choose(const PathState& path, const WorkState& work, const CodesAtHand& codes) {
  return (codes.reed_solomon || codes.raptorq) && path.loss > 0 && work.chunk_bytes > 0 &&
         work.extent_bytes >= work.chunk_bytes;
}
bool is_known(const PathState& path) { return path.rtt_ns != 0 && path.rate_bps != 0; }

// Whether memory holds the sender up, and less so when blocks are repaired where they arrive.
bool pays_for_memory(const PathState& path, const WorkState& work, double overhead) {
  const double loss = std::min(path.loss, kLossMax);
  const double rate = static_cast<double>(path.rate_bps) / 8e9;  // bytes/ns
  const double rtt = static_cast<double>(path.rtt_ns);
  const double chunks = std::max(1.0, static_cast<double>(work.extent_bytes) / work.chunk_bytes);
  const double trips = 1 + kRepairRoundTrips * repair_rounds(chunks, loss);
  const double memory = static_cast<double>(work.memory_bytes);
  // Of a rate, what is left for data: repairs take their part of it, copies of them among these, and so do
  // repair symbols.
  const double plain = std::min(rate / Repetition(loss).transmissions(), memory / (rtt * trips));
  const double coded = std::min(rate / (1 + overhead), memory / (rtt + kCodingNs));
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
  if (!is_known(path) || !can_choose(path, work, codes)) return {};
  const Block block = block_of(path, work, codes);
  const bool loses_much = path.loss >= Repetition::kLossMin;
  const uint32_t symbols = repair_symbols_for(
      block.loss, loses_much ? kDeviationsForRate : kDeviationsForTime, block.repair_symbols_max);
  if (!pays_for_memory(path, work, static_cast<double>(symbols) / block.source_symbols)) return {};
  return {loses_much ? ParityUse::kForLoss : ParityUse::kForMemory, block.scheme, symbols};
}

ParityChoice choose_parity_at_end(const PathState& path, const WorkState& work, const CodesAtHand& codes) {
  if (!is_known(path) || !can_choose(path, work, codes)) return {};
  const Block block = block_of(path, work, codes);
  return {ParityUse::kAtEnd, block.scheme,
          repair_symbols_for(block.loss, kDeviationsForTime, block.repair_symbols_max)};
}

bool pays_at_end(const PathState& path, const EndState& end) {
  if (!is_known(path) || end.open_chunks == 0) return false;
  const double loss = std::min(path.loss, kLossMax);
  const double runs = static_cast<double>(end.open_chunks) / std::max(1.0, path.loss_run_mean);
  const double waited_ns =
      kRepairRoundTrips * repair_rounds(std::max(1.0, runs), loss) * static_cast<double>(path.rtt_ns);
  // Repairs, too, take time to be sent.
  const double more_chunks =
      static_cast<double>(end.parity_chunks) - static_cast<double>(end.open_chunks) * loss / (1 - loss);
  const double sending_ns =
      std::max(0.0, more_chunks) * end.wire_bytes * 8e9 / static_cast<double>(path.rate_bps);
  return waited_ns > kGainMin * (sending_ns + kCodingNs);
}

}  // namespace sluice::coding
