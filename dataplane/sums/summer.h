// The sums of a part of an object, of which those of the whole are joined without another pass: BLAKE3's
// tree, CRCs and Adler-32.
//
// A part is a subtree (dataplane/sums/subtree.h), so that BLAKE3 has a value of it. Any thread, one at a
// time; only the constructor allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/board/sums.h"

struct sluice_blake3_hasher;

namespace sluice::sums {

using board::ExtentSums;
using Mask = uint32_t;  // board::kSum...

Mask available();  // in this build

class Summer {
 public:
  Summer();
  ~Summer();
  Summer(const Summer&) = delete;
  Summer& operator=(const Summer&) = delete;

  // Of a part that begins at this byte of its object, a multiple of 1024; `whole`: it is all of the object.
  // `wanted`: of available().
  void begin(Mask wanted, uint64_t offset, bool whole);
  // The bytes of the part one after the other.
  void add(const uint8_t* data, size_t bytes);
  void add_zeros(uint64_t bytes);
  ExtentSums value() const;

 private:
  void count(const uint8_t* data, size_t bytes);

  sluice_blake3_hasher* const hasher_;  // nullptr: this build has none
  Mask wanted_ = 0;
  bool whole_ = false;
  ExtentSums sums_ = {};  // but for BLAKE3
};

// Of two neighbours that make one subtree; `whole`: which is all of the object.
ExtentSums join(Mask wanted, const ExtentSums& left, const ExtentSums& right, uint64_t right_bytes,
                bool whole);

}  // namespace sluice::sums
