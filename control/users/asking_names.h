// Names of this host asked for at sluice-users: exports::UserNames over connections (words.h), one for each
// list and each change, behind which stands a process of that user.
//
// Blocking; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "control/exports/as_user.h"
#include "control/users/lifeline.h"

namespace sluice::users {

class AskingNames final : public exports::UserNames {
 public:
  AskingNames(std::filesystem::path socket, uint32_t uid, std::shared_ptr<Lifeline> lifeline)
      : socket_(std::move(socket)), uid_(uid), lifeline_(std::move(lifeline)) {}

  Result<std::unique_ptr<List>> list(const names::List& asked, const std::string& for_peer,
                                     exports::Abandoned abandoned) override;
  Result<names::Done> change(const names::Request& asked, const std::string& for_peer,
                             exports::Pulse& pulse) override;

 private:
  class Pages;
  const std::filesystem::path socket_;
  const uint32_t uid_;
  const std::shared_ptr<Lifeline> lifeline_;
};

}  // namespace sluice::users
