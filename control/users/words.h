// What sluice-control asks sluice-users, and what it hears: control/proto/users.proto as plain data, checked.
//
// Pure. Either side bounds what the other says: whoever has taken one over has not the other for that.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/catalog/catalog.h"
#include "control/exports/as_user.h"
#include "control/names/words.h"
#include "dataplane/base/error.h"

namespace sluice::users {

inline constexpr uint32_t kVersion = 2;
inline constexpr size_t kMessageBytesMax = 64 << 10;  // of one that travels as such
inline constexpr size_t kBulkBytesMax = 256U << 20;   // of any, as of a list of a million names
inline constexpr size_t kDescriptorsMax = 2;          // of a message
inline constexpr size_t kTokenBytes = 32;             // hex digits

enum class Kind : uint8_t {
  kOpenSource = 1,
  kOpenUnfinished,
  kCreate,
  kReopen,
  kFinish,
  kCommit,
  kDrop,
  kIsCommitted,
  kGoodbye,  // nothing more is wanted; without an answer
  kNames,    // a list of names, or a change of one
  kMore,     // of that list
  kList,
  kPreview,
  kOpenTree,
  kMakeMissing,
  kMakeDirectories,
  kFillPack,
  kLookAtPack,
  kStagePack,
  kNamePack,
  kRemoveStaging,
};
inline constexpr Kind kKindLast = Kind::kRemoveStaging;
inline bool is_of_trees(Kind kind) { return kind >= Kind::kList; }

// What a call about trees has besides.
struct TreeCall {
  std::optional<catalog::File> pack;  // or, of kRemoveStaging, what the path and `keep` of it say
  std::string staging;
  uint64_t number = 0;              // under which a pack is staged
  std::vector<uint64_t> forgotten;  // that are not wanted any more
  digests::Expected expected;
  std::optional<exports::UserTrees::Wish> wish;  // of kList and kPreview; what it expects stands above
};

struct Call {
  Kind kind = Kind::kOpenSource;
  exports::UserFile file;                    // without its descriptor, which stands beside the message
  std::optional<names::Request> names = {};  // of kNames
  TreeCall tree = {};
};

struct Answer {
  Error error{ErrorCode::kOk, ""};
  bool found = false;
  std::string name_path;
  std::optional<names::Word> names = {};  // a Page, or Done
  catalog::Failure failure = catalog::Failure::kNone;
  std::vector<catalog::File> files = {};  // of kList
  std::vector<catalog::Entry> entries = {};
  bool ended = false;
  catalog::Shortfall missing = {};
  std::vector<digests::Named> digests = {};

  Status status() const { return error.code == ErrorCode::kOk ? Status() : Status(error); }
};

// Is it a word as a caller makes one up?
bool is_token(std::string_view token);

std::string hello(uint32_t uid);
// kIncompatible, kInternal.
Result<uint32_t> uid_of_hello(std::string_view bytes);
// Of a process that calls control, and says for which session it opens files (callers.h).
std::string hello_of_caller(const std::string& token);
Result<std::string> token_of_hello(std::string_view bytes);

// Without the holes where they are too many for a message: they only spare room.
std::string encode(const Call& call);
std::string encode(const Answer& answer);
// Nothing: it is none, or one that nobody may say.
std::optional<Call> decode_call(std::string_view bytes);
std::optional<Answer> decode_answer(std::string_view bytes);

}  // namespace sluice::users
