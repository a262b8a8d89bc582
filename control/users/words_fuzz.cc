// What sluice-users takes from control, and control from sluice-users: whatever is decoded keeps its bounds,
// and is the same once it was said again.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "control/users/words.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice::users;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)uid_of_hello(bytes);
  if (const auto token = token_of_hello(bytes); token && !is_token(*token)) std::abort();
  if (const auto call = decode_call(bytes)) {
    const auto again = decode_call(encode(*call));
    const bool with_path = call->kind != Kind::kNames && call->kind != Kind::kMore &&
                           (!is_of_trees(call->kind) || call->kind == Kind::kOpenTree ||
                            call->kind == Kind::kMakeMissing || call->kind == Kind::kMakeDirectories);
    if (!again || again->kind != call->kind || again->file.spec.path != call->file.spec.path ||
        again->file.spec.name != call->file.spec.name || again->file.spec.size != call->file.spec.size ||
        (with_path ? !call->file.spec.path.starts_with('/') : !call->file.spec.path.empty()) ||
        again->tree.pack.has_value() != call->tree.pack.has_value() ||
        again->tree.wish.has_value() != call->tree.wish.has_value() ||
        again->tree.staging != call->tree.staging || again->tree.number != call->tree.number ||
        call->file.spec.path.find('\0') != std::string::npos)
      std::abort();
    if ((call->kind == Kind::kNames) != call->names.has_value() ||
        (call->names && shown(*again->names) != shown(*call->names)))
      std::abort();
  }
  if (const auto answer = decode_answer(bytes)) {
    const auto again = decode_answer(encode(*answer));
    if (!again || again->error.code != answer->error.code || again->error.message != answer->error.message ||
        again->name_path != answer->name_path || again->found != answer->found ||
        again->ended != answer->ended || again->files.size() != answer->files.size() ||
        again->entries.size() != answer->entries.size() ||
        again->names.has_value() != answer->names.has_value())
      std::abort();
  }
  return 0;
}
