// A phase that can only change as its table says.
//
// `allowed(from, to)` is found by argument-dependent lookup beside the enumeration; a change that it does not
// allow is a defect of ours and ends the process (CHECK).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/base/check.h"

namespace sluice::transfer {

template <typename E>
class Phase {
 public:
  constexpr explicit Phase(E first) : value_(first) {}

  constexpr operator E() const { return value_; }  // NOLINT(google-explicit-constructor)
  constexpr void change(E to) {
    CHECK(allowed(value_, to), "a change that the table of phases has");
    value_ = to;
  }

 private:
  E value_;
};

}  // namespace sluice::transfer
