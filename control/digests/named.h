// Digests of names: those that were computed of what a destination stored, and those that a list wants.
//
// Plain data. Values are lower-case hex digits, as many as their kind has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/digests/kind.h"

namespace sluice::digests {

struct Value {
  Kind kind = Kind::kSha256;
  std::string hex;
  bool operator==(const Value&) const = default;
};
using Values = std::vector<Value>;  // a kind each

// A name with the digests of what it holds.
struct Named {
  std::string path;  // under which it arrives; of a file that is an object of its own: empty
  uint64_t size_bytes = 0;
  std::string target;  // of a hard link: the name whose digests are its own
  Values values;
  bool operator==(const Named&) const = default;
};

// What a list wants of names, by the path under which each arrives.
using Expected = std::map<std::string, Values, std::less<>>;
inline constexpr size_t kExpectedMax = 100'000;        // names of one session
inline constexpr size_t kExpectedBytesMax = 8U << 20;  // of their paths and values
// What is wanted of this name; nothing: not in the list, or there is none.
Values expected_of(const std::shared_ptr<const Expected>& list, std::string_view path);
Mask mask_of(const Expected& list);
size_t bytes_of(const Expected& list);

// The right kind of value: of as many hex digits as it has.
bool good(const Value& value);
// What `found` has otherwise than `expected` wants it, for people; empty: nothing. A kind that was not
// computed differs.
std::string difference(const Values& expected, const Values& found);

// Of a file: what is computed, what it must come to, and what it came to.
struct Digested {
  Mask wanted = 0;
  Values expected;           // of a file that is an object of its own, at the destination
  std::vector<Named> found;  // of a pack a name each
};

}  // namespace sluice::digests
