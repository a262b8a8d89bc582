// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/list_reader.h"

#include <asio/post.hpp>
#include <atomic>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "control/async/notify.h"
#include "dataplane/base/check.h"
#include "dataplane/base/progress.h"

namespace sluice::runtime {

struct ListReader::State final : gather::SourceSink, std::enable_shared_from_this<ListReader::State> {
  explicit State(asio::io_context& context) : io(context) {}

  Status go_on() override {
    base::note_progress();
    if (!stopped.load(std::memory_order_relaxed)) return {};
    return Error{ErrorCode::kCancelled, "nobody wants the list of files any more"};
  }

  Status take(gather::OpenSources part) override {
    add(std::move(part));
    asio::post(io, [self = shared_from_this()] { tell(self); });
    return {};
  }

  void add(gather::OpenSources part) {
    DCHECK(part.files.size() == part.open.size(), "each file that was found has its place");
    const std::scoped_lock lock(mutex);
    std::move(part.files.begin(), part.files.end(), std::back_inserter(found.files));
    std::move(part.open.begin(), part.open.end(), std::back_inserter(found.open));
  }

  asio::io_context& io;
  std::atomic<bool> stopped = false;
  std::mutex mutex;
  gather::OpenSources found;    // under the mutex
  std::optional<Status> ended;  // on the loop, as the next
  std::function<void(Result<Part>)> then;
};

ListReader::ListReader(asio::io_context& io, const async::KeyedPart& threads, What what)
    : state_(std::make_shared<State>(io)) {
  threads.run(
      [state = state_, what = std::move(what)] {
        return gather::open_sources(*what.exports, what.paths, what.selection, state.get(), what.known,
                                    what.kept_open, what.expected);
      },
      // The rest comes with the word that it is the rest: a list of one part never grows.
      [state = state_](Result<gather::OpenSources> rest) {
        DCHECK(!state->ended, "a list ends once");
        state->ended = rest ? Status() : Status(rest.error());
        if (rest) state->add(std::move(*rest));
        tell(state);
      });
}

ListReader::~ListReader() {
  state_->stopped = true;
  state_->then = nullptr;
}

void ListReader::next(std::function<void(Result<Part>)> then) {
  DCHECK(then && !state_->then, "one question at a time");
  state_->then = std::move(then);
  // Not from within the question.
  asio::post(state_->io, [state = state_] { tell(state); });
}

void ListReader::tell(const std::shared_ptr<State>& state) {
  if (!state->then) return;
  Part part{.found = {}, .ended = state->ended.has_value()};
  if (state->ended && !*state->ended) return std::exchange(state->then, nullptr)(state->ended->error());
  {
    const std::scoped_lock lock(state->mutex);
    if (state->found.files.empty() && !part.ended) return;
    part.found = std::exchange(state->found, {});
    DCHECK(part.ended || !part.found.files.empty(), "there is something to tell");
  }
  std::exchange(state->then, nullptr)(std::move(part));
}

asio::awaitable<Result<gather::OpenSources>> begin_list(asio::io_context& io, async::KeyedPart threads,
                                                        ListReader::What what, bool whole) {
  struct Answer {
    explicit Answer(asio::io_context& context) : come(context) {}
    async::Notify come;
    std::optional<Result<ListReader::Part>> part;
  };
  if (whole) {
    auto open = [what = std::move(what)] {
      return gather::open_sources(*what.exports, what.paths, what.selection, nullptr, {}, what.kept_open,
                                  what.expected);
    };
    co_return co_await threads.wait_for(std::move(open));
  }
  const auto list = std::make_shared<ListReader>(io, threads, std::move(what));
  const auto answer = std::make_shared<Answer>(io);
  list->next([answer](Result<ListReader::Part> part) {
    answer->part.emplace(std::move(part));
    answer->come.notify();
  });
  while (!answer->part) co_await answer->come.wait();
  if (!*answer->part) co_return answer->part->error();
  ListReader::Part& part = **answer->part;
  if (!part.ended) {
    DCHECK(!part.found.files.empty(), "a list that goes on has found something");
    part.found.files.back().list = catalog::ListState::kGrowing;
    part.found.rest = list;
  }
  co_return std::move(part.found);
}

}  // namespace sluice::runtime
