// Questions about names, as the API puts them to the node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "control/api/names_manager.h"
#include "control/node/manager.h"

namespace sluice::service {

class NodeNames final : public NamesManager {
 public:
  explicit NodeNames(node::Manager& manager) : manager_(manager) {}

  asio::awaitable<Result<std::shared_ptr<NamesQuestion>>> ask(std::string peer,
                                                              names::Request request) override;
  Result<std::unique_ptr<OwnNames>> list_own(const names::List& asked, const std::string& for_peer) override;
  Result<names::Done> change_own(const names::Request& asked, exports::Pulse& pulse) override;

 private:
  node::Manager& manager_;
};

}  // namespace sluice::service
