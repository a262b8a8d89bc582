// What a process that has become a user does about names (server.h): lists them, and changes them, with his
// rights. Which exports there are is judged here as well.
//
// Of one connection, which has one list at a time; one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "control/exports/listing.h"
#include "control/exports/pulse.h"
#include "control/users/channel.h"
#include "control/users/server.h"
#include "control/users/words.h"

namespace sluice::users {

class ServedNames {
 public:
  // Both outlive it. Whoever hangs up stops what is under way.
  ServedNames(const Served& served, const Channel& channel);
  // Of kNames and kMore.
  Answer answer(const Call& call);

 private:
  Result<names::Word> begin(const Call& call);
  Result<names::Word> more();
  Result<names::Word> change(const names::Request& asked, const std::string& for_peer);

  const Served& served_;
  exports::Pulse pulse_;
  std::unique_ptr<exports::Listing> listing_;
};

}  // namespace sluice::users
