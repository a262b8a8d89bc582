// Reads the list of what a source sends, on a thread of the pool of lists, while data moves already.
//
// On the loop's thread. Its destructor ends the reading.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/async/keyed_pool.h"
#include "control/gather/sources.h"

namespace sluice::runtime {

class ListReader {
 public:
  struct What {
    std::shared_ptr<const exports::Exports> exports;
    std::vector<std::string> paths;
    selection::Selection selection;
    std::vector<catalog::File> known;                        // is left out
    size_t kept_open = SIZE_MAX;                             // so many files stay open
    std::shared_ptr<const digests::Expected> expected = {};  // what a list wants of names
  };
  ListReader(asio::io_context& io, const async::KeyedPart& threads, What what);
  ~ListReader();
  ListReader(const ListReader&) = delete;
  ListReader& operator=(const ListReader&) = delete;

  struct Part {
    gather::OpenSources found;
    bool ended = false;
  };
  // What was found since it was asked last, once there is something, or it has ended. One question at a time;
  // no answer comes when this object is gone.
  void next(std::function<void(Result<Part>)> then);

 private:
  struct State;
  static void tell(const std::shared_ptr<State>& state);
  const std::shared_ptr<State> state_;
};

// What an operator wants to be sent, as far as it is found before there is something to begin with; `rest`
// has more. `whole`: all of it, however long that takes.
asio::awaitable<Result<gather::OpenSources>> begin_list(asio::io_context& io, async::KeyedPart threads,
                                                        ListReader::What what, bool whole);

}  // namespace sluice::runtime
