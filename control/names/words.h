// What two nodes say to each other about names: which there are, and what shall become of them. docs/WIRE.md,
// 2.6, as plain data.
//
// Pure. What came from a peer passes admit() before anything else looks at it; a list also passes ListCheck
// (list_check.h), which knows what was asked for. Paths and names are bytes: any but NUL, and '/' in names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dataplane/base/error.h"
#include "dataplane/base/file_time.h"
#include "dataplane/base/path.h"

namespace sluice::names {

using base::compare_paths;
using base::kNameBytesMax;
using base::kPathBytesMax;
inline constexpr size_t kTextBytesMax = 1000;
inline constexpr size_t kEntriesPerPage = 1024;
inline constexpr size_t kPageBytes = 48U << 10;  // a page with as much takes no further entry
inline constexpr size_t kProblemsMax = 100;
inline constexpr size_t kSpacesMax = 64;
inline constexpr size_t kSoftwareBytesMax = 100;
// That an asker lets be under way: a tenth of a second and more, in which its node may stand still.
inline constexpr uint64_t kPagesAhead = 32;
inline constexpr uint64_t kEntriesMax = 1'000'000'000;  // a list with more never ends

enum class Type : uint8_t {
  kUnknown,
  kFile,
  kDirectory,
  kLink,
  kFifo,
  kSocket,
  kCharacterDevice,
  kBlockDevice,
};
inline constexpr Type kTypeLast = Type::kBlockDevice;

enum class DigestKind : uint8_t {
  kCrc64,    // WIRE 1.2
  kAdler32,  // RFC 1950
  kCrc32c,   // WIRE 1.2
};
// Of its number. What only a newer node asks for is answered by a CRC-64, which says that it is one.
constexpr DigestKind digest_kind(uint32_t number) {
  return number <= static_cast<uint32_t>(DigestKind::kCrc32c) ? static_cast<DigestKind>(number)
                                                              : DigestKind::kCrc64;
}

struct Entry {
  std::string path;  // from the directory that was asked for; empty: what was asked for itself
  Type type = Type::kUnknown;
  uint64_t size_bytes = 0;  // of a file, or of a link's text
  uint32_t mode = 0;        // the twelve permission bits
  base::FileTimeNs mtime_ns = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t links = 0;
  uint64_t allocated_bytes = 0;
  std::string target;              // of a link
  std::optional<uint64_t> digest;  // of what a file holds; where it was asked for
  DigestKind digest_kind = DigestKind::kCrc64;
  uint32_t error_code = 0;  // sluice::ErrorCode: why not all of this is known, or it was not gone into
  std::string error;
};

struct List {
  std::string path;  // empty: the exports
  bool itself = false;
  bool recursive = false;
  bool glob = false;
  bool unfinished = false;
  bool digests = false;
  DigestKind digest_kind = DigestKind::kCrc64;
  uint64_t pages = 0;
};

struct MakeDirectory {
  std::string path;
  bool parents = false;
};

struct Move {
  std::string from;
  std::string to;
  bool replace = false;
};

struct Remove {
  std::string path;
  bool recursive = false;
  bool empty = false;  // a directory, if nothing is in it
};

// The node itself.
struct AboutNode {};

using Request = std::variant<List, MakeDirectory, Move, Remove, AboutNode>;

struct Page {
  std::vector<Entry> entries;
};

struct More {
  uint64_t pages = 0;
};

struct Space {
  std::string name;  // of the export
  uint64_t size_bytes = 0;
  uint64_t free_bytes = 0;
};

struct NodeState {
  std::string software;
  int64_t asked_unix_ns = 0;  // by its clock: when it read the question, and when it answered
  int64_t answered_unix_ns = 0;
  std::vector<Space> spaces;  // beneath what the asker may write
};

struct Done {
  uint64_t entries = 0;
  uint64_t failed = 0;
  std::vector<Entry> problems;
  std::optional<NodeState> node;  // of AboutNode
};

using Word = std::variant<Request, Page, More, Done>;

// Bounds, and texts made printable. kIncompatible names what no honest peer says.
Status admit(Word* word);

// About how many bytes an entry takes in a page.
size_t page_bytes(const Entry& entry);

// For logs and errors: "list of data/x".
std::string shown(const Request& request);

}  // namespace sluice::names
