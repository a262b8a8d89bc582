// A NamesManager for tests of what stands in front of it: it keeps what it was asked, and answers as it is
// told.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/api/names_manager.h"

namespace sluice::control {

class FakeNames final : public NamesManager {
 public:
  asio::awaitable<Result<std::shared_ptr<NamesQuestion>>> ask(std::string peer,
                                                              names::Request request) override {
    asked.emplace_back(std::move(peer), std::move(request));
    if (refusal) co_return *refusal;
    co_return std::shared_ptr<NamesQuestion>(std::make_shared<Question>(*this));
  }

  std::vector<std::pair<std::string, names::Request>> asked;
  std::optional<Error> refusal;    // instead of a question
  std::vector<names::Page> pages;  // of each question
  std::optional<Error> end;        // instead of `done`
  names::Done done;
  bool silent = false;  // never ends by itself
  int open = 0;         // questions

 private:
  class Question final : public NamesQuestion {
   public:
    explicit Question(FakeNames& names) : names_(names), pages_(names.pages.begin(), names.pages.end()) {
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

}  // namespace sluice::control
