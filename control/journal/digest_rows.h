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

inline void put_digested(const digests::Digested& from, FileRecord* to) {
  to->set_digests_wanted(from.wanted);
  peer::put_digests(from.expected, to->mutable_expected());
  for (const digests::Named& name : from.found) peer::put_named(name, to->add_digests());
}

inline digests::Digested digested_of(const FileRecord& from) {
  digests::Digested to{
      .wanted = from.digests_wanted(), .expected = peer::digests_of(from.expected()), .found = {}};
  for (const peer::NamedDigests& name : from.digests()) to.found.push_back(peer::named_of(name));
  return to;
}

}  // namespace sluice::journal
