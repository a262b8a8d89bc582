// Digests in rows of the journal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "control/proto/digest_fields.h"
#include "control/proto/journal.pb.h"
#include "control/words/records.h"

namespace sluice::journal {

inline void put_expected(const transfer::Request& from, Request* to) {
  if (!from.expected) return;
  for (const auto& [path, values] : *from.expected)
    peer::put_named({.path = path, .size_bytes = 0, .target = {}, .values = values}, to->add_expected());
}

inline std::shared_ptr<const digests::Expected> expected_of(const Request& from) {
  if (from.expected().empty()) return nullptr;
  digests::Expected expected;
  for (const peer::NamedDigests& name : from.expected())
    expected.insert_or_assign(name.path(), peer::digests_of(name.digests()));
  return std::make_shared<const digests::Expected>(std::move(expected));
}

}  // namespace sluice::journal
