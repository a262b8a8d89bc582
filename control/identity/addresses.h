// Where peers listen, as one file says it for all: a line "NAME ADDRESS" for each, ADDRESS a host with or
// without a port. A thousand peers are one file, which is read again when it has changed and looked up in no
// time otherwise.
//
// parse() is pure. The rest blocks; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/error.h"

namespace sluice::identity {

class Addresses {
 public:
  static constexpr size_t kBytesMax = 8U << 20;
  static constexpr size_t kProblemsMax = 8;  // that are named; there may be more

  // `origin` names the text in problems.
  static Addresses parse(std::string_view text, const std::string& origin);
  // The one that was read last where the file is still the same. kConfiguration: it cannot be read, is too
  // long, or others than its owner may write it.
  static Result<std::shared_ptr<const Addresses>> load(const std::filesystem::path& file);

  // "host:port"; empty: nothing is said about that name.
  std::string find(const std::string& name) const;
  const std::map<std::string, std::string>& all() const { return all_; }
  // Lines that say nothing usable, with file, line, reason and remedy. The other lines count.
  const std::vector<Error>& problems() const { return problems_; }

 private:
  std::map<std::string, std::string> all_;
  std::vector<Error> problems_;
};

}  // namespace sluice::identity
