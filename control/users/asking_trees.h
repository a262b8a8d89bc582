// Trees and packs asked for at sluice-users: exports::UserTrees over connections (words.h), behind each of
// which stands a process of that user.
//
// Each list has a connection of its own, and what is asked about packs takes one of several (lanes.h). A pack
// that was staged by a process that has gone is staged again. Blocking; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/exports/as_user.h"
#include "control/users/lanes.h"

namespace sluice::users {

class AskingTrees final : public exports::UserTrees {
 public:
  explicit AskingTrees(std::shared_ptr<Lanes> lanes) : lanes_(std::move(lanes)) {}

  Result<std::vector<catalog::File>> list(const std::string& peer, const Wish& wish,
                                          const Take& take) override;
  Status preview(const std::string& peer, const Wish& wish, const exports::TakeEntry& take) override;
  Result<UniqueFd> fill_pack(const std::string& peer, const catalog::File& pack) override;
  std::vector<catalog::FailedName> names_of_changed(const std::string& peer,
                                                    const catalog::File& pack) override;
  Result<std::string> open_destination(const std::string& peer, const std::string& path,
                                       const catalog::Keep& keep) override;
  Status make_missing(const std::string& peer, const std::string& destination, bool is_directory,
                      const catalog::Keep& keep) override;
  Result<std::string> make_directories(const std::string& peer, const std::string& destination,
                                       const std::string& relative, catalog::Failure* why) override;
  Result<std::shared_ptr<exports::Unpacking>> stage(const std::string& peer, Pack pack) override;
  Status remove_staging(const std::string& peer, const catalog::File& pack,
                        const std::string& staging) override;

 private:
  class Staged;
  const std::shared_ptr<Lanes> lanes_;
};

}  // namespace sluice::users
