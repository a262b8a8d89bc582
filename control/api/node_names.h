// Questions about names, as the API puts them to the node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "control/api/names_manager.h"
#include "control/exports/as_user.h"
#include "control/node/manager.h"

namespace sluice::service {

class NodeNames final : public NamesManager {
 public:
  // `user`: names of this node are listed and changed as this user of the host; else as an operator.
  explicit NodeNames(node::Manager& manager, std::optional<transfer::User> user = {});

  asio::awaitable<Result<std::shared_ptr<NamesQuestion>>> ask(std::string peer,
                                                              names::Request request) override;
  Result<std::unique_ptr<OwnNames>> list_own(const names::List& asked, const std::string& for_peer,
                                             exports::Abandoned abandoned) override;
  Result<names::Done> change_own(const names::Request& asked, exports::Pulse& pulse) override;

 private:
  Result<names::Done> change(const names::Request& asked, exports::Pulse& pulse);

  node::Manager& manager_;
  const std::optional<transfer::User> user_;
  const std::unique_ptr<exports::UserNames> as_user_;
};

}  // namespace sluice::service
