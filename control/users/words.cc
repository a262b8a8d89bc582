// SPDX-License-Identifier: Apache-2.0
#include "control/users/words.h"

#include <algorithm>

#include "control/catalog/catalog.h"
#include "control/proto/names_codec.h"
#include "control/proto/users.pb.h"
#include "control/users/tree_words.h"
#include "dataplane/base/file_time.h"
#include "dataplane/base/path.h"

namespace sluice::users {
namespace {

constexpr size_t kNameMax = 255;
constexpr size_t kErrorMax = 8192;
constexpr uint32_t kAlignmentMax = 1U << 30;

bool good_holes(const std::vector<base::Range>& holes, uint64_t size) {
  uint64_t end = 0;
  for (const base::Range& hole : holes) {
    if (hole.length == 0 || hole.offset < end || hole.offset > size || hole.length > size - hole.offset)
      return false;
    end = hole.offset + hole.length;
  }
  return true;
}

std::string parcel(const auto& message) { return message.SerializeAsString(); }

bool parse(std::string_view bytes, auto* message) {
  return bytes.size() <= kBulkBytesMax &&
         message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// Bounded, and its texts printable; nothing: it is none.
std::optional<names::Word> word_of(const std::string& bytes) {
  peer::PeerMessage message;
  if (!message.ParseFromString(bytes)) return std::nullopt;
  std::optional<names::Word> word = peer::word_from_wire(message);
  if (!word || !names::admit(&*word)) return std::nullopt;
  return word;
}

// Lists and changes of names: they name no file.
std::optional<Call> names_call(const wire::Call& message) {
  Call call{.kind = static_cast<Kind>(message.kind()), .file = {}, .names = {}};
  call.file.peer = message.peer();
  if (!plain(call.file.peer, kNameMax)) return std::nullopt;
  if (call.kind == Kind::kMore) return call;
  std::optional<names::Word> word = word_of(message.names());
  const auto* const request = word ? std::get_if<names::Request>(&*word) : nullptr;
  if (request == nullptr) return std::nullopt;
  call.names = *request;
  return call;
}

Result<wire::Hello> hello_of(std::string_view bytes) {
  wire::Hello message;
  if (!parse(bytes, &message)) return Error{ErrorCode::kInternal, "the first word is no greeting"};
  if (message.version() != kVersion)
    return Error{ErrorCode::kIncompatible,
                 "sluice-control and sluice-users are of different versions: restart both"};
  return message;
}

}  // namespace

bool is_token(std::string_view token) {
  return token.size() == kTokenBytes && token.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string hello(uint32_t uid) {
  wire::Hello message;
  message.set_version(kVersion);
  message.set_uid(uid);
  return parcel(message);
}

std::string hello_of_caller(const std::string& token) {
  wire::Hello message;
  message.set_version(kVersion);
  message.set_token(token);
  return parcel(message);
}

Result<uint32_t> uid_of_hello(std::string_view bytes) {
  const Result<wire::Hello> message = hello_of(bytes);
  if (!message) return message.error();
  return message->uid();
}

Result<std::string> token_of_hello(std::string_view bytes) {
  const Result<wire::Hello> message = hello_of(bytes);
  if (!message) return message.error();
  if (is_token(message->token())) return message->token();
  return Error{ErrorCode::kInternal, "it names no session"};
}

std::string encode(const Call& call) {
  const exports::DestinationSpec& spec = call.file.spec;
  wire::Call message;
  message.set_kind(static_cast<wire::Call::Kind>(call.kind));
  message.set_peer(call.file.peer);
  message.set_path(spec.path);
  message.set_is_directory(spec.is_directory);
  message.set_name(spec.name);
  message.set_size(spec.size);
  message.set_mode(spec.mode);
  base::put_file_time(spec.mtime_ns, &message);
  message.set_overwrite(spec.overwrite);
  message.set_alignment(spec.alignment);
  for (const base::Range& hole : spec.holes) {
    wire::Hole* const one = message.add_holes();
    one->set_offset(hole.offset);
    one->set_length(hole.length);
  }
  const catalog::FileIdentity& identity = call.file.identity;
  message.mutable_identity()->set_device(identity.device);
  message.mutable_identity()->set_inode(identity.inode);
  message.mutable_identity()->set_generation(identity.generation);
  message.mutable_identity()->set_birth_ns(identity.birth_ns);
  if (call.names) message.set_names(peer::to_wire(*call.names).SerializeAsString());
  message.set_keep(spec.keep.bits());
  catalog::put_attributes(spec.attributes, &message);
  message.set_one_of_many(spec.one_of_many);
  message.set_beneath_tree(spec.beneath_tree);
  if (is_of_trees(call.kind) || !call.tree.forgotten.empty()) put_tree(call, &message);
  if (!is_of_trees(call.kind) && message.ByteSizeLong() > kMessageBytesMax) message.clear_holes();
  return parcel(message);
}

std::string encode(const Answer& answer) {
  wire::Answer message;
  message.set_error_code(static_cast<uint32_t>(answer.error.code));
  message.set_error(answer.error.message.substr(0, kErrorMax));
  message.set_found(answer.found);
  message.set_name_path(answer.name_path);
  if (answer.names) message.set_names(peer::to_wire(*answer.names).SerializeAsString());
  put_tree(answer, &message);
  message.set_version(kVersion);
  return parcel(message);
}

std::optional<Call> decode_call(std::string_view bytes) {
  wire::Call message;
  if (!parse(bytes, &message)) return std::nullopt;
  if (message.kind() < wire::Call::OPEN_SOURCE || message.kind() > static_cast<int>(kKindLast))
    return std::nullopt;
  if (message.kind() == wire::Call::NAMES || message.kind() == wire::Call::MORE) return names_call(message);
  Call call;
  call.kind = static_cast<Kind>(message.kind());
  exports::DestinationSpec& spec = call.file.spec;
  call.file.peer = message.peer();
  spec.path = message.path();
  spec.is_directory = message.is_directory();
  spec.name = message.name();
  spec.size = message.size();
  spec.mode = message.mode();
  spec.mtime_ns = base::file_time_of(message);
  spec.overwrite = message.overwrite();
  spec.alignment = message.alignment();
  for (const wire::Hole& hole : message.holes()) spec.holes.push_back({hole.offset(), hole.length()});
  call.file.identity = {.device = message.identity().device(),
                        .inode = message.identity().inode(),
                        .generation = message.identity().generation(),
                        .birth_ns = message.identity().birth_ns()};
  spec.keep = selection::Keep::of(message.keep());
  spec.attributes = catalog::attributes_of(message);
  spec.one_of_many = message.one_of_many();
  spec.beneath_tree = message.beneath_tree();
  // What is about a pack has its path there.
  const bool with_path = !is_of_trees(call.kind) || call.kind == Kind::kOpenTree ||
                         call.kind == Kind::kMakeMissing || call.kind == Kind::kMakeDirectories;
  if (is_of_trees(call.kind) && !tree_of(message, &call)) return std::nullopt;
  const bool good = plain(call.file.peer, kNameMax) && plain(spec.path, 2 * base::kPathBytesMax) &&
                    (with_path ? spec.path.starts_with('/') : spec.path.empty()) &&
                    catalog::attributes_problem(spec.attributes, spec.keep, catalog::Bearer::kFile).empty() &&
                    plain(spec.name, base::kPathBytesMax) && spec.size <= catalog::kFileBytesMax &&
                    spec.mode <= 07777 && spec.alignment <= kAlignmentMax &&
                    good_holes(spec.holes, spec.size);
  return good ? std::optional(std::move(call)) : std::nullopt;
}

std::optional<Answer> decode_answer(std::string_view bytes) {
  wire::Answer message;
  if (!parse(bytes, &message)) return std::nullopt;
  if (message.version() != kVersion || message.error_code() > static_cast<uint32_t>(kErrorCodeLast))
    return std::nullopt;
  Answer answer{.error = {static_cast<ErrorCode>(message.error_code()), message.error()},
                .found = message.found(),
                .name_path = message.name_path(),
                .names = {}};
  if (!message.names().empty()) {
    answer.names = word_of(message.names());
    if (!answer.names || std::holds_alternative<names::Request>(*answer.names)) return std::nullopt;
  }
  if (!tree_of(message, &answer)) return std::nullopt;
  const bool good = answer.error.message.size() <= kErrorMax &&
                    plain(answer.name_path, 2 * base::kPathBytesMax) &&
                    (answer.error.code == ErrorCode::kOk) == answer.error.message.empty();
  return good ? std::optional(std::move(answer)) : std::nullopt;
}

}  // namespace sluice::users
