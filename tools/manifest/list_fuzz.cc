// A list of digests, whatever is in it: entries that can be written again, or an error that names the line.
// Seeds: tools/fuzz/corpus/manifest.seeds. The first byte says what the list is called.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/base/check.h"
#include "tools/manifest/list.h"

namespace {

using namespace sluice::manifest;

constexpr std::array<const char*, 6> kNames = {
    "x", "manifest-sha256.txt", "tagmanifest-md5.txt", "x.adler32", "b3sums", "manifest-nothing.txt"};

void look_at(const Entry& entry) {
  CHECK(!entry.name.empty() && entry.name.find('\0') == std::string::npos, "a name of bytes");
  CHECK(!entry.values.empty(), "each has a digest");
  for (const Value& value : entry.values) {
    CHECK(value.hex.size() == hex_digits_of(value.kind), "as long as its kind is");
    CHECK(value.hex.find_first_not_of("0123456789abcdef") == std::string::npos, "in hex");
  }
  const auto line = lines_of(Format::kTag, "x", {entry.name, {}, {entry.values.front()}, 0});
  CHECK(line && line->ends_with('\n'), "written again");
  ListReader reader("x", {});
  const auto again = reader.line(std::string_view(*line).substr(0, line->size() - 1));
  CHECK(again && *again, "and read again");
  CHECK((*again)->name == entry.name && (*again)->values.front().hex == entry.values.front().hex, "the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  ListReader reader(kNames[data[0] % kNames.size()], {});
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const auto entry = reader.line(text.substr(0, end));
    if (!entry) {
      CHECK(entry.error().code == sluice::ErrorCode::kUsage, "what is no list is a mistake of the caller");
      return 0;
    }
    if (*entry) look_at(**entry);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return 0;
}
