// Owners and groups: read with their names at a source, given to files at a destination.
//
// What a number means is a matter of the system that it comes from. So each travels with its name, unless an
// operator wants numbers alone; where this system knows the name, its own number for it counts, otherwise the
// number that came. 0 is 0 everywhere.
//
// Cold; blocking (the system's databases of accounts may ask another host); one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "control/catalog/attributes.h"

namespace sluice::exports {

// What it once found it keeps: a tree has few owners, and many names.
class Accounts {
 public:
  // Of a file with this owner and group, as far as they are to be kept.
  catalog::Attributes attributes(uint32_t uid, uint32_t gid, const catalog::Keep& keep);

  // To an open file; with `name`, to what has it in that directory, which may be a link. 0, or an errno.
  int give(int fd, const catalog::Attributes& attributes, const char* name = nullptr);

  // Empty: it has none. And back, where the name is known here.
  const std::string& user_name(uint32_t uid);
  const std::string& group_name(uint32_t gid);
  uint32_t user(const std::string& name, uint32_t otherwise);
  uint32_t group(const std::string& name, uint32_t otherwise);

 private:
  std::map<uint32_t, std::string> user_names_;
  std::map<uint32_t, std::string> group_names_;
  std::map<std::string, std::optional<uint32_t>> users_;
  std::map<std::string, std::optional<uint32_t>> groups_;
};

// May this process give files to other users, and still set their modes and times?
bool may_give_away();

}  // namespace sluice::exports
