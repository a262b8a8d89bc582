// Pieces of work that wait for a file system, by several threads where it answers slowly.
//
// A server takes many questions at a time and answers each after a round trip. A disk of this host answers at
// once, and more threads would stand in each other's way. So the caller begins alone, and gets helpers when
// its pieces have taken `slow_ns` each.
//
// Blocking; any thread. The caller works as well, so that all threads of a pool may be callers. Its helpers
// have its rights, note its progress (dataplane/base/progress.h), and have ended when it returns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace sluice::exports {

struct SideBySide {
  size_t threads_max = 8;  // with the caller
  uint64_t slow_ns = 2'000'000;
};

// Calls `piece` once with each number below `count`, and the number of the thread that calls it, which is
// below threads_max. False: no other piece is begun.
void side_by_side(size_t count, const SideBySide& how,
                  const std::function<bool(size_t number, size_t thread)>& piece);

}  // namespace sluice::exports
