// Errors of the cold paths: a code with its own exit status, and a sentence for a person.
//
// A message names the thing, the reason and the remedy, on one line. Hot paths do not use this
// type: there a reason enum becomes a counter and the packet is dropped (docs/ARCHITECTURE.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace sluice {

// Each value is also the exit status of `sluice` (docs/RUNBOOK.md, "Exit codes") and the number
// that control messages carry (control/proto/peer.proto). Values are never reused.
enum class ErrorCode : uint8_t {
  kOk = 0,
  kInternal = 1,           // a defect in Sluice, or an unexpected answer of the system
  kUsage = 2,              // wrong command line
  kConfiguration = 3,      // wrong key or value in node.toml, unusable node directory
  kDaemonNotRunning = 4,   // the local control or dataplane process does not answer
  kPeerUntrusted = 5,      // unknown node name, or the identity is not a pinned one
  kPeerUnreachable = 6,    // cannot connect, or the connection was lost for good
  kSourceUnreadable = 7,   // missing, unreadable, a directory, or not a regular file
  kOutsideExports = 8,     // a path beneath no export, or an export without the right
  kDestinationExists = 9,  // exists and --overwrite was not given
  kNoSpace = 10,           // the destination's file system is full
  kIntegrity = 11,         // digests differ, or the source changed meanwhile
  kCancelled = 12,         // an operator cancelled the session
  kDevice = 13,            // DPDK device, hugepages, cores, privileges
  kStalled = 14,           // no progress within the configured time
  kIncompatible = 15,      // the nodes share no protocol version, CRC kind or chunk size
  kStorage = 16,           // a read, write or sync failed on a disk
  kResources = 17,         // a table is full: sessions, lanes, extents
  kTooSlow = 18,           // slower than the least rate that was asked for
  kDeadline = 19,          // the deadline cannot be kept, or is over: the session was refused, or has ended
  kLate = 20,              // every byte has arrived, after the deadline
  kPartial = 21,           // of a tree, some names did not arrive; all others did
  kQuota = 22,             // more than a quota lets the peer's sessions take beneath an export
  kAttributes = 23,        // extended attributes or an ACL are too much, or are not taken there
  kSuperseded = 24,        // its lease was taken under a higher epoch, or by another node
  kMoved = 25,             // the session goes on at another node
};
inline constexpr ErrorCode kErrorCodeLast = ErrorCode::kMoved;

// Short lower-case name, e.g. "destination_exists"; stable, used in --json and the API.
std::string_view error_code_name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

// A value or an Error. Use as: `auto r = f(); if (!r) return r.error(); use(*r);`
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : v_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return v_.index() == 0; }
  T& operator*() { return std::get<0>(v_); }
  const T& operator*() const { return std::get<0>(v_); }
  T* operator->() { return &std::get<0>(v_); }
  const T* operator->() const { return &std::get<0>(v_); }
  const Error& error() const { return std::get<1>(v_); }

 private:
  std::variant<T, Error> v_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace sluice
