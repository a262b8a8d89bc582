// One name of a tree, as it travels in a pack: a file's bytes stand behind the index, all else stands in it.
//
// Plain data. Paths are bytes, relative, without empty components, "." or "..".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/catalog/attributes.h"
#include "control/digests/named.h"
#include "dataplane/base/file_time.h"

namespace sluice::catalog {

enum class EntryKind : uint8_t {
  kFile,
  kDirectory,  // made if it is missing; its mode and time are set when all that is in it is there
  kSymlink,    // `target` is what it says, which is never followed
  kHardLink,   // `target` is the path of another file of the same session
};
inline constexpr uint8_t kEntryKinds = 4;
// The path of the directory itself that a tree comes into, where its mode and time are kept.
inline constexpr std::string_view kTop = ".";

// Why a name did not arrive; the others of its tree do. docs/WIRE.md 2.7 lists the numbers.
enum class Failure : uint8_t {
  kNone,
  kVanished,    // it was listed, and was not there any more
  kForbidden,   // permissions
  kChanged,     // while it was read
  kUnreadable,  // the disk said no
  kSpecial,     // a device, a pipe, a socket: left out
  kName,        // too long, or reserved, at either node
  kExists,      // something else has that name at the destination
  kUnwritable,  // the destination's file system said no
  kDamaged,     // its bytes are not those that its source summed
  kOther,
  kNoSpace,             // the destination's file system is full
  kInPack,              // it is as it was, and others of its pack are not
  kAttributesTooLarge,  // its extended attributes and ACLs are more than is kept of a name
  kAttributesRefused,   // the destination's file system does not take them
  kOtherLetters,        // to the destination's file system it is the same name as another one
  kOtherKind,           // what has that name at the destination is of a kind that is never replaced
  kTaken,               // another session writes to that name, or has paused while it did
  kTooManyLinks,        // the destination's file system allows no more
  kMounted,             // another file system is mounted there, or above it
  kReadOnly,            // and that one may only be read
  kDirectoryForbidden,  // permissions of its directory at the destination
  kImmutable,           // it or its directory, at the destination
  kTellsNoSize,         // the file is made while it is read, as those of /proc and /sys
  kNotAsListed,         // a list of digests wants other bytes
  kTargetMissing,       // a hard link: the file whose name it is did not arrive
};
inline constexpr uint8_t kFailures = 26;
// No failure: the name arrived, and the destination's file system cannot hold its time.
inline constexpr Failure kOtherTime{64};
std::string_view failure_text(Failure failure);  // for people
Failure failure_of(uint32_t number);             // kOther: a later version's

struct Entry {
  std::string path;
  EntryKind kind = EntryKind::kFile;
  uint64_t size_bytes = 0;
  uint32_t mode = 0;              // permission bits
  base::FileTimeNs mtime_ns = 0;  // since 1970
  std::string target;             // of links
  uint64_t digest = 0;            // CRC-64 of a file's bytes
  Failure failure = Failure::kNone;
  Attributes attributes;     // of hard links none: they are those of the file
  digests::Values expected;  // of a file: what a list wants its bytes to come to
  int64_t ctime_ns = 0;      // at the source, which tells by it what has changed; does not travel
};

// A name that did not arrive.
struct FailedName {
  std::string path;
  Failure failure = Failure::kNone;
};

// What of many names did not arrive.
inline constexpr size_t kFailuresKept = 100;
struct Shortfall {
  uint32_t failed = 0;
  uint32_t left_out = 0;          // Failure::kSpecial: nobody expects these
  std::vector<FailedName> names;  // the first of both, and of kOtherTime, at most kFailuresKept
  void note(const std::string& path, Failure failure);
  void forget_failures();  // all but kOtherTime
};

// Relative, at most 4096 bytes, no component empty, ".", "..", longer than 255 bytes, or with a NUL byte.
bool good_path(std::string_view path);

}  // namespace sluice::catalog
