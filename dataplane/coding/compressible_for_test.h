// Bytes that get about a third as long: words, and numbers between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

namespace sluice::coding {

inline std::vector<uint8_t> compressible_bytes(size_t bytes, uint64_t seed) {
  constexpr std::string_view kWords[] = {"extent ",  "of ",    "the ",    "peer ", "that ",   "was ",
                                         "sent ",    "again ", "before ", "it ",   "worker ", "had ",
                                         "written ", "bytes ", "and ",    "lane ", "status ", "a "};
  std::mt19937_64 random(seed);
  std::vector<uint8_t> data;
  data.reserve(bytes + 32);
  while (data.size() < bytes) {
    const std::string_view word = kWords[random() % std::size(kWords)];
    data.insert(data.end(), word.begin(), word.end());
    if (random() % 8 == 0)
      for (int i = 0; i < 6; ++i) data.push_back(static_cast<uint8_t>('0' + random() % 10));
  }
  data.resize(bytes);
  return data;
}

}  // namespace sluice::coding
