// What the API's service of names stands in front of: the node (node_names.h), or a test.
//
// All methods run on control's one io_context thread, and none of them blocks it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "control/names/words.h"
#include "dataplane/base/error.h"

namespace sluice::control {

// Of a question that is under way; destroyed, on that thread, it ends.
class NamesQuestion {
 public:
  struct Answer {  // neither: nothing has come for a while; ask again
    std::optional<names::Page> page;
    std::optional<names::Done> done;  // the last
  };
  virtual ~NamesQuestion() = default;
  virtual asio::awaitable<Result<Answer>> next() = 0;  // an error is final
};

class NamesManager {
 public:
  virtual ~NamesManager() = default;
  virtual asio::awaitable<Result<std::shared_ptr<NamesQuestion>>> ask(std::string peer,
                                                                      names::Request request) = 0;
};

}  // namespace sluice::control
