// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/hot.h"

#include <utility>

namespace sluice {
namespace {

thread_local int depth = 0;

}  // namespace

HotScope::HotScope() { ++depth; }
HotScope::~HotScope() { --depth; }
ColdScope::ColdScope() : depth_(std::exchange(depth, 0)) {}
ColdScope::~ColdScope() { depth = depth_; }

}  // namespace sluice

int sluice_in_hot_scope() { return sluice::depth > 0 ? 1 : 0; }
