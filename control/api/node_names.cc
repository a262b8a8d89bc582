// SPDX-License-Identifier: Apache-2.0
#include "control/api/node_names.h"

namespace sluice::control {
namespace {

class Question final : public NamesQuestion {
 public:
  explicit Question(std::shared_ptr<node::NamesAsker> asker) : asker_(std::move(asker)) {}

  asio::awaitable<Result<Answer>> next() override {
    const std::shared_ptr<node::NamesAsker> asker = asker_;
    Result<node::NamesAnswer> answer = co_await asker->next();
    if (!answer) co_return answer.error();
    co_return Answer{.page = std::move(answer->page), .done = std::move(answer->done)};
  }

 private:
  const std::shared_ptr<node::NamesAsker> asker_;
};

}  // namespace

asio::awaitable<Result<std::shared_ptr<NamesQuestion>>> NodeNames::ask(std::string peer,
                                                                       names::Request request) {
  Result<std::shared_ptr<node::NamesAsker>> asker =
      co_await manager_.ask(std::move(peer), std::move(request));
  if (!asker) co_return asker.error();
  co_return std::shared_ptr<NamesQuestion>(std::make_shared<Question>(std::move(*asker)));
}

}  // namespace sluice::control
