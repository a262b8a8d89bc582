// What the API's service of names stands in front of: the node (node_names.h), or a test.
//
// A question runs on control's one io_context thread, and does not block it. What is about names of this node
// blocks; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "control/exports/pulse.h"
#include "control/names/words.h"
#include "dataplane/base/error.h"

namespace sluice::service {

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

// A list of names of this node, for one thread.
class OwnNames {
 public:
  virtual ~OwnNames() = default;
  virtual Result<names::Page> next() = 0;  // without entries: it is complete
};

class NamesManager {
 public:
  virtual ~NamesManager() = default;
  // For a peer: only where it may look as well. Empty: for an operator. `abandoned` is asked now and then, by
  // whoever calls next(): does nobody wait any more?
  virtual Result<std::unique_ptr<OwnNames>> list_own(const names::List& asked, const std::string& for_peer,
                                                     exports::Abandoned abandoned) = 0;
  // Makes, moves or removes names; nothing else.
  virtual Result<names::Done> change_own(const names::Request& asked, exports::Pulse& pulse) = 0;
  virtual asio::awaitable<Result<std::shared_ptr<NamesQuestion>>> ask(std::string peer,
                                                                      names::Request request) = 0;
};

}  // namespace sluice::service
