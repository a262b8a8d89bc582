// Keys of [transfer], made of the options that are SLUICE_CONFIGURED (dataplane/base/options/options.def),
// and one that is no option; see schema.h.
// SPDX-License-Identifier: Apache-2.0
#include <deque>

#include "dataplane/base/config/schema.h"

namespace sluice::config {
namespace {

constexpr uint64_t kTi = 1ULL << 40;

const Key kPartitionBytes = {.section = "transfer",
                             .name = "partition_bytes",
                             .type = ValueType::kSize,
                             .field = &Node::partition_bytes,
                             .min = 1U << 20,
                             .max = kTi,
                             .unit = "bytes",
                             .allowed = "1MiB..1TiB, a multiple of `extent_bytes`",
                             .meaning = "Part of a file that is given to one lane at a time."};

// Texts that keys point at.
std::string_view kept(std::string text) {
  static std::deque<std::string> all;
  return all.emplace_back(std::move(text));
}

ValueType type_of(options::Kind kind) {
  switch (kind) {
    case options::Kind::kRate:
      return ValueType::kRate;
    case options::Kind::kSize:
      return ValueType::kSize;
    case options::Kind::kSwitch:
    case options::Kind::kChoice:
      return ValueType::kChoice;
    default:
      return ValueType::kInteger;
  }
}

std::string choices_of(const options::Option& option) {
  std::string words(option.allowed);
  if (!words.empty()) return words;
  for (const std::string_view word : option.choices) words += (words.empty() ? "" : " ") + std::string(word);
  return words;
}

// A size may be 0, which means what counts without the key.
Key key_of(const options::Option& option) {
  Key key{.section = "transfer",
          .name = option.config_key(),
          .type = type_of(option.kind),
          .field = &option,
          .min = option.kind == options::Kind::kSize ? 0 : static_cast<uint64_t>(option.least),
          .max = static_cast<uint64_t>(option.most),
          .unit = option.unit,
          .meaning = option.meaning};
  if (key.type == ValueType::kChoice) key.choices = kept(choices_of(option));
  if (key.type == ValueType::kSize)
    key.allowed = kept("0, " + std::to_string(static_cast<uint64_t>(option.least)) + ".." +
                       std::to_string(key.max) + " in steps of " + std::to_string(option.step));
  return key;
}

}  // namespace

std::span<const Key> transfer_keys() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all;
    for (const options::Option& option : options::all()) {
      if (option.configured) all.push_back(key_of(option));
    }
    all.push_back(kPartitionBytes);
    return all;
  }();
  return keys;
}

}  // namespace sluice::config
