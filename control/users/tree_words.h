// What calls and answers about trees have beside others (words.h), to messages and back.
//
// Pure. False: it is one that nobody may say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "control/proto/users.pb.h"
#include "control/users/words.h"

namespace sluice::users {

// Of calls, beside others: a text that the kernel takes whole.
inline bool plain(const std::string& text, size_t most) {
  return text.size() <= most && text.find('\0') == std::string::npos;
}

void put_tree(const Call& from, wire::Call* to);
bool tree_of(const wire::Call& from, Call* to);
void put_tree(const Answer& from, wire::Answer* to);
bool tree_of(const wire::Answer& from, Answer* to);

}  // namespace sluice::users
