// Counts what a part of a transfer has asked for and nobody has answered. An attempt is over only when all
// is answered.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "control/words/effects.h"
#include "dataplane/base/check.h"

namespace sluice::transfer {

class Pending {
 public:
  template <typename E>
  void ask(E effect, Effects& out) {
    ++count_;
    out.add(std::move(effect));
  }
  void answered() {
    CHECK(count_ != 0, "what is answered was asked for");
    --count_;
  }
  void check_none() const { CHECK(count_ == 0, "an attempt is over when everything was answered"); }
  uint32_t count() const { return count_; }

 private:
  uint32_t count_ = 0;
};

}  // namespace sluice::transfer
