// Marks the code that must not allocate: the worker's loop, while frames flow.
//
// A thread-local count and nothing more. In the tests a preloaded allocator (tools/hotmalloc) asks for it at
// every call, and ends the process when one comes from such code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether this thread is in a HotScope; for tools/hotmalloc, which finds it by its name.
extern "C" int sluice_in_hot_scope();

namespace sluice {

class HotScope {
 public:
  HotScope();
  ~HotScope();
  HotScope(const HotScope&) = delete;
  HotScope& operator=(const HotScope&) = delete;
};

// Within a HotScope: what is cold after all (a flow opened or closed).
class ColdScope {
 public:
  ColdScope();
  ~ColdScope();
  ColdScope(const ColdScope&) = delete;
  ColdScope& operator=(const ColdScope&) = delete;

 private:
  int depth_;
};

}  // namespace sluice
