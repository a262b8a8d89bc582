// SPDX-License-Identifier: Apache-2.0
#include "perf/tornado/coded_file.h"

#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "dataplane/base/check.h"

namespace sluice::tornado {
namespace {

using coding::Coded;

constexpr double kLost = 0.01;  // of the source symbols
constexpr uint32_t kSpare = 3;  // repair symbols more than are missing

double cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double taken_s(const std::function<void()>& work) {
  const double before_s = cpu_s();
  work();
  return cpu_s() - before_s;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace

CodedFile::CodedFile(std::span<uint8_t> file, const Division& division)
    : file_(file), division_(division), last_(division.symbol_bytes) {
  const uint32_t t = division.symbol_bytes;
  const auto symbols = static_cast<uint32_t>((file.size() + t - 1) / t);
  if (division.part_bytes != 0) {
    const auto k = static_cast<uint32_t>((division.part_bytes + t - 1) / t);
    for (uint32_t at = 0; at < symbols; at += k) blocks_.push_back({at, std::min(k, symbols - at), k});
    return;
  }
  const auto most = static_cast<uint32_t>(division.memory_bytes / t);
  const uint32_t count = (symbols + most - 1) / most;
  uint32_t at = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t k = symbols / count + (i < symbols % count ? 1 : 0);
    blocks_.push_back({at, k, k});
    at += k;
  }
}

uint32_t CodedFile::repair_of(const Block& block) const {
  const auto share = static_cast<uint32_t>(std::ceil(block.k * division_.repair_share));
  return std::max(share, static_cast<uint32_t>(std::ceil(block.k * kLost)) + kSpare);
}

const coding::BlockCode& CodedFile::code_of(const Block& block) {
  auto& code = codes_[block.k];
  if (code == nullptr) code = coding::make_code(coding::Scheme::kRaptorQ, block.k);
  CHECK(code != nullptr, "this build has RaptorQ, and it has every K of such files");
  return *code;
}

void CodedFile::plan() {
  for (const Block& block : blocks_) {
    const size_t bytes = code_of(block).arena_bytes(division_.symbol_bytes, repair_of(block));
    if (bytes > arena_.span().size()) arena_ = coding::AlignedBytes(bytes);
  }
}

std::vector<uint8_t*> CodedFile::places_of(const Block& block) {
  const uint64_t t = division_.symbol_bytes;
  std::vector<uint8_t*> places;
  for (uint32_t i = 0; i < block.count; ++i) {
    const uint64_t at = (block.first + i) * t;
    if (at + t <= file_.size()) {
      places.push_back(file_.data() + at);
    } else {
      std::copy(file_.begin() + static_cast<int64_t>(at), file_.end(), last_.begin());
      places.push_back(last_.data());
    }
  }
  return places;
}

void CodedFile::encode(const Block& block, std::vector<uint8_t>* repair) {
  repair->resize(size_t{repair_of(block)} * division_.symbol_bytes);
  std::vector<uint8_t*> places;
  for (uint32_t i = 0; i < repair_of(block); ++i)
    places.push_back(repair->data() + size_t{i} * division_.symbol_bytes);
  const auto sources = places_of(block);
  const std::vector<const uint8_t*> source(sources.begin(), sources.end());
  const Coded coded = code_of(block).encode(
      {.source = source, .symbol_bytes = division_.symbol_bytes, .first_id = 0, .repair = places},
      arena_.span());
  CHECK(coded == Coded::kYes, "a block of this file can be coded");
}

bool CodedFile::decode(const Block& block, std::span<const uint32_t> missing,
                       std::span<const uint8_t> repair) {
  const auto places = places_of(block);
  const auto count = std::min<uint32_t>(static_cast<uint32_t>(missing.size()) + kSpare, repair_of(block));
  std::vector<coding::RepairSymbol> here;
  for (uint32_t i = 0; i < count; ++i)
    here.push_back({.id = i, .bytes = repair.data() + size_t{i} * division_.symbol_bytes});
  return code_of(block).decode(
             {.source = places, .symbol_bytes = division_.symbol_bytes, .missing = missing, .repair = here},
             arena_.span()) == Coded::kYes;
}

void ask_cost(uint64_t bytes, const Division& division, uint32_t repeats) {
  std::mt19937_64 random(bytes);
  std::vector<uint8_t> file(bytes);
  for (uint8_t& byte : file) byte = static_cast<uint8_t>(random());
  std::vector<double> plan_s, encode_s, decode_s;
  std::vector<Block> blocks;
  uint32_t failed = 0;
  for (uint32_t i = 0; i < repeats; ++i) {
    CodedFile coded(file, division);
    blocks = coded.blocks();
    plan_s.push_back(taken_s([&] { coded.plan(); }));
    encode_s.push_back(0);
    decode_s.push_back(0);
    std::vector<uint8_t> repair;
    for (const Block& block : blocks) {
      encode_s.back() += taken_s([&] { coded.encode(block, &repair); });
      const auto lost = std::max(1U, static_cast<uint32_t>(block.count * kLost));
      const auto missing = coding::random_choice(random, block.count, lost);
      decode_s.back() += taken_s([&] { failed += coded.decode(block, missing, repair) ? 0 : 1; });
    }
  }
  fmt::print(
      "{{\"bytes\": {}, \"blocks\": {}, \"k\": {}, \"plan_s\": {:.6f}, \"encode_s\": {:.6f}, \"decode_s\": "
      "{:.6f}, "
      "\"failed\": {}}}\n",
      bytes, blocks.size(), blocks.front().k, median(plan_s), median(encode_s), median(decode_s), failed);
}

}  // namespace sluice::tornado
