// Any text as a size, a rate, an address: refused with one line, or a number that is written back and read
// again as the same.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/schema.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

using namespace sluice;

template <typename T>
bool good(const Result<T>& result) {
  if (result) return true;
  const std::string& why = result.error().message;
  fuzz::require(!why.empty() && why.find('\n') == std::string::npos && why.size() < 400, "one line says why");
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto bytes = config::parse_size(text); good(bytes)) {
    const auto again = config::parse_size(config::format_size(*bytes));
    fuzz::require(again && *again == *bytes, "a size is written as it is read");
  }
  if (const auto rate = config::parse_rate(text); good(rate)) {
    const auto again = config::parse_rate(config::format_rate(*rate));
    fuzz::require(again && *again == *rate, "a rate is written as it is read");
  }
  if (const auto address = config::parse_host_port(text); good(address)) {
    fuzz::require(!address->host.empty() && address->host.size() < text.size(), "an address has a host");
  }
  if (config::valid_node_name(text)) {
    fuzz::require(!text.empty() && text.size() <= 63 && text.find_first_of("./\\ :\n") == text.npos,
                  "a plain name");
  }
  return 0;
}
