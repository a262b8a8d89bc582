// A NamesManager for tests of what stands in front of it: it keeps what it was asked, and answers as it is
// told.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/api/names_manager.h"

namespace sluice::service {

class FakeNames final : public NamesManager {
 public:
  asio::awaitable<Result<std::shared_ptr<NamesQuestion>>> ask(std::string peer,
                                                              names::Request request) override {
    const auto* const list = std::get_if<names::List>(&request);
    const bool of_one = list != nullptr && !list->recursive && !list->itself && !pages_of_one.empty();
    const std::vector<names::Page> told = list == nullptr          ? std::vector<names::Page>()
                                          : list->itself && itself ? *itself
                                          : of_one                 ? pages_of_one
                                                                   : pages;
    asked.emplace_back(std::move(peer), std::move(request));
    if (refusal) co_return *refusal;
    co_return std::shared_ptr<NamesQuestion>(std::make_shared<Question>(*this, told));
  }

  Result<std::unique_ptr<OwnNames>> list_own(const names::List& asked_own, const std::string& for_peer,
                                             exports::Abandoned) override {
    asked.emplace_back(for_peer.empty() ? "own" : "own, for " + for_peer, asked_own);
    if (own_refusal) return *own_refusal;
    return std::unique_ptr<OwnNames>(std::make_unique<Own>(own_pages));
  }
  Result<names::Done> change_own(const names::Request& asked_own, exports::Pulse& pulse) override {
    asked.emplace_back("own", asked_own);
    removing = true;
    while (silent && pulse.step()) std::this_thread::yield();
    if (pulse.stop) return Error{ErrorCode::kCancelled, "it was stopped"};
    if (own_refusal) return *own_refusal;
    return done;
  }

  std::vector<std::pair<std::string, names::Request>> asked;
  std::optional<Error> refusal;                    // instead of a question
  std::vector<names::Page> pages;                  // of each list
  std::vector<names::Page> pages_of_one;           // of a directory alone, if they are others
  std::optional<std::vector<names::Page>> itself;  // of a question about one name, if that is another
  std::optional<Error> end;                        // instead of `done`
  std::vector<names::Page> own_pages;
  std::optional<Error> own_refusal;
  names::Done done;
  bool silent = false;                 // never ends by itself
  std::atomic<bool> removing = false;  // or has removed
  int open = 0;                        // questions

 private:
  class Own final : public OwnNames {
   public:
    explicit Own(const std::vector<names::Page>& pages) : pages_(pages.begin(), pages.end()) {}
    Result<names::Page> next() override {
      if (pages_.empty()) return names::Page{};
      names::Page page = pages_.front();
      pages_.pop_front();
      return page;
    }

   private:
    std::deque<names::Page> pages_;
  };

  class Question final : public NamesQuestion {
   public:
    Question(FakeNames& names, const std::vector<names::Page>& pages)
        : names_(names), pages_(pages.begin(), pages.end()) {
      ++names_.open;
    }
    ~Question() override { --names_.open; }
    asio::awaitable<Result<Answer>> next() override {
      if (!pages_.empty()) {
        Answer answer{.page = std::move(pages_.front()), .done = {}};
        pages_.pop_front();
        co_return answer;
      }
      if (names_.silent) co_return Answer{};
      if (names_.end) co_return *names_.end;
      co_return Answer{.page = {}, .done = names_.done};
    }

   private:
    FakeNames& names_;
    std::deque<names::Page> pages_;
  };
};

}  // namespace sluice::service
