// SPDX-License-Identifier: Apache-2.0
#include "control/words/terms.h"

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/base/text.h"

namespace sluice::transfer {

std::string peer_user_text(std::string_view peer, std::string_view peer_user) {
  return fmt::format("{} of node {}", peer_user.empty() ? "an operator" : base::printable(peer_user), peer);
}

std::string mapped_text(const Mapped& mapped, std::string_view peer) {
  return fmt::format("{} ({} at {})", base::printable(mapped.user.name),
                     mapped.peer_user.empty() ? "an operator" : base::printable(mapped.peer_user), peer);
}

bool good_user_name(std::string_view name) {
  return !name.empty() && name.size() <= kUserBytesMax &&
         std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7F; });
}

}  // namespace sluice::transfer
