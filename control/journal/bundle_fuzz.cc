// Bundles of any bytes: refused, or read; then what is read is written down as it was, and is a session that
// could go on.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include "control/journal/bundle.h"
#include "dataplane/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (const auto bundle = journal::decode_bundle(bytes)) {
    const auto again = journal::decode_bundle(journal::encode(*bundle));
    CHECK(again && again->move == bundle->move && again->content == bundle->content,
          "a bundle that is written down says what it said");
  }
  auto rows = journal::decode_rows(bytes);
  if (!rows) return 0;
  CHECK(rows->saved.record.legs.size() == 1 && rows->saved.record.request && !rows->saved.files.empty(),
        "a session that could go on");
  CHECK(rows->saved.blocks.size() == rows->saved.files.size(), "each file has its blocks");
  const std::string once = journal::encode(*rows);
  const auto again = journal::decode_rows(once);
  CHECK(again && journal::encode(*again) == once, "rows that are written down say what they said");
  (void)journal::place(&rows->saved, rows->exports, {{.name = "data", .path = "/srv"}});
  journal::make_portable(&rows->saved);
  CHECK(rows->saved.record.state == transfer::RecordState::kPaused, "it is at rest");
  return 0;
}
